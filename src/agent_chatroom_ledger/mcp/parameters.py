"""What the tools take: one struct each, whose docstring is no description but a reminder.

Names, types and bounds are the contract; the JSON Schemas of the tool list are made from them.
"""

from __future__ import annotations

from typing import Annotated, TypeAlias

import msgspec

from agent_chatroom_ledger.limits import (
    DELIVER_MAX,
    DIRECT_NAMES_MAX,
    MCP_LIST_MAX,
    MCP_WAIT_SECONDS_MAX,
)


class Parameters(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The arguments of one tool."""


# Texts in the schema; a plain number is taken as well, since models write what they count so.
Ref: TypeAlias = Annotated[str | int, msgspec.Meta(description="57 or 57@origin")]
Room: TypeAlias = Annotated[str, msgspec.Meta(description="path, title or id")]
Names: TypeAlias = Annotated[list[str], msgspec.Meta(min_length=1, max_length=DIRECT_NAMES_MAX)]
Limit: TypeAlias = Annotated[int, msgspec.Meta(ge=1, le=MCP_LIST_MAX)]
Key: TypeAlias = Annotated[str, msgspec.Meta(description="same key again: sent once")]


class Who(Parameters, frozen=True, kw_only=True):
    """rooms_who."""

    all: Annotated[bool, msgspec.Meta(description="also those who are not running")] = False


class List(Parameters, frozen=True, kw_only=True):
    """rooms_list."""

    mine: bool = False
    archived: bool = False
    after: Annotated[str | None, msgspec.Meta(description="next of the page before")] = None
    limit: Limit = MCP_LIST_MAX


class Create(Parameters, frozen=True, kw_only=True):
    """rooms_create."""

    title: str
    members: list[str] = []
    folder: str = ""
    new: Annotated[bool, msgspec.Meta(description="even if the title exists")] = False


class Join(Parameters, frozen=True, kw_only=True):
    """rooms_join."""

    room: Room


class Leave(Parameters, frozen=True, kw_only=True):
    """rooms_leave."""

    room: Room
    keep_queued: bool = False


class Post(Parameters, frozen=True, kw_only=True):
    """rooms_post."""

    room: Room
    body: str
    to: Annotated[list[str], msgspec.Meta(description="whom it is for; all hear it")] = []
    reply_to: Ref | None = None
    kind: Annotated[str, msgspec.Meta(description="status: needs no answer")] = "message"
    correlation: str | None = None
    key: Key | None = None


class Dm(Parameters, frozen=True, kw_only=True):
    """rooms_dm."""

    to: Names
    body: str
    correlation: str | None = None
    key: Key | None = None


class ReplyAll(Parameters, frozen=True, kw_only=True):
    """rooms_reply_all."""

    id: Annotated[str, msgspec.Meta(description="the message's id")]
    body: str
    key: Key | None = None


class Read(Parameters, frozen=True, kw_only=True):
    """rooms_read."""

    room: Room | None = None
    since: Ref | None = None
    last: Limit | None = None
    limit: Limit = 20
    id: str | None = None
    correlation: str | None = None
    at: Annotated[str | None, msgspec.Meta(description="a time or commit")] = None


class Inbox(Parameters, frozen=True, kw_only=True):
    """rooms_inbox."""

    max: Annotated[int, msgspec.Meta(ge=1, le=DELIVER_MAX)] | None = None
    wait_seconds: Annotated[float, msgspec.Meta(ge=0, le=MCP_WAIT_SECONDS_MAX)] = 0
    room: Room | None = None
    peek: Annotated[bool, msgspec.Meta(description="look, take nothing")] = False


class Seen(Parameters, frozen=True, kw_only=True):
    """rooms_seen."""

    room: Room
    through: Ref


class Receipts(Parameters, frozen=True, kw_only=True):
    """rooms_receipts."""

    id: str
