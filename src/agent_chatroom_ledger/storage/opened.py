"""What one open ledger holds on to: journal follower, index, git's objects, the writer."""

from __future__ import annotations

import threading
from contextlib import suppress
from typing import TYPE_CHECKING, Literal

from agent_chatroom_ledger.errors import Busy, Conflict, Corrupt, Forbidden, InvalidInput
from agent_chatroom_ledger.storage import journal
from agent_chatroom_ledger.storage.overlay import Overlay
from agent_chatroom_ledger.storage.source import WorkTree
from agent_chatroom_ledger.storage.watching import Watch

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from agent_chatroom_ledger.storage.index import Index
    from agent_chatroom_ledger.storage.layout import Layout
    from agent_chatroom_ledger.storage.objects import Objects
    from agent_chatroom_ledger.storage.receipts import Receipts
    from agent_chatroom_ledger.storage.source import Source
    from agent_chatroom_ledger.storage.timeline import Timeline
    from agent_chatroom_ledger.storage.writer import Writer

# How far the index file may lag behind the journal when a writer closes: less is caught up by
# each reader in no time, more is left to whoever needs it, so that closing stays quick.
_INDEX_LAG_BYTES_MIN = 65_536
_INDEX_LAG_BYTES_MAX = 1_048_576


class Opened:
    """The parts of an open ledger, each opened when it is first needed; safe for threads.

    Its guard is never held while the writer takes its locks, because the writer asks the index
    under them.
    """

    def __init__(
        self, layout: Layout, *, commit: Literal["sync", "group"], read_only: bool
    ) -> None:
        self.layout = layout
        self.read_only = read_only
        self.keeps_index = False
        self._commit: Literal["sync", "group"] = commit
        self._guard = threading.RLock()
        self._tree = WorkTree(layout.root)
        self._follower: journal.Follower | None = None
        self._overlay = Overlay()
        self._index: Index | None = None
        self._writer: Writer | None = None
        self._objects: Objects | None = None
        self._timeline: Timeline | None = None
        self._receipts: Receipts | None = None
        self._closed = False

    def look(self) -> tuple[Source, Overlay]:
        """Return the work tree, and what the journal holds beyond it, as of now."""
        with self._guard:
            self._require_open()
            while True:
                if self._follower is None:
                    self._follower = journal.Follower.newest(self.layout)
                    self._overlay = Overlay()
                generation = self._follower.position[0]
                frames = self._follower.new_frames()
                if self._follower.position[0] != generation and self._overlay:
                    # What the older generation held is in the files now: let go of it.
                    self._follower.close()
                    self._follower = None
                    continue
                self._overlay.extend(frames)
                return self._tree, self._overlay

    @property
    def index(self) -> Index:
        """The derived index over all rooms."""
        with self._guard:
            self._require_open()
            if self._index is None:
                from agent_chatroom_ledger.storage.index import Index

                self._index = Index(self.layout, self.look, writable=not self.read_only)
                if self.keeps_index and self.read_only:
                    self._index = self._kept(self._index)
            return self._index

    @property
    def objects(self) -> Objects:
        """Git's objects."""
        with self._guard:
            self._require_open()
            if self._objects is None:
                from agent_chatroom_ledger.storage.objects import Objects

                self._objects = Objects(self.layout)
            return self._objects

    @property
    def timeline(self) -> Timeline:
        """The derived list of main's commits, by time and by room."""
        with self._guard:
            if self._timeline is None:
                from agent_chatroom_ledger.storage.timeline import Timeline

                objects = self.objects
                self._timeline = Timeline(self.layout, objects, writable=not self.read_only)
            return self._timeline

    @property
    def receipts(self) -> Receipts:
        """What was handed over to whom; a reader of the ledger may write there."""
        with self._guard:
            self._require_open()
            if self._receipts is None:
                from agent_chatroom_ledger.storage.receipts import Receipts

                self._receipts = Receipts(self.layout)
            return self._receipts

    @property
    def writer(self) -> Writer:
        """The writer; Forbidden when the ledger is open for reading only."""
        with self._guard:
            self._require_open()
            self.require_writable()
            if self._writer is None:
                from agent_chatroom_ledger.storage.writer import Writer

                self._writer = Writer(
                    self.layout,
                    self._commit,
                    lookup=self._find_ids,
                )
            return self._writer

    def commit_pending(self) -> None:
        """Commit what this process has written, so that main has it."""
        writer = self._writer
        if writer is not None:
            writer.commit()

    def flush(self) -> None:
        """Commit and checkpoint what this process has written."""
        writer = self._writer
        if writer is not None:
            writer.flush()

    def let_go(self) -> None:
        """Close everything that remembers what main was, before somebody mends it."""
        with self._guard:
            writer, self._writer = self._writer, None
        if writer is not None:
            with suppress(Busy, Conflict, Corrupt):
                writer.close()
        self._forget()

    def close(self) -> None:
        """Finish what is pending and close everything; closing twice is harmless."""
        with self._guard:
            writer, self._writer = self._writer, None
            closed, self._closed = self._closed, True
        if closed:
            return
        try:
            if writer is not None:
                writer.close()
                self._refresh_index_file()
        finally:
            if self._index is not None:
                self._index.close()
            self._forget()

    def require_writable(self) -> None:
        """Raise Forbidden when the ledger is open for reading only."""
        if self.read_only:
            raise Forbidden(
                f"The ledger in {self.layout.root} is open for reading only.", code="read_only"
            )

    def _find_ids(self, room: str, record_ids: Iterable[str]) -> dict[str, tuple[str, int]]:
        # Not the index's own method: most writers never need an index, nor SQLite.
        return self.index.find_ids(room, record_ids)

    def _require_open(self) -> None:
        if self._closed:
            raise InvalidInput("The ledger is closed.", code="closed")

    def _forget(self) -> None:
        with self._guard:
            if self._follower is not None:
                self._follower.close()
                self._follower = None
            if self._timeline is not None:
                self._timeline.close()
                self._timeline = None
            if self._receipts is not None:
                self._receipts.close()
                self._receipts = None
            if self._objects is not None:
                self._objects.close()
                self._objects = None

    def _kept(self, reader: Index) -> Index:
        """Return a reader's index, its file brought up to date first where it lags far behind."""
        import sqlite3

        lag = reader.behind_bytes()
        if lag is None or lag < _INDEX_LAG_BYTES_MIN:
            return reader
        reader.close()
        index = type(reader)(self.layout, self.look)
        try:
            index.follow()
        except (sqlite3.Error, OSError, Busy, Corrupt):
            # What the reader lacks it takes into memory, and says what is wrong if it cannot.
            index.close()
            return reader
        return index

    def _refresh_index_file(self) -> None:
        """Bring the index file near the journal, so that readers who may not write it have it."""
        if not self.layout.index_db.is_file():
            return
        import sqlite3

        from agent_chatroom_ledger.storage.index import Index

        # One that looks for itself: through us nothing is to be seen any more.
        if self._index is not None:
            self._index.close()
        index = Index(self.layout)
        try:
            lag = index.behind_bytes()
            if lag is not None and _INDEX_LAG_BYTES_MIN <= lag <= _INDEX_LAG_BYTES_MAX:
                index.follow()
        except (sqlite3.Error, OSError, Busy, Corrupt):
            # Nothing of the ledger is in it: who needs it next mends it or says what is wrong.
            pass
        finally:
            index.close()


def new_lines(layout: Layout, pause_seconds: float) -> Iterator[tuple[str, bytes] | None]:
    """Yield the log and the line of every record that is appended from now on; it never ends.

    "Now" is the first step, which yields None when the place is taken. ``pause_seconds`` lie
    between two looks at the journal while nothing comes.
    """
    watch = Watch(layout, pause_seconds)
    follower = journal.Follower.newest(layout)
    try:
        follower.new_frames()
        yield None
        while True:
            for frame in follower.new_frames():
                for entry in frame.records:
                    yield entry.log, bytes(entry.record)
            watch.wait()
    finally:
        follower.close()
