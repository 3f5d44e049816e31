"""Noticing that nobody reads our output any more."""

from __future__ import annotations

import os
import select
import stat
import sys
from threading import Thread


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


def _watch(descriptor: int) -> None:
    poll = select.poll()
    # No event is asked for: an error or a hang-up, which is always told, means a reader gone.
    poll.register(descriptor, 0)
    poll.poll()
    # Not an exception: the main thread sleeps, and a shell may have told it to ignore SIGINT.
    os._exit(0)
