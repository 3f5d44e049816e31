"""The rules that a stored record must keep, told from its line alone (docs/formats.md, "Record").

A writer checks drafts before it makes records of them. Whoever takes records from elsewhere asks
here whether a writer that keeps the rules could have written the line.
"""

from __future__ import annotations

from typing import Final

import msgspec

from agent_chatroom_ledger.domain.clock import to_micros
from agent_chatroom_ledger.domain.drafts import Draft, check_draft, check_text
from agent_chatroom_ledger.domain.records import Record, decode_record, encode_record
from agent_chatroom_ledger.errors import InvalidInput
from agent_chatroom_ledger.limits import ID_CHARS_MAX, RECORD_BYTES_MAX

_OBJECT_DECODER: Final = msgspec.json.Decoder(dict[str, msgspec.Raw])
_KNOWN: Final = frozenset(Record.__struct_fields__)


def check_line(line: bytes) -> Record:
    """Return the record of a line, without its line feed, that keeps the rules.

    Raises Corrupt for what is no record, and InvalidInput, naming field and limit, for a record
    that no writer makes. Fields that this version does not know are allowed.
    """
    if len(line) > RECORD_BYTES_MAX:
        raise InvalidInput(
            f"a record has at most {RECORD_BYTES_MAX} bytes, not {len(line)}",
            limit=RECORD_BYTES_MAX,
            size=len(line),
        )
    record = decode_record(line)
    check_text(record.id, "id", ID_CHARS_MAX)
    to_micros(record.at)
    check_draft(
        Draft(
            author=record.author,
            body=record.body,
            kind=record.kind,
            to=record.to,
            mentions=record.mentions,
            reply_to=record.reply_to,
            correlation=record.correlation,
            cause=record.cause,
            status=record.status,
            data=record.data,
            said_at=record.said_at,
            id=record.id,
            artifacts=record.artifacts,
            placed_from=record.placed_from,
        )
    )
    if encode_record(record) != line and not _OBJECT_DECODER.decode(line).keys() - _KNOWN:
        raise InvalidInput("a record's line is laid out as no writer lays it out", field="line")
    return record
