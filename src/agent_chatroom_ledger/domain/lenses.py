"""Lenses: what one reader should see of a room now, computed when asked and never stored."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from agent_chatroom_ledger.domain.policy import StandIn
from agent_chatroom_ledger.domain.records import Message

if TYPE_CHECKING:
    from collections.abc import Iterable

    from agent_chatroom_ledger.domain.policy import Policy

LensItem: TypeAlias = Message | StandIn


def lens(messages: Iterable[Message], policy: Policy) -> list[LensItem]:
    """Return the messages that a policy leaves, with each stand-in after the message it belongs to.

    The messages come in canonical order, all of a room or some of it. A stand-in appears when the
    message that it stands after is among them, whether or not that one is left out itself.
    """
    anchors = policy.by_anchor()
    items: list[LensItem] = []
    for message in messages:
        if not policy.excludes(message.origin, message.n):
            items.append(message)
        if anchors:
            items.extend(anchors.get((message.origin, message.n), ()))
    return items
