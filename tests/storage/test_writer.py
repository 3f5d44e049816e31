"""The write path: what returns is safe, what fails leaves nothing, and nobody is in the way."""

from __future__ import annotations

import errno
import threading
import time
from typing import TYPE_CHECKING

import pytest

from agent_chatroom_ledger import limits
from agent_chatroom_ledger.domain.records import decode_record
from agent_chatroom_ledger.errors import (
    Busy,
    Conflict,
    InvalidInput,
    LedgerError,
    NotYetCommitted,
)
from agent_chatroom_ledger.storage import committer, failpoints, journal
from agent_chatroom_ledger.storage.writer import Entry, Transaction, Writer
from tests.storage.processes import Other, Silent, in_child
from tests.storage.samples import (
    MESSAGES,
    ROOM,
    bodies,
    frame,
    git,
    message,
    say,
    write,
    write_room,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from agent_chatroom_ledger.storage.layout import Layout
    from agent_chatroom_ledger.storage.present import Present


@pytest.fixture
def room(writer: Writer) -> Writer:
    """A writer whose ledger has one room."""
    write_room(writer)
    return writer


@pytest.fixture
def group(layout: Layout) -> Iterator[Writer]:
    made = Writer(layout, commit="group")
    write_room(made)
    yield made
    made.close()


def test_in_sync_mode_a_call_returns_after_its_commit(room: Writer, layout: Layout) -> None:
    (stored,) = write(room, say("one"))
    assert bodies(layout) == ["one"]
    assert (stored.log, stored.record.n) == (MESSAGES, 1)
    assert decode_record(stored.line) == stored.record
    git(layout.root, "fsck", "--full", "--strict")


def test_in_group_mode_a_call_returns_when_its_frame_is_durable(
    group: Writer, layout: Layout
) -> None:
    steps: list[str] = []
    failpoints.observe(steps.append)
    write(group, say("one"))
    assert steps.index("files.sync") < steps.index("writer.synced")
    assert "commit.moved" not in steps  # that is the committer's work
    assert [f.records[0].log for f in journal.read_frames(layout)][-1] == MESSAGES
    group.flush()
    assert bodies(layout) == ["one"]
    assert git(layout.root, "status", "--porcelain") == b""


def test_another_mode_is_refused(layout: Layout) -> None:
    with pytest.raises(InvalidInput):
        Writer(layout, commit="later")


@pytest.mark.parametrize("point", ["writer.appended", "commit.synced", "files.sync"])
def test_nothing_is_committed_before_it_is_durable(room: Writer, point: str) -> None:
    """Write-ahead: the journal is synced before main moves."""
    steps: list[str] = []
    failpoints.observe(steps.append)
    write(room, say("one"))
    assert steps.index(point) < steps.index("commit.moved")


def test_several_transactions_of_one_call_are_as_many_commits(room: Writer, layout: Layout) -> None:
    with_records = ("rev-list", "--count", "--grep=^Kind: ", "main")
    before = int(git(layout.root, *with_records))
    stored = write(room, *(say(f"{n}") for n in range(7)))
    assert [item.record.n for item in stored] == list(range(1, 8))
    assert int(git(layout.root, *with_records)) == before + 7
    times = [item.record.at for item in stored]
    assert times == sorted(set(times))


def test_a_call_that_raises_leaves_no_number_and_no_time_behind(
    room: Writer, layout: Layout
) -> None:
    write(room, say("one"))
    newest = room.present.newest_at
    size = journal.generation_path(layout, journal.generations(layout)[-1]).stat().st_size

    def build(present: Present) -> list[Transaction]:
        present.next_number(MESSAGES)
        present.next_time()
        raise Conflict("not so")

    with pytest.raises(Conflict, match="not so"):
        room.transact(build)
    assert room.present.newest_at == newest
    assert journal.generation_path(layout, journal.generations(layout)[-1]).stat().st_size == size
    (stored,) = write(room, say("two"))
    assert stored.record.n == 2


@pytest.mark.parametrize("point", ["journal.append", "files.write", "journal.appended"])
def test_a_full_disk_is_a_clear_error_and_the_same_call_works_later(
    room: Writer, layout: Layout, point: str
) -> None:
    def full(_: str) -> None:
        raise OSError(errno.ENOSPC, "full")

    failpoints.arm(point, full)
    with pytest.raises(Busy) as caught:
        write(room, say("one"))
    assert caught.value.code == "disk_full"
    failpoints.disarm()
    (stored,) = write(room, say("one"))
    assert stored.record.n == 1
    assert bodies(layout) == ["one"]


def test_a_call_that_asks_for_nothing_writes_nothing(room: Writer, layout: Layout) -> None:
    before = [frame.frame for frame in journal.read_frames(layout)]

    def build(present: Present) -> list[Transaction]:
        present.next_number(MESSAGES)  # and gives it back
        return []

    assert room.transact(build) == ()
    assert [frame.frame for frame in journal.read_frames(layout)] == before
    assert write(room, say("one"))[0].record.n == 1


def test_an_empty_transaction_is_refused(room: Writer) -> None:
    with pytest.raises(InvalidInput) as caught:
        room.transact(lambda _: [Transaction(())])
    assert caught.value.code == "empty_transaction"


def test_a_transaction_beyond_the_limit_is_refused_whole(
    room: Writer, monkeypatch: pytest.MonkeyPatch, layout: Layout
) -> None:
    monkeypatch.setattr("agent_chatroom_ledger.domain.frames.FRAME_BYTES_MAX", 1000)
    with pytest.raises(InvalidInput) as caught:
        write(room, say("short"), say("x" * 2000))
    assert caught.value.fields["limit"] == 1000
    assert bodies(layout) == []


def test_a_closed_writer_is_refused(layout: Layout) -> None:
    writer = Writer(layout)
    write_room(writer)
    writer.close()
    writer.close()
    for call in (lambda: write(writer, say("x")), writer.flush, writer.commit, writer.checkpoint):
        with pytest.raises(InvalidInput) as caught:
            call()
        assert caught.value.code == "closed"
    assert in_child(lambda: refused(lambda: write(writer, say("x")))) == 0


def refused(call: Callable[[], object]) -> None:
    with pytest.raises(InvalidInput):
        call()


@pytest.mark.filterwarnings("ignore:.*multi-threaded:DeprecationWarning")
def test_a_forked_child_begins_anew_and_both_go_on(room: Writer, layout: Layout) -> None:
    write(room, say("parent"))

    def child() -> None:
        write(room, say("child"))
        room.close()

    assert in_child(child) == 0
    write(room, say("parent again"))
    assert bodies(layout) == ["parent", "child", "parent again"]


@pytest.mark.parametrize("mode", ["sync", "group"])
def test_closing_while_threads_write_tears_nothing(layout: Layout, mode: str) -> None:
    """What a call was told is so, and the others are told that the ledger is closed."""
    writer = Writer(layout, commit=mode)
    write_room(writer)
    told: list[str] = []
    codes: list[str] = []

    def work(name: int) -> None:
        for number in range(10_000):
            try:
                write(writer, say(f"{name} {number}"))
            except LedgerError as error:
                codes.append(error.code)
                return
            told.append(f"{name} {number}")

    threads = [threading.Thread(target=work, args=(name,), daemon=True) for name in range(3)]
    for thread in threads:
        thread.start()
    while len(told) < 20:
        time.sleep(0.001)
    writer.close()
    for thread in threads:
        thread.join(60)
    assert codes == ["closed"] * 3
    assert sorted(bodies(layout)) == sorted(told)
    assert git(layout.root, "status", "--porcelain") == b""
    git(layout.root, "fsck", "--full", "--strict")
    Writer(layout).close()
    assert sorted(bodies(layout)) == sorted(told)


@pytest.mark.parametrize("mode", ["sync", "group"])
def test_two_processes_take_turns(layout: Layout, mode: str) -> None:
    writer = Writer(layout, commit=mode)
    write_room(writer)
    other = Other(layout, mode)
    numbers = []
    for n in range(4):
        numbers.append(write(writer, say(f"ours {n}"))[0].record.n)
        other.tell(f"theirs {n}")
        numbers.append(int(other.answer()))
    other.end()
    writer.close()
    assert numbers == list(range(1, 9))
    assert bodies(layout) == [f"{who} {n}" for n in range(4) for who in ("ours", "theirs")]
    assert git(layout.root, "status", "--porcelain") == b""


def test_two_processes_and_threads_at_once_lose_and_double_nothing(
    room: Writer, layout: Layout
) -> None:
    other = Other(layout, "group")
    other.tell(*(f"theirs {n}" for n in range(30)))
    threads = [
        threading.Thread(target=lambda k=k: [write(room, say(f"ours {k} {n}")) for n in range(10)])
        for k in range(3)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    other.end()
    room.flush()
    found = bodies(layout)
    assert len(found) == 60
    assert [b for b in found if b.startswith("theirs")] == [f"theirs {n}" for n in range(30)]
    for k in range(3):
        mine = [b for b in found if b.startswith(f"ours {k}")]
        assert mine == [f"ours {k} {n}" for n in range(10)]
    git(layout.root, "fsck", "--full", "--strict")


def test_a_foreign_index_lock_delays_the_commit_and_loses_nothing(
    room: Writer, layout: Layout, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The editor of a `git commit` may hold it for minutes; the records are safe meanwhile."""
    monkeypatch.setattr(committer, "INDEX_LOCK_WAIT_SECONDS_MAX", 0.01)
    room.flush()
    lock = layout.git / "index.lock"
    lock.write_text("")
    tip = git(layout.root, "rev-parse", "main")
    for n in range(3):
        with pytest.raises(NotYetCommitted) as caught:
            write(room, say(f"{n}"))
        assert [record.body for record in caught.value.records] == [f"{n}"]
        assert caught.value.records[0].n == n + 1
    assert git(layout.root, "rev-parse", "main") == tip
    assert lock.read_text() == ""
    with pytest.raises(Busy):
        room.flush()
    lock.unlink()
    write(room, say("3"))
    assert bodies(layout) == ["0", "1", "2", "3"]


def test_frames_that_could_not_be_committed_are_committed_by_whoever_comes_next(
    layout: Layout, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(committer, "INDEX_LOCK_WAIT_SECONDS_MAX", 0.01)
    writer = Writer(layout)
    write_room(writer)
    writer.flush()
    (layout.git / "index.lock").write_text("")
    with pytest.raises(NotYetCommitted):
        write(writer, say("one"))
    with pytest.raises(Busy):
        writer.close()
    (layout.git / "index.lock").unlink()
    later = Writer(layout)
    later.close()
    assert bodies(layout) == ["one"]


def test_a_failed_sync_sends_what_it_held_to_a_new_generation(room: Writer, layout: Layout) -> None:
    """A file whose sync failed is never synced again, and the call succeeds all the same."""
    write(room, say("one"))
    (before,) = journal.generations(layout)[-1:]
    left = [1]

    def broken_once(_: str) -> None:
        if left:
            left.pop()
            raise OSError(errno.EIO, "broken")

    failpoints.arm("files.sync", broken_once)
    write(room, say("two"))
    assert journal.generations(layout)[-1] > before
    failpoints.disarm()
    write(room, say("three"))
    assert bodies(layout) == ["one", "two", "three"]


def test_a_disk_that_syncs_nothing_acknowledges_nothing(room: Writer, layout: Layout) -> None:
    write(room, say("one"))

    def broken(_: str) -> None:
        raise OSError(errno.EIO, "broken")

    failpoints.arm("files.sync", broken)
    with pytest.raises(Busy) as caught:
        write(room, say("two"))
    assert not isinstance(caught.value, NotYetCommitted)
    assert bodies(layout) == ["one"]
    failpoints.disarm()
    write(room, say("three"))
    assert bodies(layout)[0] == "one"
    assert bodies(layout)[-1] == "three"


def test_writers_wait_for_commits_that_fall_behind(
    layout: Layout, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In group mode a backlog is bounded: when nobody commits, the writer does."""
    monkeypatch.setattr(limits, "BACKLOG_FRAMES_MAX", 5)
    monkeypatch.setattr("agent_chatroom_ledger.storage.writer._STANDSTILL_SECONDS_MAX", 0.02)
    writer = Writer(layout, commit="group")
    write_room(writer)
    assert writer._background is not None
    writer._background.stop()
    monkeypatch.setattr(writer, "_background", Silent())
    steps: list[str] = []
    failpoints.arm("commit.moved", steps.append)
    for n in range(4):
        write(writer, say(f"{n}"))
    assert not steps
    write(writer, *(say(f"more {n}") for n in range(4)))
    assert steps
    assert len(bodies(layout)) == 8
    writer.close()


@pytest.mark.parametrize("locked", [False, True])
def test_a_rotten_last_frame_that_main_has_gives_no_number_twice(
    layout: Layout, monkeypatch: pytest.MonkeyPatch, *, locked: bool
) -> None:
    """Damage at the end of the journal looks like a torn tail; main knows better."""
    monkeypatch.setattr(committer, "INDEX_LOCK_WAIT_SECONDS_MAX", 0.0)
    killed = Writer(layout)
    killed._background = Silent()
    write_room(killed)
    for n in range(3):
        write(killed, say(f"{n}"))
    killed._release()
    killed._closed = True
    path = journal.generation_path(layout, journal.generations(layout)[-1])
    data = bytearray(path.read_bytes())
    data[-30] ^= 1
    path.write_bytes(data)
    writer = Writer(layout)
    if locked:
        (layout.git / "index.lock").unlink()
        (layout.git / "index.lock").write_text("a foreign one")
        for _ in range(2):
            with pytest.raises(Busy) as caught:
                write(writer, say("not yet"))
            assert not isinstance(caught.value, NotYetCommitted)
        assert path.read_bytes() == data
        (layout.git / "index.lock").unlink()
    (stored,) = write(writer, say("after"))
    assert stored.record.n == 4
    writer.close()
    assert bodies(layout) == ["0", "1", "2", "after"]


def test_a_record_of_another_log_needs_no_room(room: Writer, tmp_path: Path) -> None:
    """The writer stores what it is given; rules about rooms are its callers'."""
    del tmp_path

    def build(present: Present) -> list[Transaction]:
        n = present.next_number(f"operations/{present.origin}")
        record = message(n, at=present.next_time(), kind="status")
        return [Transaction((Entry(f"operations/{present.origin}", record),), reason="because")]

    (stored,) = room.transact(build)
    assert stored.record.n == 1
    assert frame(1, (stored.log, stored.record)).records[0].log == "operations/mbp-3f2a"
    assert room.present.room(ROOM) is not None
