"""Reading git objects through dulwich: packs of ours, of `git gc`, loose ones, and alternates.

One lock around the store, because dulwich's object store is not safe for threads.
"""

from __future__ import annotations

import atexit
import dataclasses
import errno
import mmap
import os
import re
import threading
import time
import traceback
import weakref
from typing import TYPE_CHECKING, NamedTuple

from agent_chatroom_ledger.domain.clock import SECONDS_MAX
from agent_chatroom_ledger.domain.numerals import decimal
from agent_chatroom_ledger.errors import Busy, Corrupt
from agent_chatroom_ledger.storage import files
from agent_chatroom_ledger.storage.refs import NO_OBJECT as NO_OBJECT  # noqa: PLC0414 - offered to importers from here

if TYPE_CHECKING:
    from dulwich.object_store import DiskObjectStore
    from dulwich.objects import ObjectID
    from dulwich.pack import Pack

    from agent_chatroom_ledger.storage.layout import Layout

COMMIT, TREE, BLOB, TAG = 1, 2, 3, 4
# How often an object is looked for that no pack has, and one whose pack goes away meanwhile.
_LOOKS, _LOOKS_MAX = 3, 12
_LOOK_PAUSE_SECONDS = 0.005
_LARGE_PACK_OBJECTS = 16_384
# The system has no more to give; that says nothing of the object.
_SHORT = {errno.EMFILE, errno.ENFILE, errno.ENOMEM}
TREE_MODE = 0o040000
FILE_MODE = 0o100644
_TREE_ENTRY = re.compile(rb"([0-7]+) ([^\0]+)\0(.{20})", re.DOTALL)


@dataclasses.dataclass(frozen=True)
class CommitInfo:
    """What a commit says, as text; its times are seconds since 1970 that a datetime can hold."""

    oid: str
    tree: str
    parents: tuple[str, ...]
    author: str
    author_email: str
    author_seconds: int
    committer: str
    committer_seconds: int
    message: str


class TreeEntry(NamedTuple):
    """One entry of a tree object."""

    name: str
    mode: int
    oid: str

    @property
    def is_tree(self) -> bool:
        """Whether the entry is a directory."""
        return self.mode == TREE_MODE


RawEntry = tuple[bytes, bytes, bytes]


def raw_entries(data: bytes) -> list[RawEntry]:
    """Return (mode, name, id) of the entries of a tree object, as its bytes say them.

    Raises ValueError for bytes that are no tree.
    """
    found: list[RawEntry] = _TREE_ENTRY.findall(data)
    if sum([len(mode) + len(name) for mode, name, _ in found]) + 22 * len(found) != len(data):
        raise ValueError("the bytes are no tree")
    return found


def tree_entry(raw: RawEntry) -> TreeEntry:
    """Decode an entry; a name that is not UTF-8 keeps its bytes as surrogates."""
    mode, name, oid = raw
    return TreeEntry(name.decode("utf-8", "surrogateescape"), int(mode, 8), oid.hex())


def parse_tree(data: bytes) -> list[TreeEntry]:
    """Decode a tree object; raises ValueError for bytes that are none."""
    return [tree_entry(raw) for raw in raw_entries(data)]


def _ident(line: str) -> tuple[str, str, int]:
    name, _, rest = line.partition(" <")
    email, _, moment = rest.rpartition("> ")
    # A commit by hand may say anything. git too takes what is no number, is before 1970 or does not
    # fit for 1970; what is beyond the year 9999 is the end of that year.
    seconds = decimal(moment.partition(" ")[0]) or 0
    return name, email, min(seconds, SECONDS_MAX)


def parse_commit(oid: str, data: bytes) -> CommitInfo:
    """Decode a commit object."""
    head, _, message = data.decode("utf-8", "replace").partition("\n\n")
    tree, parents = "", []
    author, committer = ("", "", 0), ("", "", 0)
    for line in head.split("\n"):
        key, _, value = line.partition(" ")
        if key == "tree":
            tree = value
        elif key == "parent":
            parents.append(value)
        elif key == "author":
            author = _ident(value)
        elif key == "committer":
            committer = _ident(value)
    if not tree:
        raise Corrupt(f"commit {oid} names no tree", code="bad_commit", commit=oid)
    return CommitInfo(oid, tree, tuple(parents), *author, committer[0], committer[2], message)


def _forget_pages(pack: Pack) -> None:
    """Let the system have the memory back that looking into the index of a large pack took.

    What is mapped counts as ours, and who looks for an old object looks into every pack.
    """
    if len(pack) >= _LARGE_PACK_OBJECTS:
        contents = getattr(pack.index, "_contents", None)
        if isinstance(contents, mmap.mmap) and hasattr(mmap, "MADV_DONTNEED"):
            contents.madvise(mmap.MADV_DONTNEED)


def _written_at(pack: Pack) -> int:
    try:
        return os.stat(pack._data_path).st_mtime_ns  # noqa: SLF001 - dulwich has no other name
    except FileNotFoundError:
        return 0


_living: weakref.WeakSet[Objects] = weakref.WeakSet()


def _close_all() -> None:
    """Close what a program left open: dulwich complains when it is collected after Python ends."""
    for objects in tuple(_living):
        objects.forget()


atexit.register(_close_all)


def _renew_guards() -> None:
    """Let no forked child wait for a thread of its parent's."""
    for objects in tuple(_living):
        objects.renew_guard()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_renew_guards)


