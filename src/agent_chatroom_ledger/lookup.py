"""Finding messages of the whole ledger: by id, by place, or by what they belong to."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agent_chatroom_ledger.domain.display import shown_whole
from agent_chatroom_ledger.domain.order import order_key
from agent_chatroom_ledger.errors import Conflict, InvalidInput, NotFound
from agent_chatroom_ledger.room import Room
from agent_chatroom_ledger.storage import reading

if TYPE_CHECKING:
    from agent_chatroom_ledger.domain.records import Message
    from agent_chatroom_ledger.ledger import Ledger

_SHOWN_MAX = 10


def find_message(ledger: Ledger, name: str, me: str = "") -> tuple[Room, Message]:
    """Return the message that bears an id, or stands at ``ROOM#N``, and its room.

    An id is unique in its room, and several rooms may hold it: copies of one message that was
    placed, and ids that somebody chose. Then the one that ``me`` said or was addressed by is meant,
    else the one in a room that lists ``me``; if that leaves several, it is a Conflict (code
    ``ambiguous``) whose ``candidates`` are their places. NotFound when there is none.
    """
    name = shown_whole(name)
    if not name.strip():
        raise InvalidInput("A message is named by its id, or as ROOM#N.", field="id")
    found = _bearers(ledger, name)
    if not found:
        return _placed(ledger, name)
    for near in (
        found,
        [(room, message) for room, message in found if me in {message.author, *message.to}],
        [(room, message) for room, message in found if me in room.members],
    ):
        if len(near) == 1:
            return near[0]
    places = [place_of(room, message) for room, message in found[:_SHOWN_MAX]]
    raise Conflict(
        f"{len(found)} messages bear the id {name[:80]!r}; name one by its place: "
        f"{', '.join(places)}.",
        code="ambiguous",
        id=name,
        candidates=places,
    )


def correlated(ledger: Ledger, correlation: str) -> list[tuple[Room, Message]]:
    """Return the messages that bear a correlation, oldest first, with the rooms they are in.

    Archived rooms are read through; of the others the index knows the places.
    """
    from agent_chatroom_ledger.archives import tombstones

    index = ledger.index
    index.ask(lambda _link: None, thorough=True)
    found: dict[tuple[str, str], tuple[Room, Message]] = {}
    for path, kind, origin, n in index.correlated(correlation):
        room = Room(ledger, path)
        message = room.reader().find(origin, n) if kind == reading.MESSAGES else None
        if message is None or message.correlation != correlation:
            continue
        # Of one id from two origins the later is folded away.
        other = found.get((path, message.id))
        if other is None or order_key(message) < order_key(other[1]):
            found[path, message.id] = room, message
    pairs = list(found.values())
    for stone in tombstones(ledger.look()[0]):
        room = Room(ledger, stone.path, tombstone=stone)
        pairs += [(room, one) for one in room.messages() if one.correlation == correlation]
    return sorted(pairs, key=lambda pair: (pair[1].at, pair[0].path, pair[1].n))


def place_of(room: Room, message: Message) -> str:
    """Return where a message stands, ``team/review#57``, as ``find_message`` takes it."""
    return f"{room.path.removeprefix('rooms/')}#{message.ref}"


def _bearers(ledger: Ledger, record_id: str) -> list[tuple[Room, Message]]:
    """Return the messages that bear an id, at most one of each room."""
    source, overlay = ledger.look()
    found: dict[str, list[Message]] = {}
    for path, origin, n in ledger.index.bearers_of(record_id):
        if reading.is_room(source, path, overlay):
            message = Room(ledger, path).reader().find(origin, n)
            if message is not None and message.id == record_id:
                found.setdefault(path, []).append(message)
    # Of one id from two origins the later is folded away.
    return [(Room(ledger, path), min(found[path], key=order_key)) for path in sorted(found)]


def _placed(ledger: Ledger, name: str) -> tuple[Room, Message]:
    path, mark, ref = name.rpartition("#")
    if mark and path:
        try:
            room = ledger.room(path)
            return room, room.message(ref)
        except (NotFound, InvalidInput):
            pass
    raise NotFound(
        f"There is no message with the id {name[:80]!r}. `rooms read ROOM --json` shows the ids "
        "of a room's messages, and ROOM#N names one by its number.",
        id=name[:200],
    )
