"""Consumers: what is unread, and how a cursor moves (invariant 6)."""

from __future__ import annotations

import json
import shutil
from typing import TYPE_CHECKING

import pytest

from agent_chatroom_ledger import Conflict, Corrupt, InvalidInput, Ledger, NotFound

if TYPE_CHECKING:
    from pathlib import Path

    from agent_chatroom_ledger import Room
    from tests.conftest import Git, MakeLedger


@pytest.fixture
def room(ledger: Ledger) -> Room:
    found = ledger.create_room("Design review", members=["Analyst"])
    for n in range(3):
        found.post("Reviewer", f"message {n}")
    return found


def test_two_readers_diverge(ledger: Ledger, room: Room) -> None:
    one, other = ledger.consumer("Analyst"), ledger.consumer("Reviewer")
    assert [item.count for item in one.unread()] == [3]
    one.acknowledge(room, through=2)
    assert [item.count for item in one.unread()] == [1]
    assert [item.count for item in other.unread()] == [3]


def test_reading_and_posting_move_nothing(ledger: Ledger, room: Room) -> None:
    reader = ledger.consumer("Analyst")
    for _ in range(2):
        (item,) = reader.unread()
        assert [message.n for message in item.messages()] == [1, 2, 3]
    room.post("Analyst", "my own counts too")
    assert reader.unread()[0].count == 4
    assert not reader.cursor_path.exists()


def test_an_item_says_what_is_there(ledger: Ledger, room: Room) -> None:
    reader = ledger.consumer("Analyst")
    reader.acknowledge(room, through=1)
    (item,) = reader.unread()
    assert item.room == room
    assert item.position == {ledger.origin: 1}
    assert item.newest == {ledger.origin: 3}
    assert item.last.n == 3
    assert [message.n for message in item.messages(limit=1)] == [2]
    assert item.messages(limit=0) == []


def test_everything_can_be_acknowledged_at_once(ledger: Ledger, room: Room) -> None:
    reader = ledger.consumer("Analyst")
    assert reader.acknowledge(room) == {ledger.origin: 3}
    assert reader.unread() == []
    room.post("Reviewer", "one more")
    assert reader.unread()[0].count == 1


@pytest.mark.parametrize("form", ["message", "number", "text", "reference", "position"])
def test_through_takes_every_form(ledger: Ledger, room: Room, form: str) -> None:
    reader = ledger.consumer("Analyst")
    message = room.message(2)
    through = {
        "message": message,
        "number": 2,
        "text": "2",
        "reference": message.full_ref,
        "position": {ledger.origin: 2},
    }[form]
    assert reader.acknowledge(room, through=through) == {ledger.origin: 2}


def test_a_cursor_only_moves_forward_unless_told(ledger: Ledger, room: Room) -> None:
    reader = ledger.consumer("Analyst")
    reader.acknowledge(room, through=3)
    assert reader.acknowledge(room, through=1) == {ledger.origin: 3}
    assert reader.acknowledge(room, through=1, rewind=True) == {ledger.origin: 1}
    assert reader.acknowledge(room, through=0, rewind=True) == {}
    assert reader.unread()[0].count == 3


def test_past_the_end_is_an_error(ledger: Ledger, room: Room) -> None:
    reader = ledger.consumer("Analyst")
    for through in (4, {"nobody-0000": 1}):
        with pytest.raises(InvalidInput) as caught:
            reader.acknowledge(room, through=through)
        assert caught.value.code == "past_end"
    assert not reader.cursor_path.exists()


def test_history_is_never_unread(ledger: Ledger) -> None:
    room = ledger.create_room("Logs")
    room.post("Bot", "joined", kind="event")
    reader = ledger.consumer("Analyst")
    assert reader.unread() == []
    room.post_many([
        {"author": "Ann", "body": "hello"},
        {"author": "Bot", "body": "left", "kind": "event"},
        {"author": "Ann", "body": "bye"},
        {"author": "Bot", "body": "left", "kind": "room.note"},
    ])  # fmt: skip
    (item,) = reader.unread()
    assert item.count == 2
    assert [message.body for message in item.messages()] == ["hello", "bye"]
    assert item.last.body == "bye"
    assert reader.unread(rooms=[room])[0].count == 2
    reader.acknowledge(room, through=item.messages()[-1])
    assert reader.unread() == []


def test_members_only_leaves_out_other_rooms(ledger: Ledger, room: Room) -> None:
    other = ledger.create_room("Other")
    other.post("Reviewer", "hello")
    reader = ledger.consumer("Analyst")
    assert [item.room for item in reader.unread()] == [room, other]
    assert [item.room for item in reader.unread(members_only=True)] == [room]
    assert [item.room for item in reader.unread(rooms=["other"])] == [other]
    assert reader.unread(rooms=["other"], members_only=True) == []


