"""The one write path: a transaction becomes a frame, and a frame becomes a commit."""

from __future__ import annotations

import atexit
import contextlib
import os
import threading
import time
import weakref
from typing import TYPE_CHECKING

import msgspec

from agent_chatroom_ledger import limits
from agent_chatroom_ledger.domain.frames import Frame, FrameRecord, encode_frame
from agent_chatroom_ledger.domain.records import Record, encode_record
from agent_chatroom_ledger.errors import (
    Busy,
    InvalidInput,
    LedgerError,
    NotYetCommitted,
)
from agent_chatroom_ledger.storage import failpoints, files
from agent_chatroom_ledger.storage.committer import Committer
from agent_chatroom_ledger.storage.exchange import forget_slots
from agent_chatroom_ledger.storage.intake import Intake
from agent_chatroom_ledger.storage.journal import Journal
from agent_chatroom_ledger.storage.objects import Objects
from agent_chatroom_ledger.storage.present import Present, Unsettled
from agent_chatroom_ledger.storage.repository import prepare

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from agent_chatroom_ledger.storage.background import Background
    from agent_chatroom_ledger.storage.layout import Layout
    from agent_chatroom_ledger.storage.present import Lookup

MODES = ("sync", "group")
_UNSETTLED_MAX = 5
_CATCH_UP_SECONDS = 0.002
_STANDSTILL_SECONDS_MAX = 3.0
_CLOSE_SECONDS_MAX = 30.0


class Entry(msgspec.Struct, frozen=True):
    """One record of a transaction and the log that it goes to."""

    log: str
    record: Record


class Transaction(msgspec.Struct, frozen=True):
    """What becomes one frame and one commit: all of it or none (invariant 5)."""

    entries: tuple[Entry, ...]
    requested_by: str = ""
    reason: str = ""


class Stored(msgspec.Struct, frozen=True):
    """A record that stands in the journal, with its exact bytes."""

    log: str
    record: Record
    line: bytes


