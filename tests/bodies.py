"""What an inbox gives, as the bodies of its messages."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from agent_chatroom_ledger.inbox import peek, take

if TYPE_CHECKING:
    from agent_chatroom_ledger import Ledger


def taken(ledger: Ledger, name: str, **options: Any) -> list[str]:
    """Hand over, and return the bodies."""
    with take(ledger, name, **options) as handover:
        handover.confirm()
        return [item.message.body for item in handover]


def looked(ledger: Ledger, name: str, **options: Any) -> list[str]:
    """Look without handing over, and return the bodies."""
    return [item.message.body for item in peek(ledger, name, **options)]
