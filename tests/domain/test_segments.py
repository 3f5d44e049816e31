"""Segments: the place of a record follows from its number and from the bytes before it alone."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_chatroom_ledger.domain.segments import (
    directory_of,
    first_of,
    in_order,
    segment_path,
    starts_new_segment,
)
from agent_chatroom_ledger.errors import Corrupt
from agent_chatroom_ledger.limits import SEGMENT_BYTES_MAX, SEGMENT_RECORDS_MAX
from tests.domain.samples import numbers


@pytest.mark.parametrize(
    ("first", "path"),
    [
        (1, "00/00/00000001.jsonl"),
        (999, "00/00/00000999.jsonl"),
        (1_000, "00/01/00001000.jsonl"),
        (99_999, "00/99/00099999.jsonl"),
        (100_000, "01/00/00100000.jsonl"),
        (9_999_999, "99/99/09999999.jsonl"),
        (99_999_999, "999/99/99999999.jsonl"),
    ],
)
def test_paths(first: int, path: str) -> None:
    assert segment_path(first) == path
    assert first_of(path) == first_of(path.rpartition("/")[2]) == first


@given(numbers)
def test_a_path_comes_back(first: int) -> None:
    assert first_of(segment_path(first)) == first
    assert segment_path(first).startswith(directory_of(first) + "/")


@pytest.mark.parametrize(
    "name", ["", "1.jsonl", "00000000.jsonl", "00000001.jsonl\n", "00000001.json", "x" * 500]
)
def test_other_names_are_refused(name: str) -> None:
    with pytest.raises(Corrupt):
        first_of(name)


def test_a_segment_is_closed_by_its_records_its_bytes_or_its_directory() -> None:
    assert not starts_new_segment(1, SEGMENT_RECORDS_MAX - 1, SEGMENT_BYTES_MAX - 1, 50)
    assert starts_new_segment(1, SEGMENT_RECORDS_MAX, 100, 51)
    assert starts_new_segment(1, 1, SEGMENT_BYTES_MAX, 2)
    assert starts_new_segment(990, 10, 100, 1_000)
    assert not starts_new_segment(1_000, 1, 100, 1_001)


@given(st.lists(st.integers(50, 40_000), max_size=300), st.integers(1, 2_000))
def test_segments_of_any_log_are_bounded(sizes: list[int], start: int) -> None:
    first, count, size = start, 0, 0
    for n, line in enumerate(sizes, start):
        if count and starts_new_segment(first, count, size, n):
            first, count, size = n, 0, 0
        assert directory_of(first) == directory_of(n)
        count, size = count + 1, size + line
        assert count <= SEGMENT_RECORDS_MAX
        assert size - line < SEGMENT_BYTES_MAX


def test_names_are_put_in_the_order_of_their_numbers() -> None:
    assert in_order(["100/", "99/", "00/", "x/", ".git/"]) == ["00/", "99/", "100/"]
    assert in_order(["00000101.jsonl", "00000051.jsonl", "notes.txt"]) == [
        "00000051.jsonl",
        "00000101.jsonl",
    ]
