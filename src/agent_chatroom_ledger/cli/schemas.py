"""The JSON documents of the commands, one type each: the contract of `--json`.

The commands build plain objects and do not import this module, so that it costs them nothing; the
tests decode what the commands really print into these types, strictly, and the reference prints
them as JSON Schema.
"""

from __future__ import annotations

from typing import Annotated, Any, Final

import msgspec

Time = Annotated[str, msgspec.Meta(description="UTC, microseconds: 2026-11-29T21:27:42.123456Z")]
Position = Annotated[
    dict[str, int], msgspec.Meta(description="how far: the last number of each origin")
]
Ref = Annotated[
    str, msgspec.Meta(description="57, or 57@origin where the room was created elsewhere")
]
FullRef = Annotated[str, msgspec.Meta(description="57@origin")]


class Shape(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A JSON object with exactly these fields."""


class RoomRef(Shape):
    """Which room."""

    id: str
    title: str
    path: Annotated[str, msgspec.Meta(description="from the ledger's root: rooms/design-review")]


class MessageShape(msgspec.Struct, frozen=True, kw_only=True):
    """A record as it is stored, absent fields left out, with its origin and reference.

    Fields that a newer version has added are kept and shown.
    """

    n: int
    id: str
    at: Time
    author: str
    kind: str
    origin: str
    ref: Ref
    said_at: Time | None = None
    to: list[str] = []
    mentions: list[str] = []
    body: str = ""
    reply_to: str | None = None
    correlation: str | None = None
    cause: str | None = None
    status: str | None = None
    artifacts: list[str] = []
    data: dict[str, Any] | None = None
    placed_from: dict[str, Any] | None = None


class Failure(Shape):
    """What went wrong: a stable code, a sentence, and details."""

    code: str
    message: str
    fields: dict[str, Any]


class ErrorDocument(Shape):
    """Any command that fails."""

    error: Failure


class RootDocument(Shape):
    """Which ledger, and what named it: option, environment, directory or default."""

    root: str
    source: str
    exists: bool


class InitDocument(Shape):
    """The ledger; `created` is false when it was there."""

    root: str
    origin: str
    created: bool


class PostDocument(Shape):
    """The message as it is stored; with an id that was used already, the first one."""

    room: RoomRef
    message: MessageShape


class ReadDocument(Shape):
    """The messages, oldest first."""

    room: RoomRef
    messages: list[MessageShape]


class UnreadItem(Shape):
    """A room with unread messages; `messages` only with --messages."""

    room: RoomRef
    count: int
    position: Position
    newest: Position
    messages: list[MessageShape] | None = None


class UnreadDocument(Shape):
    """The rooms that hold messages past the consumer's cursor."""

    consumer: str
    total: int
    rooms: list[UnreadItem]


class SeenDocument(Shape):
    """Where the cursor stands now, and whether it moved."""

    consumer: str
    room: RoomRef
    position: Position
    moved: bool
    cursor: Annotated[str, msgspec.Meta(description="the cursor's file")]


class CompileDocument(Shape):
    """The pages that were written, and the newest page of the view."""

    room: RoomRef
    pages: list[str]
    visible_path: str | None


class BadLine(Shape):
    """A line that could not be taken as it is."""

    file: str
    line: int
    reason: str


class ImportDocument(Shape):
    """What became of every line; `bad_lines` holds the first 1,000 of `bad_count`."""

    room: RoomRef
    files: int
    lines: int
    messages: int
    events: int
    skipped: int
    bad_count: int
    bad_lines: list[BadLine]


class CompletionDocument(Shape):
    """The completion script."""

    shell: str
    script: str


DOCUMENTS: Final[dict[str, type]] = {
    "post": PostDocument,
    "read": ReadDocument,
    "unread": UnreadDocument,
    "seen": SeenDocument,
    "init": InitDocument,
    "compile": CompileDocument,
    "import irc": ImportDocument,
    "root": RootDocument,
    "completion": CompletionDocument,
}
