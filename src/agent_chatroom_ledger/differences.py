"""What became of a room between two commits: messages, policy, members, versions."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from agent_chatroom_ledger.domain.policy import StandIn, normalised, subtract
from agent_chatroom_ledger.domain.records import Message
from agent_chatroom_ledger.domain.references import full_ref, range_ref
from agent_chatroom_ledger.errors import NotFound
from agent_chatroom_ledger.past import reader_in
from agent_chatroom_ledger.storage.reading import OPERATIONS
from agent_chatroom_ledger.storage.source import CommitTree

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from agent_chatroom_ledger.domain.roomstate import RoomState
    from agent_chatroom_ledger.room import Room
    from agent_chatroom_ledger.storage.roomreader import RoomReader

_VERSIONS = "versions"
_VERSION_FILE = re.compile(r"(?P<origin>[^/]+)/\d+/\d+/(?P<n>\d{1,8})\.json\Z", re.ASCII)


class VersionChange(msgspec.Struct, frozen=True):
    """The versions of one message: ``set``, ``changed`` or ``removed``."""

    message: str
    change: str


class RoomDiff(msgspec.Struct, frozen=True, kw_only=True):
    """What there is of a room at ``after`` that there was not at ``before``, and the reverse.

    Both are ids of commits. ``created`` and ``gone`` say that the room is only in one of them.
    ``messages`` are those added, oldest first; ``missing``, ranges of those that only the earlier
    one holds, is empty unless the commits were named the wrong way round. ``operations`` are those
    carried out in between; what they came to in the end stands in the other fields.
    """

    room: str
    before: str
    after: str
    created: bool = False
    gone: bool = False
    origin: str = ""
    titles: tuple[str, str] | None = None
    messages: tuple[Message, ...] = ()
    missing: tuple[str, ...] = ()
    operations: tuple[Message, ...] = ()
    excluded: tuple[str, ...] = ()
    included: tuple[str, ...] = ()
    standins_added: tuple[StandIn, ...] = ()
    standins_removed: tuple[StandIn, ...] = ()
    members_added: tuple[str, ...] = ()
    members_removed: tuple[str, ...] = ()
    versions: tuple[VersionChange, ...] = ()

    @property
    def same(self) -> bool:
        """Whether nothing of this has changed."""
        bare = RoomDiff(room=self.room, before=self.before, after=self.after, origin=self.origin)
        return self == bare


def compare(room: Room, before: str, after: str = "main") -> RoomDiff:
    """Compare a room as it stood at two commits, each named by a revision or a time.

    Raises NotFound when neither of them has the room.
    """
    ledger = room.ledger
    commits = ledger.commit_at(before), ledger.commit_at(after)
    old, new = (CommitTree(ledger.objects, commit) for commit in commits)
    was, now = reader_in(old, room), reader_in(new, room)
    if was is None and now is None:
        raise NotFound(
            f"Neither {before[:80]} nor {after[:80]} has the room {room.path}.", room=room.path
        )
    reader = now or was
    assert reader is not None
    start = {} if was is None else was.positions()
    operated = {} if was is None else was.positions(OPERATIONS)
    empty = reader.state()
    old_state = None if was is None else was.state()
    new_state = None if now is None else now.state()
    here = {} if now is None else now.positions()
    excluded, included = _policies(old_state, new_state)
    old_ins, new_ins = (() if s is None else s.policy.standins for s in (old_state, new_state))
    old_members, new_members = (() if s is None else s.members for s in (old_state, new_state))
    titles = None
    if old_state is not None and new_state is not None and old_state.title != new_state.title:
        titles = (old_state.title, new_state.title)
    return RoomDiff(
        room=room.path,
        before=commits[0],
        after=commits[1],
        created=was is None,
        gone=now is None,
        origin=empty.origin,
        titles=titles,
        messages=() if now is None else tuple(now.after(start)),
        missing=tuple(_missing(start, here)),
        operations=() if now is None else tuple(now.after(operated, log=OPERATIONS)),
        excluded=excluded,
        included=included,
        standins_added=tuple(s for s in new_ins if s not in old_ins),
        standins_removed=tuple(s for s in old_ins if s not in new_ins),
        members_added=tuple(name for name in new_members if name not in old_members),
        members_removed=tuple(name for name in old_members if name not in new_members),
        versions=tuple(_versions(_side(old, was), _side(new, now))),
    )


def _missing(start: Mapping[str, int], end: Mapping[str, int]) -> Iterator[str]:
    for origin, n in sorted(start.items()):
        if n > end.get(origin, 0):
            yield range_ref(origin, end.get(origin, 0) + 1, n)


def _policies(
    was: RoomState | None, now: RoomState | None
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return what is left out only now, and what was left out only then."""
    nothing: Mapping[str, tuple[tuple[int, int], ...]] = {}
    old = nothing if was is None else was.policy.excluded
    new = nothing if now is None else now.policy.excluded
    return tuple(_beyond(new, old)), tuple(_beyond(old, new))


def _beyond(
    some: Mapping[str, tuple[tuple[int, int], ...]],
    others: Mapping[str, tuple[tuple[int, int], ...]],
) -> Iterator[str]:
    for origin, ranges in sorted(some.items()):
        for first, last in subtract(normalised(ranges), normalised(others.get(origin, ()))):
            yield range_ref(origin, first, last)


class _Side(NamedTuple):
    """A directory in one of the two commits; None for a room that is not there."""

    tree: CommitTree
    directory: str | None

    def oid(self, name: str = "") -> str | None:
        """Return the object of what is in the directory, or of itself."""
        if self.directory is None:
            return None
        return self.tree.oid(f"{self.directory}/{name.rstrip('/')}" if name else self.directory)

    def names(self) -> list[str]:
        return [] if self.directory is None else self.tree.names(self.directory)

    def below(self, name: str) -> _Side:
        return _Side(self.tree, self.directory and f"{self.directory}/{name.rstrip('/')}")


def _side(tree: CommitTree, reader: RoomReader | None) -> _Side:
    return _Side(tree, None if reader is None else f"{reader.room}/{_VERSIONS}")


def _versions(old: _Side, new: _Side) -> Iterator[VersionChange]:
    """Compare the projected version bundles; only directories that differ are looked into."""
    found = []
    for name, was, now in _files(old, new, ""):
        match = _VERSION_FILE.match(name)
        if match is not None:
            change = "set" if was is None else "removed" if now is None else "changed"
            found.append((match["origin"], int(match["n"]), change))
    for origin, n, change in sorted(found):
        yield VersionChange(full_ref(origin, n), change)


def _files(old: _Side, new: _Side, below: str) -> Iterator[tuple[str, str | None, str | None]]:
    """Yield name, old and new object of each file below a directory that is not the same."""
    if old.oid() == new.oid():
        return
    for name in sorted({*old.names(), *new.names()}):
        if name.endswith("/"):
            yield from _files(old.below(name), new.below(name), below + name)
        elif (was := old.oid(name)) != (now := new.oid(name)):
            yield below + name, was, now