class Writer:
    """Writes to one ledger; safe for threads, for other processes, and after a fork.

    `commit="sync"`: a call returns after its commit. `commit="group"`: after its frame is on
    stable storage; a committer follows at the latest 50 milliseconds later.
    """

    def __init__(
        self,
        layout: Layout,
        commit: str = "sync",
        lookup: Lookup | None = None,
    ) -> None:
        """Prepare the ledger for writing; a fresh clone gets its origin here.

        `lookup(room path, ids)` tells which records of older generations have ids; without it
        a caller's own ids are only checked against the newest generation.
        """
        if commit not in MODES:
            raise InvalidInput(
                f"commit is 'sync' or 'group', not {commit!r}", field="commit", value=commit
            )
        self.layout = layout
        self.mode = commit
        self._guard = threading.RLock()
        self._background: Background | None = None
        self._lookup = lookup or _knows_nothing
        self._open()
        _living.add(self)

    def _open(self) -> None:
        self._calls = threading.Lock()
        self._calling = 0  # calls under way, which a close waits for
        objects = Objects(self.layout)
        self.origin = prepare(self.layout, objects)
        self._journal = Journal(self.layout)
        self._intake = Intake(self.layout)
        self.present = Present(objects, self.origin, self._lookup)
        self._intake.on_reset = self.present.reset
        self._intake.on_take = self.present.take
        self._objects = objects
        self.committer = Committer(self.layout, objects, self._journal, self._intake, self.present)
        self._closed = False
        self._seen_committed = 0
        self._under_way = 0  # calls that wait for their commit; a hint, so no lock guards it
        self.problem: LedgerError | None = None
        # Last, so that a forked child whose first attempt fails begins anew at the next one.
        self._process = os.getpid()

    def transact(self, build: Callable[[Present], Sequence[Transaction]]) -> tuple[Stored, ...]:
        """Append what `build` makes of the present state, and commit it as the mode says.

        `build` runs under the journal's lock and must be quick; what it raises leaves nothing
        behind. Raises NotYetCommitted, which is not to be retried, when the frames are durable
        but their commit has to wait; and Busy, Forbidden or Corrupt when nothing was written.
        """
        with self._call():
            return self._transact(build)

    def _transact(self, build: Callable[[Present], Sequence[Transaction]]) -> tuple[Stored, ...]:
        self.committer.require_writable_main()
        for _ in range(_UNSETTLED_MAX):
            try:
                stored, last = self._append(build)
            except Unsettled:
                self.committer.checkpoint()
            else:
                break
        else:
            raise Busy("rooms are archived and restored faster than the ledger can follow")
        if not stored:
            return ()
        self._under_way += 1
        try:
            failpoints.reach("writer.appended")
            if self.mode == "group":
                self.committer.make_durable()
                failpoints.reach("writer.synced")
            else:
                self.committer.commit(last)
            self.background.wake()
            if self.mode == "group":
                self._hold_back(last)
        except (LedgerError, OSError) as error:
            try:
                self.committer.make_durable()
            except LedgerError as failed:
                raise failed from error  # then the record is not safe, and that is said instead
            raise NotYetCommitted(
                f"the record is safe in the journal, but its commit has to wait: {error}. Do not "
                "send it again; the next write or `rooms verify --repair --apply` commits it",
                records=tuple(item.record for item in stored),
            ) from error
        finally:
            self._under_way -= 1
        return stored

    def quiet_seconds(self) -> float:
        """Return for how long no frame was appended, by any process; 0 while one is under way.

        What was written in the future was written before the clock was set back.
        """
        if self._under_way:
            return 0.0
        return abs(time.time() - self._intake.written_at())

    def _hold_back(self, last: int) -> None:
        """Let commits catch up when too many frames wait for them, which bounds memory."""
        if last - self._seen_committed <= limits.BACKLOG_FRAMES_MAX:
            return
        self._seen_committed = self.committer.hinted()
        deadline = time.monotonic() + _STANDSTILL_SECONDS_MAX
        while last - self._seen_committed > limits.BACKLOG_FRAMES_MAX:
            time.sleep(_CATCH_UP_SECONDS)
            reached = self.committer.hinted()
            if reached > self._seen_committed:
                self._seen_committed = reached
                deadline = time.monotonic() + _STANDSTILL_SECONDS_MAX
            elif time.monotonic() > deadline:
                # Whoever should commit has died or is held up: do it here, or hear why not.
                with contextlib.suppress(LedgerError):
                    self.committer.commit(last)
                return

    def _append(
        self, build: Callable[[Present], Sequence[Transaction]]
    ) -> tuple[tuple[Stored, ...], int]:
        with files.clear_errors("writing to the journal"), self._journal.lock:
            self._intake.refresh()
            self._journal.settle(self._intake.generation)
            if self._journal.failed():
                self.committer.leave_failed_generation()
            with self._intake.mutex:
                present = self.present
                present.begin()
                try:
                    transactions = build(present)
                    number = self._intake.last_frame
                    frames: list[Frame] = []
                    stored: list[Stored] = []
                    for transaction in transactions:
                        number += 1
                        frame, items = _frame(transaction, number)
                        frames.append(frame)
                        stored += items
                    if not frames:
                        present.rollback()
                        return (), number
                    data = b"".join([encode_frame(frame) for frame in frames])
                    end = self._journal.append(self._intake.offset, data)
                except BaseException:
                    present.rollback()
                    raise
                self._intake.accept(frames, end)
                for item in stored:
                    present.note(item.log, item.record, item.line)
        return tuple(stored), number

    @property
    def background(self) -> Background:
        """What commits and checkpoints while the caller does something else."""
        if self._background is None:
            with self._guard:
                if self._background is None:
                    from agent_chatroom_ledger.storage.background import start

                    self._background = start(self)
        return self._background

    def commit(self) -> None:
        """Commit every frame that is durable or was appended by this process."""
        with self._call(), files.clear_errors("committing what is pending"):
            self._intake.refresh()
            self.committer.commit(self._intake.last_frame)

    def checkpoint(self, views: Sequence[str] = ()) -> None:
        """Commit, compile views (those named and those of rooms written to), make all durable."""
        with self._call(), files.clear_errors("making a checkpoint"):
            self.committer.checkpoint(views)

    def checkpoint_when_quiet(self, seconds: float) -> bool:
        """Make a checkpoint unless something is written again before its turn has come.

        Who waits for the commit lock while others post gets it between two posts, and they would
        wait for him.
        """
        with self._call(), files.clear_errors("making a checkpoint"):
            return self.committer.checkpoint(unless=lambda: self.quiet_seconds() < seconds)

    def flush(self) -> None:
        """Commit and checkpoint everything; raise what the background could not do."""
        self.checkpoint()
        self.problem = None

    def close(self) -> None:
        """Flush and let go of every file; closing twice is no error.

        Calls that other threads are in come to their end first, and no new ones begin.
        """
        if self._closed or self._process != os.getpid():
            return
        with self._calls:
            self._closed = True
        deadline = time.monotonic() + _CLOSE_SECONDS_MAX
        while self._calling and time.monotonic() < deadline:
            time.sleep(_CATCH_UP_SECONDS)
        try:
            if self._background is not None:
                self._background.stop()
            with files.clear_errors("making the last checkpoint"):
                if self._has_work():
                    self.committer.checkpoint()
        finally:
            self._release()

    def _has_work(self) -> bool:
        from agent_chatroom_ledger.storage.recovery import needed

        return bool(self.committer.views_owed) or needed(self.layout)

    def _release(self) -> None:
        forget_slots(self.layout)
        self._journal.close()
        self._intake.close()
        self.committer.close()
        self._objects.close()

    @contextlib.contextmanager
    def _call(self) -> Iterator[None]:
        """Keep the files open until a call has ended; refuse it when the ledger is closed."""
        self._require_open()
        with self._calls:
            self._require_open()
            self._calling += 1
        try:
            yield
        finally:
            with self._calls:
                self._calling -= 1

    def _require_open(self) -> None:
        if self._closed:
            raise InvalidInput("this ledger is closed; open it again", code="closed")
        if self._process != os.getpid():
            # A forked child begins anew: its own descriptors, locks, threads and committer.
            self._background = None
            self._guard = threading.RLock()
            self._open()


_living: weakref.WeakSet[Writer] = weakref.WeakSet()


def _close_all() -> None:
    """Finish what a program that ends without closing its ledger has left to do."""
    for writer in tuple(_living):
        # What fails here is safe in the journal, and whoever opens the ledger next finishes it.
        with contextlib.suppress(LedgerError, OSError):
            writer.close()


atexit.register(_close_all)


def _frame(transaction: Transaction, number: int) -> tuple[Frame, list[Stored]]:
    stored = [
        Stored(entry.log, entry.record, encode_record(entry.record))
        for entry in transaction.entries
    ]
    if not stored:
        raise InvalidInput("a transaction holds at least one record", code="empty_transaction")
    frame = Frame(
        frame=number,
        records=tuple([FrameRecord(item.log, msgspec.Raw(item.line)) for item in stored]),
        requested_by=transaction.requested_by,
        reason=transaction.reason,
    )
    return frame, stored


def _knows_nothing(room: str, record_ids: Iterable[str]) -> dict[str, tuple[str, int]]:
    del room, record_ids
    return {}
