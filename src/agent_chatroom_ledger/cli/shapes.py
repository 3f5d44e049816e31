"""The parts that the JSON documents of several commands share; `schemas` documents them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from datetime import datetime

    from agent_chatroom_ledger.domain.policy import Policy, StandIn
    from agent_chatroom_ledger.domain.records import Message
    from agent_chatroom_ledger.room import Room


def room_shape(room: Room) -> dict[str, Any]:
    """Name a room: id, title and path."""
    return {"id": room.id, "title": room.title, "path": room.path}


def time_text(when: datetime) -> str:
    """Give a time in the form that records have."""
    from agent_chatroom_ledger.domain.clock import from_datetime

    return from_datetime(when)


def message_shape(message: Message) -> dict[str, Any]:
    """Give a message as it is stored, unknown fields and all, with its origin and reference."""
    return message.as_dict()


def policy_shape(policy: Policy) -> dict[str, Any]:
    """Give what a policy leaves out, as full references and ranges, and its stand-ins."""
    from agent_chatroom_ledger.domain.references import range_ref

    return {
        "excluded": [
            range_ref(origin, first, last)
            for origin, ranges in sorted(policy.excluded.items())
            for first, last in ranges
        ],
        "standins": [standin_shape(standin) for standin in policy.standins],
    }


def standin_shape(standin: StandIn) -> dict[str, Any]:
    """Give a stand-in; the messages that it concerns are full references."""
    from agent_chatroom_ledger.domain.references import full_ref

    return {
        "id": standin.id,
        "replaces": [full_ref(origin, n) for origin, n in standin.replaces],
        "insert_after": full_ref(*standin.insert_after),
        "speaker": standin.speaker,
        "kind": standin.kind,
        "body": standin.body,
        "at": standin.at,
    }
