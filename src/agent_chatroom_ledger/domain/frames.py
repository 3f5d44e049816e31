r"""The journal's lines: one per transaction, and a header on top of each generation.

A line is ``<crc32, 8 hex digits> <json>\n``. The bytes of a record inside a frame are those that
go into its log, and come back exactly. Encoding and decoding stand on the path of every post and
every import, and stay lean.
"""

from __future__ import annotations

from typing import Annotated, Final
from zlib import crc32

import msgspec

from agent_chatroom_ledger.errors import Corrupt, InvalidInput
from agent_chatroom_ledger.limits import FRAME_BYTES_MAX

FORMAT: Final = 1

_PREFIX_BYTES: Final = 9
_PREFIX: Final = b"%08x "
_SHOWN_BYTES: Final = 80


class Header(msgspec.Struct, frozen=True, kw_only=True):
    """The first line of a generation.

    ``base`` is the commit that the generation's first frame builds on, ``newest_at`` the newest
    time in the ledger before it, ``last_frame`` the number of the frame before it, and
    ``commit_format`` the version of the function that turns frames into commits.
    """

    format: int = FORMAT
    generation: Annotated[int, msgspec.Meta(ge=0)]
    base: str
    newest_at: str
    last_frame: Annotated[int, msgspec.Meta(ge=0)]
    commit_format: int
    origin: str


class FrameRecord(msgspec.Struct, frozen=True):
    """One record of a frame: the path of its log in the ledger, and its exact bytes."""

    log: str
    record: msgspec.Raw


class ViewMark(msgspec.Struct, frozen=True, kw_only=True):
    """The room whose view is compiled, and the positions in its two logs that the view covers."""

    room: str
    messages: dict[str, int]
    operations: dict[str, int]


class Frame(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One transaction: a frame of records, or a frame of views without a record.

    ``frame`` is its number, dense over all generations. ``at`` is the time of a view frame; a
    record frame has the times of its records. ``requested_by`` and ``reason`` are those of an
    administrative operation.
    """

    frame: Annotated[int, msgspec.Meta(ge=1)]
    at: str = ""
    views: tuple[ViewMark, ...] = ()
    records: tuple[FrameRecord, ...] = ()
    requested_by: str = ""
    reason: str = ""


_ENCODER: Final = msgspec.json.Encoder()
_FRAME_DECODER: Final = msgspec.json.Decoder(Frame)
_HEADER_DECODER: Final = msgspec.json.Decoder(Header)
_HEADER_START: Final = b'{"format":'


def _line(payload: bytes) -> bytes:
    assert b"\n" not in payload, "one line per frame"
    return _PREFIX % crc32(payload) + payload + b"\n"


def encode_header(header: Header) -> bytes:
    """Return a header's line with its line feed."""
    return _line(_ENCODER.encode(header))


def encode_frame(frame: Frame) -> bytes:
    """Return a frame's line with its line feed.

    Raises InvalidInput when the line would have more than 32 MiB.
    """
    line = _line(_ENCODER.encode(frame))
    if len(line) > FRAME_BYTES_MAX:
        message = f"one transaction has at most {FRAME_BYTES_MAX} bytes, not {len(line)}; split it"
        raise InvalidInput(message, field="records", limit=FRAME_BYTES_MAX, size=len(line))
    return line


def frame_line_ok(line: bytes) -> bool:
    """Tell whether a line is whole: it ends in a line feed and its checksum fits.

    The JSON is not looked at.
    """
    return (
        line[-1:] == b"\n"
        and len(line) > _PREFIX_BYTES
        and line[:_PREFIX_BYTES] == _PREFIX % crc32(memoryview(line)[_PREFIX_BYTES:-1])
    )


def decode_line(line: bytes) -> Header | Frame:
    """Return the header or the frame of a line that is given with its line feed.

    Raises Corrupt when the line is torn, its checksum or its content is wrong, or (code
    ``newer_format``) when a newer version of this package wrote it.
    """
    if not frame_line_ok(line):
        message = "a line of the journal is torn or damaged: its checksum does not fit"
        raise Corrupt(message, line=line[:_SHOWN_BYTES].decode(errors="replace"))
    payload = memoryview(line)[_PREFIX_BYTES:-1]
    try:
        if line.startswith(_HEADER_START, _PREFIX_BYTES):
            header = _HEADER_DECODER.decode(payload)
            if header.format <= FORMAT:
                return header
            message = (
                f"the journal has format {header.format}, newer than {FORMAT}: update the package"
            )
            raise Corrupt(message, code="newer_format", format=header.format)
        frame = _FRAME_DECODER.decode(payload)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        message = f"a line of the journal is not a frame: {error}"
        raise Corrupt(message, line=line[:_SHOWN_BYTES].decode(errors="replace")) from None
    if bool(frame.records) == bool(frame.views):
        message = f"frame {frame.frame} of the journal must hold either records or views"
        raise Corrupt(message, frame=frame.frame)
    return frame
