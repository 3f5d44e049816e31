"""Ending a command that waits: its reader has gone, or a signal tells it to."""

from __future__ import annotations

import os
import select
import signal
import stat
import sys
from threading import Thread
from typing import TYPE_CHECKING

from agent_chatroom_ledger.cli import Terminated

if TYPE_CHECKING:
    from types import FrameType

# When a signal is looked at again that came where nobody hears of it.
_AGAIN_SECONDS = 0.01


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
    """Let SIGTERM end a command that waits as Ctrl-C does: what it holds is let go of.

    Both come through wherever the process stands, also in what runs when an object goes away.
    """
    signal.signal(signal.SIGTERM, _end)
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, _end)


def _end(number: int, frame: FrameType | None) -> None:
    if _is_unheard(frame) and hasattr(signal, "setitimer"):
        signal.signal(signal.SIGALRM, lambda _, later: _end(number, later))
        signal.setitimer(signal.ITIMER_REAL, _AGAIN_SECONDS)
        return
    if number == signal.SIGINT:
        raise KeyboardInterrupt
    raise Terminated


def _is_unheard(frame: FrameType | None) -> bool:
    """Tell whether Python would drop an exception raised here: an object is going away."""
    while frame is not None:
        module = frame.f_globals.get("__name__")
        if frame.f_code.co_name == "__del__" or module in {"weakref", "_weakrefset"}:
            return True
        frame = frame.f_back
    return False


def _watch(descriptor: int) -> None:
    poll = select.poll()
    # No event is asked for: an error or a hang-up, which is always told, means a reader gone.
    poll.register(descriptor, 0)
    poll.poll()
    # Not an exception: the main thread sleeps, and a shell may have told it to ignore SIGINT.
    os._exit(0)
