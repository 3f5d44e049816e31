"""The search for a fit: the oldest messages step to shorter levels until everything fits.

The rule is sequential: while it does not fit, the oldest message that is not at its last level
yet goes one level up. Sizes are kept as a sum and changed by differences, so nothing is rendered
to find the fit (tests/domain/test_budget.py compares it with the rule taken literally).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from agent_chatroom_ledger.domain.versions import LAST_LEVEL

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


class Fit(msgspec.Struct, frozen=True):
    """The level of each item, the size of all together, and whether there was no fit.

    Without a fit everything is at its last level.
    """

    levels: tuple[int, ...]
    used: int
    exhausted: bool


def fit(
    start: Sequence[int],
    used: int,
    budget: int,
    sizes: Callable[[int], Sequence[int] | None],
) -> Fit:
    """Step items up, the oldest first, until ``used`` is within the budget.

    ``start`` holds the levels to begin with, oldest item first, and ``used`` the size of all items
    at these levels. ``sizes(index)`` gives an item's size at each of its levels, or None for one
    that has none; it is asked once for each item that is stepped, and for no other.
    """
    levels = list(start)
    for index, level in enumerate(levels):
        if used <= budget:
            break
        known = None if level >= LAST_LEVEL else sizes(index)
        if known is None:
            continue
        reached = level
        while reached < LAST_LEVEL and used > budget:
            used += known[reached + 1] - known[reached]
            reached += 1
        levels[index] = reached
    return Fit(tuple(levels), used, used > budget)
