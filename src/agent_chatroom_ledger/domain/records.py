"""Records, the immutable JSON lines of a log, and messages, which are records as readers get them.

The format is pinned by golden files (tests/domain/golden). Readers keep and ignore fields that they
do not know, so a stored line is handed on as its own bytes and never encoded again.
"""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Final

import msgspec

from agent_chatroom_ledger.domain.clock import TIME_PATTERN, to_datetime
from agent_chatroom_ledger.domain.drafts import KIND_PATTERN, Draft, check_draft
from agent_chatroom_ledger.domain.references import full_ref, parse_ref, parse_refs
from agent_chatroom_ledger.errors import Corrupt, InvalidInput
from agent_chatroom_ledger.limits import AUTHOR_CHARS_MAX, ID_CHARS_MAX, NUMBER_MAX

__all__ = [
    "MESSAGES",
    "OPERATIONS",
    "SPEECH_KINDS",
    "Draft",
    "Message",
    "Record",
    "check_draft",
    "decode_record",
    "encode_record",
    "full_ref",
    "is_history",
    "message_at",
    "message_of",
    "parse_ref",
    "parse_refs",
    "record_of",
    "same_content",
]

MESSAGES: Final = "messages"
OPERATIONS: Final = "operations"
SPEECH_KINDS: Final = ("message", "proposal", "review", "decision", "status", "system")

_Time = Annotated[str, msgspec.Meta(min_length=27, max_length=27, pattern=TIME_PATTERN)]


