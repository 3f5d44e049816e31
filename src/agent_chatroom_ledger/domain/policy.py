"""A room's policy: which messages its view and its lenses leave out, and what stands in instead.

Leaving out never erases: the records stay, and so do their numbers. A policy is a fold of the
room's operations (rooms.py), and immutable.
"""

from __future__ import annotations

from bisect import bisect_right
from itertools import pairwise
from typing import TYPE_CHECKING, TypeAlias

import msgspec

from agent_chatroom_ledger.errors import Conflict, InvalidInput
from agent_chatroom_ledger.limits import NUMBER_MAX, POLICY_RANGES_MAX, STANDINS_MAX

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

Ranges: TypeAlias = tuple[tuple[int, int], ...]


class StandIn(msgspec.Struct, frozen=True, kw_only=True):
    """A text that is shown in the place of the messages that it replaces.

    ``replaces`` and ``insert_after`` are pairs of origin and number; ``at`` is when it was added,
    in the stored form.
    """

    id: str
    replaces: tuple[tuple[str, int], ...]
    insert_after: tuple[str, int]
    speaker: str
    kind: str
    body: str
    at: str


class Policy(msgspec.Struct, frozen=True):
    """What is left out, as sorted ranges per origin that neither touch nor overlap, and stand-ins.

    Stand-ins are in the order in which they were added.
    """

    excluded: dict[str, Ranges] = {}
    standins: tuple[StandIn, ...] = ()

    def excludes(self, origin: str, n: int) -> bool:
        """Tell whether a message is left out."""
        ranges = self.excluded.get(origin)
        if ranges is None:
            return False
        place = bisect_right(ranges, (n, NUMBER_MAX))
        return place > 0 and ranges[place - 1][1] >= n

    def touching(self, origin: str, first: int, last: int) -> Ranges:
        """Return what is left out of ``first`` to ``last`` of an origin, cut to these bounds."""
        return clip(self.excluded.get(origin, ()), first, last)

    def by_anchor(self) -> dict[tuple[str, int], list[StandIn]]:
        """Return the stand-ins by the message that they appear after."""
        places: dict[tuple[str, int], list[StandIn]] = {}
        for standin in self.standins:
            places.setdefault(standin.insert_after, []).append(standin)
        return places

    def excluding(self, ranges: Iterable[tuple[str, int, int]]) -> Policy:
        """Return a policy that leaves out these messages too, given as origin, first and last.

        Raises InvalidInput when it would hold more than 10,000 ranges.
        """
        excluded = dict(self.excluded)
        for origin, added in _by_origin(ranges).items():
            excluded[origin] = normalised((*excluded.get(origin, ()), *added))
        return _checked(Policy(excluded, self.standins))

    def including(self, ranges: Iterable[tuple[str, int, int]]) -> Policy:
        """Return a policy that shows these messages again.

        A stand-in goes when none of the messages that it replaces is left out any more.
        """
        excluded = dict(self.excluded)
        for origin, removed in _by_origin(ranges).items():
            left = subtract(excluded.get(origin, ()), normalised(removed))
            if left:
                excluded[origin] = left
            else:
                excluded.pop(origin, None)
        policy = Policy(excluded)
        kept = tuple(
            standin
            for standin in self.standins
            if any(policy.excludes(origin, n) for origin, n in standin.replaces)
        )
        return _checked(Policy(excluded, kept))

    def standing_in(self, standin: StandIn) -> Policy:
        """Return a policy with one more stand-in, which leaves out what it replaces.

        Raises Conflict when its id is taken, and InvalidInput beyond 1,000 stand-ins.
        """
        if any(standin.id == other.id for other in self.standins):
            raise Conflict(f"the stand-in {standin.id!r} exists already", standin=standin.id)
        if len(self.standins) >= STANDINS_MAX:
            raise InvalidInput(
                f"a room has at most {STANDINS_MAX} stand-ins; clear its policy first",
                field="standin",
                limit=STANDINS_MAX,
            )
        policy = self.excluding((origin, n, n) for origin, n in standin.replaces)
        return Policy(policy.excluded, (*self.standins, standin))


def normalised(ranges: Iterable[tuple[int, int]]) -> Ranges:
    """Return ranges sorted and united, so that they neither touch nor overlap."""
    united: list[tuple[int, int]] = []
    for first, last in sorted(ranges):
        if united and first <= united[-1][1] + 1:
            united[-1] = (united[-1][0], max(last, united[-1][1]))
        else:
            united.append((first, last))
    return tuple(united)


def ranges_of(numbers: Iterable[int]) -> Ranges:
    """Return the ranges that hold exactly these numbers."""
    return normalised((n, n) for n in numbers)


def clip(ranges: Ranges, first: int, last: int) -> Ranges:
    """Return the part of some ranges that lies between ``first`` and ``last``."""
    start = max(bisect_right(ranges, (first, first)) - 1, 0)
    found = []
    for low, high in ranges[start:]:
        if low > last:
            break
        if high >= first:
            found.append((max(low, first), min(high, last)))
    return tuple(found)


def subtract(ranges: Ranges, removed: Ranges) -> Ranges:
    """Return the ranges without the numbers of others; both are sorted and do not overlap."""
    left: list[tuple[int, int]] = []
    for first, last in ranges:
        # The gaps between what is removed here, from before the first to after the last.
        edges = [(first - 1, first - 1), *clip(removed, first, last), (last + 1, last + 1)]
        left.extend(
            (before[1] + 1, after[0] - 1)
            for before, after in pairwise(edges)
            if before[1] + 1 <= after[0] - 1
        )
    return tuple(left)


def difference(one: Policy, other: Policy) -> list[tuple[str, int, int]]:
    """Return the messages whose rendering two policies may disagree on: origin, first, last.

    These are the messages that only one of them leaves out, and those that a stand-in of only one
    of them appears after.
    """
    found: list[tuple[str, int, int]] = []
    for origin in sorted({*one.excluded, *other.excluded}):
        mine, theirs = one.excluded.get(origin, ()), other.excluded.get(origin, ())
        both = (*subtract(mine, theirs), *subtract(theirs, mine))
        found.extend((origin, first, last) for first, last in both)
    shown, shown_there = one.by_anchor(), other.by_anchor()
    found.extend(
        (origin, n, n)
        for origin, n in sorted({*shown, *shown_there})
        if shown.get((origin, n)) != shown_there.get((origin, n))
    )
    return found


def _by_origin(ranges: Iterable[tuple[str, int, int]]) -> Mapping[str, list[tuple[int, int]]]:
    grouped: dict[str, list[tuple[int, int]]] = {}
    for origin, first, last in ranges:
        grouped.setdefault(origin, []).append((first, last))
    return grouped


def _checked(policy: Policy) -> Policy:
    if sum(map(len, policy.excluded.values())) > POLICY_RANGES_MAX:
        raise InvalidInput(
            f"a policy leaves out at most {POLICY_RANGES_MAX} ranges of messages; join some",
            field="refs",
            limit=POLICY_RANGES_MAX,
        )
    return policy
