"""Rooms as they stood at a commit: found there when they are not here any more."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agent_chatroom_ledger.domain.rooms import ROOM_CREATE
from agent_chatroom_ledger.domain.tombstones import ROOM_MOVE
from agent_chatroom_ledger.errors import Conflict, NotFound
from agent_chatroom_ledger.room import Room
from agent_chatroom_ledger.storage import reading
from agent_chatroom_ledger.storage.reading import OPERATIONS, ROOMS
from agent_chatroom_ledger.storage.roomreader import RoomReader

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime

    from agent_chatroom_ledger.ledger import Ledger
    from agent_chatroom_ledger.storage.source import Source


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


def reader_at(room: Room, at: str | datetime) -> RoomReader:
    """Return a reader of a room at a commit or time, wherever it lay then.

    NotFound when it was not there, though another room lay at its path.
    """
    source = room.ledger.source_at(at)
    reader = reader_in(source, room)
    if reader is None:
        when = at[:80] if isinstance(at, str) else at.isoformat()
        message = f"{room.path} was not there at {when}; choose another commit or time."
        if reading.is_room(source, room.path):
            other = RoomReader(source, None, room.path).state()
            message = f"{room.path} was another room at {when}, which its id names: {other.id}."
        raise NotFound(message, room=room.path, at=when)
    return reader


def reader_in(source: Source, room: Room) -> RoomReader | None:
    """Return a reader of a room in the files of a commit; None when it is not there."""
    for path in _paths(room):
        if reading.is_room(source, path):
            try:
                state = RoomReader(source, None, path).state()
            except NotFound:
                continue
            if state.id == room.id:
                return RoomReader(source, None, path, state.origin)
    return None


def _paths(room: Room) -> Iterator[str]:
    """Yield where a room lies now, and then where it ever lay: its own records say so."""
    yield room.path
    for operation in room.reader().descending(log=OPERATIONS):
        if operation.kind in {ROOM_CREATE, ROOM_MOVE}:
            yield str((operation.data or {}).get("path"))
