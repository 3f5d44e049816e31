"""A stored line is judged as the draft it came from would have been."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from agent_chatroom_ledger import limits
from agent_chatroom_ledger.domain.recordrules import check_line
from agent_chatroom_ledger.domain.records import Record, encode_record
from agent_chatroom_ledger.errors import Corrupt, InvalidInput

BASE: dict[str, Any] = {
    "n": 1,
    "id": "01a229f8-58bd-70ac-be48-2b48f65c631d",
    "at": "2026-11-29T21:27:42.123456Z",
    "author": "Analyst",
    "kind": "message",
}


def line(**fields: Any) -> bytes:
    return encode_record(Record(**{**BASE, **fields}))


def test_what_a_writer_writes_is_taken() -> None:
    record = check_line(line(body="a\nb", to=("*",), data={"x": [1, None]}, status="done"))
    assert record.body == "a\nb"


@pytest.mark.parametrize(
    "fields",
    [
        {"body": "x" * (limits.BODY_BYTES_MAX + 1)},
        {"body": "a\0b"},
        {"author": "a\nb"},
        {"author": " a"},
        {"id": " a"},
        {"to": ("a\tb",)},
        {"mentions": ("x",) * (limits.NAMES_MAX + 1)},
        {"reply_to": ""},
        {"said_at": "1969-12-31T00:00:00.000000Z"},
        {"at": "2026-13-29T21:27:42.123456Z"},
        {"artifacts": ("../../etc",)},
        {"data": {"x": "y" * limits.DATA_BYTES_MAX}},
        {"placed_from": {"x": "y" * limits.DATA_BYTES_MAX}},
    ],
    ids=lambda fields: next(iter(fields)),
)
def test_what_no_writer_writes_is_refused(fields: dict[str, Any]) -> None:
    with pytest.raises(InvalidInput):
        check_line(line(**fields))


@pytest.mark.parametrize(
    "change",
    [
        lambda data: data.replace(b'"n":1,', b'"n": 1,'),
        lambda data: data.replace(b'"kind"', b'"author":"Reviewer","kind"'),
        lambda data: data.replace(
            b'"author":"Analyst","kind":"message"', b'"kind":"message","author":"Analyst"'
        ),
        lambda data: data.replace(b"Analyst", b"\\u0041nalyst"),
    ],
)
def test_a_line_laid_out_otherwise_is_refused(change: Any) -> None:
    """Two programs could read two things in it, or the same record would have two ids."""
    data = change(line(body="x"))
    assert data != line(body="x")
    with pytest.raises(InvalidInput, match="laid out"):
        check_line(data)


def test_fields_of_a_newer_version_are_taken() -> None:
    data = line()[:-1] + b',"mood":"calm"}'
    assert check_line(data).author == "Analyst"


@pytest.mark.parametrize("data", [b"", b"{}", b"[1]", b"\xff", line()[:-1]])
def test_what_is_no_record_is_corrupt(data: bytes) -> None:
    with pytest.raises(Corrupt):
        check_line(data)


def test_unknown_fields_have_a_limit_too() -> None:
    data = line()[:-1] + b',"more":' + msgspec.json.encode("x" * limits.RECORD_BYTES_MAX) + b"}"
    with pytest.raises(InvalidInput, match=str(limits.RECORD_BYTES_MAX)):
        check_line(data)
