"""What git's index would commit, as a tree of files."""

from __future__ import annotations

import stat
from typing import TYPE_CHECKING

from agent_chatroom_ledger.errors import Corrupt
from agent_chatroom_ledger.storage import files, gitindex, refs
from agent_chatroom_ledger.storage.layout import is_ours
from agent_chatroom_ledger.storage.objects import FILE_MODE
from agent_chatroom_ledger.storage.trees import walk

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from agent_chatroom_ledger.storage.layout import Layout
    from agent_chatroom_ledger.storage.objects import Objects
    from agent_chatroom_ledger.storage.trees import Change

_LOCK_SECONDS = 2.0


class IndexTree:
    """The files of an index; a Source of the reading functions."""

    def __init__(self, objects: Objects, entries: dict[str, tuple[int, str]]) -> None:
        """Take mode and blob by path."""
        self._objects = objects
        self._entries = entries
        self._names: dict[str, set[str]] = {}
        for path in entries:
            place = path
            while place:
                above, _, name = place.rpartition("/")
                listed = self._names.setdefault(above, set())
                shown = name if place == path else f"{name}/"
                if shown in listed:
                    break
                listed.add(shown)
                place = above

    @classmethod
    def of_file(cls, path: Path, objects: Objects) -> IndexTree:
        """Read an index file; an absent one is empty, and one of an unknown kind is Corrupt."""
        data = files.read_bytes(path)
        try:
            parsed = {} if data is None else gitindex.parse(data)
        except ValueError as error:
            raise Corrupt(f"git's index {path} is {error}", code="index_unread") from None
        return cls(objects, {name: (mode, oid) for name, (mode, oid, _) in parsed.items()})

    def names(self, directory: str) -> list[str]:
        """List a directory; directories end in ``/``; [] when there is none."""
        above = f"{directory}/" if directory else ""
        return [
            name
            for name in self._names.get(directory, ())
            if name.endswith("/") or stat.S_ISREG(self._entries[above + name][0])
        ]

    def read(self, path: str) -> bytes | None:
        """Return a file's bytes; None when there is no regular file."""
        mode, oid = self._entries.get(path, (0, ""))
        return self._objects.blob(oid) if stat.S_ISREG(mode) else None

    def oid(self, path: str) -> str | None:
        """Return the id of a file; an index has none for directories."""
        return self._entries.get(path, (0, None))[1]

    def changes_since(self, tree: str) -> Iterator[Change]:
        """Give every file that differs from a tree, as `trees.differences` does."""
        there: set[str] = set()
        for path, mode, oid in walk(self._objects, tree):
            there.add(path)
            new_mode, new = self._entries.get(path, (mode, None))
            if (new_mode, new) != (mode, oid):
                yield path, mode, oid, new_mode, new
        for path, (mode, oid) in self._entries.items():
            if path not in there:
                yield path, FILE_MODE, None, mode, oid


def put_back(layout: Layout, before: bytes) -> None:
    """Let the index have the user's own entries again as they were, beside the ledger's of now.

    What a user has staged of his own files is his. The caller holds the commit lock. Raises Busy
    while another program holds the index, and Corrupt for an index of an unknown kind.
    """
    lock = f"{layout.git}/index.lock"
    refs.take_mark(layout, lock, _LOCK_SECONDS)
    try:
        then, now = gitindex.parse(before), gitindex.parse(gitindex.read(layout) or b"")
        entries = [(path, raw) for path, (_, _, raw) in now.items() if is_ours(path)]
        entries += [(path, raw) for path, (_, _, raw) in then.items() if not is_ours(path)]
        version = int.from_bytes(before[4:8], "big")
        gitindex.write(layout, gitindex.plain(entries, version), sync=False)
    except ValueError as error:
        raise Corrupt(f"git's index is {error}", code="index_unread") from None
    finally:
        refs.drop_mark(layout, lock)
