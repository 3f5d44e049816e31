"""Locks exclude processes and threads alike, and a forked child inherits none."""

from __future__ import annotations

import fcntl
import gc
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from agent_chatroom_ledger.errors import Busy
from agent_chatroom_ledger.storage.locks import FileLock, holding, is_held
from tests.storage.processes import in_child

HOLDER = """\
import sys
from pathlib import Path
from agent_chatroom_ledger.storage.locks import FileLock
lock = FileLock(Path(sys.argv[1]))
lock.acquire()
print("held", flush=True)
sys.stdin.readline()
lock.release()
print("released", flush=True)
sys.stdin.readline()
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "x.lock"


def holder(path: Path) -> subprocess.Popen[str]:
    """Start a process that holds the lock."""
    process = subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "held\n"
    return process


def end(process: subprocess.Popen[str]) -> None:
    process.communicate("\n\n")


def test_one_holder_at_a_time_within_a_process(path: Path) -> None:
    one, two = FileLock(path), FileLock(path)
    assert one.try_acquire()
    assert not one.try_acquire()  # not reentrant
    assert not two.try_acquire()
    one.release()
    assert two.try_acquire()
    two.release()
    one.close()
    two.close()
    one.close()


def test_the_file_stays_and_is_never_judged_by_age(path: Path) -> None:
    with FileLock(path):
        os.utime(path, (0, 0))
        assert not FileLock(path).try_acquire()
    assert path.exists()
    with FileLock(path):
        pass


def test_another_process_is_waited_for(path: Path) -> None:
    process = holder(path)
    lock = FileLock(path)
    assert not lock.try_acquire()
    with pytest.raises(Busy) as caught:
        lock.acquire(seconds=0.02)
    assert caught.value.fields["path"] == str(path)
    assert process.stdin is not None
    process.stdin.write("\n")
    process.stdin.flush()
    with lock:
        assert lock.path == path
    lock.close()
    end(process)


def test_a_killed_holder_frees_the_lock(path: Path) -> None:
    process = holder(path)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    lock = FileLock(path)
    assert lock.acquire(seconds=10)
    lock.release()
    lock.close()


def test_waiting_ends_when_somebody_else_has_done_the_work(path: Path) -> None:
    one, two = FileLock(path), FileLock(path)
    asked: list[float] = []

    def done() -> bool:
        asked.append(time.monotonic())
        return len(asked) > 3

    with one:
        assert not two.acquire(unless=done)
    assert len(asked) == 4
    assert two.acquire(unless=lambda: True)  # a free lock is taken without asking
    two.release()
    one.close()
    two.close()


def test_whoever_has_patience_leaves_the_lock_to_others_for_a_moment(path: Path) -> None:
    one, two = FileLock(path), FileLock(path)
    one.acquire()
    threading.Timer(0.02, one.release).start()
    start = time.monotonic()
    assert two.acquire(patience=0.1)
    assert time.monotonic() - start >= 0.1
    two.release()
    one.close()
    two.close()


def test_threads_exclude_each_other(path: Path) -> None:
    """They share a descriptor, and the system's lock is the process's."""
    lock = FileLock(path)
    inside, most, count = 0, 0, 0

    def work() -> None:
        nonlocal inside, most, count
        for _ in range(50):
            with lock:
                inside += 1
                most = max(most, inside)
                count += 1
                inside -= 1

    threads = [threading.Thread(target=work) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (most, count) == (1, 300)
    lock.close()


def test_processes_exclude_each_other(path: Path, tmp_path: Path) -> None:
    """Many add to a number in a file, each reading it first, and none is lost."""
    number = tmp_path / "number"
    number.write_text("0")
    lock = FileLock(path)
    children = []
    for _ in range(4):
        child = os.fork()
        if not child:
            for _ in range(50):
                with lock:
                    number.write_text(str(int(number.read_text()) + 1))
            os._exit(0)
        children.append(child)
    for child in children:
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert number.read_text() == "200"
    lock.close()


def takes(lock: FileLock, *, free: bool) -> None:
    assert lock.try_acquire() == free


def test_a_forked_child_does_not_hold_what_its_parent_holds(path: Path) -> None:
    lock, other = FileLock(path), FileLock(path.with_name("free"))
    lock.acquire()
    assert in_child(lambda: takes(lock, free=False)) == 0
    assert in_child(lambda: takes(other, free=True)) == 0
    # The child has closed its descriptor; the lock is still the parent's.
    assert not FileLock(path).try_acquire()
    lock.release()
    assert in_child(lambda: takes(lock, free=True)) == 0
    lock.close()


@pytest.mark.filterwarnings("ignore:.*multi-threaded:DeprecationWarning")
def test_a_fork_while_a_thread_holds_the_lock_leaves_the_child_able_to_take_it(
    path: Path,
) -> None:
    lock = FileLock(path)
    held, done = threading.Event(), threading.Event()

    def hold() -> None:
        with lock:
            held.set()
            done.wait(20)

    thread = threading.Thread(target=hold)
    thread.start()
    held.wait(20)
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        os.write(writing, b"x")
        os._exit(0 if lock.acquire(seconds=20) else 1)
    os.read(reading, 1)
    done.set()
    thread.join()
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    os.close(reading)
    os.close(writing)
    lock.close()


def test_a_missing_directory_is_an_error_and_leaves_the_lock_free(tmp_path: Path) -> None:
    lock = FileLock(tmp_path / "none" / "x.lock")
    with pytest.raises(FileNotFoundError):
        lock.try_acquire()
    (tmp_path / "none").mkdir()
    assert lock.try_acquire()
    lock.release()
    lock.close()
    gc.collect()


def test_who_asks_whether_a_lock_is_held_neither_takes_nor_makes_it(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    assert not is_held(path)
    assert not path.exists()
    lock = FileLock(path)
    with lock:
        assert is_held(path)
    assert not is_held(path)
    shared = os.open(path, os.O_RDONLY)
    fcntl.flock(shared, fcntl.LOCK_SH)
    assert not is_held(path), "several may ask at once"
    os.close(shared)
    with lock:
        child = os.fork()
        if not child:  # pragma: no cover - in the child
            os._exit(0 if is_held(path) else 1)
        assert os.waitpid(child, 0)[1] == 0
    assert not is_held(path)
    lock.close()


def test_a_lock_that_is_held_for_one_step_leaves_nothing_open(tmp_path: Path) -> None:
    path = tmp_path / "locks" / "x.lock"
    before = descriptors()
    with holding(path), pytest.raises(Busy), holding(path, seconds=0):
        pytest.fail("two hold it")
    assert not is_held(path)
    with pytest.raises(ZeroDivisionError), holding(path):
        raise ZeroDivisionError
    assert not is_held(path)
    assert descriptors() == before


def descriptors() -> int:
    """Return how many files this process has open; 0 where the system does not say."""
    gc.collect()
    place = Path("/proc/self/fd")
    return len(list(place.iterdir())) if place.is_dir() else 0
