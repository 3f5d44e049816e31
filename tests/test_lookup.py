"""Finding a message by its id or its place."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from agent_chatroom_ledger import Conflict, InvalidInput, Ledger, NotFound
from agent_chatroom_ledger.lookup import correlated, find_message, place_of

if TYPE_CHECKING:
    from pathlib import Path


def test_by_id_and_by_place(ledger: Ledger) -> None:
    room = ledger.create_room("Review", folder="team")
    message = room.post("Ana", "hi")
    assert place_of(room, message) == "team/review#1"
    for name in (message.id, "team/review#1", "review#1", f"Review#{message.full_ref}"):
        assert find_message(ledger, name) == (room, message)


@pytest.mark.parametrize("name", ["none", "review#7", "review#x", "nowhere#1", "#1", "review#"])
def test_what_is_not_there_names_the_way_out(ledger: Ledger, name: str) -> None:
    ledger.create_room("Review").post("Ana", "hi")
    with pytest.raises(NotFound, match="ROOM#N"):
        find_message(ledger, name)


@pytest.mark.parametrize("name", ["", "  "])
def test_nothing_names_no_message(ledger: Ledger, name: str) -> None:
    with pytest.raises(InvalidInput):
        find_message(ledger, name)


def test_an_id_that_looks_like_a_place_is_an_id(ledger: Ledger) -> None:
    room = ledger.create_room("Review")
    room.post("Ana", "first")
    odd = room.post("Ana", "second", id="review#1")
    assert find_message(ledger, "review#1") == (room, odd)


def test_one_id_in_several_rooms_means_the_one_that_concerns_the_asker(ledger: Ledger) -> None:
    rooms = [ledger.create_room(title) for title in ("One", "Two", "Three")]
    said = [room.post("Ana", "hi", id="k") for room in rooms]
    with pytest.raises(Conflict) as refused:
        find_message(ledger, "k", "Ben")
    assert refused.value.code == "ambiguous"
    assert refused.value.fields["candidates"] == ["one#1", "three#1", "two#1"]
    rooms[1].add_member("Ben")
    assert find_message(ledger, "k", "Ben") == (rooms[1], said[1])
    assert find_message(ledger, "three#1", "Ben") == (rooms[2], said[2])


def test_who_was_addressed_comes_before_who_is_a_member(ledger: Ledger) -> None:
    ledger.create_room("One", members=["Ben"]).post("Ana", "hi", id="k")
    to_ben = ledger.create_room("Two").post("Ana", "hi", id="k", to=["Ben"])
    assert find_message(ledger, "k", "Ben")[1] == to_ben


def test_copies_that_were_placed_have_places(ledger: Ledger) -> None:
    source, one, two = (ledger.create_room(title) for title in ("Source", "One", "Two"))
    source.post("Ana", "hi")
    for target in (one, two):
        source.place("1", target, reason="relevant")
    copied = one.messages()[0]
    assert copied.id == two.messages()[0].id
    with pytest.raises(Conflict, match="one#1, two#1"):
        ledger.agent("Ben").reply_all(copied.id, "which?")
    assert ledger.agent("Ben").reply_all("two#1", "this").room == two


def test_operations_and_archived_rooms_bear_no_message(ledger: Ledger) -> None:
    room = ledger.create_room("Review", members=["Ana"])
    operation = next(room.reader().descending(log="operations"))
    message = room.post("Ana", "hi")
    with pytest.raises(NotFound):
        find_message(ledger, operation.id)
    ledger.archive_room(room)
    with pytest.raises(NotFound):
        find_message(ledger, message.id)


def test_a_reader_without_the_right_to_write_finds_it_too(ledger: Ledger, tmp_path: Path) -> None:
    message = ledger.create_room("Review").post("Ana", "hi")
    with Ledger.open(tmp_path / "ledger", read_only=True) as reader:
        assert find_message(reader, message.id)[1] == message


@pytest.mark.parametrize("read_only", [False, True])
def test_a_correlation_is_found_in_all_rooms_archived_ones_too(
    ledger: Ledger, *, read_only: bool
) -> None:
    rooms = [ledger.create_room(title) for title in ("One", "Two", "Three")]
    for n in range(4):
        for room in rooms:
            room.post("Ann", f"{room.path} {n}", correlation="c" if n % 2 else "d")
    ledger.archive_room("two")
    ledger.room("three").post("Ann", "the last", correlation="c")
    with Ledger.open(ledger.root, read_only=read_only) as other:
        found = correlated(other, "c")
        assert [message.body for _, message in found] == [
            *(f"{room.path} {n}" for n in (1, 3) for room in rooms),
            "the last",
        ]
        assert [room.path.rpartition("/")[2] for room, _ in found[:3]] == ["one", "two", "three"]
        assert correlated(other, "e") == []
