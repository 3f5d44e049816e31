"""The types that the JSON documents of the commands are made of; `schemas` has the documents."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec

Time = Annotated[str, msgspec.Meta(description="UTC, microseconds: 2026-11-29T21:27:42.123456Z")]
Position = Annotated[
    dict[str, int], msgspec.Meta(description="how far: the last number of each origin")
]
Ref = Annotated[
    str, msgspec.Meta(description="57, or 57@origin where the room was created elsewhere")
]
FullRef = Annotated[str, msgspec.Meta(description="57@origin")]


class Shape(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """A JSON object with exactly these fields."""


class RoomRef(Shape):
    """Which room."""

    id: str
    title: str
    path: Annotated[str, msgspec.Meta(description="from the ledger's root: rooms/design-review")]


class MessageShape(msgspec.Struct, kw_only=True):
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


class StandInShape(Shape):
    """A text shown in the place of messages."""

    id: str
    replaces: list[FullRef]
    insert_after: FullRef
    speaker: str
    kind: str
    body: str
    at: Time


class PolicyShape(Shape):
    """What is left out, as references and ranges (3@origin, 5-9@origin), and the stand-ins."""

    excluded: list[str]
    standins: list[StandInShape]
