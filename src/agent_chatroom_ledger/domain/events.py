"""Events of a room's own history: somebody joined, somebody left.

An event has a number like any message, no recipients, and is never unread. What it says follows
from an operation, which its ``cause`` names; the member list follows from the operation alone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal, TypeAlias

from agent_chatroom_ledger.domain.drafts import Draft, check_draft

if TYPE_CHECKING:
    from agent_chatroom_ledger.domain.records import Message

EVENT: Final = "event"
Change: TypeAlias = Literal["joined", "left"]


def event_draft(member: str, change: Change, cause: str) -> Draft:
    """Return what a room's messages keep of a member's coming or going; ``cause`` is a record."""
    return check_draft(
        Draft(
            author=member,
            kind=EVENT,
            body=f"{member} {change} the room",
            cause=cause,
            data={EVENT: change, "member": member},
        )
    )


def event_of(message: Message) -> str:
    """Return what an event says in words, ``Ana left the room``; empty for any other record.

    Only a member's own coming and going counts, said in these words: whoever posts an event by hand
    can put nothing into another's mouth.
    """
    data = message.data or {}
    told = data.get(EVENT)
    words = f"{message.author} {told} the room"
    genuine = (
        message.kind == EVENT
        and told in ("joined", "left")
        and data.get("member") == message.author
        and message.body == words
    )
    return words if genuine else ""
