"""The work tree: a checkout of main that we bring up to date, and never take for truth.

Nothing here follows a symbolic link, at no level. What somebody else has put in the place of one
of our files goes to quarantine before ours is written.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import stat
from typing import TYPE_CHECKING, Self

from agent_chatroom_ledger.storage import failpoints, files
from agent_chatroom_ledger.storage.layout import is_log

if TYPE_CHECKING:
    from agent_chatroom_ledger.storage.layout import Layout

_OPEN_MAX = 128
_TOGETHER_MAX = 64
_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


def blob_id(data: bytes) -> str:
    """Return the id that git gives to these bytes."""
    return hashlib.sha1(b"blob %d\0" % len(data) + data, usedforsecurity=False).hexdigest()


class WorkTreeWriter:
    """Writes files of main into the work tree and syncs what it wrote."""

    def __init__(self, layout: Layout) -> None:
        """Write nothing yet."""
        self._layout = layout
        self._directories: dict[str, int] = {}
        self._touched: set[str] = set()
        self._unsynced: list[int] = []
        self.quarantined: list[str] = []

    def close(self) -> None:
        """Close the directories."""
        for descriptor in self._directories.values():
            os.close(descriptor)
        self._directories.clear()

    def __enter__(self) -> Self:
        """Begin."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close the directories, and what an error has left open."""
        self.close()
        for descriptor in self._unsynced:
            os.close(descriptor)
        self._unsynced = []

    def _directory(self, path: str, *, create: bool) -> int | None:
        """Open a directory by its path in the ledger, one name at a time, no link among them."""
        known = self._directories.get(path)
        if known is not None:
            return known
        if not path:
            descriptor = os.open(self._layout.root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        else:
            above, _, name = path.rpartition("/")
            parent = self._directory(above, create=create)
            if parent is None:
                return None
            try:
                descriptor = os.open(name, _DIRECTORY, dir_fd=parent)
            except FileNotFoundError:
                if not create:
                    return None
                os.mkdir(name, dir_fd=parent)
                self._touched.add(above)
                descriptor = os.open(name, _DIRECTORY, dir_fd=parent)
            except OSError:
                if not create:
                    return None
                self._set_aside(parent, name, path)
                os.mkdir(name, dir_fd=parent)
                self._touched.add(above)
                descriptor = os.open(name, _DIRECTORY, dir_fd=parent)
        self._directories[path] = descriptor
        return descriptor

    def _spare_descriptors(self) -> None:
        if len(self._directories) > _OPEN_MAX:
            self.close()

    def _set_aside(self, parent: int, name: str, path: str) -> None:
        """Move a foreign link, pipe or file away from the place of one of ours."""
        self._layout.quarantine.mkdir(exist_ok=True)
        target = files.temporary_name(self._layout, "aside").rpartition("/")[2]
        place = f"{self._layout.quarantine}/{target}-{name[-60:]}"
        os.rename(name, place, src_dir_fd=parent)
        self.quarantined.append(path)

    def read(self, path: str) -> bytes | None:
        """Return the bytes of a regular file; None for anything else."""
        self._spare_descriptors()
        directory, _, name = path.rpartition("/")
        parent = self._directory(directory, create=False)
        return None if parent is None else self._read(parent, name)

    @staticmethod
    def _read(parent: int, name: str) -> bytes | None:
        try:
            descriptor = os.open(
                name,
                os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK,
                dir_fd=parent,
            )
        except OSError:
            return None
        try:
            if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                return None
            with os.fdopen(descriptor, "rb", closefd=False) as stream:
                return stream.read()
        finally:
            os.close(descriptor)

    def put(self, path: str, old: bytes | None, new: bytes) -> os.stat_result:
        """Let a file hold `new`; foreign bytes, neither `old` nor `new`, are quarantined first."""
        self._spare_descriptors()
        directory, _, name = path.rpartition("/")
        parent = self._directory(directory, create=True)
        assert parent is not None
        failpoints.reach("worktree.put")
        if old is not None and is_log(path) and new.startswith(old):
            status = self._grow(parent, name, len(old), new)
            if status is not None:
                return status
        present = self._present(parent, name, path)
        if present == new:
            status = os.stat(name, dir_fd=parent, follow_symlinks=False)
            if stat.S_IMODE(status.st_mode) & 0o111 == 0:
                flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC
                self._sync_later(os.open(name, flags, dir_fd=parent))
                return status
        if present is not None and present not in (old, new) and not new.startswith(present):
            kept = files.quarantine(self._layout, path.replace("/", "_"), present)
            self.quarantined.append(f"{path} -> {kept.name}")
        temporary = files.write_temporary(self._layout, "file", new)
        failpoints.reach("worktree.written")
        try:
            # Not synced yet, nor need it be: the journal holds what was folded until all is.
            descriptor = os.open(temporary, os.O_RDONLY | os.O_CLOEXEC)
            self._sync_later(descriptor)
            os.rename(temporary, name, dst_dir_fd=parent)
        except BaseException:
            os.unlink(temporary)
            raise
        self._touched.add(directory)
        failpoints.reach("worktree.placed")
        return os.stat(name, dir_fd=parent, follow_symlinks=False)

    def _present(self, parent: int, name: str, path: str) -> bytes | None:
        try:
            status = os.stat(name, dir_fd=parent, follow_symlinks=False)
        except FileNotFoundError:
            return None
        if not stat.S_ISREG(status.st_mode):
            self._set_aside(parent, name, path)
            return None
        return self._read(parent, name)

    def _sync_later(self, descriptor: int) -> None:
        """Sync a file with others at once, which costs little more than one; it is closed then."""
        self._unsynced.append(descriptor)
        if len(self._unsynced) >= _TOGETHER_MAX:
            self._sync_files()

    def _sync_files(self) -> None:
        descriptors, self._unsynced = self._unsynced, []
        try:
            files.sync_many(descriptors)
        finally:
            for descriptor in descriptors:
                os.close(descriptor)

    def _grow(self, parent: int, name: str, size: int, new: bytes) -> os.stat_result | None:
        """Append what a log has more; None when the file is not what it was."""
        try:
            descriptor = os.open(
                name,
                os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK,
                dir_fd=parent,
            )
        except OSError:
            return None
        try:
            status = os.fstat(descriptor)
            if not stat.S_ISREG(status.st_mode) or status.st_size != size or status.st_nlink != 1:
                return None
            if status.st_mode & 0o111:
                return None  # a program: git would call the file changed
            if os.pread(descriptor, size, 0) != new[:size]:
                return None
            os.lseek(descriptor, size, os.SEEK_SET)
            files.write_all(descriptor, new[size:])
            failpoints.reach("worktree.grown")
            self._sync_later(os.dup(descriptor))
            return os.fstat(descriptor)
        finally:
            os.close(descriptor)

    def remove(self, path: str, old: bytes | None) -> None:
        """Delete a file and the directories that it leaves empty; foreign bytes are kept."""
        self._spare_descriptors()
        directory, _, name = path.rpartition("/")
        parent = self._directory(directory, create=False)
        if parent is None:
            return
        present = self._present(parent, name, path)
        if present is None:
            return
        if present != old:
            files.quarantine(self._layout, path.replace("/", "_"), present)
            self.quarantined.append(path)
        os.unlink(name, dir_fd=parent)
        self._touched.add(directory)
        while directory:
            above, _, name = directory.rpartition("/")
            parent = self._directory(above, create=False)
            if parent is None:
                return
            try:
                os.rmdir(name, dir_fd=parent)
            except OSError:
                return
            self._touched.discard(directory)
            os.close(self._directories.pop(directory))
            self._touched.add(above)
            directory = above

    def sync(self) -> None:
        """Make everything that was written durable, files first and then their names."""
        self._sync_files()
        for directory in sorted(self._touched):
            self._spare_descriptors()
            descriptor = self._directory(directory, create=False)
            if descriptor is not None:
                failpoints.reach("files.sync_directory")
                with contextlib.suppress(FileNotFoundError):
                    os.fsync(descriptor)
        self._touched.clear()
