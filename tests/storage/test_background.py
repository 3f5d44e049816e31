"""What happens while the caller does something else: commits, checkpoints, and no orphans."""

from __future__ import annotations

import os
import signal
import time
from typing import TYPE_CHECKING

import pytest

from agent_chatroom_ledger.errors import Busy
from agent_chatroom_ledger.storage import background, committer
from agent_chatroom_ledger.storage.locks import FileLock
from agent_chatroom_ledger.storage.writer import Writer
from tests.faults.children import committers, wait_for_committers
from tests.storage.processes import Silent
from tests.storage.samples import bodies, git, say, write, write_room

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from agent_chatroom_ledger.storage.layout import Layout

SECONDS_MAX = 30.0


def eventually(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + SECONDS_MAX
    while not condition():
        assert time.monotonic() < deadline, "it did not happen"
        time.sleep(0.01)


def settled(layout: Layout) -> bool:
    """Tell whether a checkpoint was made: our mark is gone and git finds nothing to do."""
    if (layout.git / "index.lock").exists():
        return False
    return git(layout.root, "--no-optional-locks", "status", "--porcelain") == b""


def committer_of(layout: Layout) -> int:
    """Return the process that commits for the only writer in group mode."""
    eventually(lambda: len(committers(layout.root)) == 1)
    return committers(layout.root)[0]


@pytest.fixture
def group(layout: Layout) -> Iterator[Writer]:
    made = Writer(layout, commit="group")
    write_room(made)
    yield made
    made.close()


def test_in_sync_mode_a_checkpoint_follows_when_nothing_more_is_written(
    writer: Writer, layout: Layout
) -> None:
    write_room(writer)
    write(writer, say("one"))
    assert (layout.git / "index.lock").exists()
    eventually(lambda: settled(layout))
    assert len(list(layout.root.glob("rooms/*/view/*/*.md"))) == 1
    write(writer, say("two"))
    eventually(lambda: settled(layout))


def test_a_checkpoint_that_could_not_be_made_is_told_by_flush_and_made_later(
    writer: Writer, layout: Layout, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(background, "_RETRY_SECONDS", 0.02)
    monkeypatch.setattr(committer, "INDEX_LOCK_WAIT_SECONDS_MAX", 0.0)
    write_room(writer)
    writer.flush()
    made: list[object] = []
    checkpoint = writer.checkpoint_when_quiet

    def refused(seconds: float) -> bool:
        made.append(None)
        if len(made) < 3:
            raise Busy("not now")
        return checkpoint(seconds)

    monkeypatch.setattr(writer, "checkpoint_when_quiet", refused)
    write(writer, say("one"))
    eventually(lambda: writer.problem is not None)
    eventually(lambda: writer.problem is None and settled(layout))
    assert len(made) >= 3


def test_a_checkpoint_gives_way_to_who_writes_again(writer: Writer, layout: Layout) -> None:
    """It would get the lock between two posts, and the next of them would wait for all of it."""
    writer._background = Silent()
    write_room(writer)
    write(writer, say("one"))
    held = FileLock(layout.locks / "commit.lock")
    with held:
        assert not writer.checkpoint_when_quiet(3600.0)
    held.close()
    assert not settled(layout)
    assert writer.checkpoint_when_quiet(3600.0)
    assert settled(layout)


def test_in_group_mode_another_process_commits(group: Writer, layout: Layout) -> None:
    child = committer_of(layout)
    write(group, say("one"))
    eventually(lambda: settled(layout) and bodies(layout) == ["one"])
    assert committers(layout.root) == [child]
    group.close()
    assert committers(layout.root) == []


def test_a_killed_parents_frames_are_committed_by_the_child(layout: Layout) -> None:
    parent = os.fork()
    if not parent:
        writer = Writer(layout, commit="group")
        write_room(writer)
        write(writer, *(say(f"{n}") for n in range(50)))
        os.kill(os.getpid(), signal.SIGKILL)
    os.waitpid(parent, 0)
    wait_for_committers(layout.root)
    assert bodies(layout) == [f"{n}" for n in range(50)]
    assert settled(layout)
    git(layout.root, "fsck", "--full", "--strict")


def test_a_killed_child_costs_nothing_but_its_help(group: Writer, layout: Layout) -> None:
    child = committer_of(layout)
    os.kill(child, signal.SIGKILL)
    wait_for_committers(layout.root)
    for n in range(5):
        write(group, say(f"{n}"))
    group.flush()
    assert bodies(layout) == [f"{n}" for n in range(5)]


def test_a_child_that_cannot_commit_now_tries_again(group: Writer, layout: Layout) -> None:
    eventually(lambda: settled(layout))
    lock = layout.git / "index.lock"
    lock.write_text("a foreign one")
    write(group, say("one"))
    time.sleep(0.1)
    assert bodies(layout) == []
    lock.unlink()
    eventually(lambda: bodies(layout) == ["one"])
    eventually(lambda: settled(layout))


def test_where_no_process_can_be_started_a_thread_commits(
    layout: Layout, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.executable", "")
    writer = Writer(layout, commit="group")
    write_room(writer)
    write(writer, say("one"), say("two"))
    eventually(lambda: bodies(layout) == ["one", "two"])
    eventually(lambda: settled(layout))
    writer.close()


def test_following_ends_with_the_pipe_and_commits_once_more(layout: Layout) -> None:
    """The child's own program, run here: the pipe is closed already, frames are pending."""
    from tests.storage.processes import Silent

    writer = Writer(layout, commit="group")
    writer._background = Silent()
    write_room(writer)
    write(writer, say("one"))
    reading, writing = os.pipe()
    os.write(writing, b"..")
    os.close(writing)
    background.follow(layout.root, reading)
    os.close(reading)
    assert bodies(layout) == ["one"]
    assert settled(layout)
    writer.close()


@pytest.mark.filterwarnings("ignore:.*multi-threaded:DeprecationWarning")
def test_the_child_ends_though_a_forked_program_goes_on(
    group: Writer, layout: Layout, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A fork has its own copy of everything that was open, the pipe to the child too."""
    child = committer_of(layout)
    beside = os.fork()
    if not beside:
        signal.pause()
    try:
        killed: list[object] = []
        monkeypatch.setattr("subprocess.Popen.kill", killed.append)
        group.close()
        assert not killed
        assert child not in committers(layout.root)
    finally:
        os.kill(beside, signal.SIGKILL)
        os.waitpid(beside, 0)


@pytest.mark.filterwarnings("ignore:.*multi-threaded:DeprecationWarning")
def test_a_fork_does_not_keep_the_child_of_a_killed_parent(layout: Layout) -> None:
    reading, writing = os.pipe()
    parent = os.fork()
    if not parent:
        writer = Writer(layout, commit="group")
        write_room(writer)
        beside = os.fork()
        if not beside:
            signal.pause()
        os.write(writing, str(beside).encode())
        write(writer, say("one"))
        os.kill(os.getpid(), signal.SIGKILL)
    beside = int(os.read(reading, 20))
    os.close(reading)
    os.close(writing)
    try:
        os.waitpid(parent, 0)
        wait_for_committers(layout.root)
        assert bodies(layout) == ["one"]
    finally:
        os.kill(beside, signal.SIGKILL)


def test_a_clock_that_was_set_back_keeps_no_checkpoint_waiting(
    writer: Writer, layout: Layout, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_room(writer)
    write(writer, say("one"))
    now = time.time
    monkeypatch.setattr(time, "time", lambda: now() - 3600)
    eventually(lambda: settled(layout))
