"""Child processes of fault tests: forked, because two hundred cold starts would take minutes."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
import traceback
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

if TYPE_CHECKING:
    from collections.abc import Callable

FAILED = 70
_WAIT_SECONDS_MAX = 60.0


def fork(action: Callable[[], None]) -> int:
    """Run `action` in a child and return its process id; an exception ends it with FAILED."""
    sys.stdout.flush()
    sys.stderr.flush()
    child = os.fork()
    if child:
        return child
    failed: list[object] = []

    def thread_failed(details: threading.ExceptHookArgs) -> None:
        failed.append(details)
        traceback.print_exception(details.exc_type, details.exc_value, details.exc_traceback)

    threading.excepthook = thread_failed
    status = FAILED
    try:
        action()
        status = FAILED if failed else 0
    except BaseException:  # noqa: BLE001 - the parent is told by the status
        traceback.print_exc()
    finally:
        sys.stderr.flush()
        os._exit(status)


def end_of(child: int) -> int:
    """Wait for a child; return its exit status, or the negative number of its signal."""
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def run(action: Callable[[], None]) -> int:
    """Run `action` in a child to its end."""
    return end_of(fork(action))


def die() -> NoReturn:
    """Kill this process as the system would: no handler, no cleaning up."""
    os.kill(os.getpid(), signal.SIGKILL)
    raise AssertionError("still alive")


def committers(root: Path) -> list[int]:
    """Return the processes that commit for writers of a ledger in group mode."""
    found = []
    for entry in Path("/proc").iterdir():
        try:
            words = (entry / "cmdline").read_bytes().split(b"\0") if entry.name.isdigit() else []
            if b"-c" in words and os.fsencode(root) in words:
                found.append(int(entry.name))
        except OSError:
            continue  # it has just ended
    return found


def wait_for_committers(root: Path) -> None:
    """Return when nobody commits for a killed writer any more."""
    deadline = time.monotonic() + _WAIT_SECONDS_MAX
    while committers(root):
        assert time.monotonic() < deadline, "a committer outlives its writer"
        time.sleep(0.01)
