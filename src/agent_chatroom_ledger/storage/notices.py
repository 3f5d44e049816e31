"""Notices of the operating system that something was written in a directory: inotify, on Linux.

With them a process that waits sleeps until there is something to look at. They are a hint and no
more: whoever waits looks for itself as well, if seldom. Elsewhere there are none, and it looks
often instead.
"""

from __future__ import annotations

import os
import select
import sys
from contextlib import suppress
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

_MODIFY: Final = 0x2
_MOVED_TO: Final = 0x80
_CREATE: Final = 0x100
_EVENTS_BYTES: Final = 65_536


class Notices:
    """Waits for writes in directories. ``available`` is false where the system tells of none."""

    # An interrupt may come before there is anything to let go of.
    _descriptor = -1
    _poll: select.poll | None = None

    def __init__(self, directories: Iterable[Path]) -> None:
        """Begin at once: what is written from now on is told."""
        self._descriptor = _watching([os.fsencode(path) for path in directories])
        if self._descriptor >= 0:
            self._poll = select.poll()
            self._poll.register(self._descriptor, select.POLLIN)

    @property
    def available(self) -> bool:
        """Whether waiting here is of any use."""
        return self._poll is not None

    def wait(self, seconds: float) -> None:
        """Return when something was written, or after so many seconds."""
        if self._poll is not None and self._poll.poll(max(seconds, 0) * 1000):
            with suppress(BlockingIOError):
                os.read(self._descriptor, _EVENTS_BYTES)

    def close(self) -> None:
        """Let go; waiting then returns at once."""
        descriptor, self._descriptor, self._poll = self._descriptor, -1, None
        if descriptor >= 0:
            os.close(descriptor)

    def __del__(self) -> None:
        """Let go of notices that were forgotten."""
        self.close()


def _watching(directories: list[bytes]) -> int:
    """Return a descriptor that tells of writes in directories; -1 where there is none to be had."""
    if sys.platform != "linux":
        return -1
    # The standard library has no function for it.
    import ctypes

    try:
        library = ctypes.CDLL(None)
        descriptor = int(library.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC))
    except (OSError, AttributeError):
        return -1
    if descriptor < 0:
        return -1
    mask = _MODIFY | _MOVED_TO | _CREATE
    if any(library.inotify_add_watch(descriptor, path, mask) < 0 for path in directories):
        # A directory that is not there, or more watches than the system allows.
        os.close(descriptor)
        return -1
    return descriptor
