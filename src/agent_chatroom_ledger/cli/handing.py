"""Messages as they are handed over: as JSON, and as lines of text."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from agent_chatroom_ledger.cli.shapes import message_shape, room_shape
from agent_chatroom_ledger.cli.transcript import transcript_of_rooms

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from agent_chatroom_ledger.cli.terminal import Paint
    from agent_chatroom_ledger.inbox import Item


def item_shape(item: Item) -> dict[str, Any]:
    """Give a message that is handed over, with its room and what is said of it."""
    return {
        "room": room_shape(item.room),
        "message": message_shape(item.message),
        "addressed": item.addressed,
        "age_seconds": item.age_seconds,
        "prefix": item.prefix,
        "again": item.again,
    }


def item_lines(items: Iterable[Item], paint: Paint) -> Iterator[str]:
    """Show messages, each behind its room's path, its age before its text where it is old."""
    said = []
    for item in items:
        prefix = f"{'[again] ' if item.again else ''}{item.prefix}"
        body = f"{prefix}{item.message.body}"
        said.append((item.room.path, msgspec.structs.replace(item.message, body=body)))
    return transcript_of_rooms(said, paint)
