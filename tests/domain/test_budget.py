"""The search for a fit gives what the rule, taken literally, gives; and asks for no more."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from agent_chatroom_ledger.domain.budget import fit
from agent_chatroom_ledger.domain.versions import LAST_LEVEL

SIZES = st.lists(
    st.none() | st.lists(st.integers(0, 50), min_size=10, max_size=10), min_size=0, max_size=8
)


def naive(start: list[int], sizes: list[list[int] | None], budget: int, fixed: int) -> list[int]:
    """Step the oldest that can be stepped, one level at a time, adding everything up each time."""
    levels = list(start)
    while fixed + sum(s[at] for s, at in zip(sizes, levels, strict=True) if s) > budget:
        oldest = next(
            (i for i, s in enumerate(sizes) if s is not None and levels[i] < LAST_LEVEL), None
        )
        if oldest is None:
            break
        levels[oldest] += 1
    return levels


@given(SIZES, st.data(), st.integers(0, 300), st.integers(0, 40))
def test_it_is_the_sequential_rule(
    sizes: list[list[int] | None], data: st.DataObject, budget: int, fixed: int
) -> None:
    levels = st.integers(0, 9)
    start = [data.draw(levels) if s is not None else 0 for s in sizes]
    used = fixed + sum(s[at] for s, at in zip(sizes, start, strict=True) if s)
    found = fit(start, used, budget, sizes.__getitem__)
    expected = naive(start, sizes, budget, fixed)
    assert list(found.levels) == expected
    assert found.used == fixed + sum(s[at] for s, at in zip(sizes, expected, strict=True) if s)
    assert found.exhausted == (found.used > budget)


def test_only_what_is_stepped_is_asked_for() -> None:
    asked: list[int] = []

    def sizes(index: int) -> list[int]:
        asked.append(index)
        return list(range(10, 0, -1))

    found = fit([0] * 100, 1_000, 985, sizes)
    assert asked == [0, 1]
    assert found.levels[:3] == (9, 6, 0)
    assert found.used == 985


def test_what_fits_stays_as_it_is() -> None:
    assert fit([3, 0], 10, 10, lambda _: None).levels == (3, 0)
    assert fit([], 2, 1, lambda _: None).exhausted
