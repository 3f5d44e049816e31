"""The JSON documents of those who talk: what was sent, who joined, who left."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec

from agent_chatroom_ledger.cli.schemabase import MessageShape, RoomRef, Shape


class RecipientShape(Shape):
    """One whom a message goes to: how soon it is read, and whether anybody is live of that name."""

    name: str
    reach: Literal["wakes", "next turn", "queued"]
    live: bool
    note: Annotated[str, msgspec.Meta(description="a sentence, where there is more to say")]


class PostDocument(Shape):
    """The message as it is stored, and whom it goes to; with an id used already, the first one."""

    room: RoomRef
    message: MessageShape
    recipients: list[RecipientShape]
    notes: Annotated[list[str], msgspec.Meta(description="what the sender should know")]


class JoinDocument(Shape):
    """Whether the member list changed; `event` is the line that says so."""

    room: RoomRef
    member: str
    joined: bool
    event: MessageShape | None


class LeaveDocument(Shape):
    """Whether the member list changed; `discarded` counts what waited to be handed over."""

    room: RoomRef
    member: str
    left: bool
    event: MessageShape | None
    discarded: int
