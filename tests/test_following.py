"""Following: everything once and in order, also when the journal has let go of it."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from itertools import islice
from typing import TYPE_CHECKING

from agent_chatroom_ledger.limits import JOURNAL_KEPT_BYTES

if TYPE_CHECKING:
    from agent_chatroom_ledger import Ledger

LONG = "x" * 200_000


def test_it_begins_after_the_position_and_goes_on(ledger: Ledger) -> None:
    room = ledger.create_room("Review")
    room.post_many([{"author": "A", "body": str(n)} for n in range(1, 6)])
    following = ledger.follow(room, since={ledger.origin: 3})
    assert [message.n for message in islice(following, 2)] == [4, 5]
    room.post("A", "6")
    room.post("A", "7")
    assert [message.body for message in islice(following, 2)] == ["6", "7"]


def test_without_a_position_it_begins_now(ledger: Ledger) -> None:
    room = ledger.create_room("Review")
    room.post("A", "before")
    following = ledger.follow(room, since=room.last_position())
    room.post("A", "after")
    assert next(following).body == "after"


def test_other_rooms_are_not_given(ledger: Ledger) -> None:
    room, other = ledger.create_room("Review"), ledger.create_room("Other")
    following = ledger.follow(room, since={})
    other.post("A", "elsewhere")
    room.post("A", "here")
    assert next(following).body == "here"


def test_changes_names_the_room(ledger: Ledger) -> None:
    room, other = ledger.create_room("Review"), ledger.create_room("Other")
    room.post("A", "first")
    changes = ledger.changes()
    # The first step is what takes the place in the journal.
    room.post("A", "second")
    following = ledger.changes(room, since={ledger.origin: 1})
    assert next(following)[1].body == "second"
    other.post("A", "elsewhere")
    room.exclude(1)
    room.post("A", "third")
    assert next(following)[1].body == "third"
    changes.close()


def test_a_slow_follower_misses_nothing(ledger: Ledger) -> None:
    room = ledger.create_room("Review")
    room.post("A", "first")
    following = ledger.follow(room, since={})
    assert next(following).n == 1
    count = 2 * JOURNAL_KEPT_BYTES // len(LONG)
    for n in range(count):
        room.post("A", f"{n} {LONG}")
        if n % 10 == 0:
            ledger.flush()
    ledger.flush()
    room.post("A", "last")
    numbers = [next(following).n]
    while numbers[-1] < count + 2:
        numbers.append(next(following).n)
    assert numbers == list(range(2, count + 3))


def test_a_room_at_the_path_of_one_that_was_archived_is_another(ledger: Ledger) -> None:
    """Its numbers begin anew, and what follows can be answered in the room that it was said in."""
    first = ledger.create_room("Review")
    changes = ledger.changes()
    with ThreadPoolExecutor() as pool:
        begun = pool.submit(next, changes)
        while not begun.done():
            first.post("A", "begin")
    first.post("A", "end")
    while next(changes)[1].body != "end":
        pass
    ledger.archive_room(first)
    ledger.create_room("Review").post("A", "hello")
    room, message = next(changes)
    assert (message.n, message.body, room.id != first.id) == (1, "hello", True)
    assert room.post("B", "hello too").n == 2
