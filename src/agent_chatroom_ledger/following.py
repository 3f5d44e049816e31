"""Following a ledger: messages as they are posted, in this process or any other."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agent_chatroom_ledger.domain.records import decode_record, is_history, message_of
from agent_chatroom_ledger.domain.tombstones import ROOM_ARCHIVE
from agent_chatroom_ledger.errors import Corrupt
from agent_chatroom_ledger.room import Room
from agent_chatroom_ledger.storage import reading
from agent_chatroom_ledger.storage.opened import new_lines
from agent_chatroom_ledger.storage.reading import MESSAGES, log_path

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from agent_chatroom_ledger.domain.records import Message
    from agent_chatroom_ledger.ledger import Ledger


def changes(
    ledger: Ledger,
    chosen: Room | None,
    since: Mapping[str, int] | None,
) -> Iterator[tuple[Room, Message]]:
    """Yield every message that is posted from the first step on, with its room; it never ends.

    With one room, what lies between the position `since` and now comes first. Nothing of a room
    that was met before is left out: where the journal has let go of frames before we came to them,
    their messages are read from the log. A line that is not a message is skipped, as readers do.
    """
    lines = new_lines(ledger.layout, ledger.settings.poll_ms / 1000)
    # The place in the journal is taken first, so that nothing falls between it and the position.
    next(lines)
    reached: dict[tuple[str, str], int] = {}
    rooms: dict[str, Room] = {}
    if chosen is not None:
        rooms[chosen.path] = chosen
        position = chosen.last_position() if since is None else dict(since)
        reached.update({(chosen.path, origin): n for origin, n in position.items()})
        for message in chosen.reader().after(position):
            reached[chosen.path, message.origin] = message.n
            yield chosen, message
    for log, line in filter(None, lines):
        path, origin = reading.room_of(log), log.rpartition("/")[2]
        if not path and not chosen and (gone := _archived(line)):
            # Another room may be made at its path, with numbers and an origin of its own.
            rooms.pop(gone, None)
            reached = {place: n for place, n in reached.items() if place[0] != gone}
        if log != log_path(path, MESSAGES, origin) or (chosen and path != chosen.path):
            continue
        room = rooms.setdefault(path, Room(ledger, path))
        try:
            message = message_of(line, origin, MESSAGES, origin == room.origin)
        except Corrupt:
            continue
        known = reached.get((path, origin), message.n - 1)
        if message.n <= known:
            continue
        if message.n > known + 1:
            for earlier in _between(room, origin, known, message.n):
                yield room, earlier
        reached[path, origin] = message.n
        yield room, message


def changes_for(ledger: Ledger, name: str) -> Iterator[tuple[Room, Message]]:
    """Yield what others address to a name, or say in a room that lists it, from now on."""
    for room, message in changes(ledger, None, None):
        if is_history(message.kind) or message.author == name:
            continue
        if name in message.to or name in room.members:
            yield room, message


def _archived(line: bytes) -> str:
    """Return the path of the room that a record of the ledger's own log archives, else nothing."""
    try:
        record = decode_record(line)
    except Corrupt:
        return ""
    return str((record.data or {}).get("path")) if record.kind == ROOM_ARCHIVE else ""


def _between(room: Room, origin: str, after: int, before: int) -> Iterator[Message]:
    """Yield the messages of one origin between two numbers, neither of them included."""
    position = {**room.last_position(), origin: after}
    for message in room.reader().after(position):
        if message.origin == origin and message.n < before:
            yield message
