"""Order: by time, origin, log and number, from either end, each id once."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from agent_chatroom_ledger.domain.order import (
    drop_repeated_ids,
    merge,
    merge_reversed,
    order_key,
)
from tests.domain.samples import BEGIN, OTHER, PRIMARY, message

times = st.lists(st.integers(0, 20), max_size=12).map(sorted)


@given(times, times, times)
def test_merging_sorts_whatever_the_runs_hold(a: list[int], b: list[int], c: list[int]) -> None:
    runs = [
        [message(n, origin=origin, log=log, micros=BEGIN + at) for n, at in enumerate(of_origin, 1)]
        for origin, log, of_origin in (
            (PRIMARY, "messages", a),
            (OTHER, "messages", b),
            (OTHER, "operations", c),
        )
    ]
    expected = sorted((m for run in runs for m in run), key=order_key)
    assert list(merge(*runs)) == expected
    assert list(merge_reversed(*(run[::-1] for run in runs))) == expected[::-1]


def test_one_run_and_none() -> None:
    run = [message(1), message(2)]
    assert list(merge(run)) == run
    assert list(merge_reversed(run[::-1])) == run[::-1]
    assert list(merge()) == []


def test_ties_are_broken_by_origin_log_and_number() -> None:
    at = BEGIN
    expected = [
        message(2, origin=OTHER, micros=at),
        message(1, origin=OTHER, micros=at, log="operations"),
        message(1, origin=PRIMARY, micros=at),
        message(2, origin=PRIMARY, micros=at),
    ]
    turned = expected[::-1]
    assert sorted(turned, key=order_key) == expected


def test_the_later_of_two_records_with_one_id_is_folded_away() -> None:
    one, two = message(1, record_id="same"), message(1, origin=OTHER, record_id="same")
    other = message(2)
    assert list(drop_repeated_ids([one, two, other])) == [one, other]
