"""What an operation from elsewhere may do to the places of rooms.

The commit path does what an operation says, because a writer has checked it. Whoever takes commits
from elsewhere checks the same here, on the tree that the operation changes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from agent_chatroom_ledger.domain.names import check_room_path, fold_name
from agent_chatroom_ledger.domain.rooms import ROOM_CREATE
from agent_chatroom_ledger.domain.tombstones import (
    ROOM_ARCHIVE,
    ROOM_MOVE,
    ROOM_RESTORE,
    decode_tombstone,
    tombstone_path,
)
from agent_chatroom_ledger.errors import InvalidInput
from agent_chatroom_ledger.storage.layout import room_of_log
from agent_chatroom_ledger.storage.reading import OPERATIONS, is_room

if TYPE_CHECKING:
    from agent_chatroom_ledger.domain.records import Record
    from agent_chatroom_ledger.storage.source import Source


def check_places(source: Source, log: str, record: Record, *, mending: bool = False) -> None:
    """Raise InvalidInput for an operation that may not do to ``source`` what it says.

    ``mending`` allows a room to come back without a tombstone; the caller then compares the result
    with what was there before.
    """
    room = room_of_log(log)
    if log.rpartition("/")[0].rpartition("/")[2] != OPERATIONS and room is not None:
        return
    if room is None:
        if record.kind == ROOM_ARCHIVE:
            _check_archive(source, record)
        elif record.kind == ROOM_RESTORE:
            _check_restore(source, record, mending=mending)
    elif record.kind in (ROOM_CREATE, ROOM_MOVE):
        if _text(record, "path") != room:
            raise InvalidInput(
                f"an operation in {room} gives it another place", code="room_misplaced"
            )
        if not is_room(source, room):
            _check_free(source, room)


def _text(record: Record, field: str) -> str:
    value = (record.data or {}).get(field)
    if not isinstance(value, str):
        raise InvalidInput(f"the operation {record.kind} has no {field}", field=field)
    return value


def _check_archive(source: Source, record: Record) -> None:
    path = _text(record, "path")
    check_room_path(path)
    if not is_room(source, path):
        raise InvalidInput(f"{path} is archived, and is no room", code="room_missing")


def _check_restore(source: Source, record: Record, *, mending: bool) -> None:
    path, before = _text(record, "path"), _text(record, "from")
    commit, room_id = _text(record, "commit"), _text(record, "id")
    _check_free(source, path)
    data = source.read(tombstone_path(room_id))
    if data is None and mending:
        return
    stone = None if data is None else decode_tombstone(data)
    if stone is None or (stone.commit, stone.path) != (commit, before):
        raise InvalidInput(
            f"{path} is restored from what no tombstone names", code="room_missing", room=path
        )


def _check_free(source: Source, path: str) -> None:
    """Check that a room may stand at a path: nothing there, beside it, or around it is in its way.

    What some file systems take for the same name is in its way as well.
    """
    check_room_path(path)
    place = ""
    for part in path.split("/"):
        names = [name.rstrip("/") for name in source.names(place)]
        place = f"{place}/{part}" if place else part
        if place != path and is_room(source, place):
            raise InvalidInput(f"{path} lies in the room {place}", code="folder_is_room")
        folded = fold_name(part)
        for name in names:
            if fold_name(name) == folded and (name != part or place == path):
                raise InvalidInput(
                    f"{path} is in the place of {name!r}, which is there", code="path_taken"
                )
