"""Processes that fork, end without closing, or share a ledger among threads."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from functools import partial
from typing import TYPE_CHECKING

import pytest

from agent_chatroom_ledger import Ledger
from agent_chatroom_ledger.storage import background
from tests.faults import children, workload
from tests.faults.soundness import Acknowledged, Notebook, assert_sound, noted

if TYPE_CHECKING:
    from pathlib import Path

    from agent_chatroom_ledger.room import Room
    from tests.faults.workload import Mode

MODES: tuple[Mode, ...] = ("sync", "group")


def say(room: Room, notes: Path, who: str, times: int) -> None:
    notebook = Notebook(notes)
    for number in range(times):
        notebook.note(room.path, room.post(who, f"{who} {number}"))


@pytest.mark.parametrize("mode", MODES)
def test_a_fork_with_an_open_ledger_lets_both_go_on(tmp_path: Path, mode: Mode) -> None:
    """Parent and children write on through the ledger that was open, and close it."""
    root = tmp_path / "ledger"
    with Ledger.open(root, create=True, commit=mode) as ledger:
        room = ledger.create_room("Design review")
        say(room, tmp_path / "parent.notes", "Parent", 5)

        def go_on(place: int) -> None:
            say(room, tmp_path / f"child-{place}.notes", f"Child{place}", 20)
            ledger.close()

        running = [children.fork(partial(go_on, place)) for place in range(3)]
        say(room, tmp_path / "parent.notes", "Parent", 20)
        assert [children.end_of(child) for child in running] == [0, 0, 0]
        say(room, tmp_path / "parent.notes", "Parent", 5)
    told = noted(*tmp_path.glob("*.notes"))
    assert len(told) == 30 + 60
    assert_sound(root, told)


def test_a_fork_while_threads_write_leaves_the_child_usable(tmp_path: Path) -> None:
    """Locks that other threads held at the moment of the fork do not stop the child."""
    root = tmp_path / "ledger"
    with Ledger.open(root, create=True) as ledger:
        room = ledger.create_room("Design review")
        threads = [
            threading.Thread(
                target=say, args=(room, tmp_path / f"t{place}.notes", f"Thread{place}", 25)
            )
            for place in range(3)
        ]
        for thread in threads:
            thread.start()
        running = []
        for place in range(4):
            write = partial(say, room, tmp_path / f"c{place}.notes", f"Child{place}", 5)
            running.append(children.fork(write))
        assert [children.end_of(child) for child in running] == [0] * 4
        for thread in threads:
            thread.join()
    told = noted(*tmp_path.glob("*.notes"))
    assert len(told) == 3 * 25 + 4 * 5
    assert_sound(root, told)


@pytest.mark.parametrize("mode", MODES)
def test_a_child_that_never_closes_loses_nothing(tmp_path: Path, mode: Mode) -> None:
    """It leaves through os._exit, without any cleaning up."""
    root = tmp_path / "ledger"

    def leave() -> None:
        ledger = Ledger.open(root, create=True, commit=mode)
        room = ledger.create_room("Design review")
        say(room, tmp_path / "notes", "Child", 10)
        os._exit(0)

    assert children.run(leave) == 0
    children.wait_for_committers(root)
    told = noted(tmp_path / "notes")
    assert len(told) == 10
    assert_sound(root, told)


PROGRAM = """
import sys
from agent_chatroom_ledger import Ledger
ledger = Ledger.open(sys.argv[1], create=True, commit=sys.argv[2])
room = ledger.create_room("Design review")
for number in range(10):
    print(room.post("Program", f"message {number}").n, flush=True)
"""


@pytest.mark.parametrize("mode", MODES)
def test_a_program_that_ends_without_closing_is_quiet_and_complete(
    tmp_path: Path, mode: Mode
) -> None:
    """Nothing is printed about threads, pipes or files that were left open."""
    root = tmp_path / "ledger"
    done = subprocess.run(
        [sys.executable, "-X", "dev", "-c", PROGRAM, str(root), mode],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0
    assert done.stdout.split() == [str(n) for n in range(1, 11)]
    unraisable = [line for line in done.stderr.split("\n") if "Traceback" in line]
    assert not unraisable, done.stderr
    children.wait_for_committers(root)
    messages = assert_sound(root, [])["rooms/design-review"]
    assert len(messages) == 10


def test_a_stopped_holder_of_the_locks_stops_nobody_for_good(tmp_path: Path) -> None:
    """A process that is stopped (Ctrl-Z) makes others wait; when it is killed they go on."""
    root, notes = tmp_path / "ledger", tmp_path / "notes"
    with Ledger.open(root, create=True) as ledger:
        room = ledger.create_room("Design review")
        child = children.fork(partial(say, room, tmp_path / "child.notes", "Child", 10_000))
        told = Notebook(notes)
        for number in range(20):
            told.note(room.path, room.post("Parent", f"before {number}"))
        os.kill(child, signal.SIGSTOP)
        posted: list[Acknowledged] = []

        def post() -> None:
            posted.append(Acknowledged.of(room.path, room.post("Parent", "meanwhile")))

        thread = threading.Thread(target=post)
        thread.start()
        thread.join(0.3)  # it may have to wait, or not: that depends on where the other stopped
        os.kill(child, signal.SIGKILL)
        children.end_of(child)
        thread.join(60)
        assert posted, "the lock of a dead process was not given up"
    assert_sound(root, [*noted(notes, tmp_path / "child.notes"), *posted])


def test_threads_of_one_process_share_a_ledger(tmp_path: Path) -> None:
    """In both modes at once, beside another process; every number is given once."""
    root = tmp_path / "ledger"
    with (
        Ledger.open(root, create=True) as ledger,
        Ledger.open(root, commit="group") as quick,
    ):
        room = ledger.create_room("Design review")
        rooms = [room, quick.room(room.path)]
        threads = [
            threading.Thread(
                target=say,
                args=(rooms[place % 2], tmp_path / f"t{place}.notes", f"Thread{place}", 40),
            )
            for place in range(6)
        ]
        write = partial(say, room, tmp_path / "child.notes", "Child", 40)
        child = children.fork(write)
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert children.end_of(child) == 0
    told = noted(*tmp_path.glob("*.notes"))
    assert len(told) == 7 * 40
    assert_sound(root, told)


def test_a_policy_that_comes_between_is_not_in_the_view_that_was_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A view is the fold at the positions that its header names (2), whoever writes meanwhile.

    Between looking at a room and appending the view's frame a process holds no lock on the
    journal. An operation that another process appends there comes before the view's frame.
    """
    monkeypatch.setattr(background, "start", lambda _: workload.Silent())
    root = tmp_path / "ledger"
    with (
        Ledger.open(root, create=True, commit="group") as ledger,
        Ledger.open(root, commit="group") as other,
    ):
        room = ledger.create_room("Design review")
        say(room, tmp_path / "notes", "Analyst", 3)
        ledger.writer().commit()
        journal = ledger.writer().committer.journal
        acquire = journal.lock.acquire

        def acquire_later() -> bool:
            monkeypatch.setattr(journal.lock, "acquire", acquire)
            other.room(room.path).exclude("2", by="Reviewer")
            return acquire()

        monkeypatch.setattr(journal.lock, "acquire", acquire_later)
        room.compile()
        assert ledger.verify().ok
    assert_sound(root, noted(tmp_path / "notes"))
