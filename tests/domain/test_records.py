"""Records: exact bytes, unknown fields that survive, and messages as readers get them."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_chatroom_ledger.domain.clock import from_micros
from agent_chatroom_ledger.domain.records import (
    SPEECH_KINDS,
    Draft,
    Record,
    check_draft,
    decode_record,
    encode_record,
    is_history,
    message_of,
    record_of,
    same_content,
)
from agent_chatroom_ledger.errors import Corrupt, InvalidInput
from tests.domain.samples import BEGIN, GOLDEN, HOSTILE, OTHER, PRIMARY, bodies, message, numbers

AT = "2026-11-29T21:27:42.123456Z"
FULL = Record(
    n=57,
    id="0193a1b2-0000-7000-8000-000000000039",
    at=AT,
    said_at="2004-11-15T03:12:00.000000Z",
    author="Analyst 😀",
    kind="review",
    to=("Reviewer", "Ops"),
    mentions=("Reviewer",),
    body='Two\nlines,\r\na tab\t, a quote ", \u2028 and \x1b.',
    reply_to="3@ci-9a1c",
    correlation="run-7",
    cause="0193a1b2-0000-7000-8000-000000000001",
    status="done",
    artifacts=("e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",),
    data={"score": 0.5, "passed": [1, True, None], "ключ": "значение"},
    placed_from={"room": "rooms/other", "ref": "9@mbp-3f2a"},
)
SHORT = Record(n=1, id="a", at=AT, author="Analyst", kind="message")

names = st.text(alphabet=st.characters(categories=("L", "N")), min_size=1, max_size=20)
scalars = (
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**64 - 1)
    | bodies
    | st.floats(allow_nan=False, allow_infinity=False)
)
objects = st.dictionaries(bodies, st.recursive(scalars, st.lists, max_leaves=5), max_size=3)
drafts = st.builds(
    Draft,
    author=names,
    body=bodies,
    kind=st.sampled_from((*SPEECH_KINDS, "event", "room.create")),
    to=st.lists(names, max_size=2).map(tuple),
    mentions=st.lists(names, max_size=2).map(tuple),
    reply_to=st.none() | names,
    correlation=st.none() | names,
    cause=st.none() | names,
    status=st.none() | names,
    data=st.none() | objects,
    said_at=st.none() | st.integers(0, BEGIN * 2).map(from_micros),
    placed_from=st.none() | objects,
)


def test_the_bytes_of_the_format() -> None:
    expected = (GOLDEN / "records.jsonl").read_bytes()
    assert encode_record(FULL) + b"\n" + encode_record(SHORT) + b"\n" == expected


def test_the_golden_lines_are_records() -> None:
    lines = (GOLDEN / "records.jsonl").read_bytes().split(b"\n")
    assert [decode_record(line) for line in lines[:2]] == [FULL, SHORT]


@given(drafts, numbers)
def test_what_passes_is_stored_exactly(draft: Draft, n: int) -> None:
    record = record_of(check_draft(draft), n, AT, "id")
    line = encode_record(record)
    assert b"\n" not in line
    assert decode_record(line) == record
    assert json.loads(line)["n"] == n
    assert message_of(line, PRIMARY, "messages", primary=True).body == draft.body
    for field in Draft.__struct_fields__:
        if field != "id":
            assert getattr(record, field) == getattr(draft, field)


def test_the_keys_stand_in_order_and_empty_ones_are_absent() -> None:
    assert list(json.loads(encode_record(FULL))) == list(Record.__struct_fields__)
    assert list(json.loads(encode_record(SHORT))) == ["n", "id", "at", "author", "kind"]


def test_unknown_fields_survive_in_the_line() -> None:
    line = encode_record(FULL)[:-1] + b',"mood":"good"}'
    assert decode_record(line) == FULL
    found = message_of(line, PRIMARY, "messages", primary=True)
    assert found.line == line
    assert found.as_dict()["mood"] == "good"


@pytest.mark.parametrize(
    "change",
    [
        {"n": 0},
        {"n": 100_000_000},
        {"n": "1"},
        {"n": 1.5},
        {"n": None},
        {"id": ""},
        {"id": "x" * 129},
        {"at": "2026-11-29"},
        {"at": AT + "\n"},
        {"said_at": "yesterday"},
        {"author": ""},
        {"author": "x" * 65},
        {"kind": "Message"},
        {"kind": ""},
        {"kind": "message\n"},
        {"to": "Reviewer"},
        {"to": [1]},
        {"body": None},
        {"data": []},
        {"placed_from": "x"},
    ],
)
def test_a_line_that_breaks_the_format_is_corrupt(change: dict[str, Any]) -> None:
    line = msgspec.json.encode({**json.loads(encode_record(SHORT)), **change})
    with pytest.raises(Corrupt):
        decode_record(line)
    with pytest.raises(Corrupt):
        message_of(line, PRIMARY, "messages", primary=True)


@pytest.mark.parametrize(
    "line",
    [
        b"",
        b"\0" * 100,
        b"null",
        b"[]",
        b"{}",
        b"\xff",
        b'{"n":1',
        encode_record(SHORT)[:-1] + b',"body":"\xff"}',
        encode_record(SHORT)[:-1] + b',"body":"\\ud800"}',
        encode_record(SHORT)[:-1] + b',"data":' + b'{"a":' * 100_000 + b"1" + b"}" * 100_001,
        encode_record(SHORT) + b"\n" + encode_record(SHORT),
    ],
)
def test_anything_that_is_no_record_is_corrupt(line: bytes) -> None:
    with pytest.raises(Corrupt) as caught:
        decode_record(line)
    assert len(str(caught.value.as_dict())) < 2_000


@given(st.binary(max_size=60))
def test_no_bytes_are_anything_but_a_record_or_corrupt(line: bytes) -> None:
    with pytest.raises(Corrupt):
        decode_record(line)


def test_a_day_that_does_not_exist_is_corrupt() -> None:
    line = encode_record(SHORT).replace(b"2026-11-29", b"2026-02-30")
    with pytest.raises(Corrupt):
        message_of(line, PRIMARY, "messages", primary=True)


@pytest.mark.parametrize(
    "text", [text for text in HOSTILE if "\ud800" <= max(text, default="") <= "\udfff"]
)
def test_half_a_character_is_never_encoded(text: str) -> None:
    with pytest.raises(InvalidInput):
        encode_record(msgspec.structs.replace(SHORT, body=text))


def test_same_content_leaves_number_and_time_aside() -> None:
    other = msgspec.structs.replace(FULL, n=58, at="2026-11-30T00:00:00.000000Z")
    assert same_content(FULL, other)
    assert not same_content(FULL, msgspec.structs.replace(FULL, body="other"))
    assert not same_content(FULL, msgspec.structs.replace(FULL, id="other"))
    turned = dict(reversed(list((FULL.data or {}).items())))
    assert same_content(FULL, msgspec.structs.replace(FULL, data=turned))
    one = msgspec.structs.replace(SHORT, data={"a": 1})
    assert not same_content(one, msgspec.structs.replace(SHORT, data={"a": True}))


def test_a_message_is_what_a_reader_gets() -> None:
    found = message_of(encode_record(FULL), OTHER, "messages", primary=False)
    assert found.at == datetime(2026, 11, 29, 21, 27, 42, 123456, tzinfo=UTC)
    assert found.said_at == datetime(2004, 11, 15, 3, 12, tzinfo=UTC)
    assert (found.ref, found.full_ref) == ("57@ci-9a1c", "57@ci-9a1c")
    assert found.as_dict() == {
        **json.loads(encode_record(FULL)),
        "origin": OTHER,
        "ref": "57@ci-9a1c",
    }
    assert (message(57).ref, message(57).full_ref) == ("57", "57@mbp-3f2a")
    with pytest.raises(AttributeError):
        found.body = "changed"  # type: ignore[misc]  # what is refused


def test_history_has_no_recipients() -> None:
    assert is_history("event")
    assert is_history("room.create")
    assert not any(is_history(kind) for kind in (*SPEECH_KINDS, "events", "rooms.x", "room"))
