"""Where files are read from: the work tree now, or the tree of any commit."""

from __future__ import annotations

import os
import stat
from contextlib import contextmanager
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from agent_chatroom_ledger.storage.objects import Objects

_OPEN_FLAGS = (
    os.O_RDONLY
    | getattr(os, "O_NOFOLLOW", 0)
    | getattr(os, "O_CLOEXEC", 0)
    # A pipe planted where a segment belongs must not make the reader wait for its writer.
    | getattr(os, "O_NONBLOCK", 0)
    | getattr(os, "O_BINARY", 0)
)
_TREE_MODE = 0o040000


class Source(Protocol):
    """A tree of files, addressed by paths with ``/`` relative to the ledger's root.

    Links, pipes and submodules are not part of it, whoever put them there.
    """

    def names(self, directory: str) -> list[str]:
        """List a directory, in no particular order; directories end in ``/``; [] when missing."""
        ...

    def read(self, path: str) -> bytes | None:
        """Return a file's bytes, or None when there is no such file."""
        ...


class WorkTree:
    """The files of the work tree, read without following a symbolic link at any level.

    Every directory on the way is looked at each time: a link may be planted while we run, and a
    name that a caller made up must not lead out of the root (invariant 7).
    """

    __slots__ = ("_root",)

    def __init__(self, root: Path) -> None:
        self._root = os.fspath(root)

    def names(self, directory: str) -> list[str]:
        """List a directory; directories end in ``/``; [] when it is missing or behind a link."""
        place = self._place(directory, last_is_directory=True)
        if place is None:
            return []
        found: list[str] = []
        try:
            with os.scandir(place) as entries:
                for entry in entries:
                    if entry.is_dir(follow_symlinks=False):
                        found.append(entry.name + "/")
                    elif entry.is_file(follow_symlinks=False):
                        found.append(entry.name)
        except (FileNotFoundError, NotADirectoryError):
            return []
        return found

    def read(self, path: str) -> bytes | None:
        """Return a regular file's bytes; None when it is missing, a link or anything else."""
        place = self._place(path, last_is_directory=False)
        if place is None:
            return None
        return _content(place)

    @contextmanager
    def directory(self, path: str) -> Iterator[Callable[[str], bytes | None]]:
        """Give a reader of the files right inside a directory, by name, as `read` reads them.

        The way to it is looked at once, and not for each file.
        """
        place = self._place(path, last_is_directory=True)
        if place is None or os.open not in os.supports_dir_fd:
            yield lambda name: self.read(f"{path}/{name}")
            return
        flags = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC | os.O_NOFOLLOW
        try:
            inside = os.open(place, flags)
        except OSError:
            yield lambda name: self.read(f"{path}/{name}")
            return
        try:
            yield lambda name: None if "/" in name else _content(name, inside)
        finally:
            os.close(inside)

    def _place(self, path: str, *, last_is_directory: bool) -> str | None:
        """Turn a path into an absolute one, or None when it is not safely inside the root."""
        if "\0" in path or "\\" in path:
            return None
        place = self._root
        parts = path.split("/") if path else []
        last = len(parts) - 1
        for index, part in enumerate(parts):
            if part in {"", ".", ".."}:
                return None
            place = f"{place}/{part}"
            if index < last or last_is_directory:
                try:
                    if not stat.S_ISDIR(os.lstat(place).st_mode):
                        return None
                except (OSError, UnicodeEncodeError):
                    return None
        return place


class CommitTree:
    """The files of one commit's tree, read from git's objects.

    Trees that were looked at are remembered: an object id never changes its meaning.
    """

    __slots__ = ("_entries", "_objects", "_root")

    def __init__(self, objects: Objects, commit: str) -> None:
        self._objects = objects
        self._root = objects.commit(commit).tree
        self._entries: dict[str, dict[str, tuple[int, str]]] = {}

    def names(self, directory: str) -> list[str]:
        """List a directory; directories end in ``/``; [] when the commit has none there."""
        found: list[str] = []
        for name, (mode, _) in (self._listing(directory) or {}).items():
            if mode == _TREE_MODE:
                found.append(name + "/")
            elif stat.S_ISREG(mode):
                found.append(name)
        return found

    def read(self, path: str) -> bytes | None:
        """Return a blob's bytes; None when the commit has no regular file there."""
        directory, _, name = path.rpartition("/")
        mode, oid = (self._listing(directory) or {}).get(name, (0, ""))
        return self._objects.get(oid)[1] if stat.S_ISREG(mode) else None

    def oid(self, path: str) -> str | None:
        """Return the object id of a file or directory; None when there is none."""
        if not path:
            return self._root
        directory, _, name = path.rpartition("/")
        found = (self._listing(directory) or {}).get(name)
        return found[1] if found else None

    def _listing(self, directory: str) -> dict[str, tuple[int, str]] | None:
        known = self._entries.get(directory)
        if known is not None:
            return known
        if directory:
            above, _, name = directory.rpartition("/")
            mode, oid = (self._listing(above) or {}).get(name, (0, ""))
            if mode != _TREE_MODE:
                return None
        else:
            oid = self._root
        listing = {entry.name: (entry.mode, entry.oid) for entry in self._objects.tree(oid)}
        self._entries[directory] = listing
        return listing


def _content(place: str, inside: int | None = None) -> bytes | None:
    """Return the bytes of a regular file, named from the root or inside an open directory."""
    try:
        descriptor = os.open(place, _OPEN_FLAGS, dir_fd=inside)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError:
        # O_NOFOLLOW answers ELOOP (EMLINK on some systems) for a link; anything else that
        # cannot be opened, though it is there and regular, is the caller's to know.
        if _is_regular(place, inside):
            raise
        return None
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            return None
        content = os.read(descriptor, status.st_size + 1)
        while len(content) < status.st_size and (more := os.read(descriptor, status.st_size)):
            content += more
        return content
    finally:
        os.close(descriptor)


def _is_regular(place: str, inside: int | None = None) -> bool:
    try:
        return stat.S_ISREG(os.stat(place, dir_fd=inside, follow_symlinks=False).st_mode)
    except OSError:
        return False
