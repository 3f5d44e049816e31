"""Noticing that nobody reads our output any more."""

from __future__ import annotations

import os
import select
import signal
import stat
import sys
from threading import Thread
from typing import TYPE_CHECKING, NoReturn

if TYPE_CHECKING:
    from types import FrameType


def end_with_reader() -> None:
    """End the process, with status 0, as soon as the reader of its stdout has gone away.

    A command that follows may have nothing to write for hours, and only a write would notice.
    For commands that only read: they hold no lock and owe nothing to anyone, so the process may
    end wherever it stands. A terminal or a file is not watched; neither goes away.
    """
    if not hasattr(select, "poll"):
        return
    try:
        descriptor = sys.stdout.fileno()
        mode = os.fstat(descriptor).st_mode
    except (OSError, ValueError):
        return
    if stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode):
        Thread(target=_watch, args=(descriptor,), daemon=True).start()


def end_on_terminate() -> None:
    """Let SIGTERM end a command that waits as Ctrl-C does: what it holds is let go of."""
    signal.signal(signal.SIGTERM, _terminated)


def _terminated(number: int, frame: FrameType | None) -> NoReturn:
    from click.exceptions import Exit

    from agent_chatroom_ledger.cli import TERMINATED

    del number, frame
    raise Exit(TERMINATED)


def _watch(descriptor: int) -> None:
    poll = select.poll()
    # No event is asked for: an error or a hang-up, which is always told, means a reader gone.
    poll.register(descriptor, 0)
    poll.poll()
    # Not an exception: the main thread sleeps, and a shell may have told it to ignore SIGINT.
    os._exit(0)
