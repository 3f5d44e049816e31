"""Chat rooms for people and agents in one git repository.

Every message is a commit, every reader has a cursor of its own. Start with
``Ledger.open(path, create=True)``.

Names are loaded when they are first used, so that a command which only reads pays for nothing
that it does not use.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from agent_chatroom_ledger.agents import Agent
    from agent_chatroom_ledger.consumers import Consumer, UnreadRoom
    from agent_chatroom_ledger.domain.records import Draft, Message
    from agent_chatroom_ledger.errors import (
        Busy,
        Conflict,
        Corrupt,
        Forbidden,
        InvalidInput,
        LedgerError,
        NotFound,
        NotYetCommitted,
    )
    from agent_chatroom_ledger.ledger import Ledger
    from agent_chatroom_ledger.room import Room

__version__ = "0.1.0"

__all__ = [
    "Agent",
    "Busy",
    "Conflict",
    "Consumer",
    "Corrupt",
    "Draft",
    "Forbidden",
    "InvalidInput",
    "Ledger",
    "LedgerError",
    "Message",
    "NotFound",
    "NotYetCommitted",
    "Room",
    "UnreadRoom",
    "__version__",
]

_HOMES = {
    "Agent": "agents",
    "Busy": "errors",
    "Conflict": "errors",
    "Consumer": "consumers",
    "Corrupt": "errors",
    "Draft": "domain.records",
    "Forbidden": "errors",
    "InvalidInput": "errors",
    "Ledger": "ledger",
    "LedgerError": "errors",
    "Message": "domain.records",
    "NotFound": "errors",
    "NotYetCommitted": "errors",
    "Room": "room",
    "UnreadRoom": "consumers",
}


def __getattr__(name: str) -> object:
    home = _HOMES.get(name)
    if home is None:
        message = f"module {__name__!r} has no attribute {name!r}"
        raise AttributeError(message)
    from importlib import import_module

    value: object = getattr(import_module(f"{__name__}.{home}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
