"""Receipts of one message: handed over, seen and answered are three facts, and nobody is missed."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from agent_chatroom_ledger.errors import Conflict, Corrupt, NotFound
from agent_chatroom_ledger.receipts import receipts_of
from agent_chatroom_ledger.storage.cursors import cursor_name

if TYPE_CHECKING:
    from agent_chatroom_ledger import Ledger, Room


@pytest.fixture
def room(ledger: Ledger) -> Room:
    return ledger.create_room("Review", members=["Ana", "Ben", "Cleo"])


def names(ledger: Ledger, record_id: str) -> list[str]:
    return [receipt.name for receipt in receipts_of(ledger, record_id).receipts]


def test_recipients_are_those_of_the_time(ledger: Ledger, room: Room) -> None:
    message = room.post("Ana", "hello", to=["Dan"])
    room.remove_member("Cleo")
    room.add_member("Eve")
    assert names(ledger, message.id) == ["Dan", "Ben", "Cleo"]
    event = room.post("Ana", "joined", kind="event")
    assert names(ledger, event.id) == []


def test_none_of_the_facts_follows_from_another(ledger: Ledger, room: Room) -> None:
    message = room.post("Ana", "hello")
    ledger.agent("Ben", session="s1", door="mcp").inbox()
    ledger.agent("Cleo").seen(room, message)
    ledger.agent("Dan").post(room, "I am no member", cause=message.id)
    ben, cleo, dan = receipts_of(ledger, message.id).receipts
    assert (ben.name, ben.door, ben.session, ben.times) == ("Ben", "mcp", "s1", 1)
    assert (ben.handed_at is not None, ben.seen, ben.answers) == (True, False, ())
    assert (cleo.handed_at, cleo.seen, cleo.answers) == (None, True, ())
    assert (dan.handed_at, dan.seen, len(dan.answers)) == (None, False, 1)
    assert not dan.addressed


def test_when_it_was_seen_is_known_only_while_the_cursor_stands_there(
    ledger: Ledger, room: Room
) -> None:
    first = room.post("Ana", "one")
    second = room.post("Ana", "two")
    ledger.agent("Ben").seen(room, first)
    assert receipts_of(ledger, first.id).receipts[0].seen_at is not None
    assert not receipts_of(ledger, second.id).receipts[0].seen
    ledger.agent("Ben").seen(room, second)
    (ben, *_) = receipts_of(ledger, first.id).receipts
    assert (ben.seen, ben.seen_at) == (True, None)


def test_answers_from_any_room_oldest_first(ledger: Ledger, room: Room) -> None:
    message = room.post("Ana", "who?")
    other = ledger.create_room("Other")
    answers = [place.post("Ben", "me", cause=message.id).id for place in (other, room, other)]
    (ben, *_) = receipts_of(ledger, message.id).receipts
    assert [answer.message.id for answer in ben.answers] == answers
    assert [answer.room for answer in ben.answers] == [other, room, other]


def test_copies_and_ids_of_several_rooms(ledger: Ledger, room: Room) -> None:
    other = ledger.create_room("Other", members=["Dan"])
    for place in (room, other):
        place.post("Ana", "hello", id="same")
    ledger.agent("Dan").inbox()
    with pytest.raises(Conflict) as caught:
        receipts_of(ledger, "same")
    assert caught.value.code == "ambiguous"
    assert receipts_of(ledger, "same", "Dan").room == other
    assert receipts_of(ledger, "other#1").receipts[0].handed_at is not None
    # The receipt of one room's record is none of the other's.
    assert receipts_of(ledger, "review#1").receipts[0].handed_at is None
    room.place([1], other, reason="kept")
    (copy,) = other.messages(last=1)
    assert [receipt.name for receipt in receipts_of(ledger, copy.id or "").receipts] == ["Dan"]


def test_what_is_not_there(ledger: Ledger, room: Room) -> None:
    assert room
    for name in ("nothing", "review#7", "nowhere#1"):
        with pytest.raises(NotFound):
            receipts_of(ledger, name)


@pytest.mark.broken_on_purpose
def test_a_damaged_cursor_is_named(ledger: Ledger, room: Room) -> None:
    message = room.post("Ana", "hello")
    ledger.agent("Ben").seen(room)
    (ledger.layout.cursors / cursor_name("Ben")).write_text("{")
    with pytest.raises(Corrupt, match="cursor file"):
        receipts_of(ledger, message.id)
