"""What is remembered of a consumer's lenses: the level that each message has been stepped to.

The levels of a room are kept as runs of numbers, ``{origin: [[first, last, level], …]}``, because
the oldest messages are stepped first and so mostly stand together. Level 0 is not kept.
"""

from __future__ import annotations

from bisect import bisect_right
from typing import TYPE_CHECKING, Any, TypeAlias

from agent_chatroom_ledger.domain.names import check_origin
from agent_chatroom_ledger.domain.versions import LAST_LEVEL
from agent_chatroom_ledger.errors import InvalidInput
from agent_chatroom_ledger.limits import NUMBER_MAX

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

Runs: TypeAlias = dict[str, list[tuple[int, int, int]]]


def runs_of_entry(entry: Mapping[str, Any]) -> Runs:
    """Return the runs of one room's entry in a consumer's file; InvalidInput for anything else."""
    levels = entry.get("levels", {})
    if not isinstance(levels, dict):
        raise InvalidInput("levels is an object", field="levels")
    found: Runs = {}
    for origin, runs in levels.items():
        check_origin(origin)
        if not isinstance(runs, list):
            raise InvalidInput(f"the levels of {origin} are a list", field="levels")
        found[origin] = []
        before = 0
        for run in runs:
            if not _is_run(run) or run[0] <= before:
                raise InvalidInput(
                    f"the levels of {origin} are runs [first, last, level] in order, and not "
                    f"{str(run)[:40]}",
                    field="levels",
                )
            found[origin].append((run[0], run[1], run[2]))
            before = run[1]
    return found


def _is_run(run: object) -> bool:
    if not isinstance(run, list) or len(run) != 3 or not all(type(part) is int for part in run):
        return False
    first, last, level = run
    return bool(1 <= first <= last <= NUMBER_MAX and 1 <= level <= LAST_LEVEL)


def level_of(runs: Runs, origin: str, n: int) -> int:
    """Return the level that is kept for a message, 0 for none."""
    mine = runs.get(origin)
    if not mine:
        return 0
    place = bisect_right(mine, (n, NUMBER_MAX, LAST_LEVEL)) - 1
    if place < 0:
        return 0
    _, last, level = mine[place]
    return level if n <= last else 0


def runs_of(levels: Iterable[tuple[tuple[str, int], int]]) -> Runs:
    """Return the runs of some messages' levels, given in any order."""
    found: Runs = {}
    for (origin, n), level in sorted(levels):
        if level == 0:
            continue
        mine = found.setdefault(origin, [])
        if mine and mine[-1][1] == n - 1 and mine[-1][2] == level:
            mine[-1] = (mine[-1][0], n, level)
        else:
            mine.append((n, n, level))
    return found


def levels_of(runs: Runs, newest: Mapping[str, int]) -> Iterator[tuple[tuple[str, int], int]]:
    """Yield each message that has a level, up to the newest of its origin."""
    for origin, mine in runs.items():
        for first, last, level in mine:
            for n in range(first, min(last, newest.get(origin, 0)) + 1):
                yield (origin, n), level
