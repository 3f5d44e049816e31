"""References: what a person types, and the full form that is stored."""

from __future__ import annotations

import pytest
from hypothesis import given

from agent_chatroom_ledger.domain.references import (
    full_ref,
    parse_range,
    parse_ranges,
    parse_ref,
    parse_refs,
    range_ref,
)
from agent_chatroom_ledger.errors import InvalidInput
from agent_chatroom_ledger.limits import REFERENCES_MAX
from tests.domain.samples import HOSTILE, OTHER, PRIMARY, numbers, origins


@given(origins, numbers)
def test_the_full_form_comes_back(origin: str, n: int) -> None:
    assert parse_ref(full_ref(origin, n), "never") == (origin, n)


@given(origins, numbers, numbers)
def test_the_form_of_a_range_comes_back(origin: str, one: int, other: int) -> None:
    first, last = sorted((one, other))
    assert parse_range(range_ref(origin, first, last), "never") == (origin, first, last)


@pytest.mark.parametrize("text", ["57", "#57", " 57 ", "57@mbp-3f2a", "#57@mbp-3f2a", "57-57"])
def test_a_short_form_belongs_to_the_origin_that_created_the_room(text: str) -> None:
    assert parse_ref(text, PRIMARY) == (PRIMARY, 57)


def test_lists_and_ranges() -> None:
    assert parse_refs("3,5-7, 57@ci-9a1c", PRIMARY) == [
        (PRIMARY, 3),
        (PRIMARY, 5),
        (PRIMARY, 6),
        (PRIMARY, 7),
        (OTHER, 57),
    ]
    assert parse_refs("1-2@ci-9a1c", PRIMARY) == [(OTHER, 1), (OTHER, 2)]


@pytest.mark.parametrize(
    "text",
    [
        *HOSTILE,
        "0",
        "-1",
        "1-",
        "9-5",
        "100000000",
        "1@",
        "1@../x",
        "1@UPPER",
        "1@a b",
        "1@" + "x" * 33,
        "\u0661",
        "1 2",
    ],
)
def test_anything_else_is_refused_in_a_short_sentence(text: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        parse_ref(text, PRIMARY)
    assert len(caught.value.message) < 800
    caught.value.message.encode()


def test_a_range_is_no_single_message() -> None:
    with pytest.raises(InvalidInput, match="several"):
        parse_ref("1-2", PRIMARY)


def test_one_call_names_a_bounded_number_of_messages() -> None:
    assert len(parse_refs(f"1-{REFERENCES_MAX}", PRIMARY)) == REFERENCES_MAX
    for text in (f"1-{REFERENCES_MAX + 1}", "1-6000,1-6000", "1-99999999"):
        with pytest.raises(InvalidInput, match=str(REFERENCES_MAX)):
            parse_ranges(text.split(","), PRIMARY)