def test_several_rooms_share_one_file(ledger: Ledger, room: Room, tmp_path: Path) -> None:
    other = ledger.create_room("Other")
    other.post("Reviewer", "hello")
    path = tmp_path / "mine.json"
    reader = ledger.consumer("Analyst", cursor=path)
    reader.acknowledge(room, through=2)
    reader.acknowledge(other)
    assert ledger.consumer("Analyst", cursor=str(path)).unread()[0].count == 1
    assert len(json.loads(path.read_text())["positions"]) == 2
    with pytest.raises(InvalidInput):
        ledger.consumer("Reviewer", cursor=path).unread()


def test_a_new_process_goes_on_where_the_last_one_stopped(ledger: Ledger, room: Room) -> None:
    ledger.consumer("Analyst").acknowledge(room, through=2)
    with Ledger.open(ledger.root, read_only=True) as again:
        assert [item.count for item in again.consumer("Analyst").unread()] == [1]


def test_a_damaged_cursor_is_no_first_run(ledger: Ledger, room: Room) -> None:
    reader = ledger.consumer("Analyst")
    reader.acknowledge(room)
    good = reader.cursor_path.read_bytes()
    reader.cursor_path.write_bytes(good[:-20])
    with pytest.raises(Corrupt):
        reader.unread()
    reader.cursor_path.write_bytes(good)
    assert reader.unread() == []


def test_a_cursor_from_a_longer_ledger_does_not_fit(
    ledger: Ledger, room: Room, make_ledger: MakeLedger, tmp_path: Path
) -> None:
    assert room.ledger is ledger
    ledger.close()
    shutil.copytree(ledger.root, tmp_path / "older", symlinks=True)
    with Ledger.open(ledger.root) as newer:
        newer.room("design-review").post("Reviewer", "only here")
        newer.consumer("Analyst", cursor=tmp_path / "mine.json").acknowledge("design-review")
    older = make_ledger("older", create=False)
    reader = older.consumer("Analyst", cursor=tmp_path / "mine.json")
    for act in (reader.unread, lambda: reader.acknowledge("design-review")):
        with pytest.raises(Conflict) as caught:
            act()
        assert caught.value.code == "cursor_mismatch"
    assert reader.acknowledge("design-review", through=0, rewind=True) == {}
    assert reader.unread()[0].count == 3


def test_a_cursor_that_names_another_record_does_not_fit(ledger: Ledger, room: Room) -> None:
    reader = ledger.consumer("Analyst")
    reader.acknowledge(room, through=2)
    good = reader.cursor_path.read_text()
    document = json.loads(good)
    document["positions"][room.id]["messages"][ledger.origin]["id"] = "another"
    reader.cursor_path.write_text(json.dumps(document))
    with pytest.raises(Conflict) as caught:
        reader.unread()
    assert caught.value.code == "cursor_mismatch"
    assert not ledger.verify().ok
    assert reader.acknowledge(room, through=2, rewind=True) == {ledger.origin: 2}


def test_a_room_that_is_not_there_is_not_found(ledger: Ledger) -> None:
    with pytest.raises(NotFound):
        ledger.consumer("Analyst").acknowledge("nowhere")
    with pytest.raises(InvalidInput):
        ledger.consumer("")


def test_a_message_stands_for_all_that_were_given_before_it(
    ledger: Ledger, room: Room, make_ledger: MakeLedger, tmp_path: Path
) -> None:
    assert room.ledger is ledger
    ledger.close()
    shutil.copytree(ledger.root, tmp_path / "clone", symlinks=True)
    clone = make_ledger("clone", create=False)
    assert clone.origin != ledger.origin
    clone.room("design-review").post("Other", "from elsewhere")
    place = clone.room("design-review")
    assert [message.ref for message in place.messages()] == [
        "1", "2", "3", f"1@{clone.origin}",
    ]  # fmt: skip
    reader = clone.consumer("Analyst")
    (item,) = reader.unread()
    assert item.count == 4
    messages = item.messages()
    assert reader.acknowledge(place, through=messages[-1]) == {ledger.origin: 3, clone.origin: 1}
    stranger = clone.consumer("Stranger")
    # Nothing was given to this one, so the message stands for its own origin only.
    assert stranger.acknowledge(place, through=messages[-1]) == {clone.origin: 1}
    assert [message.n for message in stranger.unread()[0].messages()] == [1, 2, 3]


def test_a_reader_of_a_fresh_clone_may_have_a_cursor(
    ledger: Ledger, room: Room, git: Git, tmp_path: Path
) -> None:
    room.ledger.flush()
    git(tmp_path, "clone", "-q", str(ledger.root), "clone")
    with Ledger.open(tmp_path / "clone", read_only=True) as reader:
        consumer = reader.consumer("Analyst")
        assert consumer.unread()[0].count == 3
        assert consumer.acknowledge("design-review", through=2) == {ledger.origin: 2}
        assert consumer.unread()[0].count == 1
    with Ledger.open(tmp_path / "clone") as writer:
        assert writer.origin not in {"", ledger.origin}
        assert writer.consumer("Analyst").unread()[0].count == 1
