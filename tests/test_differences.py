"""What became of a room between two commits, and what touched one message."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from agent_chatroom_ledger import InvalidInput, NotFound
from agent_chatroom_ledger.differences import RoomDiff, VersionChange, compare
from agent_chatroom_ledger.placement import place
from agent_chatroom_ledger.storage import history

if TYPE_CHECKING:
    from agent_chatroom_ledger import Ledger, Room
    from tests.conftest import Git


@pytest.fixture
def room(ledger: Ledger) -> Room:
    """Give a room in which six messages stand."""
    found = ledger.create_room("Here", members=["Ann"])
    found.post_many([{"author": "Ann", "body": str(n)} for n in range(1, 7)])
    return found


def _now(room: Room) -> str:
    return room.ledger.commit_at("main")


def test_nothing_changed(room: Room) -> None:
    room.ledger.create_room("There").post("Ben", "elsewhere")
    found = compare(room, _now(room))
    assert found.same
    assert found == RoomDiff(
        room=room.path, before=_now(room), after=_now(room), origin=room.origin
    )


def test_messages_that_were_added(room: Room) -> None:
    before = _now(room)
    room.post_many([{"author": "Ben", "body": "seven"}, {"author": "Ben", "body": "eight"}])
    found = compare(room, before)
    assert [m.body for m in found.messages] == ["seven", "eight"]
    assert (found.missing, found.operations, found.created, found.gone) == ((), (), False, False)
    back = compare(room, "main", before)
    assert back.missing == (f"7-8@{room.origin}",)
    assert back.messages == ()


def test_policy_changes_in_ranges(room: Room) -> None:
    room.exclude("1-3", by="Ann")
    before = _now(room)
    room.include("2", by="Ann", reason="needed")
    room.exclude("5-6", by="Ann")
    room.add_standin("1", "in short", by="Ben")
    found = compare(room, before)
    origin = room.origin
    assert (found.excluded, found.included) == ((f"5-6@{origin}",), (f"2@{origin}",))
    assert [s.body for s in found.standins_added] == ["in short"]
    assert [o.kind for o in found.operations] == [
        "policy.include",
        "policy.exclude",
        "policy.standin",
    ]
    back = compare(room, "main", before)
    assert (back.excluded, back.included) == (found.included, found.excluded)
    assert back.standins_removed == found.standins_added


def test_a_room_that_was_made_or_went(room: Room) -> None:
    ledger = room.ledger
    made = compare(room, "main~7", "main")
    assert made.created
    assert len(made.messages) == 6
    assert made.members_added == ("Ann",)
    assert [o.kind for o in made.operations] == ["room.create"]
    gone = compare(room, "main", "main~7")
    assert (gone.gone, gone.members_removed) == (True, ("Ann",))
    other = ledger.create_room("Other")
    with pytest.raises(NotFound):
        compare(other, "main~2", "main~1")


@pytest.mark.broken_on_purpose
def test_versions_are_compared_file_by_file(room: Room, git: Git) -> None:
    ledger = room.ledger
    ledger.flush()
    folder = ledger.root / room.path / "versions" / room.origin / "00" / "00"
    folder.mkdir(parents=True)
    for name in ("2.json", "3.json", "notes.txt"):
        (folder / name).write_text("{}")
    git(ledger.root, "add", "-A")
    git(ledger.root, "commit", "-qm", "versions")
    (folder / "2.json").write_text('{"x":1}')
    (folder / "3.json").unlink()
    git(ledger.root, "add", "-A")
    git(ledger.root, "commit", "-qm", "versions again")
    one, two = f"2@{room.origin}", f"3@{room.origin}"
    assert compare(room, "main~2", "main~1").versions == (
        VersionChange(one, "set"),
        VersionChange(two, "set"),
    )
    assert compare(room, "main~1", "main").versions == (
        VersionChange(one, "changed"),
        VersionChange(two, "removed"),
    )


def _kinds(room: Room, message: int | str) -> list[str]:
    return [kind for e in room.ledger.log(room, message=message) for kind in e.kinds]


def test_the_log_of_a_message_has_all_that_touched_it(room: Room) -> None:
    room.exclude("1-3", by="Ann", reason="noise")
    room.exclude("5", by="Ann")
    room.include("2", by="Ann")
    room.add_standin("3", "in short", insert_after=4, by="Ben")
    room.post("Ben", "an answer", reply_to="2")
    room.clear_policy(by="Ann")
    room.ledger.consumer("Ann").acknowledge(room, through=3)
    assert _kinds(room, 2) == ["policy.include", "policy.exclude", "message"]
    assert _kinds(room, "3") == [
        "policy.clear",
        "policy.standin",
        "policy.exclude",
        "message",
    ]
    assert _kinds(room, f"4@{room.origin}") == ["policy.clear", "policy.standin", "message"]
    assert _kinds(room, 6) == ["message"]
    entries = room.ledger.log(room, message=3, author="ben")
    assert [e.kinds for e in entries] == [("policy.standin",)]
    assert len(room.ledger.log(room, message=3, limit=2)) == 2
    [last] = room.ledger.log(room, message=6, patch=True)
    assert '"n":6' in (last.patch or "")
    assert last.messages == (f"6@{room.origin}",)
    assert room.ledger.log(room, message=6, since=room.message(6).at.replace(year=2200)) == []


def test_a_body_that_looks_like_a_reference_touches_nothing(room: Room) -> None:
    room.add_standin("1", f"2@{room.origin}", insert_after=1, by="Ben", reason=f"2@{room.origin}")
    assert _kinds(room, 2) == ["message"]


def test_the_same_number_in_another_room_is_another_message(room: Room) -> None:
    other = room.ledger.create_room("Other")
    other.post_many([{"author": "Ann", "body": "x"}, {"author": "Ann", "body": "y"}])
    other.exclude("1", by="Ann")
    assert _kinds(room, 1) == ["message"]
    [entry] = room.ledger.log(room, message=1)
    assert entry.rooms == (room.path,)


def test_the_log_of_no_message(room: Room) -> None:
    with pytest.raises(NotFound):
        room.ledger.log(room, message=7)
    with pytest.raises(InvalidInput):
        room.ledger.log(message=1)


def test_a_commit_is_found_where_a_clock_ran_back(room: Room) -> None:
    ledger = room.ledger
    message = room.message(3)
    commit = history.commit_of(ledger.objects, ledger.timeline, "rooms/nowhere", message)
    assert commit is not None
    assert f"Record: {message.id}\n" in commit.message


def test_a_placement_touches_originals_and_copies(room: Room) -> None:
    ledger = room.ledger
    other = ledger.create_room("Other")
    other.post_many([{"author": "Ann", "body": body} for body in ("x", "y", "z")])
    place(room, "2", other, reason="it belongs there", by="Ann")
    assert _kinds(room, 4) == ["message"]
    assert _kinds(other, 2) == ["message"]
    [copied] = ledger.log(other, message=4)
    placed, said = ledger.log(room, message=2)
    assert placed == copied
    assert "messages.place" in placed.kinds
    assert said.kinds == ("message",)