class Record(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One line of a log; the fields stand in the order of their keys, and an empty one is absent.

    The source of the format is docs/formats.md, "Record". An operation's ``body`` is a short
    sentence in words, and its ``data`` the same for machines.
    """

    n: Annotated[int, msgspec.Meta(ge=1, le=NUMBER_MAX)]
    id: Annotated[str, msgspec.Meta(min_length=1, max_length=ID_CHARS_MAX)]
    at: _Time
    said_at: _Time | None = None
    author: Annotated[str, msgspec.Meta(min_length=1, max_length=AUTHOR_CHARS_MAX)]
    kind: Annotated[str, msgspec.Meta(pattern=KIND_PATTERN)]
    to: tuple[str, ...] = ()
    mentions: tuple[str, ...] = ()
    body: str = ""
    reply_to: str | None = None
    correlation: str | None = None
    cause: str | None = None
    status: str | None = None
    artifacts: tuple[str, ...] = ()
    data: dict[str, Any] | None = None
    placed_from: dict[str, Any] | None = None


class Message(msgspec.Struct, frozen=True, kw_only=True):
    """A record as readers get it: its fields, where it comes from, and the line that is stored.

    ``at`` and ``said_at`` are aware UTC datetimes. ``primary`` says that its origin created the
    room. ``line`` is the stored JSON without its line feed, unknown fields and all.
    """

    n: int
    id: str
    at: datetime
    said_at: datetime | None = None
    author: str
    kind: str
    to: tuple[str, ...] = ()
    mentions: tuple[str, ...] = ()
    body: str = ""
    reply_to: str | None = None
    correlation: str | None = None
    cause: str | None = None
    status: str | None = None
    artifacts: tuple[str, ...] = ()
    data: dict[str, Any] | None = None
    placed_from: dict[str, Any] | None = None
    origin: str
    log: str = MESSAGES
    primary: bool = True
    line: bytes = b""

    @property
    def ref(self) -> str:
        """The short reference: ``57``, or ``57@ci-9a1c`` of an origin other than the room's."""
        return str(self.n) if self.primary else full_ref(self.origin, self.n)

    @property
    def full_ref(self) -> str:
        """The reference as it is stored: ``57@mbp-3f2a``."""
        return full_ref(self.origin, self.n)

    def as_dict(self) -> dict[str, Any]:
        """Return the stored fields, known or not, in their order, then ``origin`` and ``ref``."""
        stored: dict[str, Any] = _ANY_DECODER.decode(self.line)
        return {**stored, "origin": self.origin, "ref": self.ref}


_ENCODER: Final = msgspec.json.Encoder()
_SORTED_ENCODER: Final = msgspec.json.Encoder(order="sorted")
_RECORD_DECODER: Final = msgspec.json.Decoder(Record)
_ANY_DECODER: Final = msgspec.json.Decoder(dict[str, Any])


def is_history(kind: str) -> bool:
    """Tell whether a kind is history: it has no recipients and is never unread."""
    return kind == "event" or kind.startswith("room.")


def encode_record(record: Record) -> bytes:
    """Return a record's line, without the line feed.

    Raises InvalidInput for text that UTF-8 cannot hold, which check_draft refuses beforehand.
    """
    try:
        return _ENCODER.encode(record)
    except UnicodeEncodeError:
        message = "a record holds half a character (a lone surrogate), which UTF-8 cannot hold"
        raise InvalidInput(message, field="body") from None


def decode_record(line: bytes) -> Record:
    """Return the record of a stored line; fields that this version does not know are ignored.

    Raises Corrupt for anything that is not a record of this format.
    """
    try:
        return _RECORD_DECODER.decode(line)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        message = f"not a record: {error}"
        raise Corrupt(message, line=line[:200].decode(errors="replace")) from None


def record_of(draft: Draft, n: int, at: str, record_id: str) -> Record:
    """Return the record of a checked draft with its number, its time and its id."""
    return Record(
        n=n,
        id=record_id,
        at=at,
        said_at=draft.said_at,
        author=draft.author,
        kind=draft.kind,
        to=draft.to,
        mentions=draft.mentions,
        body=draft.body,
        reply_to=draft.reply_to,
        correlation=draft.correlation,
        cause=draft.cause,
        status=draft.status,
        artifacts=draft.artifacts,
        data=draft.data,
        placed_from=draft.placed_from,
    )


def same_content(one: Record, other: Record) -> bool:
    """Tell whether two records say the same, number and time aside.

    The order of keys inside ``data`` is no matter.
    """
    return _content(one) == _content(other)


def _content(record: Record) -> bytes:
    return _SORTED_ENCODER.encode(msgspec.structs.replace(record, n=1, at=""))


def message_at(
    line: bytes,
    origin: str,
    log: str,
    n: int,
    primary: bool,  # noqa: FBT001 - as `message_of` takes it
) -> Message | None:
    """Return the message of line ``n`` of a log; None for a line that is no record of that number.

    Such a line keeps its bytes. Every fold and every reader skips it by this one rule, so that all
    replicas agree, and verify names it.
    """
    try:
        message = message_of(line, origin, log, primary)
    except Corrupt:
        return None
    return message if message.n == n else None


def message_of(
    line: bytes,
    origin: str,
    log: str,
    primary: bool,  # noqa: FBT001 - a fact about the origin, given by place or by name
) -> Message:
    """Return the message of a stored line: ``log`` is ``messages`` or ``operations``.

    Raises Corrupt for a line that is not a record; readers skip such a line, and verify names it.
    """
    record = decode_record(line)
    try:
        at = to_datetime(record.at)
        said_at = None if record.said_at is None else to_datetime(record.said_at)
    except InvalidInput as error:
        raise Corrupt(error.message, line=line[:200].decode(errors="replace")) from None
    return Message(
        n=record.n,
        id=record.id,
        at=at,
        said_at=said_at,
        author=record.author,
        kind=record.kind,
        to=record.to,
        mentions=record.mentions,
        body=record.body,
        reply_to=record.reply_to,
        correlation=record.correlation,
        cause=record.cause,
        status=record.status,
        artifacts=record.artifacts,
        data=record.data,
        placed_from=record.placed_from,
        origin=origin,
        log=log,
        primary=primary,
        line=line,
    )
