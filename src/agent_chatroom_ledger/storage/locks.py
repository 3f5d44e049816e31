"""Locks between processes and threads: flock (msvcrt on Windows) with a thread lock inside.

No lock is ever judged by age: the operating system frees it with its holder. Order: commit, then
journal; nobody waits for the commit lock while holding the journal's (docs/design.md 4).
"""

from __future__ import annotations

import os
import sys
import threading
import time
import weakref
from contextlib import contextmanager
from typing import TYPE_CHECKING, Self

from agent_chatroom_ledger.errors import Busy

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path
    from types import TracebackType

LOCK_WAIT_SECONDS_MAX = 60.0
_PAUSE_SECONDS_MIN = 0.0001
_PAUSE_SECONDS_MAX = 0.002
_BRISK_SECONDS = 0.02
_BRISK_PAUSE = 0.001

if sys.platform == "win32":  # pragma: no cover - documented as untested
    import msvcrt

    def _try_lock(descriptor: int) -> bool:
        try:
            msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
        except OSError:
            return False
        return True

    def _unlock(descriptor: int) -> None:
        os.lseek(descriptor, 0, os.SEEK_SET)
        msvcrt.locking(descriptor, msvcrt.LK_UNLCK, 1)

    _try_share = _try_lock

else:
    import fcntl

    def _try_lock(descriptor: int) -> bool:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True

    def _try_share(descriptor: int) -> bool:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True

    def _unlock(descriptor: int) -> None:
        fcntl.flock(descriptor, fcntl.LOCK_UN)


class FileLock:
    """One lock file; not reentrant. Threads of a process exclude each other as processes do.

    A forked child never inherits a held lock: it drops the descriptor and opens its own.
    """

    def __init__(self, path: Path) -> None:
        """Name the file; it is created at the first acquisition and never deleted."""
        self.path = path
        self._threads = threading.Lock()
        self._descriptor = -1
        _all_locks.add(self)

    def try_acquire(self) -> bool:
        """Take the lock if nobody holds it."""
        if not self._threads.acquire(blocking=False):
            return False
        try:
            if self._descriptor < 0:
                self._descriptor = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
            taken = _try_lock(self._descriptor)
        except BaseException:
            self._threads.release()
            raise
        if not taken:
            self._threads.release()
        return taken

    def acquire(
        self,
        *,
        unless: Callable[[], bool] | None = None,
        patience: float = 0.0,
        seconds: float = LOCK_WAIT_SECONDS_MAX,
    ) -> bool:
        """Take the lock; False when `unless()` became true first.

        Who finds it held and has `patience` gives others so many seconds' precedence. Raises
        Busy, naming the file, when somebody holds it longer than `seconds`.
        """
        if self.try_acquire():
            return True
        start = time.monotonic()
        pause = _PAUSE_SECONDS_MIN
        while True:
            if unless is not None and unless():
                return False
            waited = time.monotonic() - start
            if waited >= patience and self.try_acquire():
                return True
            if waited > seconds:
                raise Busy(
                    f"another process has held {self.path} for {seconds:g} seconds; "
                    "find it (for example with `fuser`) and let it finish or stop it",
                    path=str(self.path),
                    seconds=seconds,
                )
            time.sleep(pause)
            # Locks are held for a millisecond or so; looking more often than this would take the
            # processor from whoever holds it.
            pause = min(pause * 2, _PAUSE_SECONDS_MAX if waited > _BRISK_SECONDS else _BRISK_PAUSE)

    def release(self) -> None:
        """Give the lock back."""
        _unlock(self._descriptor)
        self._threads.release()

    def close(self) -> None:
        """Close the descriptor; the lock must not be held."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1

    def __enter__(self) -> Self:
        """Take the lock."""
        self.acquire()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Give the lock back."""
        self.release()

    def forget_parent(self) -> None:
        """Drop what a forked child has inherited; the parent's lock stays the parent's."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
        self._descriptor = -1
        self._threads = threading.Lock()


@contextmanager
def holding(path: Path, *, seconds: float = LOCK_WAIT_SECONDS_MAX) -> Iterator[None]:
    """Hold the lock of a file for one step, and leave no descriptor open.

    The file's directory is made where it is missing. Raises Busy as ``FileLock.acquire`` does.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    lock = FileLock(path)
    try:
        lock.acquire(seconds=seconds)
        try:
            yield
        finally:
            lock.release()
    finally:
        lock.close()


def is_held(path: Path) -> bool:
    """Tell whether somebody holds the lock of a file; nothing is written, and no wait is long.

    A file that is not there is not held. Several may ask at once; who tries to take the lock in
    the same instant may have to try again.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return False
    try:
        if not _try_share(descriptor):
            return True
        _unlock(descriptor)
        return False
    finally:
        os.close(descriptor)


_all_locks: weakref.WeakSet[FileLock] = weakref.WeakSet()


def _after_fork() -> None:
    for lock in tuple(_all_locks):
        lock.forget_parent()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
