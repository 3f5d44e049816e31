"""What the tools give back: dataclasses, whose JSON Schemas the tool list carries.

An optional field is left out where there is nothing to say, so that an answer costs a model no
more words than it has content.
"""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True, kw_only=True)
class Present:
    """Somebody who is here, or whose mail waits; `reach`: wakes, next turn or queued."""

    name: str
    live: bool
    reach: str
    waiting: int
    client: str | None = None
    directory: str | None = None
    model: str | None = None
    since: str | None = None


@dataclass(frozen=True, kw_only=True)
class WhoResult:
    """rooms_who: one's own name, and the others."""

    you: str
    others: list[Present]
    notes: list[str] = field(default_factory=list)


@dataclass(frozen=True, kw_only=True)
class ListedRoom:
    """One room of a list; `last` is the number of its newest message."""

    room: str
    title: str
    members: list[str]
    last: int
    waiting: int
    member: bool


@dataclass(frozen=True, kw_only=True)
class ListResult:
    """rooms_list: rooms by path; `next` is given as `after` for those that follow."""

    rooms: list[ListedRoom]
    next: str | None = None


@dataclass(frozen=True, kw_only=True)
class CreateResult:
    """rooms_create."""

    room: str
    title: str
    created: bool
    joined: bool
    members: list[str]
    notes: list[str] = field(default_factory=list)


@dataclass(frozen=True, kw_only=True)
class JoinResult:
    """rooms_join: `joined` is false for a member already."""

    room: str
    joined: bool
    last: int


@dataclass(frozen=True, kw_only=True)
class LeaveResult:
    """rooms_leave: how many waiting messages were dropped."""

    room: str
    left: bool
    discarded: int


@dataclass(frozen=True, kw_only=True)
class Recipient:
    """How soon one of those it goes to reads it."""

    name: str
    reach: str
    note: str | None = None


@dataclass(frozen=True, kw_only=True)
class SentResult:
    """rooms_post, rooms_dm, rooms_reply_all."""

    room: str
    ref: str
    id: str
    recipients: list[Recipient]
    notes: list[str] = field(default_factory=list)


@dataclass(frozen=True, kw_only=True)
class Said:
    """One message: `author` said `body`; `kind` event or system is the ledger's own record."""

    room: str
    ref: str
    id: str
    at: str
    author: str
    kind: str
    body: str
    to: list[str] = field(default_factory=list)
    reply_to: str | None = None
    correlation: str | None = None
    cause: str | None = None


@dataclass(frozen=True, kw_only=True)
class ReadResult:
    """rooms_read: `next` is given as `since` for the messages that follow."""

    messages: list[Said]
    next: str | None = None


@dataclass(frozen=True, kw_only=True)
class Handed(Said):
    """A message of the inbox; `age` for an old one, `again` for one that was given before."""

    age: str | None = None
    again: bool = False


@dataclass(frozen=True, kw_only=True)
class InboxResult:
    """rooms_inbox: the messages, and how many more wait."""

    messages: list[Handed]
    waiting: int


@dataclass(frozen=True, kw_only=True)
class SeenResult:
    """rooms_seen: how far the room is dealt with now."""

    room: str
    through: str


@dataclass(frozen=True, kw_only=True)
class Receipt:
    """What became of a message at one recipient: times, and the ids of its answers."""

    name: str
    handed_over: str | None = None
    seen: bool = False
    seen_at: str | None = None
    answered: str | None = None
    answers: list[str] = field(default_factory=list)


@dataclass(frozen=True, kw_only=True)
class ReceiptsResult:
    """rooms_receipts."""

    id: str
    room: str
    recipients: list[Receipt]
