"""The queue of a name, asked of the index: in order, past places, from a mark."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

import pytest

from agent_chatroom_ledger.domain.clock import from_datetime, to_micros
from agent_chatroom_ledger.storage import foreign, queue
from agent_chatroom_ledger.storage.index import Index
from agent_chatroom_ledger.storage.queue import Queue, counts, queued, records_since

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Iterator

    from agent_chatroom_ledger import Ledger, Room
    from agent_chatroom_ledger.storage.queue import LogKey


@pytest.fixture
def rooms(ledger: Ledger) -> tuple[Room, Room]:
    made = ledger.create_room("One", members=["Ben"]), ledger.create_room("Two", members=["Ben"])
    for n in range(6):
        made[n % 2].post("Ana", str(n))
    made[0].post("Ben", "my own")
    made[0].post("Ana", "joined", kind="event")
    made[1].post("Ana", "to one", to=["Cleo"])
    return made


@pytest.fixture(params=["file", "reader with a file", "reader without a file"])
def index(
    request: pytest.FixtureRequest, ledger: Ledger, rooms: tuple[Room, Room]
) -> Iterator[Index]:
    assert rooms
    if request.param == "reader with a file":
        ledger.index.follow()
    found = Index(ledger.layout, writable=request.param == "file")
    yield found
    found.close()


def ask(
    index: Index,
    ledger: Ledger,
    me: str = "Ben",
    *,
    low: int = 0,
    mark: str = "-",
    places: dict[LogKey, int] | None = None,
    limit: int = 100,
    room: str = "",
) -> Queue:
    return queued(
        index, me, mine=ledger.origin, low=low, mark=mark, places=places or {}, limit=limit,
        room=room,
    )  # fmt: skip


def where(queue: Queue) -> list[tuple[str, int]]:
    return [(row.path.removeprefix("rooms/"), row.n) for row in queue.rows]


def test_the_oldest_come_first_whatever_their_room(index: Index, ledger: Ledger) -> None:
    found = ask(index, ledger)
    interleaved = [("one", 1), ("two", 1), ("one", 2), ("two", 2), ("one", 3), ("two", 3)]
    assert where(found) == [*interleaved, ("two", 4)]
    assert found.whole
    assert [row.at for row in found.rows] == sorted(row.at for row in found.rows)
    first = ask(index, ledger, limit=3)
    assert (where(first), first.whole) == (interleaved[:3], False)
    assert ask(index, ledger, limit=7).whole
    assert where(ask(index, ledger, room="rooms/two"))[-1] == ("two", 4)
    assert where(ask(index, ledger, "Cleo")) == [("two", 4)]
    assert where(ask(index, ledger, "Dan")) == []


def test_places_and_marks_leave_out_what_is_done(
    index: Index, ledger: Ledger, rooms: tuple[Room, Room]
) -> None:
    place = {(rooms[0].id, ledger.origin): 3, ("of no room", ledger.origin): 9}
    assert where(ask(index, ledger, places=place)) == [("two", n) for n in (1, 2, 3, 4)]
    at = to_micros(from_datetime(rooms[1].message(2).at))
    mark = ask(index, ledger).mark
    assert where(ask(index, ledger, low=at, mark=mark)) == [("one", 3), ("two", 3), ("two", 4)]
    # A mark of another state of the index says nothing.
    assert len(ask(index, ledger, low=at, mark="another").rows) == 7
    assert ask(index, ledger).newest == to_micros(from_datetime(rooms[1].message(4).at))


def test_a_foreign_commit_changes_the_mark(ledger: Ledger, rooms: tuple[Room, Room]) -> None:
    assert rooms
    before = ask(ledger.index, ledger).mark
    foreign.mark(ledger.layout, "0" * 40, 0)
    assert ask(ledger.index, ledger).mark != before


def test_counts_agree_with_what_is_queued(
    index: Index, ledger: Ledger, rooms: tuple[Room, Room]
) -> None:
    one, two = rooms
    place, beyond = {(one.id, ledger.origin): 1}, {(two.id, ledger.origin, 3)}
    found = counts(index, "Ben", low=0, mark="-", places=place, beyond=beyond)
    assert {count.path: count.count for count in found} == {one.path: 2, two.path: 3}
    one.exclude([2])
    found = counts(index, "Ben", low=0, mark="-", places={}, beyond=set(), room=one.path)
    assert [(count.excludes, count.numbers) for count in found] == [(True, (1, 2, 3))]
    (cleo,) = counts(index, "Cleo", low=0, mark="-", places={}, beyond=set())
    assert (cleo.path, cleo.count) == (two.path, 1)


def test_how_many_messages_lie_between_two_times(index: Index, rooms: tuple[Room, Room]) -> None:
    first, last = (to_micros(from_datetime(rooms[1].message(n).at)) for n in (1, 4))
    assert records_since(index, first, last) == 6
    assert records_since(index, first, last, limit=2) == 2
    assert records_since(index, last, last) == 0


def test_times_of_one_log_never_run_back(ledger: Ledger, rooms: tuple[Room, Room]) -> None:
    """Whatever a foreign writer put there: a place stands for all numbers before it."""
    from agent_chatroom_ledger.storage.indexfill import Filler

    log = f"{rooms[0].path}/messages/other"
    lines = [
        b'{"n":%d,"id":"x%d","at":"2030-01-01T00:00:0%d.000000Z","author":"Eve","kind":"message"}'
        % (n, n, second)
        for n, second in ((1, 5), (2, 3), (3, 9))
    ]

    def fill(link: object) -> list[int]:
        filler = Filler(link, ledger.look, thorough=True, memory=False)  # type: ignore[arg-type] - the index's own
        filler._add(log, enumerate(lines, 1))
        query = "SELECT at FROM records JOIN logs USING (log_id) WHERE log = ? ORDER BY n"
        return [row[0] for row in link.execute(query, (log,))]  # type: ignore[attr-defined] - likewise

    times = ledger.index.ask(fill)
    assert times[0] == times[1] < times[2]


def test_what_comes_while_one_asks_is_not_reckoned_with(
    ledger: Ledger, rooms: tuple[Room, Room], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another process writes to the file between two parts of a question."""
    newest, threads = queue._newest, list[threading.Thread]()

    def write() -> None:
        rooms[0].post("Ana", "meanwhile")
        other = Index(ledger.layout)
        other.follow()
        other.close()

    def later(link: sqlite3.Connection, origin: str) -> int:
        threads.append(threading.Thread(target=write))
        threads[0].start()
        # It may have to wait for the end of this question.
        threads[0].join(0.5)
        return newest(link, origin)

    index = Index(ledger.layout)
    before = ask(index, ledger)
    monkeypatch.setattr(queue, "_newest", later)
    found = ask(index, ledger)
    threads[0].join()
    monkeypatch.undo()
    assert found == before
    left = ask(index, ledger, low=found.newest, mark=found.mark)
    assert [row.n for row in left.rows] == [rooms[0].last_position()[ledger.origin]]
    index.close()
