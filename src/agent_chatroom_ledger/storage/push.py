"""Which commits a push brings, and what they hold, read where git keeps them until it decides.

While a server's hooks run, the objects of a push lie in a quarantine directory, and what was there
before in its alternates; git names both to the hook. Nothing here needs the git binary.
"""

from __future__ import annotations

import heapq
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from agent_chatroom_ledger.errors import InvalidInput
from agent_chatroom_ledger.limits import PUSH_COMMITS_MAX
from agent_chatroom_ledger.storage.layout import Layout
from agent_chatroom_ledger.storage.objects import NO_OBJECT, Objects
from agent_chatroom_ledger.storage.packreader import PackReader

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dulwich.object_store import DiskObjectStore
    from dulwich.pack import Pack


class GitDirectory(Layout):
    """The layout of a git directory as such: that of a bare repository, or of one with files."""

    @cached_property
    def git(self) -> Path:
        """The directory itself."""
        return self.root


class _ObjectDirectory(Layout):
    """The layout of a directory of objects as such."""

    @cached_property
    def packs(self) -> Path:
        """The directory of its packs."""
        return self.root / "pack"


class PushedObjects(Objects):
    """Reads objects from several directories: the quarantine of a push, then its alternates."""

    def __init__(self, git: Path, places: Sequence[str] = ()) -> None:
        """Read from ``places`` in their order, or else from the repository's own objects."""
        super().__init__(GitDirectory(git))
        self._places = tuple(places) or (self._path,)
        self._stores: list[DiskObjectStore] = []
        self._readers: list[PackReader] | None = None
        self._last: Pack | None = None  # the pack of an alternate that was read last

    def _get(self, oid: str) -> tuple[int, bytes]:
        if self._readers is None:
            self._readers = [PackReader(_ObjectDirectory(Path(place))) for place in self._places]
        for reader in self._readers:
            if (found := reader.get(oid)) is not None:
                return found
        return self._get_any(oid)

    def _get_any(self, oid: str) -> tuple[int, bytes]:
        """Read an object that is loose, or in a pack of an alternate's alternate."""
        from dulwich.object_store import DiskObjectStore
        from dulwich.objects import ObjectID

        if not self._stores:
            self._stores = [DiskObjectStore(place) for place in self._places]
        name = ObjectID(oid.encode("ascii"))
        if self._last is not None:
            try:
                return self._last.get_raw(name)
            except KeyError:
                pass
        for store in self._stores:
            for pack in store.packs:
                try:
                    found = pack.get_raw(name)
                except KeyError:
                    continue
                self._last = pack
                return found
        for store in self._stores:
            try:
                return store.get_raw(name)
            except KeyError:
                continue
        raise KeyError(oid)

    def forget(self) -> None:
        """Close the packs, so that the next read lists them again."""
        with self._guard:
            for reader in getattr(self, "_readers", None) or ():
                reader.close()
            for store in getattr(self, "_stores", ()):
                store.close()
            self._stores, self._readers = [], None
            super().forget()
            self._last = None

    close = forget


class NewCommits(NamedTuple):
    """The commits of a push, parents first, and whether it builds on what was there."""

    order: tuple[str, ...]
    builds_on: bool


_FRESH, _KNOWN = 1, 2
_SLOP_COMMITS = 100


def new_commits(objects: Objects, new: str, known: str) -> NewCommits:
    """Return the commits that are ``new`` or before it, and neither ``known`` nor before that.

    Both sides are walked newest first until what is left is known, so only what a push brings is
    read, and in a merge what lies between it and the fork. Where the clocks of many commits ran
    back, some that are known may be among them. Raises InvalidInput for more than a
    million commits, and Corrupt for one that cannot be read.
    """
    parents: dict[str, tuple[str, ...]] = {}
    colour: dict[str, int] = {}
    waiting: list[tuple[int, int, str, tuple[str, ...]]] = []
    fresh = 0

    def meet(oid: str, paint: int) -> None:
        nonlocal fresh
        before = colour.get(oid, 0)
        if before >= paint:
            return
        colour[oid] = paint
        if before == _FRESH:
            if parents.pop(oid, None) is None:
                fresh -= 1  # it still waits, and is known now
                return
        elif paint == _FRESH:
            fresh += 1
        info = objects.commit(oid)
        entry = (-info.committer_seconds, len(colour), oid, info.parents)
        heapq.heappush(waiting, entry)

    if known != NO_OBJECT:
        meet(known, _KNOWN)
    meet(new, _FRESH)
    builds_on = known in (NO_OBJECT, new)
    while fresh:
        _, _, oid, above = heapq.heappop(waiting)
        paint = colour[oid]
        if paint == _FRESH:
            fresh -= 1
            parents[oid] = above
            builds_on = builds_on or known in above
            if len(parents) > PUSH_COMMITS_MAX:
                raise InvalidInput(
                    f"a push brings at most {PUSH_COMMITS_MAX} commits; push it in parts",
                    limit=PUSH_COMMITS_MAX,
                )
        for parent in above:
            meet(parent, paint)
    # Where a clock ran back, what is known may lie behind what was taken for new.
    strayed = not builds_on or any(len(above) > 1 for above in parents.values())
    for _ in range(_SLOP_COMMITS if strayed else 0):
        if not waiting:
            break
        for parent in heapq.heappop(waiting)[3]:
            meet(parent, _KNOWN)
    return NewCommits(_parents_first(parents, new), builds_on)


def _parents_first(parents: dict[str, tuple[str, ...]], tip: str) -> tuple[str, ...]:
    """Order commits so that a line of them stays together, and parents come before children."""
    if all(len(above) < 2 for above in parents.values()):
        return tuple(reversed(parents))
    order: list[str] = []
    seen: set[str] = set()
    waiting: list[tuple[str, bool]] = [(tip, False)]
    while waiting:
        oid, done = waiting.pop()
        if done:
            order.append(oid)
        elif oid in parents and oid not in seen:
            seen.add(oid)
            waiting.append((oid, True))
            waiting += [(parent, False) for parent in parents[oid]]
    return tuple(order)
