"""Placements: messages copied into another room, each with where it came from.

A copy keeps speaker, kind, text, mentions, data and attachments, and says when it was really said.
Its id follows from what was placed, where from and why: so the same message placed again for the
same reason is known by its id, in this clone and in any other.
"""

from __future__ import annotations

from hashlib import sha256
from typing import TYPE_CHECKING, Any, Final

from msgspec import structs

from agent_chatroom_ledger.domain.clock import from_datetime
from agent_chatroom_ledger.domain.drafts import Draft, check_draft
from agent_chatroom_ledger.domain.rooms import check_reason
from agent_chatroom_ledger.errors import InvalidInput

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from agent_chatroom_ledger.domain.records import Message

MESSAGES_PLACE: Final = "messages.place"
MESSAGES_DUPLICATE: Final = "messages.duplicate"

_DONE: Final = {MESSAGES_PLACE: "Placed", MESSAGES_DUPLICATE: "Duplicated"}


def require_reason(reason: str) -> str:
    """Return why messages are placed; InvalidInput when nothing is said, or not in one line."""
    if not reason.strip():
        raise InvalidInput("say why the messages are placed: a reason is required", field="reason")
    return check_reason(reason)


def copy_id(source_room: str, message: Message, reason: str) -> str:
    """Return the id of a message's copy, which depends on what is copied, and why."""
    named = f"{source_room}\0{message.full_ref}\0{reason}"
    return f"placed-{sha256(named.encode()).hexdigest()[:40]}"


def copy_draft(message: Message) -> Draft:
    """Return what a copy of a message says, wherever and why ever it is placed.

    To whom the message was addressed, and what it replied to, are matters of its own room.
    """
    at = from_datetime(message.at)
    return Draft(
        author=message.author,
        body=message.body,
        kind=message.kind,
        mentions=message.mentions,
        status=message.status,
        data=message.data,
        artifacts=message.artifacts,
        said_at=at if message.said_at is None else from_datetime(message.said_at),
        placed_from={
            "message": message.full_ref,
            "record": message.id,
            "speaker": message.author,
            "at": at,
        },
    )


def with_provenance(draft: Draft, provenance: Mapping[str, Any]) -> Draft:
    """Return a copy that also says what is the same for all messages of one placement.

    That is the source room, the reason, who placed it and when, and the operation.
    """
    return structs.replace(draft, placed_from={**(draft.placed_from or {}), **provenance})


def placement_draft(
    kind: str,
    *,
    source: Mapping[str, Any],
    target: Mapping[str, Any],
    messages: Sequence[str],
    count: int,
    placed: str,
    by: str,
    reason: str,
) -> Draft:
    """Return the operation that both rooms keep of a placement.

    ``messages`` are the references that were asked for, ``placed`` the range of the copies.
    """
    many = f"{count} messages" if count > 1 else "1 message"
    return check_draft(
        Draft(
            author=by,
            kind=kind,
            body=f"{_DONE[kind]} {many} of {source['path']} in {target['path']}",
            data={
                "source": dict(source),
                "target": dict(target),
                "messages": list(messages),
                "count": count,
                "placed": placed,
                "reason": reason,
            },
        )
    )
