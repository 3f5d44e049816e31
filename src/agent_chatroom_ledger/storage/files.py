"""Files written so that a kill or a power cut leaves the old bytes or the new ones, never a mix.

Every write of the storage layer goes through here, so that one place knows about short writes,
full disks, symbolic links and what has to be synced.
"""

from __future__ import annotations

import contextlib
import errno
import itertools
import os
import sys
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING

from agent_chatroom_ledger.errors import Busy, Forbidden, LedgerError
from agent_chatroom_ledger.storage import failpoints

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from agent_chatroom_ledger.storage.layout import Layout

_READ_BYTES = 1 << 20
_SYNC_THREADS = 8
_SYNCED_ALONE_MAX = 3
_FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}
_DENIED = {errno.EACCES, errno.EPERM, errno.EROFS}
_serial = itertools.count()
# No process of ours keeps a temporary file for longer than one call takes.
TEMPORARY_SECONDS_MAX = 3600


@contextlib.contextmanager
def clear_errors(doing: str) -> Iterator[None]:
    """Turn the operating system's refusals into errors that say what to do."""
    try:
        yield
    except LedgerError:
        raise
    except OSError as error:
        if error.errno in _FULL:
            raise Busy(
                f"no room on the disk while {doing}: {error}; nothing was lost, make room and "
                "try again",
                code="disk_full",
                path=str(error.filename or ""),
            ) from error
        if error.errno in _DENIED:
            raise Forbidden(
                f"not allowed while {doing}: {error}; the ledger can be read, but not written",
                code="read_only",
                path=str(error.filename or ""),
            ) from error
        raise Busy(
            f"the operating system refused while {doing}: {error}",
            code="io_error",
            path=str(error.filename or ""),
        ) from error


def write_all(descriptor: int, data: bytes, offset: int | None = None) -> None:
    """Write every byte, here or at an offset, however short the single writes come out."""
    failpoints.reach("files.write")
    view = memoryview(data)
    while view:
        if offset is None:
            view = view[os.write(descriptor, view) :]
        else:
            written = os.pwrite(descriptor, view, offset)
            view, offset = view[written:], offset + written


if sys.platform == "darwin":  # pragma: no cover - needs a Mac

    def sync_descriptor(descriptor: int) -> None:
        """Bring a file's bytes to stable storage; fsync alone does not on macOS."""
        import fcntl

        fcntl.fcntl(descriptor, fcntl.F_FULLFSYNC)

elif hasattr(os, "fdatasync"):

    def sync_descriptor(descriptor: int) -> None:
        """Bring a file's bytes to stable storage."""
        failpoints.reach("files.sync")
        os.fdatasync(descriptor)

else:  # pragma: no cover - Windows

    def sync_descriptor(descriptor: int) -> None:
        """Bring a file's bytes to stable storage."""
        os.fsync(descriptor)


