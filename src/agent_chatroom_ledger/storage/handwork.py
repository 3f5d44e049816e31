"""Changes that the ledger did not make: by hand, of a repair, and merges (docs/hooks.md).

Outside the ledger's own files anybody may do anything. Inside, logs stay as they are, projections
are the fold, and a room leaves only under a tombstone.
"""

from __future__ import annotations

import stat
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import msgspec

from agent_chatroom_ledger.domain.names import fold_name
from agent_chatroom_ledger.domain.tombstones import decode_tombstone, tombstone_path
from agent_chatroom_ledger.errors import Corrupt, LedgerError, NotFound
from agent_chatroom_ledger.storage import artifacts, reading
from agent_chatroom_ledger.storage.layout import (
    ATTRIBUTES_FILE,
    LEDGER_FILE,
    OPERATIONS,
    ROOMS,
    is_log,
    is_ours,
)
from agent_chatroom_ledger.storage.repository import FORMAT
from agent_chatroom_ledger.storage.roomreader import RoomReader
from agent_chatroom_ledger.storage.verifylogs import check_room

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

    from agent_chatroom_ledger.storage.issues import Findings
    from agent_chatroom_ledger.storage.objects import Objects
    from agent_chatroom_ledger.storage.trees import Change

_PLACES = frozenset(
    {ROOMS, OPERATIONS, "archive", artifacts.ARTIFACTS, LEDGER_FILE, ATTRIBUTES_FILE}
)
_LOGS = (reading.MESSAGES, reading.OPERATIONS)
_PROJECTIONS = ("room.json", "policy.json")
_PROJECTION_DIRECTORIES = ("view", "versions")


class Tree(Protocol):
    """A Source that knows the ids of what it holds; None where it knows none."""

    def names(self, directory: str) -> list[str]:
        """List a directory, as a Source does."""

    def read(self, path: str) -> bytes | None:
        """Return a file's bytes, as a Source does."""

    def oid(self, path: str) -> str | None:
        """Return the id of a file or a directory."""


@dataclass(frozen=True, kw_only=True)
class Work:
    """A tree that is to be judged: what it is called, what it holds, and where issues go."""

    name: str
    tree: Tree
    objects: Objects
    found: Findings


def judge_change(
    work: Work, before: Tree, changes: Iterable[Change], grown: Collection[str] = ()
) -> None:
    """Note what a change by hand did to the ledger's own files since the sound tree ``before``.

    Only the logs ``grown`` may have gained records.
    """
    found, now = work.found, work.tree
    rooms: set[str] = set()
    gone: set[str] = set()
    for path, _, old, mode, new in changes:
        if not is_ours(path):
            if new is not None and fold_name(path.partition("/")[0]) in _PLACES:
                what = f"{work.name}: some file systems take {path} for a place of the ledger"
                found.error("foreign_file", what, path)
            continue
        room = ""
        if path.startswith(f"{ROOMS}/"):
            room = _room_above(before, path) or _room_above(now, path)
        inside = path[len(room) + 1 :]
        if room and new is None and not now.names(room):
            gone.add(room)
            continue
        rooms.add(room)
        if new is not None and not stat.S_ISREG(mode):
            found.error("symlink", f"{work.name} makes {path} something else than a file", path)
        elif path in (LEDGER_FILE, ATTRIBUTES_FILE):
            found.error("ledger_file", f"{work.name} changes {path}, which has to stay", path)
        elif is_log(path):
            _judge_log(work, path, old, new, grown)
        elif not room or not _is_projection(inside):
            found.error("foreign_file", f"{work.name}: {path} is not for hands to change", path)
    for room in sorted(gone):
        found.error("room_missing", f"{work.name} removes {room} without a tombstone", room)
    for room in sorted(rooms - gone - {""}):
        _check_room(work, room)


def _check_room(work: Work, room: str) -> None:
    """Compare a room's projections with the fold of its logs, if they can be folded."""
    try:
        check_room(work.tree, room, work.found, ids=False)
    except LedgerError as error:
        what = f"{work.name} leaves {room} so that it cannot be folded: {error.message}"
        work.found.error("missing_state", what, room)


