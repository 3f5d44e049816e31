"""The JSON documents of what has been: the log of commits, and differences between them."""

from __future__ import annotations

from typing import Annotated

import msgspec

from agent_chatroom_ledger.cli.schemabase import (
    FullRef,
    MessageShape,
    RoomRef,
    Shape,
    StandInShape,
    Time,
)


class LogItem(Shape):
    """A commit; `frame` is null for one that the ledger did not make, `patch` with --patch."""

    commit: str
    at: Annotated[str, msgspec.Meta(description="when it was written, UTC, in seconds")]
    said_at: Annotated[str, msgspec.Meta(description="when it was said, UTC, in seconds")]
    author: str
    email: str
    subject: str
    rooms: list[str]
    kinds: list[str]
    messages: list[FullRef]
    operations: list[FullRef]
    records: list[Annotated[str, msgspec.Meta(description="the id of a record")]]
    frame: int | None
    requested_by: str
    reason: str
    patch: str | None = None


class LogDocument(Shape):
    """The commits, newest first."""

    entries: list[LogItem]


class DiffMessages(Shape):
    """Messages added, oldest first; `missing` are those that only the first commit has."""

    added: list[MessageShape]
    missing: list[str]


class DiffPolicy(Shape):
    """What is left out now and was not, what is shown again, and the stand-ins that changed."""

    excluded: list[str]
    included: list[str]
    standins_added: list[StandInShape]
    standins_removed: list[StandInShape]


class DiffMembers(Shape):
    """Who joined, and who left."""

    added: list[str]
    removed: list[str]


class DiffVersion(Shape):
    """The versions of one message: set, changed or removed."""

    message: FullRef
    change: str


class DiffOperation(Shape):
    """An operation that was carried out in between, in words."""

    ref: FullRef
    at: Time
    by: str
    kind: str
    text: str


class DiffDocument(Shape):
    """A room at two commits; `created` and `gone` say that only one of them has it."""

    room: RoomRef
    before: str
    after: str
    created: bool
    gone: bool
    messages: DiffMessages
    policy: DiffPolicy
    members: DiffMembers
    versions: list[DiffVersion]
    operations: list[DiffOperation]