class Objects:
    """Reads objects by id. Raises Corrupt, naming the id, for one that is missing or damaged.

    Busy instead when the system is short of descriptors or memory, which tells nothing of it.
    """

    def __init__(self, layout: Layout) -> None:
        """Open nothing yet."""
        self.layout = layout
        self._path = str(layout.git / "objects")
        self._shallow_path = layout.git / "shallow"
        self._shallow: frozenset[str] | None = None
        self._guard = threading.RLock()
        self._store: DiskObjectStore | None = None
        self._packs: list[Pack] = []  # those that were listed, what was read last first
        self._listed = -1  # when their directory had changed last
        _living.add(self)

    def _get(self, oid: str) -> tuple[int, bytes]:
        # Imported here: a reader of the present state has this module, and needs no objects.
        from dulwich.object_store import DiskObjectStore
        from dulwich.objects import ObjectID

        if self._store is None:
            self._store = DiskObjectStore(self._path)
        name = ObjectID(oid.encode("ascii"))
        # What is read next mostly lies beside what was read last, or in a new pack. dulwich lists
        # the directory for every object and asks every pack there is, which brings all indexes of
        # a long history into memory.
        found = self._found_in(self._packs[:1], name)
        if found is None:
            fresh = self._list_packs()
            found = self._found_in(fresh, name) or self._found_in(self._packs, name)
        if found is None:
            # Clocks of file systems tick slowly: one that came within the tick tells nothing.
            found = self._found_in(self._list_packs(anyway=True), name)
        return self._store.get_raw(name) if found is None else found

    def _list_packs(self, *, anyway: bool = False) -> list[Pack]:
        """List the packs again if their directory has changed; return the new ones, newest first.

        Those that are gone are let go of.
        """
        assert self._store is not None
        try:
            changed = os.stat(self.layout.packs).st_mtime_ns
        except FileNotFoundError:
            changed = 0
        if changed == self._listed and not anyway:
            return []
        self._listed = changed
        known = {id(pack) for pack in self._packs}
        listed = {id(pack): pack for pack in self._store.packs}
        fresh = [pack for place, pack in listed.items() if place not in known]
        fresh.sort(key=_written_at, reverse=True)
        self._packs = [*(pack for pack in self._packs if id(pack) in listed), *fresh]
        return fresh

    def _found_in(self, packs: list[Pack], name: ObjectID) -> tuple[int, bytes] | None:
        for pack in packs:
            try:
                found = pack.get_raw(name)
            except KeyError:
                _forget_pages(pack)
                continue
            if pack is not self._packs[0]:
                self._packs = [pack, *(other for other in self._packs if other is not pack)]
            return found
        return None

    def get(self, oid: str) -> tuple[int, bytes]:
        """Return the kind (1 commit, 2 tree, 3 blob, 4 tag) and the bytes of an object."""
        with self._guard:
            for attempt in range(_LOOKS_MAX):
                try:
                    return self._get(oid)
                except Exception as error:
                    # What its frames still hold of a pack would keep the pack from being closed.
                    traceback.clear_frames(error.__traceback__)
                    # A foreign repack may have taken away a pack that we had listed, and while it
                    # goes on, the next one too: look afresh. What no list has is missing.
                    self.forget()
                    gone = type(error).__name__ == "PackFileDisappeared" or isinstance(
                        error, FileNotFoundError
                    )
                    if attempt >= (_LOOKS_MAX if gone else _LOOKS) - 1:
                        if isinstance(error, MemoryError) or (
                            isinstance(error, OSError) and error.errno in _SHORT
                        ):
                            raise Busy(
                                f"git object {oid} cannot be read now: {error}", object=oid
                            ) from error
                        # dulwich raises many kinds for damaged packs; to us they mean one thing.
                        raise Corrupt(
                            f"git object {oid} is missing or damaged ({type(error).__name__})",
                            code="missing_object",
                            object=oid,
                        ) from error
                time.sleep(_LOOK_PAUSE_SECONDS * attempt)
            raise AssertionError  # the last look has returned or raised

    def has(self, oid: str) -> bool:
        """Tell whether an object can be read."""
        try:
            self.get(oid)
        except Corrupt:
            return False
        return True

    def renew_guard(self) -> None:
        """Take a new lock; who held the old one is no thread of this process."""
        self._guard = threading.RLock()

    def forget(self) -> None:
        """Close the packs, so that the next read lists them again."""
        with self._guard:
            self._shallow = None
            if self._store is not None:
                self._store.close()
                self._store = None
                self._packs = []
                self._listed = -1

    close = forget

    def data(self, oid: str, kind: int) -> bytes:
        """Return an object's bytes, which must be of one kind."""
        found, data = self.get(oid)
        if found != kind:
            raise Corrupt(f"git object {oid} is of kind {found}, not {kind}", object=oid)
        return data

    def commit(self, oid: str) -> CommitInfo:
        """Return a commit; where a shallow clone was cut off, one without parents."""
        return self.as_commit(oid, self.data(oid, COMMIT))

    def as_commit(self, oid: str, data: bytes) -> CommitInfo:
        """Decode a commit, as `commit` gives it."""
        info = parse_commit(oid, data)
        return dataclasses.replace(info, parents=()) if self.is_cut_off(oid) else info

    def is_cut_off(self, oid: str) -> bool:
        """Tell whether the parents of a commit are beyond the end of a shallow clone."""
        if self._shallow is None:
            shallow = files.read_bytes(self._shallow_path) or b""
            self._shallow = frozenset(shallow.decode("ascii", "replace").split())
        return oid in self._shallow

    def tree(self, oid: str) -> list[TreeEntry]:
        """Return the entries of a tree in git's order."""
        return parse_tree(self.data(oid, TREE))

    def raw_tree(self, oid: str) -> list[RawEntry]:
        """Return the entries of a tree as its bytes say them."""
        return raw_entries(self.data(oid, TREE))

    def blob(self, oid: str) -> bytes:
        """Return the bytes of a blob."""
        return self.data(oid, BLOB)
