"""Watching the journal: whether anything was appended since one last looked, for three stats.

Whoever waits looks often and finds nothing, so a look opens and reads no file. It tells of every
append, of every new generation, and of foreign commits, whose records no frame brings. Where the
system gives notice of writes, a look is taken then, and now and then all the same.
"""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING, Final

from agent_chatroom_ledger.storage import foreign, journal
from agent_chatroom_ledger.storage.notices import Notices

if TYPE_CHECKING:
    from agent_chatroom_ledger.storage.layout import Layout

# Between two looks where the system gives notice; without it the caller says how long.
_NOTICED_SECONDS_MAX: Final = 1.0
# After a notice, so that a burst of writes is one change.
_SETTLING_SECONDS: Final = 0.001


class Watch:
    """Tells whether a ledger has changed since the last look."""

    def __init__(self, layout: Layout, pause_seconds: float) -> None:
        """Remember how the ledger stands now.

        ``pause_seconds`` lie between two looks where the system gives no notice of writes.
        """
        self._layout = layout
        self.pause_seconds = pause_seconds
        # Texts, made once: whoever waits looks many times a second, and finds nothing.
        self._journal = os.fspath(layout.journal)
        self._current = self._next = ""
        self._generation = -1
        self._seen: tuple[int, int, int] | None = None
        self._notices: Notices | None = None
        self.changed()

    @property
    def seen(self) -> tuple[int, int, int]:
        """How the ledger stood at the last look; what was appended since makes it differ."""
        assert self._seen is not None, "the first look is taken when a watch is made"
        return self._seen

    def changed(self) -> bool:
        """Tell whether something was appended, or main moved, since this was last asked."""
        now = self._now()
        changed, self._seen = now != self._seen, now
        return changed

    def wait(self, until: float | None = None) -> bool:
        """Return True at the next change, False when the monotonic clock has passed ``until``."""
        while not self.changed():
            left = _NOTICED_SECONDS_MAX if until is None else until - time.monotonic()
            if left <= 0:
                return False
            if self._notices is None:
                # Then one more look: something may have been written just before.
                self._notices = Notices((self._layout.journal, self._layout.private))
            elif self._notices.available:
                self._notices.wait(min(left, _NOTICED_SECONDS_MAX))
                time.sleep(_SETTLING_SECONDS)
            else:
                time.sleep(min(left, self.pause_seconds))
        return True

    def _now(self) -> tuple[int, int, int]:
        while True:
            if self._generation < 0 or os.path.exists(self._next):
                kept = journal.generations(self._layout)
                self._generation = newest = kept[-1] if kept else -1
                self._current = f"{self._journal}/{newest:016d}"
                self._next = f"{self._journal}/{newest + 1:016d}"
            if self._generation < 0:
                return -1, 0, foreign.stamp(self._layout)
            try:
                size = os.stat(self._current).st_size
            except FileNotFoundError:
                # Several generations have come and gone since.
                self._generation = -1
                continue
            return self._generation, size, foreign.stamp(self._layout)
