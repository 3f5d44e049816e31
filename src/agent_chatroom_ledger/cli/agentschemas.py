"""The JSON documents of those who talk: what was sent, who joined, who left."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec

from agent_chatroom_ledger.cli.schemabase import MessageShape, Ref, RoomRef, Shape, Time


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


class HandedShape(Shape):
    """A message that is handed over, and what is said of it."""

    room: RoomRef
    message: MessageShape
    addressed: Annotated[bool, msgspec.Meta(description="whether it names its receiver")]
    age_seconds: int
    prefix: Annotated[
        str, msgspec.Meta(description="to stand before the text of an old one: `[2 h old] `")
    ]
    again: Annotated[
        bool, msgspec.Meta(description="handed over before and not acknowledged since")
    ]


class InboxDocument(Shape):
    """What was handed over, oldest first, and how many messages wait beyond."""

    name: str
    messages: list[HandedShape]
    waiting: int


class WaitDocument(Shape):
    """How many messages wait; with `timed_out` none came, and the status is 124."""

    name: str
    waiting: int
    timed_out: bool


class AnswerShape(Shape):
    """A record that names the message as its cause."""

    room: RoomRef
    id: str
    ref: Ref
    at: Time


class ReceiptShape(Shape):
    """What became of the message at one name; `times`, `door` and `session` tell of the last."""

    name: str
    addressed: bool
    handed_at: Annotated[Time | None, msgspec.Meta(description="first; null for never")]
    last_handed_at: Time | None
    times: int
    door: str
    session: str
    seen: bool
    seen_at: Annotated[
        Time | None, msgspec.Meta(description="known while the cursor stands on the message")
    ]
    answers: list[AnswerShape]


class ReceiptsDocument(Shape):
    """The receipts of one message: addressees, members of its time, then others."""

    room: RoomRef
    message: MessageShape
    receipts: list[ReceiptShape]


class SettingShape(Shape):
    """A setting: its value, whether the file sets it, and the default."""

    key: str
    value: bool | int | str | None
    set: bool
    default: bool | int | str | None


class ConfigDocument(Shape):
    """The settings of the ledger on this machine, and the file that may set them."""

    path: str
    settings: list[SettingShape]
