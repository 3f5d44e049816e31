"""The JSON documents of those who are here: `rooms who` and `rooms pins`."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec

from agent_chatroom_ledger.cli.schemabase import Shape, Time


class PresenceShape(Shape):
    """A name and who lives under it; with --all also one that nobody does, with empty fields.

    `reach` says how soon a message reaches it: it wakes somebody, is read at the next turn, or is
    queued until somebody looks.
    """

    name: str
    self: Annotated[bool, msgspec.Meta(description="whether that is you")]
    live: bool
    reach: Literal["wakes", "next turn", "queued"]
    client: str
    process: Annotated[int, msgspec.Meta(description="the client's process id, 0 for nobody")]
    directory: str
    pane: str | None
    model: str | None
    since: Time | None
    waiting: Annotated[
        int | None,
        msgspec.Meta(description="messages not handed over yet; null: the receipts are damaged"),
    ]


class WhoDocument(Shape):
    """Your own name, what said it, and who is here.

    `warnings` say which pins were not followed, and why what waits could not be counted.
    """

    name: str
    source: str
    warnings: list[str]
    agents: list[PresenceShape]


class PinShape(Shape):
    """A pin, and what it does now; `process` is the id of the process that has claimed it."""

    key: Annotated[str, msgspec.Meta(description="session:ID, pane:ID or cwd:DIRECTORY")]
    name: str
    set_at: Time
    set_by: str
    state: Literal["followed", "overridden", "ambiguous", "taken", "stale", "waiting"]
    note: str
    process: int | None


class PinsDocument(Shape):
    """The pins, by key."""

    pins: list[PinShape]


class PinnedDocument(Shape):
    """What was changed; `left` are the rooms that list a name which was given up."""

    key: str
    pin: PinShape | None
    changed: bool
    before: str | None
    left: list[str]
