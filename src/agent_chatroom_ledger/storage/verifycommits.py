"""Checks of history: objects hash to their names, logs only grew, commits name their records."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, NamedTuple

from agent_chatroom_ledger.errors import Corrupt
from agent_chatroom_ledger.storage.history import trailers
from agent_chatroom_ledger.storage.layout import is_log
from agent_chatroom_ledger.storage.objects import BLOB, COMMIT, TREE, parse_tree
from agent_chatroom_ledger.storage.overlay import number_of
from agent_chatroom_ledger.storage.packreader import PackReader
from agent_chatroom_ledger.storage.recent import Recent
from agent_chatroom_ledger.storage.source import CommitTree
from agent_chatroom_ledger.storage.treediff import Change, Side, TreeDiff, entries_of

if TYPE_CHECKING:
    from agent_chatroom_ledger.storage.issues import Findings
    from agent_chatroom_ledger.storage.objects import CommitInfo, Objects, TreeEntry

_KINDS = {COMMIT: b"commit", TREE: b"tree", BLOB: b"blob"}
_SUBMODULE_MODE = 0o160000
_TREE = b"40000"
_REMEMBERED_BYTES = 32 * 1024 * 1024


# The trailer of a repair: the commit whose bytes it put back.
RESTORED_FROM = "Restored-from"
# Where the room was in that commit, if it is elsewhere now.
RESTORED_PATH = "Restored-path"


class _Doubt(NamedTuple):
    """Something that a foreign commit did to a log: an error, unless a later one undid it.

    It is undone if for every (path, bytes, wanted) of `undone_if` main's file begins with the
    bytes, or does not, as wanted.
    """

    code: str
    message: str
    path: str
    undone_if: tuple[tuple[str, bytes, bool], ...]


class _File(NamedTuple):
    mode: int
    oid: str


def _file(entry: Side) -> _File | None:
    return None if entry is None else _File(int(entry[0], 8), entry[1].hex())


def _subtree(entry: Side) -> str:
    """Return the id of a directory's entry; nothing for a file's or none."""
    return entry[1].hex() if entry is not None and entry[0] == _TREE else ""


class HistoryCheck:
    """Reads commits from main back to one that was verified before, and all they brought in.

    Each commit is compared with its parents, descending only where subtrees differ, so that
    every object is read at the commit that brought it, once, and memory does not grow with
    history.
    """

    def __init__(self, objects: Objects, found: Findings) -> None:
        self._objects = objects
        self._found = found
        self._kept: Recent[str, bytes] = Recent(_REMEMBERED_BYTES)
        self._packs = PackReader(objects.layout)
        self._trees = TreeDiff()
        self._objects_read = 0
        self._commits: dict[str, CommitInfo | None] = {}
        self.changed: set[str] = set()
        self._doubts: list[_Doubt] = []
        self._restored: list[CommitTree] = []
        self._moved: list[tuple[str, str]] = []
        self._grown: list[tuple[str, bytes]] = []

    def run(self, main: str, known: str | None) -> bool:
        """Check main's history as far back as ``known``; tell whether ``known`` was met.

        ``changed`` names afterwards every file that differs from what it was at ``known``, or
        that any of these commits touched.
        """
        waiting, seen, met = [main], {main}, known is None
        try:
            while waiting:
                oid = waiting.pop()
                commit = None if oid == known else self._commit(oid)
                # Parents are read for their trees first, and checked when their turn comes.
                self._commits.pop(oid, None)
                met = met or oid == known
                if commit is None:
                    continue
                self._found.count("commits")
                self._check(commit)
                for parent in reversed(commit.parents):
                    if parent not in seen:
                        seen.add(parent)
                        waiting.append(parent)
        finally:
            self._packs.close()
            self._found.count("objects", self._objects_read)
        self._settle_doubts(main)
        return met

    def _settle_doubts(self, main: str) -> None:
        """Call an error what main still shows, and a warning what a repair has undone."""
        if not self._doubts:
            return
        tree = CommitTree(self._objects, main)
        for doubt in self._doubts:
            try:
                undone = all(
                    (tree.read(path) or b"").startswith(content) == wanted
                    for path, content, wanted in doubt.undone_if
                )
            except Corrupt:
                undone = False
            if undone:
                self._found.warning(f"{doubt.code}_undone", f"{doubt.message}; undone", doubt.path)
            else:
                self._found.error(doubt.code, doubt.message, doubt.path)

    def _check(self, commit: CommitInfo) -> None:
        named = trailers(commit.message)
        places = [value for key, value in named if key == RESTORED_PATH]
        rooms = [value for key, value in named if key == "Room"]
        self._moved = [(old, new) for old in places for new in rooms]
        self._restored = [
            CommitTree(self._objects, value)
            for key, value in named
            if key == RESTORED_FROM and self._objects.has(value)
        ]
        befores = [parent.tree for p in commit.parents if (parent := self._commit(p)) is not None]
        if not commit.parents:
            befores = [""]
        added: list[tuple[str, int]] = []
        for before in befores:
            added = []
            self._grown = []
            self._compare(commit, before, commit.tree, "", added)
        if len(commit.parents) <= 1 and not self._objects.is_cut_off(commit.oid):
            self._check_trailers(commit, named, added)

    def _check_trailers(
        self, commit: CommitInfo, named: list[tuple[str, str]], added: list[tuple[str, int]]
    ) -> None:
        """Compare the records that a commit added with those that it names (invariant 5)."""
        says = sorted(value for key, value in named if key in {"Message", "Operation"})
        has = sorted(f"{n}@{log.rpartition('/')[2]}" for log, n in added)
        if says == has:
            return
        ours = any(key == "Frame" for key, _ in named)
        message = (
            f"commit {commit.oid[:12]} adds {', '.join(has[:20]) or 'no records'} and names "
            f"{', '.join(says[:20]) or 'none'}"
        )
        if ours:
            self._found.error("commit_record_mismatch", message, commit.oid)
            return
        undone = tuple((path, content, False) for path, content in self._grown)
        self._doubts.append(_Doubt("foreign_records", message, commit.oid, undone))

    def _compare(
        self, commit: CommitInfo, old: str, new: str, prefix: str, added: list[tuple[str, int]]
    ) -> None:
        if old == new:
            return
        for name, was, now in self._changes(old, new, prefix):
            path = prefix + name.decode("utf-8", "surrogateescape")
            was_tree, now_tree = _subtree(was), _subtree(now)
            if was_tree != now_tree:
                self._compare(commit, was_tree, now_tree, path + "/", added)
            was_file, now_file = None if was_tree else was, None if now_tree else now
            if was_file != now_file:
                self.changed.add(path)
                self._compare_file(commit, _file(was_file), _file(now_file), path, added)

    def _changes(self, old: str, new: str, prefix: str) -> list[Change]:
        """Return what differs in two versions of a directory; none that cannot be read."""
        sides = [(oid, self._read(oid, TREE, prefix or "/") or b"") for oid in (old, new) if oid]
        nothing = ("", b"")
        pair = (sides[0] if old else nothing, sides[-1] if new else nothing)
        try:
            return self._trees.changes(prefix, *pair)
        except Corrupt:
            for oid, data in sides:
                try:
                    entries_of(data)
                except Corrupt:
                    message = f"tree {oid} of {prefix or '/'} cannot be read"
                    self._found.error("bad_object", message, prefix)
            return []

    def _compare_file(
        self,
        commit: CommitInfo,
        was: _File | None,
        now: _File | None,
        path: str,
        added: list[tuple[str, int]],
    ) -> None:
        content = b"" if now is None else self._blob(now, path)
        if not is_log(path):
            return
        if now is not None and now.mode & 0o170000 != 0o100000:
            self._found.error("symlink", f"{path} is no regular file in {commit.oid[:12]}", path)
        before = b"" if was is None else self._blob(was, path)
        if content is None or before is None:
            return
        if now is None and was is not None and self._room_is_gone(commit, path):
            # Rooms that left are judged in the tree of main, by tombstones.
            return
        if self._restored and now is not None:
            put_back = self._put_back(path, content)
            # A log that merely goes on in this commit has more than the older commit had of it.
            if put_back is not None and (
                len(put_back) > len(before) or not content.startswith(before)
            ):
                before = put_back
        if not content.startswith(before):
            message = f"commit {commit.oid[:12]} changed bytes of {path}"
            self._doubts.append(_Doubt("log_changed", message, path, ((path, before, True),)))
            return
        self._grown.append((path, content))
        log = path.rsplit("/", 3)[0]
        for line in content[len(before) :].split(b"\n")[:-1]:
            try:
                added.append((log, number_of(line)))
            except Corrupt:
                self._found.error("message_parse_failed", f"{path} holds a line of no record", path)

    def _put_back(self, path: str, content: bytes) -> bytes | None:
        """Return what of a segment was put back as an older commit, which is named, has it."""
        places = [path]
        for before, now in self._moved:
            if path.startswith(f"{now}/"):
                places.append(before + path[len(now) :])
        for tree in self._restored:
            for place in places:
                found = tree.read(place)
                if found is not None and content.startswith(found):
                    return found
        return None

    def _room_is_gone(self, commit: CommitInfo, path: str) -> bool:
        room = path.rsplit("/", 5)[0]
        tree = commit.tree
        for name in room.split("/"):
            entry = next((e for e in self._tree(tree, "") if e.name == name), None)
            if entry is None or not entry.is_tree:
                return True
            tree = entry.oid
        return False

    def _commit(self, oid: str) -> CommitInfo | None:
        if oid not in self._commits:
            self._commits[oid] = self._read_commit(oid)
        return self._commits[oid]

    def _read_commit(self, oid: str) -> CommitInfo | None:
        data = self._read(oid, COMMIT, f"commit {oid}")
        if data is None:
            return None
        try:
            return self._objects.as_commit(oid, data)
        except Corrupt as error:
            self._found.error("bad_object", error.message, oid)
            return None

    def _tree(self, oid: str, path: str) -> list[TreeEntry]:
        data = self._read(oid, TREE, path or "/")
        if data is None:
            return []
        try:
            return parse_tree(data)
        except ValueError:
            self._found.error("bad_object", f"tree {oid} of {path or '/'} cannot be read", path)
            return []

    def _blob(self, entry: _File, path: str) -> bytes | None:
        return b"" if entry.mode == _SUBMODULE_MODE else self._read(entry.oid, BLOB, path)

    def _read(self, oid: str, kind: int, path: str) -> bytes | None:
        known = self._kept.get(oid)
        if known is not None:
            return known
        try:
            found, data = self._packs.get(oid) or self._objects.get(oid)
        except Corrupt as error:
            self._found.error("missing_object", f"{error.message} ({path})", path)
            return None
        self._objects_read += 1
        name = hashlib.sha1(b"%s %d\0" % (_KINDS.get(found, b"tag"), len(data)))  # noqa: S324 - the hash by which git names objects
        name.update(data)
        if found != kind or name.hexdigest() != oid:
            self._found.error("bad_object", f"object {oid} of {path} is not what it is named", path)
            return None
        self._kept.put(oid, data, len(data))
        return data
