"""Direct rooms: where the members of a direct message find its history, cursors and audit.

There is one for each set of names, however many ask for it at once. Nobody joins or leaves it, and
it comes back by itself when it was archived: whoever is written to can always be reached.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from agent_chatroom_ledger.creation import Wanted, find_or_create
from agent_chatroom_ledger.domain.direct import (
    DIRECT_FOLDER,
    check_addressees,
    direct_id,
    direct_title,
    is_direct,
)
from agent_chatroom_ledger.domain.names import check_author, numbered_slug
from agent_chatroom_ledger.errors import Conflict
from agent_chatroom_ledger.room import Room
from agent_chatroom_ledger.storage import reading

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from agent_chatroom_ledger.domain.tombstones import Tombstone
    from agent_chatroom_ledger.ledger import Ledger
    from agent_chatroom_ledger.storage.present import Present

# What may be in the way of the folder: a room of that name, or another spelling of it.
_IN_THE_WAY: Final = frozenset({"folder_is_room", "folder_spelling"})
_FOLDERS_MAX: Final = 100
_TRIES_MAX: Final = 5


class _Archived(Exception):
    """The room is archived, and has to come back first."""

    def __init__(self, tombstone: Tombstone) -> None:
        super().__init__(tombstone.path)
        self.tombstone = tombstone


def direct_room(
    ledger: Ledger,
    me: str,
    names: Iterable[str],
    before: Callable[[], None] = lambda: None,
) -> Room:
    """Return the direct room of me and some names; it is made, or restored, when it is missing.

    ``before`` is called before anything is written, and may raise. Raises InvalidInput for names
    that no direct message may go to (``check_addressees``).
    """
    check_author(me)
    members = tuple(sorted({me, *check_addressees(names, me)}))
    room_id = direct_id(members)
    wanted = Wanted(direct_title(members), DIRECT_FOLDER, members, me, "")
    for _ in range(_TRIES_MAX):
        there = _looked_up(ledger, wanted, room_id)
        if there is not None:
            return there
        before()
        try:
            return _made(ledger, wanted, room_id)
        except _Archived as found:
            _restored(ledger, found.tombstone, me)
    raise Conflict(
        f"The direct room of {wanted.title} is archived as fast as it comes back; try again.",
        code="archived",
        id=room_id,
    )


def is_direct_room(room: Room) -> bool:
    """Tell whether a room is a direct room."""
    return is_direct(room.id)


def refuse_direct(room: Room, verb: str) -> None:
    """Raise Conflict (code ``direct_room``) for a direct room: its members never change."""
    if is_direct(room.id):
        raise Conflict(
            f"{room.path} is a direct room, and nobody can {verb} it: its members are those whose "
            "messages it holds. `rooms dm` with other names goes to a room of their own.",
            code="direct_room",
            room=room.path,
        )


def _looked_up(ledger: Ledger, wanted: Wanted, room_id: str) -> Room | None:
    """Find the room without a lock: where it should be, else wherever the index knows it."""
    source, overlay = ledger.look()
    for path in wanted.paths():
        if reading.is_room(source, path, overlay):
            room = Room(ledger, path)
            if room.id == room_id:
                return room
    row = ledger.index.room_by_id(room_id)
    if row is not None and reading.is_room(source, row.path, overlay):
        return Room(ledger, row.path, row)
    return None


def _made(ledger: Ledger, wanted: Wanted, room_id: str) -> Room:
    def find(present: Present) -> str | None:
        paths = list(wanted.paths())
        row = ledger.index.room_by_id(room_id)
        if row is not None:
            paths.append(row.path)
        for path in paths:
            state = present.room(path)
            if state is not None and state.id == room_id:
                return path
        # A room that was archived a moment ago has left no tombstone that can be read yet.
        present.require_settled()
        tombstone = present.tombstone(room_id)
        if tombstone is not None:
            raise _Archived(tombstone)
        return None

    def place(present: Present) -> str:
        folder = DIRECT_FOLDER
        for k in range(2, _FOLDERS_MAX):
            there = Wanted(wanted.title, folder, wanted.members, wanted.by, "")
            try:
                return there.free_path(present)
            except Conflict as error:
                if error.code not in _IN_THE_WAY:
                    raise
            folder = numbered_slug(DIRECT_FOLDER, k)
        return wanted.free_path(present)

    return find_or_create(ledger, wanted, find, room_id=room_id, place=place)[0]


def _restored(ledger: Ledger, tombstone: Tombstone, me: str) -> None:
    from agent_chatroom_ledger.archives import restore_room

    try:
        restore_room(ledger, tombstone, by=me, reason="a direct message came")
    except Conflict as error:
        if error.code != "not_archived":  # somebody else was first
            raise
