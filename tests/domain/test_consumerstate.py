"""Levels kept as runs: they come back, and a file that somebody edited is named."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_chatroom_ledger.domain import consumerstate
from agent_chatroom_ledger.errors import InvalidInput

KEYS = st.tuples(st.sampled_from(["mbp-3f2a", "ci-9a1c"]), st.integers(1, 40))


@given(st.dictionaries(KEYS, st.integers(0, 9)))
def test_levels_come_back_through_json(levels: dict[tuple[str, int], int]) -> None:
    runs = consumerstate.runs_of(levels.items())
    stored = msgspec.json.decode(msgspec.json.encode({"levels": runs}))
    assert consumerstate.runs_of_entry(stored) == runs
    for origin in ("mbp-3f2a", "ci-9a1c", "other"):
        for n in range(42):
            assert consumerstate.level_of(runs, origin, n) == levels.get((origin, n), 0)
    known = {key: level for key, level in levels.items() if level}
    assert dict(consumerstate.levels_of(runs, {"mbp-3f2a": 99, "ci-9a1c": 99})) == known


def test_neighbours_of_one_level_share_a_run() -> None:
    levels = {("a-1", n): 9 for n in range(1, 5_000)} | {("a-1", 5_000): 4}
    assert consumerstate.runs_of(levels.items()) == {"a-1": [(1, 4_999, 9), (5_000, 5_000, 4)]}


def test_a_run_beyond_the_room_costs_nothing() -> None:
    runs = consumerstate.runs_of_entry({"levels": {"a-1": [[1, 99_999_999, 9]]}})
    assert len(list(consumerstate.levels_of(runs, {"a-1": 3}))) == 3


@pytest.mark.parametrize(
    "levels",
    [
        [],
        {"a-1": {}},
        {"a-1": [[1, 2]]},
        {"a-1": [[0, 2, 1]]},
        {"a-1": [[3, 2, 1]]},
        {"a-1": [[1, 2, 10]]},
        {"a-1": [[1, 2, 0]]},
        {"a-1": [[1, 2, 1.0]]},
        {"a-1": [[1, 2, True]]},
        {"a-1": [[1, 5, 1], [5, 6, 1]]},
        {"a-1": [[1, 100_000_000, 1]]},
        {"../x": [[1, 2, 1]]},
    ],
)
def test_anything_else_is_refused(levels: Any) -> None:
    with pytest.raises(InvalidInput):
        consumerstate.runs_of_entry({"levels": levels})
