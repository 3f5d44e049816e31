"""What is a number in a name or a trailer, and what only looks like one."""

from __future__ import annotations

import pytest

from agent_chatroom_ledger.domain.numerals import decimal


@pytest.mark.parametrize(
    ("text", "number"),
    [("0", 0), ("00000051", 51), ("9" * 18, 10**18 - 1), ("7", 7)],
)
def test_ascii_digits_are_a_number(text: str, number: int) -> None:
    assert decimal(text) == number


@pytest.mark.parametrize(
    "text",
    ["", "²", "0²", "٣", "\uff17", "-1", "+1", " 1", "1\n", "1_0", "x", "9" * 19, "9" * 5_000],
)
def test_nothing_else_is(text: str) -> None:
    assert decimal(text) is None
