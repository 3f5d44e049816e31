"""Watching the journal: whether anything was appended since one last looked, for three stats.

Whoever waits looks often and finds nothing, so a look opens and reads no file. It tells of every
append, of every new generation, and of foreign commits, whose records no frame brings.
"""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING

from agent_chatroom_ledger.storage import foreign, journal

if TYPE_CHECKING:
    from agent_chatroom_ledger.storage.layout import Layout


class Watch:
    """Tells whether a ledger has changed since the last look."""

    def __init__(self, layout: Layout, pause_seconds: float) -> None:
        """Remember how the ledger stands now; ``pause_seconds`` lie between two looks."""
        self._layout = layout
        self.pause_seconds = pause_seconds
        self._generation = -1
        self._seen: tuple[int, int, int] | None = None
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
            pause = self.pause_seconds
            if until is not None:
                pause = min(pause, until - time.monotonic())
                if pause <= 0:
                    return False
            time.sleep(pause)
        return True

    def _now(self) -> tuple[int, int, int]:
        while True:
            newest = self._generation
            if newest < 0 or os.path.exists(self._path(newest + 1)):
                kept = journal.generations(self._layout)
                self._generation = newest = kept[-1] if kept else -1
            if newest < 0:
                return -1, 0, foreign.stamp(self._layout)
            try:
                size = os.stat(self._path(newest)).st_size
            except FileNotFoundError:
                # Several generations have come and gone since.
                self._generation = -1
                continue
            return newest, size, foreign.stamp(self._layout)

    def _path(self, generation: int) -> str:
        return f"{self._layout.journal}/{generation:016d}"
