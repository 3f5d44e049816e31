"""Drafts: what a caller says is stored exactly or refused with the limit (invariant 9)."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest
from hypothesis import given

from agent_chatroom_ledger.domain.drafts import Draft, check_draft
from agent_chatroom_ledger.domain.records import encode_record, record_of
from agent_chatroom_ledger.errors import InvalidInput
from agent_chatroom_ledger.limits import (
    AUTHOR_CHARS_MAX,
    BODY_BYTES_MAX,
    DATA_BYTES_MAX,
    FRAME_BYTES_MAX,
    ID_CHARS_MAX,
    NAMES_MAX,
    REF_FIELD_CHARS_MAX,
)
from tests.domain.samples import HOSTILE, dangerous, hostile_texts

AT = "2026-11-29T21:27:42.123456Z"
SHA = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"


def said(**fields: Any) -> Draft:
    return Draft(**{"author": "Analyst", "body": "x", **fields})


@given(hostile_texts)
def test_any_body_is_stored_exactly_or_refused(body: str) -> None:
    if "\0" in body or any("\ud800" <= c <= "\udfff" for c in body):
        with pytest.raises(InvalidInput) as caught:
            check_draft(said(body=body))
        assert caught.value.fields["field"] == "body"
    else:
        check_draft(said(body=body))
        line = encode_record(record_of(said(body=body), 1, AT, "id"))
        assert msgspec.json.decode(line).get("body", "") == body


def test_a_body_has_at_most_256_kib_of_utf8() -> None:
    for body in ("x" * BODY_BYTES_MAX, "é" * (BODY_BYTES_MAX // 2), "\n" * BODY_BYTES_MAX):
        assert check_draft(said(body=body)).body == body
    for body in ("x" * (BODY_BYTES_MAX + 1), "é" * (BODY_BYTES_MAX // 2) + "x"):
        with pytest.raises(InvalidInput, match=str(BODY_BYTES_MAX)) as caught:
            check_draft(said(body=body))
        assert caught.value.fields["limit"] == BODY_BYTES_MAX
        assert len(caught.value.message) < 200


def test_the_longest_record_fits_into_a_frame() -> None:
    draft = said(
        body="\x01" * BODY_BYTES_MAX,
        data={"x": "\x01" * (DATA_BYTES_MAX // 6 - 10)},
        placed_from={"x": "\x01" * (DATA_BYTES_MAX // 6 - 10)},
        to=("😀" * 64,) * NAMES_MAX,
        mentions=("😀" * 64,) * NAMES_MAX,
        artifacts=(SHA,) * NAMES_MAX,
    )
    assert len(encode_record(record_of(check_draft(draft), 1, AT, "id"))) < FRAME_BYTES_MAX


@pytest.mark.parametrize(
    ("field", "value"),
    [
        *(("kind", kind) for kind in ("", "Message", "a b", "-a", "x" * 65, "a\n", "é")),
        *(("id", value) for value in ("", " a", "a\n", "a\0", "x" * (ID_CHARS_MAX + 1), "\ud800")),
        *(
            (field, value)
            for field in ("reply_to", "correlation", "cause", "status")
            for value in ("", "a\nb", "\x1b", "x" * (REF_FIELD_CHARS_MAX + 1), "\ud800")
        ),
        *((field, ("ok", name)) for field in ("to", "mentions") for name in ("", "a\nb", "*")),
        ("to", ("x",) * (NAMES_MAX + 1)),
        ("mentions", ("*",)),
        ("mentions", ("x",) * (NAMES_MAX + 1)),
        ("artifacts", ("x",)),
        ("artifacts", (SHA.upper(),)),
        ("artifacts", (SHA + "\n",)),
        ("artifacts", (SHA,) * (NAMES_MAX + 1)),
        ("said_at", "yesterday"),
        ("said_at", "1969-12-31T23:59:59.999999Z"),
        ("said_at", "2026-02-30T00:00:00.000000Z"),
        ("data", {"x": float("nan")}),
        ("data", {"x": float("inf")}),
        ("data", {1: "x"}),
        ("data", {"x": {1, 2}}),
        ("data", {"x": object()}),
        ("data", {"x": "\ud800"}),
        ("data", {"x": (1, 2)}),
        ("data", {"x": "y" * DATA_BYTES_MAX}),
        ("placed_from", {"x": b"bytes"}),
    ],
)
def test_a_field_that_breaks_a_rule_is_named(field: str, value: object) -> None:
    with pytest.raises(InvalidInput) as caught:
        check_draft(said(**{field: value}))
    named = {"said_at": ("said_at", "at")}.get(field, (field,))
    assert caught.value.fields["field"] in named
    assert len(caught.value.message) < 400
    caught.value.message.encode()


def test_data_without_end_is_refused() -> None:
    deep: dict[str, Any] = {}
    for _ in range(100_000):
        deep = {"a": deep}
    with pytest.raises(InvalidInput):
        check_draft(said(data=deep))
    endless: dict[str, Any] = {}
    endless["self"] = endless
    with pytest.raises(InvalidInput):
        check_draft(said(data=endless))


@pytest.mark.parametrize("author", HOSTILE)
def test_hostile_authors_are_refused_or_stored_exactly(author: str) -> None:
    refused = not author.strip() or author != author.strip() or len(author) > AUTHOR_CHARS_MAX
    if refused or dangerous(author) or author.startswith("\ufeff") or author == "*":
        with pytest.raises(InvalidInput) as caught:
            check_draft(said(author=author))
        assert caught.value.fields["field"] == "author"
        return
    assert check_draft(said(author=author)).author == author


def test_everybody_and_somebody_may_be_addressed() -> None:
    assert check_draft(said(to=("*",))).to == ("*",)
    assert check_draft(said(to=("Reviewer", "שלום"))).to == ("Reviewer", "שלום")
    assert check_draft(said(body="")).body == "", "a record may hold artifacts only"


def test_a_mapping_becomes_a_draft() -> None:
    draft = Draft.of(
        {
            "author": "Analyst",
            "body": "x",
            "to": ["Reviewer"],
            "said_at": datetime(2004, 11, 15, 3, 12, tzinfo=UTC),
            "data": {"a": [1]},
        }
    )
    assert draft == said(to=("Reviewer",), said_at="2004-11-15T03:12:00.000000Z", data={"a": [1]})


@pytest.mark.parametrize(
    "mapping",
    [
        {},
        {"author": 1},
        {"author": "Analyst", "autor": "x"},
        {"author": "Analyst", 1: "x"},
        {"author": "Analyst", "n": 1},
        {"author": "Analyst", "to": "Reviewer"},
        {"author": "Analyst", "mentions": [1]},
        {"author": "Analyst", "data": [1]},
        {"author": "Analyst", "body": None},
        {"author": "Analyst", "said_at": datetime(2004, 11, 15)},  # noqa: DTZ001 - what is refused
    ],
)
def test_a_mapping_of_another_shape_is_refused(mapping: dict[str, Any]) -> None:
    with pytest.raises(InvalidInput):
        Draft.of(mapping)
