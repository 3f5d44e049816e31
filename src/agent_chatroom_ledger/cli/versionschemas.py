"""The JSON documents of `rooms versions` and of `rooms lens --for`."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec

from agent_chatroom_ledger.cli.schemabase import (
    FullRef,
    MessageShape,
    PolicyShape,
    Ref,
    RoomRef,
    Shape,
    StandInShape,
    Time,
)

Hash = Annotated[str, msgspec.Meta(description="SHA-256 in hex digits")]


class LevelShape(Shape):
    """One level: its text and its length in characters."""

    message: str
    char_count: int


class BundleShape(Shape):
    """The levels "0" to "9" of a message; `prepared_by` is empty when nobody has set them."""

    message: FullRef
    semantic_prepared: bool
    prepared_by: str
    prepared_at: str
    source_hash: Hash
    bundle_hash: Hash
    levels: dict[str, LevelShape]


class VersionsDocument(Shape):
    """The versions of a message."""

    room: RoomRef
    ref: Ref
    versions: BundleShape


class AuditItemShape(Shape):
    """One message; the reasons are stale_source and not_semantic."""

    room: RoomRef
    ref: Ref
    needs_work: bool
    reasons: list[str]
    semantic_prepared: bool
    prepared_by: str
    prepared_at: str
    source_hash: Hash
    bundle_hash: Hash


class AuditDocument(Shape):
    """Every message of the rooms looked at, and how many need work."""

    semantic: bool
    needs_work_count: int
    messages: list[AuditItemShape]


class PrepDocument(Shape):
    """What an agent has completed, by `chat_<room id>:<message>:<mode>`."""

    agent: str
    room: RoomRef
    ref: Ref
    mode: str
    completed: dict[str, dict[str, Any]]
    cursor: Annotated[str, msgspec.Meta(description="the version cursor's file")]


class VersionLogItem(Shape):
    """One operation; `versions` is null where they were taken back, `commit` until there is one."""

    operation: FullRef
    at: Time
    by: str
    reason: str
    commit: str | None
    versions: BundleShape | None


class VersionLogDocument(Shape):
    """Every operation on the versions of a message, oldest first."""

    room: RoomRef
    ref: Ref
    entries: list[VersionLogItem]


class PieceShape(Shape):
    """A run of text: same, removed or added."""

    change: str
    text: str


class LevelDiffShape(Shape):
    """A level that differs, word by word."""

    level: int
    old_chars: int
    new_chars: int
    pieces: list[PieceShape]


class VersionDiffDocument(Shape):
    """The levels that differ."""

    room: RoomRef
    ref: Ref
    levels: list[LevelDiffShape]


class ConsumerCompile(Shape):
    """How the fit came out: valid, or exhausted when everything is at level 9 and does not fit."""

    status: str
    threshold_chars: int
    compiled_chars: int
    remaining_margin_chars: int
    highest_version_used: int


class ConsumerLensItem(Shape):
    """Either a message, its body that of the version selected, or a stand-in."""

    selected_version: int
    message: MessageShape | None = None
    standin: StandInShape | None = None


class ConsumerLensDocument(Shape):
    """A room fitted into a consumer's budget.

    `compiled_chars` is the length of the rendering in the named format, which is there when the
    format was asked for.
    """

    room: RoomRef
    consumer: str
    consumer_compile: ConsumerCompile
    format: str
    items: list[ConsumerLensItem]
    policy: PolicyShape
    warnings: list[str]
    rendering: str | None
