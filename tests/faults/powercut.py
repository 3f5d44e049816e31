"""A power cut: what a disk holds when everything is gone that nobody had synced.

A shadow of a directory is kept by listening to fsync and fdatasync. The durable bytes of a file
are those of its last sync, the durable names of a directory those of its own. At a cut a directory
tree is built as it might be found afterwards: what was not synced is missing, empty, zeros, cut
off or there after all, each file and each name for itself.
"""

from __future__ import annotations

import os
import resource
import shutil
import stat
import threading
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pathlib import Path
    from random import Random

STYLES = ("nothing unsynced", "all unsynced", "zeros", "any of it", "any of it", "any of it")
_DESCRIPTORS = 16_384
_PAGE_BYTES = 4096


class Shadow:
    """Listens to the syncs of this process and knows what of `root` is durable.

    Inodes are kept open, so that the system gives none of their numbers to another file. Files are
    synced by several threads at once, and a directory is read by one at a time: `guard` it.
    """

    def __init__(self, root: Path) -> None:
        self._root = root
        self.guard = threading.RLock()
        self._bytes: dict[int, bytes] = {}
        self._names: dict[int, dict[str, int]] = {}
        self._open: dict[int, int] = {}
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (min(max(soft, _DESCRIPTORS), hard), hard))
        self._fsync, self._fdatasync = os.fsync, os.fdatasync

    def all_is_durable(self) -> None:
        """Take what is there for synced."""
        for path in (self._root, *self._root.rglob("*")):
            self._note(os.open(path, os.O_RDONLY))

    def listen(self) -> None:
        """Hear of every sync of this process from now on; it is a child that will not go back."""

        def fsync(descriptor: Any) -> None:
            self._fsync(descriptor)
            self._note(os.open(f"/proc/self/fd/{descriptor}", os.O_RDONLY))

        def fdatasync(descriptor: Any) -> None:
            self._fdatasync(descriptor)
            self._note(os.open(f"/proc/self/fd/{descriptor}", os.O_RDONLY))

        os.fsync, os.fdatasync = fsync, fdatasync

    def _note(self, descriptor: int) -> None:
        with self.guard:
            status = os.fstat(descriptor)
            kept = self._open.setdefault(status.st_ino, descriptor)
            if stat.S_ISDIR(status.st_mode):
                self._names[status.st_ino] = self._listing(kept)
            else:
                self._bytes[status.st_ino] = _content(kept)
            if kept != descriptor:
                os.close(descriptor)

    def _listing(self, directory: int) -> dict[str, int]:
        found = {}
        for name in os.listdir(directory):
            descriptor = os.open(name, os.O_RDONLY | os.O_NOFOLLOW, dir_fd=directory)
            inode = os.fstat(descriptor).st_ino
            if self._open.setdefault(inode, descriptor) != descriptor:
                os.close(descriptor)
            found[name] = inode
        return found

    def cut(self, target: Path, random: Random) -> None:
        """Build at `target` what might be found after a power cut now."""
        _Cut(self, random, random.choice(STYLES)).directory(self.inode_of_root(), target)
        config = target / ".git" / "config"
        if config.exists():
            # A ledger knows by the number of its directory that it was copied. It was not.
            text = config.read_text(encoding="utf-8", errors="replace")
            was = (self._root / ".git").stat().st_ino
            now = (target / ".git").stat().st_ino
            config.write_text(text.replace(f"place = {was}\n", f"place = {now}\n"))

    def inode_of_root(self) -> int:
        inode = self._root.stat().st_ino
        if inode not in self._open:
            self._open[inode] = os.open(self._root, os.O_RDONLY)
        return inode

    def descriptor(self, inode: int) -> int:
        return self._open[inode]

    def durable_names(self, inode: int) -> dict[str, int]:
        return self._names.get(inode, {})

    def present_names(self, inode: int) -> dict[str, int]:
        return self._listing(self._open[inode])

    def durable_bytes(self, inode: int) -> bytes:
        return self._bytes.get(inode, b"")


class _Cut:
    """One way that a cut may come out; a file with several names comes out one way."""

    def __init__(self, shadow: Shadow, random: Random, style: str) -> None:
        self._shadow = shadow
        self._random = random
        self._style = style
        self._placed: dict[int, Path] = {}

    def directory(self, inode: int, target: Path) -> None:
        target.mkdir()
        durable = self._shadow.durable_names(inode)
        present = self._shadow.present_names(inode)
        for name in sorted(durable.keys() | present.keys()):
            chosen = self._choose(durable.get(name), present.get(name))
            if chosen is None:
                continue
            status = os.fstat(self._shadow.descriptor(chosen))
            if stat.S_ISDIR(status.st_mode):
                self.directory(chosen, target / name)
            elif chosen in self._placed:
                os.link(self._placed[chosen], target / name)
            else:
                (target / name).write_bytes(self._bytes(chosen))
                (target / name).chmod(stat.S_IMODE(status.st_mode))
                self._placed[chosen] = target / name

    def _choose(self, durable: int | None, present: int | None) -> int | None:
        if durable == present or self._style == "nothing unsynced":
            return durable
        if self._style in ("all unsynced", "zeros"):
            return present
        return self._random.choice((durable, present))

    def _bytes(self, inode: int) -> bytes:
        durable = self._shadow.durable_bytes(inode)
        present = _content(self._shadow.descriptor(inode))
        if durable == present or self._style == "nothing unsynced":
            return durable
        # What was not written anew since it was synced is safe, whatever comes after it.
        kept = durable[: _same(durable, present)]
        zeros = kept + b"\0" * (len(present) - len(kept))
        if self._style == "all unsynced":
            return present
        if self._style == "zeros":
            return zeros
        torn = present[: self._random.randint(len(kept), len(present))]
        half = torn + b"\0" * (len(present) - len(torn))
        holes = bytearray(zeros)
        for start in range(len(kept) // _PAGE_BYTES * _PAGE_BYTES, len(present), _PAGE_BYTES):
            if self._random.random() < 0.5:
                holes[start : start + _PAGE_BYTES] = present[start : start + _PAGE_BYTES]
        return self._random.choice((durable, present, zeros, torn, half, bytes(holes)))


def _same(one: bytes, other: bytes) -> int:
    """Return how many bytes at the start of both are the same."""
    for place, (a, b) in enumerate(zip(one, other, strict=False)):
        if a != b:
            return place
    return min(len(one), len(other))


def _content(descriptor: int) -> bytes:
    return os.pread(descriptor, os.fstat(descriptor).st_size, 0)


def remove(tree: Path) -> None:
    """Delete a tree that a cut has left."""
    shutil.rmtree(tree)
