"""Frames: exact bytes, records that come back byte by byte, and nothing torn taken for whole."""

from __future__ import annotations

import json
from zlib import crc32

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_chatroom_ledger.domain.frames import (
    Frame,
    FrameRecord,
    Header,
    ViewMark,
    decode_line,
    encode_frame,
    encode_header,
    frame_line_ok,
)
from agent_chatroom_ledger.domain.records import Draft, encode_record, record_of
from agent_chatroom_ledger.errors import Corrupt, InvalidInput
from agent_chatroom_ledger.limits import FRAME_BYTES_MAX
from tests.domain.samples import GOLDEN, LOG, OPERATIONS_LOG, OTHER, PRIMARY, bodies, numbers

AT = "2026-11-29T21:27:42.123456Z"
HEADER = Header(
    generation=3,
    base="0123456789abcdef0123456789abcdef01234567",
    newest_at=AT,
    last_frame=11,
    commit_format=1,
    origin=PRIMARY,
)
LINE = encode_record(record_of(Draft(author="Analyst", body="18 checks\npassed"), 57, AT, "a"))
UNKNOWN = LINE[:-1] + b',"mood":"good", "spaced" : [1 ,2]}'


def record_frame(*records: bytes, number: int = 12) -> Frame:
    return Frame(
        frame=number, records=tuple(FrameRecord(LOG, msgspec.Raw(line)) for line in records)
    )


OPERATION = Frame(
    frame=13,
    records=(
        FrameRecord(OPERATIONS_LOG, msgspec.Raw(LINE)),
        FrameRecord(f"operations/{PRIMARY}", msgspec.Raw(LINE)),
    ),
    requested_by="Reviewer",
    reason="noise",
)
VIEW = Frame(
    frame=14,
    at=AT,
    views=(ViewMark(room="rooms/a", messages={PRIMARY: 57, OTHER: 3}, operations={PRIMARY: 3}),),
)


def test_the_bytes_of_the_format() -> None:
    lines = [
        encode_header(HEADER),
        encode_frame(record_frame(LINE)),
        encode_frame(record_frame(UNKNOWN)),
        encode_frame(OPERATION),
        encode_frame(VIEW),
    ]
    assert b"".join(lines) == (GOLDEN / "frames.journal").read_bytes()


def test_the_golden_lines_are_frames() -> None:
    lines = (GOLDEN / "frames.journal").read_bytes().splitlines(keepends=True)
    header, one, unknown, operation, view = map(decode_line, lines)
    assert header == HEADER
    assert isinstance(one, Frame)
    assert isinstance(unknown, Frame)
    assert bytes(one.records[0].record) == LINE
    assert bytes(unknown.records[0].record) == UNKNOWN
    assert isinstance(operation, Frame)
    assert [record.log for record in operation.records] == [OPERATIONS_LOG, "operations/mbp-3f2a"]
    assert (operation.requested_by, operation.reason) == ("Reviewer", "noise")
    assert view == VIEW


@given(st.lists(bodies, min_size=1, max_size=3), numbers)
def test_record_bytes_come_back_exactly(texts: list[str], number: int) -> None:
    lines = [
        encode_record(record_of(Draft(author="A", body=text), n, AT, "i"))
        for n, text in enumerate(texts, 1)
    ]
    encoded = encode_frame(record_frame(*lines, number=number))
    assert encoded.count(b"\n") == 1
    assert frame_line_ok(encoded)
    decoded = decode_line(encoded)
    assert isinstance(decoded, Frame)
    assert decoded.frame == number
    assert [bytes(record.record) for record in decoded.records] == lines


@given(st.data())
def test_no_torn_or_rotten_line_is_whole(data: st.DataObject) -> None:
    whole = encode_frame(record_frame(LINE))
    torn = whole[: data.draw(st.integers(0, len(whole) - 1))]
    place = data.draw(st.integers(0, len(whole) - 1))
    rotten = bytearray(whole)
    rotten[place] ^= 1 << data.draw(st.integers(0, 7))
    for line in (torn, bytes(rotten)):
        assert not frame_line_ok(line)
        with pytest.raises(Corrupt):
            decode_line(line)


@pytest.mark.parametrize(
    "line", [b"", b"\n", b"\0" * 4096, b"00000000 \n", b"00000000\n", b"0000000  {}\n", b"x" * 99]
)
def test_what_was_never_a_frame_is_corrupt(line: bytes) -> None:
    with pytest.raises(Corrupt):
        decode_line(line)


def checked(payload: bytes) -> bytes:
    return b"%08x %b\n" % (crc32(payload), payload)


@pytest.mark.parametrize(
    "payload",
    [
        b"{}",
        b"[]",
        b"\xff",
        b'{"frame":0,"records":[]}',
        b'{"frame":1}',
        b'{"frame":1,"records":[]}',
        b'{"frame":1,"records":[{"log":"x"}]}',
        b'{"frame":1,"records":[{"log":1,"record":{}}]}',
        (
            b'{"frame":1,"views":[{"room":"r","messages":{},"operations":{}}],"records":[{"log":'
            b'"x","record":{}}]}'
        ),
        b'{"format":1}',
        b'{"format":"1"}',
    ],
)
def test_a_whole_line_of_another_shape_is_corrupt(payload: bytes) -> None:
    assert frame_line_ok(checked(payload))
    with pytest.raises(Corrupt) as caught:
        decode_line(checked(payload))
    assert caught.value.code == "corrupt"


def test_unknown_fields_are_ignored() -> None:
    payload = b'{"frame":1,"color":"red","records":[{"log":"x","record":{},"y":1}]}'
    decoded = decode_line(checked(payload))
    assert isinstance(decoded, Frame)
    assert bytes(decoded.records[0].record) == b"{}"


def test_a_newer_format_is_refused_by_its_own_code() -> None:
    newer = json.loads(encode_header(HEADER)[9:])
    newer["format"] = 2
    with pytest.raises(Corrupt) as caught:
        decode_line(checked(json.dumps(newer, separators=(",", ":")).encode()))
    assert caught.value.code == "newer_format"
    assert caught.value.fields == {"format": 2}


def test_a_transaction_has_a_limit() -> None:
    long = encode_record(record_of(Draft(author="A", body="x" * 262_144), 1, AT, "i"))
    with pytest.raises(InvalidInput, match=str(FRAME_BYTES_MAX)):
        encode_frame(record_frame(*[long] * 129))
    assert len(encode_frame(record_frame(*[long] * 120))) < FRAME_BYTES_MAX
