"""Finding a room by whatever it is called, and listing the rooms there are."""

from __future__ import annotations

import re
import uuid
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Literal

import msgspec

from agent_chatroom_ledger.domain.clock import to_datetime
from agent_chatroom_ledger.domain.display import shown_whole
from agent_chatroom_ledger.domain.names import crowd_directory
from agent_chatroom_ledger.errors import Conflict, InvalidInput, LedgerError, NotFound
from agent_chatroom_ledger.room import Room
from agent_chatroom_ledger.storage import reading
from agent_chatroom_ledger.storage.reading import ROOMS
from agent_chatroom_ledger.storage.roomreader import RoomReader

if TYPE_CHECKING:
    from collections.abc import Iterator

    from agent_chatroom_ledger.ledger import Ledger
    from agent_chatroom_ledger.storage.index import RoomRow

_CHAT_ID = re.compile(r"chat_([0-9a-f]{32})\Z", re.ASCII)


class RoomSummary(msgspec.Struct, frozen=True, kw_only=True):
    """A room in a list: who it is, and its newest record in each origin.

    ``last`` is the number of the newest message in the origin that created the room, ``last_at``
    the time of the newest message of all; 0 and None while the room is empty.
    """

    id: str
    title: str
    path: str
    folder: str
    slug: str
    members: tuple[str, ...]
    origin: str
    created_at: datetime
    created_by: str
    positions: dict[str, int]
    last: int
    last_at: datetime | None
    status: str = "active"


def find_room(ledger: Ledger, name: str) -> Room:
    """Find a room as ``Ledger.room`` says: an active one, else one that is archived."""
    if not str(name).strip():
        raise InvalidInput("A room is named by path, slug, title or id.", field="room")
    wanted = shown_whole(str(name).strip().rstrip("/"))
    source, overlay = ledger.look()
    for path in _paths_of(wanted):
        if reading.is_room(source, path, overlay):
            return _at(ledger, RoomReader(source, overlay, path))
    # The index follows the journal, and somebody may have removed a room with plain git since.
    found = [row for row in _search(ledger, wanted) if reading.is_room(source, row.path, overlay)]
    if not found:
        from agent_chatroom_ledger.archives import archived_under

        archived = archived_under(ledger, wanted)
        if len(archived) == 1:
            return Room(ledger, archived[0].path, tombstone=archived[0])
        if archived:
            raise Conflict(
                f"{len(archived)} archived rooms are called {name[:80]!r}; name one by its id.",
                code="ambiguous",
                room=str(name)[:200],
                candidates=[tombstone.id for tombstone in archived[:10]],
            )
    if len(found) != 1:
        raise _not_one(ledger, name, found)
    return Room(ledger, found[0].path, room_id=found[0].id)


def _at(ledger: Ledger, reader: RoomReader) -> Room:
    """Return the room that lies at a path now, and no other that may come to lie there."""
    try:
        return Room(ledger, reader.room, reader.state())
    except LedgerError:
        return Room(ledger, reader.room)  # whoever wants to know more of it is told


def list_rooms(
    ledger: Ledger, at: str | datetime | None, status: Literal["active", "archived", "all"]
) -> list[RoomSummary]:
    """Return the rooms of a status, by path, as they are now or were at a commit or time."""
    found = _active(ledger, at) if status != "archived" else []
    if status != "active":
        from agent_chatroom_ledger.archives import tombstones

        source = ledger.look()[0] if at is None else ledger.source_at(at)
        for stone in tombstones(source):
            reader = RoomReader(ledger.source_at(stone.commit), None, stone.path)
            found.append(msgspec.structs.replace(_summary_of(reader), status="archived"))
    return sorted(found, key=lambda summary: (summary.path, summary.id))


def _active(ledger: Ledger, at: str | datetime | None) -> list[RoomSummary]:
    if at is not None:
        source = ledger.source_at(at)
        return [_summary_of(RoomReader(source, None, path)) for path in reading.rooms(source)]
    rows, heads = ledger.index.rooms_and_heads()
    found = []
    for row in rows:
        mine = heads.get(row.path, ())
        positions = {head.origin: head.last for head in mine}
        newest = max((head.last_at for head in mine), default="")
        found.append(_summary(row, positions, newest))
    return found


def _search(ledger: Ledger, name: str) -> list[RoomRow]:
    index = ledger.index
    chat = _CHAT_ID.match(name)
    if chat is not None and (row := index.room_by_id(str(uuid.UUID(hex=chat[1])))):
        return [row]
    if row := index.room_by_id(name):
        return [row]
    if found := index.rooms_by_slug(name) or index.rooms_by_title(name):
        return found
    folder, _, title = name.removeprefix(f"{ROOMS}/").rpartition("/")
    return [row for row in index.rooms_by_title(title) if folder and row.folder == folder]


def _not_one(ledger: Ledger, name: str, found: list[RoomRow]) -> LedgerError:
    if found:
        return Conflict(
            f"{len(found)} rooms are called {name[:80]!r}; name one by its path.",
            code="ambiguous",
            room=name[:200],
            candidates=[row.path.removeprefix(f"{ROOMS}/") for row in found[:10]],
        )
    nearest = ledger.index.candidates(name[:200])
    return NotFound(
        f"There is no room {name[:80]!r}.",
        room=name[:200],
        candidates=[row.path.removeprefix(f"{ROOMS}/") for row in nearest],
    )


def _paths_of(name: str) -> Iterator[str]:
    """Yield the paths that a name can stand for."""
    plain = name.removeprefix(f"{ROOMS}/")
    yield f"{ROOMS}/{plain}"
    folder, _, slug = plain.rpartition("/")
    crowded = f"{folder}/{crowd_directory(slug)}/{slug}".lstrip("/")
    yield f"{ROOMS}/{crowded}"


def _summary(row: RoomRow | Any, positions: dict[str, int], last_at: str) -> RoomSummary:  # noqa: ANN401 - a row or a state
    return RoomSummary(
        id=row.id,
        title=row.title,
        path=row.path,
        folder=row.folder,
        slug=row.slug,
        members=row.members,
        origin=row.origin,
        created_at=to_datetime(row.created_at),
        created_by=row.created_by,
        positions=positions,
        last=positions.get(row.origin, 0),
        last_at=to_datetime(last_at) if last_at else None,
    )


def _summary_of(reader: RoomReader) -> RoomSummary:
    state = reader.state()
    newest = max((m.at for m in reader.newest_of_each()), default=None)
    at = "" if newest is None else newest.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    return _summary(state, reader.positions(), at)
