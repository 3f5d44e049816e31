"""Direct rooms are keyed by their members; whom an answer to all goes to."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_chatroom_ledger.domain.direct import (
    answered,
    check_addressees,
    direct_id,
    direct_title,
    is_direct,
)
from agent_chatroom_ledger.domain.names import check_title
from agent_chatroom_ledger.domain.records import Message, Record, encode_record, message_of
from agent_chatroom_ledger.errors import InvalidInput
from agent_chatroom_ledger.limits import AUTHOR_CHARS_MAX, DIRECT_NAMES_MAX, TITLE_CHARS_MAX

NAMES = st.lists(
    st.text(st.characters(categories=["L", "N", "P", "S"]), min_size=1, max_size=64).filter(
        lambda name: name != "*" and name.strip() == name
    ),
    min_size=1,
    max_size=33,
)


def said(author: str, *to: str) -> Message:
    record = Record(
        n=1, id="m-1", at="2026-11-29T21:27:42.123456Z", author=author, kind="message", to=to
    )
    return message_of(encode_record(record), "mbp-3f2a", "messages", primary=True)


def test_addressees_are_given_once_in_order_and_without_oneself() -> None:
    assert check_addressees(["Cy", "Ben", "Ana", "Cy"], "Ana") == ("Ben", "Cy")


@pytest.mark.parametrize(
    ("names", "word"),
    [
        ([], "at least one"),
        (["Ana"], "somebody else"),
        (["Ana", "Ana"], "somebody else"),
        ("Ben", "list"),
        (["*"], "everybody"),
        (["a\nb"], "line breaks"),
        ([""], "blank"),
        ([" Ben"], "white space"),
        (["x" * (AUTHOR_CHARS_MAX + 1)], "64"),
        ([f"n{k}" for k in range(DIRECT_NAMES_MAX + 1)], "32"),
    ],
    ids=str,
)
def test_names_that_no_direct_message_goes_to(names: Any, word: str) -> None:
    with pytest.raises(InvalidInput, match=word):
        check_addressees(names, "Ana")


def test_as_many_as_the_limit_says_and_oneself_besides() -> None:
    names = [f"n{k}" for k in range(DIRECT_NAMES_MAX)]
    assert len(check_addressees([*names, "Ana"], "Ana")) == DIRECT_NAMES_MAX


def test_the_id_is_pinned() -> None:
    """Two clones, and two versions, mean the same room."""
    assert direct_id(["Ben", "Ana"]) == "direct-56b382421695c03a9800a7fc340ad513"


@given(NAMES, st.randoms())
def test_the_id_depends_on_the_names_and_on_nothing_else(names: list[str], random: Any) -> None:
    mixed = [*names, names[0]]
    random.shuffle(mixed)
    assert direct_id(mixed) == direct_id(names)
    assert is_direct(direct_id(names))
    assert len(direct_id(names)) == len("direct-") + 32


def test_names_do_not_run_together() -> None:
    ids = {direct_id(names) for names in (["a", "b, c"], ["a, b", "c"], ["a", "b", "c"], ['a","b'])}
    assert len(ids) == 4


@given(NAMES)
def test_a_title_fits_whoever_the_members_are(names: list[str]) -> None:
    title = direct_title(names)
    assert check_title(title) == title


def test_a_title_names_the_members_or_says_how_many_more_there_are() -> None:
    assert direct_title(["Cy", "Ana", "Ben"]) == "Ana, Ben, Cy"
    title = direct_title([f"{k:02}" + "x" * 60 for k in range(33)])
    assert title.endswith(" and 31 more")
    assert len(title) <= TITLE_CHARS_MAX


def test_an_answer_goes_to_the_sender_and_the_others() -> None:
    assert answered(said("Ana", "Ben", "Cy"), ("Ana", "Ben", "Cy"), "Ben") == ("Ana", "Cy")
    assert answered(said("Ana", "Ben", "Cy"), (), "Ana") == ("Ben", "Cy")


def test_without_addressees_it_was_said_to_the_members() -> None:
    assert answered(said("Ana"), ("Ana", "Ben", "Cy"), "Cy") == ("Ana", "Ben")
    assert answered(said("Ana", "*"), ("Ana", "Ben"), "Ben") == ("Ana",)


def test_who_was_alone_has_nobody_to_answer() -> None:
    with pytest.raises(InvalidInput, match="nobody else"):
        answered(said("Ana"), ("Ana",), "Ana")
