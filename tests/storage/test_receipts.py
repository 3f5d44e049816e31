"""Receipts: one step, never taken for a first run, and nobody's step undone by another's."""

from __future__ import annotations

import multiprocessing
import os
import sqlite3
import sys
import threading
from typing import TYPE_CHECKING

import pytest

from agent_chatroom_ledger.errors import Busy, Corrupt, Forbidden, InvalidInput
from agent_chatroom_ledger.storage import receipts as module
from agent_chatroom_ledger.storage.receipts import Given, LowWater, Receipts

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from agent_chatroom_ledger.storage.layout import Layout

WHEN = "2026-11-29T21:27:42.123456Z"
LATER = "2026-11-29T22:00:00.000000Z"


@pytest.fixture
def store(layout: Layout) -> Iterator[Receipts]:
    made = Receipts(layout)
    yield made
    made.close()


def given(n: int, record: str = "", room: str = "room-1") -> Given:
    return Given(room=room, origin="mbp", n=n, record=record or f"id-{n}")


def confirm(store: Receipts, *records: Given, name: str = "Ana", place: int = 0) -> None:
    places = {("room-1", "mbp"): place} if place else {}
    store.confirm(name, records, places, at=WHEN, door="cli", session="s1")


def test_reading_makes_no_file(store: Receipts) -> None:
    assert store.places("Ana") == {}
    assert store.low_water("Ana") is None
    assert store.of_record("id-1") == []
    assert store.sends("s1") == 0
    store.untell(["Ana"])
    assert not store.path.parent.exists()


def test_a_receipt_tells_who_when_and_by_which_door(store: Receipts) -> None:
    confirm(store, given(1), place=1)
    (found,) = store.of_record("id-1")
    assert (found.name, found.room, found.origin, found.n) == ("Ana", "room-1", "mbp", 1)
    assert (found.at, found.last_at, found.times) == (WHEN, WHEN, 1)
    assert (found.door, found.session) == ("cli", "s1")


def test_handing_over_again_keeps_the_first_time(store: Receipts) -> None:
    confirm(store, given(1), place=1)
    store.confirm("Ana", [given(1)], {}, at=LATER, door="hook", session="s2")
    (found,) = store.of_record("id-1")
    assert (found.at, found.last_at, found.times, found.door) == (WHEN, LATER, 2, "hook")


def test_a_place_never_moves_back(store: Receipts) -> None:
    confirm(store, place=5)
    confirm(store, place=3)
    assert store.places("Ana") == {("room-1", "mbp"): 5}
    assert store.places("Ana", "another") == {}
    assert store.places("Ben") == {}


def test_what_was_given_past_its_place_is_remembered_until_the_place_is_past_it(
    store: Receipts,
) -> None:
    confirm(store, given(2), given(4))
    assert store.beyond("Ana") == {("room-1", "mbp", 2), ("room-1", "mbp", 4)}
    confirm(store, place=3)
    assert store.beyond("Ana") == {("room-1", "mbp", 4)}
    store.drop("Ana", "room-1", {"mbp": 9})
    assert store.beyond("Ana") == set()
    assert store.places("Ana") == {("room-1", "mbp"): 9}


def test_the_newest_past_a_position_come_first(store: Receipts) -> None:
    confirm(store, *(given(n) for n in range(1, 8)), place=7)
    store.confirm("Ana", [given(1, room="room-2")], {}, at=LATER, door="cli")
    found = store.of_name("Ana", {"room-1": {"mbp": 4}}, 3)
    assert [(r.room, r.n) for r in found] == [("room-2", 1), ("room-1", 7), ("room-1", 6)]


def test_one_low_water_mark_for_a_name(store: Receipts) -> None:
    for at in (10, 5):
        mark = LowWater(mark="m", at=at)
        store.confirm("Ana", [], {}, mark, at=WHEN, door="cli")
        assert store.low_water("Ana") == mark
    assert store.low_water("Ben") is None


def test_told_once_until_seen_live_again(store: Receipts) -> None:
    assert store.told("s1") == set()
    store.tell("s1", ["Ben", "Ana"])
    store.tell("s1", ["Ben"])
    store.tell("s2", ["Ben"])
    assert store.told("s1") == {"Ana", "Ben"}
    store.untell(["Ben", "Cleo"])
    assert store.told("s1") == {"Ana"}
    assert store.told("s2") == set()


def test_sends_are_counted_up_to_a_limit(store: Receipts) -> None:
    assert [store.count_send("s1", 2) for _ in range(3)] == [1, 2, None]
    assert store.sends("s1") == 2
    store.uncount_send("s1")
    assert store.count_send("s1", 2) == 2
    assert store.count_send("s2") == 1
    store.uncount_send("nobody")


def test_a_failure_half_way_writes_nothing(
    store: Receipts, monkeypatch: pytest.MonkeyPatch
) -> None:
    confirm(store, place=1)

    def fail(*_: object) -> None:
        raise RuntimeError("killed here")

    monkeypatch.setattr(Receipts, "_move", fail)
    with pytest.raises(RuntimeError):
        confirm(store, given(2), place=2)
    monkeypatch.undo()
    assert store.of_record("id-2") == []
    assert store.places("Ana") == {("room-1", "mbp"): 1}


