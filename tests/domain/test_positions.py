"""Positions: a vector of numbers, one per origin, with the order of containment."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_chatroom_ledger.domain.positions import (
    advance,
    contains,
    covers,
    decode_position,
    encode_position,
    maximum,
    minimum,
    position_of,
)
from agent_chatroom_ledger.errors import InvalidInput
from tests.domain.samples import HOSTILE, OTHER, PRIMARY, message, numbers, origins

positions = st.dictionaries(origins, numbers)


@given(positions)
def test_a_position_comes_back(position: dict[str, int]) -> None:
    assert decode_position(encode_position(position), PRIMARY) == position


@given(positions, positions)
def test_maximum_and_minimum_bound_both(one: dict[str, int], other: dict[str, int]) -> None:
    upper, lower = maximum(one, other), minimum(one, other)
    assert contains(upper, one)
    assert contains(upper, other)
    assert contains(one, lower)
    assert contains(other, lower)
    assert all(n in (one.get(o), other.get(o)) for o, n in upper.items())
    assert set(lower) == set(one) & set(other)


@given(positions, origins, numbers)
def test_advancing_reaches_and_never_goes_back(
    position: dict[str, int], origin: str, n: int
) -> None:
    moved = advance(position, origin, n)
    assert covers(moved, origin, n)
    assert contains(moved, position)
    assert advance(moved, origin, n) == moved


def test_the_empty_position() -> None:
    assert encode_position({}) == encode_position({PRIMARY: 0}) == "0"
    assert decode_position("0", PRIMARY) == {}
    assert minimum() == maximum() == {}
    assert not covers({}, PRIMARY, 1)


def test_origins_stand_in_order() -> None:
    assert encode_position({PRIMARY: 57, OTHER: 3}) == "3@ci-9a1c,57@mbp-3f2a"


def test_what_a_caller_may_mean() -> None:
    assert position_of(57, PRIMARY) == {PRIMARY: 57}
    assert position_of(0, PRIMARY) == {}
    assert position_of("57", PRIMARY) == {PRIMARY: 57}
    assert position_of("3@ci-9a1c,57", PRIMARY) == {OTHER: 3, PRIMARY: 57}
    assert position_of({OTHER: 3, PRIMARY: 0}, PRIMARY) == {OTHER: 3}
    assert position_of(message(4, origin=OTHER), PRIMARY) == {OTHER: 4}


@pytest.mark.parametrize(
    "value",
    [-1, 100_000_000, True, 1.5, None, {"../x": 1}, {OTHER: -1}, {OTHER: "1"}, {OTHER: True}, [1]],
)
def test_anything_else_is_refused(value: object) -> None:
    with pytest.raises(InvalidInput):
        position_of(value, PRIMARY)  # type: ignore[arg-type]  # what is refused


@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_texts_are_refused(text: str) -> None:
    with pytest.raises(InvalidInput):
        position_of(text, PRIMARY)