def _judge_log(
    work: Work, path: str, old: str | None, new: str | None, grown: Collection[str]
) -> None:
    was = b"" if old is None else work.objects.blob(old)
    if new is None or not work.objects.blob(new).startswith(was):
        what = f"{work.name} changes or removes records of {path}"
        work.found.error("log_changed", what, path)
    elif path.rsplit("/", 3)[0] not in grown:
        work.found.error("foreign_records", f"{work.name} adds records to {path} by hand", path)


def judge_first(work: Work) -> None:
    """Check the first commit of a ledger: it describes the ledger, and holds no rooms."""
    found, tree = work.found, work.tree
    try:
        document = msgspec.json.decode(tree.read(LEDGER_FILE) or b"")
        known = 1 <= document["format"] <= FORMAT and isinstance(document["ledger"], str)
    except (msgspec.DecodeError, ValueError, KeyError, TypeError):
        known = False
    if not known:
        what = f"{work.name} begins a history without a {LEDGER_FILE} of a known format"
        found.error("ledger_file", what, LEDGER_FILE)
    if any(is_ours(name) for name in tree.names("") if name.endswith("/")):
        found.error("foreign_records", f"{work.name} begins a ledger that holds rooms already")


def _room_above(tree: Tree, path: str) -> str:
    """Return the room that a path lies in: the nearest directory above with operations."""
    place = path.rpartition("/")[0]
    while place.startswith(f"{ROOMS}/"):
        if f"{reading.OPERATIONS}/" in tree.names(place):
            return place
        place = place.rpartition("/")[0]
    return ""


def _is_projection(inside: str) -> bool:
    return inside in _PROJECTIONS or inside.partition("/")[0] in _PROJECTION_DIRECTORIES


def judge_merge(work: Work, parents: Mapping[str, Tree], changes: Iterable[Change]) -> None:
    """Check that a merge holds all that its parents hold, and nothing that none of them holds.

    ``changes`` are those since each parent, one after the other.
    """
    found, now = work.found, work.tree
    rooms: set[str] = set()
    trees = list(parents.values())
    for path, _, old, mode, new in changes:
        if not is_ours(path):
            continue
        room = _room_above(now, path) if path.startswith(f"{ROOMS}/") else ""
        rooms.add(room)
        known = any(tree.oid(path) == new for tree in trees)
        if new is not None and not stat.S_ISREG(mode):
            found.error("symlink", f"{work.name} makes {path} something else than a file", path)
        elif is_log(path):
            _judge_union(work, path, old, new, trees)
        elif not known and not (room and _is_projection(path[len(room) + 1 :])):
            found.error("foreign_file", f"{work.name}: {path} is of none of its parents", path)
    for room in sorted(rooms - {""}):
        mine = now.oid(room)
        if mine is None or all(tree.oid(room) != mine for tree in trees):
            _check_room(work, room)


def _judge_union(
    work: Work, path: str, old: str | None, new: str | None, trees: list[Tree]
) -> None:
    if new is None:
        room = path.rsplit("/", 5)[0]
        buried = path.startswith(f"{ROOMS}/") and not work.tree.names(room)
        if not buried or not _is_buried(work.tree, trees, room):
            work.found.error("log_changed", f"{work.name} lacks {path}, which a parent has", path)
        return
    was = b"" if old is None else work.objects.blob(old)
    if not work.objects.blob(new).startswith(was):
        work.found.error("log_changed", f"{work.name} changes records of {path}", path)
    elif all(tree.oid(path) != new for tree in trees):
        what = f"{work.name}: {path} is of none of its parents"
        work.found.error("foreign_records", what, path)


def _is_buried(now: Tree, trees: list[Tree], room: str) -> bool:
    """Tell whether a tombstone covers all that any parent has of a room that is gone."""
    try:
        for tree in trees:
            if not tree.names(room):
                continue
            reader = RoomReader(tree, None, room)
            data = now.read(tombstone_path(reader.folded_state().id))
            if data is None:
                return False
            stone = decode_tombstone(data)
            for log, marks in zip(_LOGS, (stone.messages, stone.operations), strict=True):
                if any(n > marks.get(origin, 0) for origin, n in reader.positions(log).items()):
                    return False
    except (Corrupt, NotFound):
        return False
    return True
