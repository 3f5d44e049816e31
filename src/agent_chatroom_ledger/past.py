"""Rooms as they stood at a commit: found there when they are not here any more."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agent_chatroom_ledger.errors import Conflict, NotFound
from agent_chatroom_ledger.room import Room
from agent_chatroom_ledger.storage import reading
from agent_chatroom_ledger.storage.reading import ROOMS
from agent_chatroom_ledger.storage.roomreader import RoomReader

if TYPE_CHECKING:
    from datetime import datetime

    from agent_chatroom_ledger.ledger import Ledger


def room_at(ledger: Ledger, name: str, at: str | datetime) -> Room:
    """Find a room that there is now, or else one that there was at a commit or time.

    The second is found by path, id, slug or title, and can be read at that commit only. NotFound
    when there is none, Conflict (code ``ambiguous``) when several bore the name.
    """
    try:
        return ledger.room(name)
    except NotFound:
        source = ledger.source_at(at)
        wanted = name.strip().removeprefix(f"{ROOMS}/").strip("/")
        found = []
        for path in reading.rooms(source):
            state = RoomReader(source, None, path).state()
            if path == f"{ROOMS}/{wanted}":
                return Room(ledger, path, state)
            if wanted in {state.id, state.slug, state.title}:
                found.append(Room(ledger, path, state))
        if len(found) > 1:
            raise Conflict(
                f"{len(found)} rooms were called {name[:80]!r}; name one by its path.",
                code="ambiguous",
                room=name[:200],
                candidates=[room.path.removeprefix(f"{ROOMS}/") for room in found[:10]],
            ) from None
        if not found:
            raise
        return found[0]