def sync_many(descriptors: Sequence[int]) -> None:
    """Bring several files to stable storage; side by side, so that the disk takes them together."""
    if len(descriptors) <= _SYNCED_ALONE_MAX:
        for descriptor in descriptors:
            sync_descriptor(descriptor)
        return
    waiting = list(descriptors)
    failed: list[BaseException] = []

    def work() -> None:
        while not failed:
            try:
                descriptor = waiting.pop()  # a list's pop is one step for threads
            except IndexError:
                return
            try:
                sync_descriptor(descriptor)
            except BaseException as error:  # noqa: BLE001 - raised again by the caller's thread
                failed.append(error)

    threads = [threading.Thread(target=work) for _ in range(min(_SYNC_THREADS, len(waiting)))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failed:
        raise failed[0]


def sync_path(path: Path | str) -> bool:
    """Sync a file by name; False when it is not there (any more)."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return False
    try:
        sync_descriptor(descriptor)
    finally:
        os.close(descriptor)
    return True


def sync_paths(paths: Iterable[Path | str]) -> None:
    """Sync files by name, those that are not there (any more) aside."""
    descriptors: list[int] = []
    try:
        for path in paths:
            with contextlib.suppress(FileNotFoundError):
                descriptors.append(os.open(path, os.O_RDONLY | os.O_CLOEXEC))
        sync_many(descriptors)
    finally:
        for descriptor in descriptors:
            os.close(descriptor)


def sync_directory(path: Path | str) -> None:
    """Make the names in a directory durable, where the system can."""
    if sys.platform == "win32":  # pragma: no cover
        return
    failpoints.reach("files.sync_directory")
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def sync_tree(path: Path | str) -> None:
    """Make a whole directory durable: its files, its directories, and all their names."""
    for directory, _, names in os.walk(path, topdown=False):
        for name in names:
            sync_path(os.path.join(directory, name))
        sync_directory(directory)


def temporary_name(layout: Layout, stem: str) -> str:
    """Return a fresh path in the ledger's own temporary directory."""
    return f"{layout.tmp}/{stem}-{os.getpid()}-{next(_serial)}-{time.monotonic_ns():x}"


def sweep_temporary(layout: Layout) -> None:
    """Delete the temporary files of killed processes: those that nobody wrote to for an hour."""
    old = time.time() - TEMPORARY_SECONDS_MAX
    with os.scandir(layout.tmp) as entries:
        for entry in entries:
            with contextlib.suppress(FileNotFoundError):
                if entry.is_file(follow_symlinks=False) and entry.stat().st_mtime < old:
                    os.unlink(entry.path)


def write_temporary(
    layout: Layout, stem: str, data: bytes, *, mode: int = 0o644, sync: bool = False
) -> str:
    """Write a whole temporary file and return its path; nothing is left when that fails."""
    path = temporary_name(layout, stem)
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
    try:
        descriptor = os.open(path, flags, mode)
    except FileNotFoundError:
        layout.tmp.mkdir(exist_ok=True)  # somebody has tidied up
        descriptor = os.open(path, flags, mode)
    try:
        write_all(descriptor, data)
        if sync:
            sync_descriptor(descriptor)
    except BaseException:
        os.close(descriptor)
        os.unlink(path)
        raise
    os.close(descriptor)
    return path


def replace(layout: Layout, path: Path | str, data: bytes, *, sync: bool) -> None:
    """Put `data` at `path` in one step; with `sync` the bytes and the name are durable."""
    temporary = write_temporary(layout, "replace", data, sync=sync)
    try:
        os.replace(temporary, path)
    except BaseException:
        os.unlink(temporary)
        raise
    if sync:
        sync_directory(os.path.dirname(path))


def replace_beside(path: Path, data: bytes) -> None:
    """Replace a file that may lie on another file system than the ledger: whole, and synced.

    The temporary file lies beside it, because a rename does not cross file systems.
    """
    temporary = path.with_name(f".{path.name[:80]}.{os.getpid()}.tmp")
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC
    try:
        descriptor = os.open(temporary, flags | getattr(os, "O_NOFOLLOW", 0), 0o644)
        try:
            write_all(descriptor, data)
            sync_descriptor(descriptor)
        finally:
            os.close(descriptor)
        os.replace(temporary, path)
    except BaseException:
        with contextlib.suppress(FileNotFoundError):
            temporary.unlink()
        raise
    sync_directory(path.parent)


def read_bytes(path: Path | str) -> bytes | None:
    """Read a whole file; None when it does not exist."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    try:
        size = os.fstat(descriptor).st_size
        data = os.read(descriptor, size + 1)
        if len(data) != size:  # it has grown, tells no size, or is larger than one read gives
            while more := os.read(descriptor, _READ_BYTES):
                data += more
        return data
    finally:
        os.close(descriptor)


def quarantine(layout: Layout, name: str, data: bytes) -> Path:
    """Keep foreign or damaged bytes under a fresh name, durably, and return where."""
    layout.quarantine.mkdir(exist_ok=True)
    clean = "".join(c if c.isalnum() or c in "._-" else "_" for c in name)
    # Of a long name the end, by bytes: file systems take at most 255.
    clean = clean.encode()[-120:].decode(errors="ignore")
    stamp = time.strftime("%Y%m%dT%H%M%S", time.gmtime())
    for attempt in itertools.count():
        path = layout.quarantine / f"{stamp}-{attempt}-{clean}"
        try:
            descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o644)
        except FileExistsError:
            continue
        break
    try:
        write_all(descriptor, data)
        sync_descriptor(descriptor)
    finally:
        os.close(descriptor)
    sync_directory(layout.quarantine)
    return path


def boot_id() -> str:
    """Return what changes with every boot of the machine, so that a power cut can be noticed."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    except OSError:  # pragma: no cover - not Linux: the boot time to ten seconds serves as one
        return f"boot-{round((time.time() - time.monotonic()) / 10)}"
