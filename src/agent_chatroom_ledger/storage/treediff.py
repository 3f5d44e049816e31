"""Two versions of a directory compared as bytes: which entries are not the same.

Of a directory's hundreds of entries mostly one has another object and nothing else differs. Where
the entries of one version are known, the first byte that differs then says which it is, and the
rest need not be looked at one by one.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from typing import NamedTuple

from agent_chatroom_ledger.errors import Corrupt
from agent_chatroom_ledger.storage.recent import Recent

_ENTRY = re.compile(rb"(\d+) ([^\0]+)\0(.{20})", re.DOTALL)
_ID_BYTES = 20
_FEW_BYTES = 64
_LAYOUTS_MAX = 256

# Mode and object of an entry; None where there is none.
Side = tuple[bytes, bytes] | None


class Change(NamedTuple):
    """An entry that is not the same in two versions of a directory."""

    name: bytes
    was: Side
    now: Side


class _Layout:
    """Where the ids of a tree's entries stand; that of every tree that differs in ids alone."""

    __slots__ = ("entries", "oid", "size", "starts")

    def __init__(self, oid: str, data: bytes) -> None:
        self.oid = oid
        self.size = len(data)
        self.entries: list[tuple[bytes, bytes]] = []
        self.starts: list[int] = []
        at = 0
        for mode, name, _ in entries_of(data):
            at += len(mode) + len(name) + 2
            self.starts.append(at)
            self.entries.append((mode, name))
            at += _ID_BYTES


def entries_of(data: bytes) -> list[tuple[bytes, bytes, bytes]]:
    """Return mode, name and id of each entry of a tree; Corrupt when it cannot be read."""
    found: list[tuple[bytes, bytes, bytes]] = _ENTRY.findall(data)
    if sum([len(mode) + len(name) + 22 for mode, name, _ in found]) != len(data):
        raise Corrupt("a tree cannot be read")
    return found


class TreeDiff:
    """Compares trees, best in the order of history: the older of a pair is the newer of the next.

    Every tree that is compared has been read as a whole, or is the same as one that was but for
    one id. What is remembered is bounded.
    """

    def __init__(self) -> None:
        self._layouts: Recent[str, _Layout] = Recent(_LAYOUTS_MAX)

    def changes(self, path: str, old: tuple[str, bytes], new: tuple[str, bytes]) -> list[Change]:
        """Return how two versions of the directory at a path differ, given as id and bytes.

        An absent directory has no bytes. Raises Corrupt when one of them cannot be read.
        """
        if len(old[1]) == len(new[1]) and old[1]:
            found = self._one_id(path, old, new)
            if found is not None:
                return [found]
        return self._by_entries(old[1], new[1])

    def _one_id(self, path: str, old: tuple[str, bytes], new: tuple[str, bytes]) -> Change | None:
        """Return the change when all that differs is one id; None for who compares in full."""
        layout = self._layouts.get(path)
        if layout is None or layout.oid not in {old[0], new[0]}:
            layout = _Layout(*new)
            self._layouts.put(path, layout)
        was, now = old[1], new[1]
        place = _first_difference(was, now)
        number = bisect_right(layout.starts, place) - 1
        if number < 0:
            return None
        start = layout.starts[number]
        end = start + _ID_BYTES
        if place >= end or was[end:] != now[end:]:
            return None
        # All but this id is the same in both, so both are laid out as the one that was read.
        layout.oid = old[0]
        mode, name = layout.entries[number]
        return Change(name, (mode, was[start:end]), (mode, now[start:end]))

    def _by_entries(self, old: bytes, new: bytes) -> list[Change]:
        before, after = frozenset(entries_of(old)), frozenset(entries_of(new))
        # Sets and not dictionaries: a tree by hand may hold one name twice.
        was = {name: (mode, oid) for mode, name, oid in before - after}
        now = {name: (mode, oid) for mode, name, oid in after - before}
        return [Change(name, was.get(name), now.get(name)) for name in sorted({*was, *now})]


def _first_difference(one: bytes, other: bytes) -> int:
    """Return where two texts of one length begin to differ; their length when they do not."""
    low, high = 0, len(one)
    while high - low > _FEW_BYTES:
        middle = (low + high) >> 1
        if one[low:middle] == other[low:middle]:
            low = middle
        else:
            high = middle
    differing = int.from_bytes(one[low:high], "big") ^ int.from_bytes(other[low:high], "big")
    return high - (differing.bit_length() + 7) // 8
