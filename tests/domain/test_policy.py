"""Policies: sets of numbers kept as ranges, stand-ins, and what two of them disagree on."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_chatroom_ledger.domain import policy as policy_module
from agent_chatroom_ledger.domain.policy import (
    Policy,
    StandIn,
    clip,
    difference,
    ranges_of,
    subtract,
)
from agent_chatroom_ledger.errors import Conflict, InvalidInput
from tests.domain.samples import BEGIN, OTHER, PRIMARY

sets = st.sets(st.integers(1, 40))
changes = st.lists(
    st.tuples(
        st.booleans(),
        st.lists(
            st.tuples(st.sampled_from((PRIMARY, OTHER)), st.integers(1, 30), st.integers(0, 9))
        ),
    ),
    max_size=8,
)


def numbers_in(ranges: tuple[tuple[int, int], ...]) -> set[int]:
    return {n for first, last in ranges for n in range(first, last + 1)}


def standin(name: str, *replaces: int, after: int = 0) -> StandIn:
    return StandIn(
        id=name,
        replaces=tuple((PRIMARY, n) for n in replaces),
        insert_after=(PRIMARY, after or max(replaces)),
        speaker="System",
        kind="system",
        body="in short",
        at=f"{BEGIN}",
    )


@given(sets)
def test_ranges_hold_exactly_their_numbers(numbers: set[int]) -> None:
    ranges = ranges_of(numbers)
    assert numbers_in(ranges) == numbers
    assert all(a[1] + 1 < b[0] for a, b in pairwise(ranges))


@given(sets, sets, st.integers(0, 41), st.integers(0, 41))
def test_ranges_behave_as_the_sets_they_stand_for(
    one: set[int], other: set[int], first: int, last: int
) -> None:
    ranges, removed = ranges_of(one), ranges_of(other)
    assert subtract(ranges, removed) == ranges_of(one - other)
    assert clip(ranges, first, last) == ranges_of(one & set(range(first, last + 1)))


@given(changes)
def test_a_policy_is_a_set_of_messages(
    steps: list[tuple[bool, list[tuple[str, int, int]]]],
) -> None:
    policy = Policy()
    expected: set[tuple[str, int]] = set()
    for exclude, drawn in steps:
        ranges = [(origin, first, first + more) for origin, first, more in drawn]
        named = {(o, n) for o, first, last in ranges for n in range(first, last + 1)}
        policy = policy.excluding(ranges) if exclude else policy.including(ranges)
        expected = expected | named if exclude else expected - named
    for origin in (PRIMARY, OTHER):
        excluded = {n for n in range(45) if policy.excludes(origin, n)}
        assert excluded == {n for o, n in expected if o == origin}
        assert policy.touching(origin, 10, 20) == ranges_of(excluded & set(range(10, 21)))
    assert all(policy.excluded.values()), "an origin without exclusions is absent"


def test_a_policy_is_a_value() -> None:
    before = Policy()
    after = before.excluding([(PRIMARY, 1, 3)])
    assert before == Policy()
    assert after.including([(PRIMARY, 2, 2)]).excluded == {PRIMARY: ((1, 1), (3, 3))}
    assert after.excluded == {PRIMARY: ((1, 3),)}
    with pytest.raises(AttributeError):
        before.standins = ()  # type: ignore[misc]  # what is refused


def test_a_standin_leaves_out_what_it_replaces_until_all_of_it_is_included() -> None:
    policy = Policy().standing_in(standin("a", 1, 2)).standing_in(standin("b", 9, after=4))
    assert [policy.excludes(PRIMARY, n) for n in (1, 2, 3, 9)] == [True, True, False, True]
    assert list(policy.by_anchor()) == [(PRIMARY, 2), (PRIMARY, 4)]
    policy = policy.including([(PRIMARY, 1, 1)])
    assert [s.id for s in policy.standins] == ["a", "b"]
    policy = policy.including([(PRIMARY, 2, 2)])
    assert [s.id for s in policy.standins] == ["b"]


def test_a_standins_id_is_used_once() -> None:
    with pytest.raises(Conflict):
        Policy().standing_in(standin("a", 1)).standing_in(standin("a", 2))


def test_a_policy_has_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(policy_module, "STANDINS_MAX", 2)
    monkeypatch.setattr(policy_module, "POLICY_RANGES_MAX", 3)
    policy = Policy().standing_in(standin("a", 1)).standing_in(standin("b", 1))
    with pytest.raises(InvalidInput, match="2 stand-ins"):
        policy.standing_in(standin("c", 1))
    policy = policy.excluding([(PRIMARY, 3, 9), (OTHER, 1, 1)])
    with pytest.raises(InvalidInput, match="3 ranges"):
        policy.excluding([(PRIMARY, 20, 20)])
    with pytest.raises(InvalidInput, match="3 ranges"):
        policy.including([(PRIMARY, 5, 5)])
    assert policy.excluding([(PRIMARY, 2, 2)]).excluded == {PRIMARY: ((1, 9),), OTHER: ((1, 1),)}


@given(sets, sets)
def test_the_difference_names_what_only_one_leaves_out(one: set[int], other: set[int]) -> None:
    mine = Policy().excluding((PRIMARY, n, n) for n in one)
    theirs = Policy().excluding((PRIMARY, n, n) for n in other)
    named = {n for _, first, last in difference(mine, theirs) for n in range(first, last + 1)}
    assert named == one ^ other


def test_the_difference_names_where_a_standin_appears() -> None:
    one = Policy().standing_in(standin("a", 1, after=7)).standing_in(standin("b", 2, after=8))
    other = Policy().excluding([(PRIMARY, 1, 2)])
    assert difference(one, other) == [(PRIMARY, 7, 7), (PRIMARY, 8, 8)]
    assert difference(one, one) == []
    assert difference(other.standing_in(standin("b", 2, after=8)), one) == [(PRIMARY, 7, 7)]