@pytest.mark.broken_on_purpose
@pytest.mark.parametrize("content", [b"", b"no database", b"SQLite format 3\0" + b"\0" * 4_000])
def test_damage_is_named_and_no_first_run(store: Receipts, content: bytes) -> None:
    store.path.parent.mkdir(parents=True)
    store.path.write_bytes(content)
    for ask in (lambda: store.places("Ana"), lambda: confirm(store, given(1))):
        with pytest.raises(Corrupt) as caught:
            ask()
        assert caught.value.code == "receipts_damaged"
        assert str(store.path) in str(caught.value)
        assert "move it away" in str(caught.value)
    assert store.path.read_bytes() == content


@pytest.mark.broken_on_purpose
def test_damage_in_the_middle_is_found_when_it_is_read(store: Receipts) -> None:
    confirm(store, *(given(n) for n in range(1, 400)), place=399)
    store.close()
    content = store.path.read_bytes()
    store.path.write_bytes(content[:4096] + b"\xff" * (len(content) - 4096))
    with pytest.raises(Corrupt, match="damaged"):
        store.of_record("id-300")


@pytest.mark.broken_on_purpose
@pytest.mark.parametrize(
    ("change", "error", "said"),
    [
        pytest.param("DROP TABLE handed", Corrupt, "holds no receipts", id="a missing table"),
        pytest.param("PRAGMA user_version = 2", InvalidInput, "newer version", id="newer"),
    ],
)
def test_what_is_not_a_file_of_this_version_is_left_alone(
    store: Receipts, change: str, error: type[Exception], said: str
) -> None:
    confirm(store, given(1))
    store.close()
    with sqlite3.connect(store.path) as link:
        link.execute(change)
    link.close()
    with pytest.raises(error, match=said):
        store.places("Ana")


def test_a_file_that_others_keep_locked_is_busy(
    store: Receipts, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "WAIT_SECONDS_MAX", 0.05)
    confirm(store, given(1))
    other = sqlite3.connect(store.path, isolation_level=None)
    store.close()
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(Busy, match="in use"):
        confirm(store, given(2))
    assert len(store.of_record("id-1")) == 1
    other.execute("ROLLBACK")
    other.close()
    confirm(store, given(2))


@pytest.mark.skipif(sys.platform == "win32", reason="files have no such limit there")
def test_a_write_that_the_system_refuses_is_no_damage(store: Receipts) -> None:
    import resource

    confirm(store, given(1), place=1)
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (4_096, before[1]))
    try:
        with pytest.raises(Busy, match="Nothing was marked"):
            confirm(store, *(given(n) for n in range(2, 300)), place=299)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert store.places("Ana") == {("room-1", "mbp"): 1}
    assert store.of_record("id-2") == []
    confirm(store, given(2), place=2)
    assert store.places("Ana") == {("room-1", "mbp"): 2}


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_without_the_right_to_write_it_is_read(store: Receipts) -> None:
    confirm(store, given(1))
    store.close()
    store.path.parent.chmod(0o500)
    try:
        assert len(store.of_record("id-1")) == 1
        with pytest.raises(Forbidden):
            confirm(store, given(2))
    finally:
        store.path.parent.chmod(0o700)


def test_a_check_reads_the_whole_file(store: Receipts) -> None:
    assert store.check() == []
    confirm(store, given(1), place=1)
    assert store.check() == [("Ana", "room-1", "mbp", 1)]


def test_threads_of_one_store_undo_nothing(store: Receipts) -> None:
    def work(first: int) -> None:
        for n in range(first, first + 20):
            confirm(store, given(n))

    threads = [threading.Thread(target=work, args=(first,)) for first in (1, 21, 41)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(store.beyond("Ana")) == 60


def test_processes_that_make_the_file_at_once_all_write_to_it(layout: Layout) -> None:
    context = multiprocessing.get_context("spawn")
    children = [context.Process(target=_write, args=(layout.root, n)) for n in range(1, 5)]
    for child in children:
        child.start()
    for child in children:
        child.join(60)
    assert [child.exitcode for child in children] == [0] * 4
    store = Receipts(layout)
    assert len(store.beyond("Ana")) == 4
    store.close()
    # Nothing lies beside the file but what SQLite keeps there.
    assert {path.name for path in store.path.parent.iterdir()} == {store.path.name}


def _write(root: Path, n: int) -> None:
    from agent_chatroom_ledger.storage.layout import Layout

    store = Receipts(Layout(root))
    confirm(store, given(n))
    store.close()


def test_a_forked_child_leaves_its_parents_connection_alone(store: Receipts) -> None:
    confirm(store, given(1))
    child = os.fork()
    if child == 0:
        try:
            confirm(store, given(2))
            store.close()
        finally:
            os._exit(0)
    os.waitpid(child, 0)
    confirm(store, given(3))
    assert len(store.beyond("Ana")) == 3


@pytest.mark.broken_on_purpose
def test_what_is_no_file_is_named_with_the_way_out(store: Receipts) -> None:
    store.path.mkdir(parents=True)
    with pytest.raises(Forbidden, match="moved away"):
        store.places("Ana")
