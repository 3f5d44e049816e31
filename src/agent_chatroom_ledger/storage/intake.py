"""The newest generation of the journal in memory, for the committer and the present state."""

from __future__ import annotations

import os
import threading
from typing import TYPE_CHECKING

from agent_chatroom_ledger.errors import Corrupt
from agent_chatroom_ledger.storage import journal

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from agent_chatroom_ledger.domain.frames import Frame, Header
    from agent_chatroom_ledger.storage.layout import Layout


class Intake:
    """Frames of the newest generation, kept up to date by `refresh`.

    `mutex` guards it within the process; the journal's lock is needed only to append. A listener
    is told of a new generation (`reset`) and of frames that others appended (`take`).
    """

    def __init__(self, layout: Layout) -> None:
        """Read nothing yet."""
        self._layout = layout
        self.mutex = threading.RLock()
        self._descriptor = -1
        self.generation = 0
        self._following = ""
        self.offset = 0
        self._header: Header | None = None
        self.frames: list[Frame] = []
        self.on_reset: Callable[[Header, Sequence[Frame]], None] = lambda _h, _f: None
        self.on_take: Callable[[Frame], None] = lambda _f: None

    @property
    def header(self) -> Header:
        """The header of the newest generation."""
        if self._header is None:
            raise Corrupt("the journal has no readable header; run `rooms verify`")
        return self._header

    @property
    def last_frame(self) -> int:
        """The number of the newest frame."""
        return self.frames[-1].frame if self.frames else self.header.last_frame

    def written_at(self) -> float:
        """Return when the newest generation was written to, in seconds since 1970."""
        with self.mutex:
            self.refresh()
            return os.fstat(self._descriptor).st_mtime if self._descriptor >= 0 else 0.0

    def close(self) -> None:
        """Close the file."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1

    def refresh(self) -> bool:
        """Read what is new; False when the ledger has no journal yet."""
        with self.mutex:
            # A generation that starts after this look is no matter: to start one takes the locks
            # that a caller to whom it matters holds.
            stale = self._descriptor < 0 or os.path.exists(self._following)
            if stale and not self._open_newest():
                return False
            size = os.fstat(self._descriptor).st_size
            if size > self.offset:
                self._read(size)
            return True

    def _open_newest(self) -> bool:
        while True:
            kept = journal.generations(self._layout)
            if not kept:
                return False
            path = journal.generation_path(self._layout, kept[-1])
            try:
                descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
            except FileNotFoundError:
                continue
            break
        self.close()
        self._descriptor = descriptor
        self.generation = kept[-1]
        self._following = f"{self._layout.journal}/{self.generation + 1:016d}"
        self.offset = 0
        self._header = None
        self.frames = []
        self._read(os.fstat(descriptor).st_size)
        return True

    def _read(self, size: int) -> None:
        data = os.pread(self._descriptor, size - self.offset, self.offset)
        expected = self.last_frame + 1 if self.offset else None
        scan = journal.scan(data, self.offset, expected)
        if self.offset == 0:
            if scan.header is None:
                path = journal.generation_path(self._layout, self.generation)
                raise Corrupt(
                    f"the header of {path} is damaged; run `rooms verify --repair --apply`",
                    code="journal_rot",
                    path=str(path),
                )
            self._header = scan.header
            self.frames = scan.frames
            self.offset = scan.end
            self.on_reset(scan.header, scan.frames)
            return
        self.offset = scan.end
        for frame in scan.frames:
            self.frames.append(frame)
            self.on_take(frame)

    def accept(self, frames: Sequence[Frame], end: int) -> None:
        """Take over frames that this process has just appended; the journal's lock is held."""
        self.frames.extend(frames)
        self.offset = end

    def after(self, frame: int) -> list[Frame]:
        """Return the frames with a greater number."""
        with self.mutex:
            if not self.frames:
                return []
            return self.frames[max(frame + 1 - self.frames[0].frame, 0) :]
