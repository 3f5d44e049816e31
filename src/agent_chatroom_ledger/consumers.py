"""Consumers: who reads, how far they have acknowledged, and what is unread for them."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from agent_chatroom_ledger.domain.clock import from_datetime
from agent_chatroom_ledger.domain.direct import is_direct
from agent_chatroom_ledger.domain.positions import position_of
from agent_chatroom_ledger.domain.records import Message, is_history
from agent_chatroom_ledger.errors import Conflict, InvalidInput
from agent_chatroom_ledger.past import reader_in
from agent_chatroom_ledger.room import Room
from agent_chatroom_ledger.storage import reading
from agent_chatroom_ledger.storage.cursors import Cursor, CursorFile, Mark
from agent_chatroom_ledger.storage.roomreader import RoomReader

if TYPE_CHECKING:
    from collections.abc import Iterable

    from agent_chatroom_ledger.ledger import Ledger


class UnreadRoom(msgspec.Struct, frozen=True, kw_only=True):
    """A room that holds messages past a consumer's position.

    ``count`` is how many when it was counted; history (events) does not count, the consumer's own
    messages do. ``newest`` is the number of the newest record of each origin.
    """

    room: Room
    count: int
    position: Mapping[str, int]
    newest: Mapping[str, int]
    _consumer: Consumer
    _at: str | None = None

    def messages(self, limit: int | None = None) -> list[Message]:
        """Return the unread messages, oldest first, at most ``limit`` of them."""
        found: list[Message] = []
        if limit is not None and limit <= 0:
            return found
        for message in self.room.reader(self._at).after(self.position):
            if not is_history(message.kind):
                found.append(message)
            if len(found) == limit:
                break
        self._consumer.was_given(self.room, found)
        return found

    @property
    def last(self) -> Message:
        """The newest unread message, in canonical order."""
        for message in self.room.reader(self._at).descending(self.position):
            if not is_history(message.kind):
                return message
        raise Conflict(f"Nothing is unread in {self.room.path} any more.", room=self.room.path)


class Consumer:
    """One reader with a cursor of its own. Reading moves nothing; only ``acknowledge`` does."""

    def __init__(self, ledger: Ledger, name: str, cursor: str | Path | None = None) -> None:
        """Use ``Ledger.consumer``."""
        self._ledger = ledger
        self._file = CursorFile(ledger.layout, name, None if cursor is None else Path(cursor))
        self._given: dict[str, list[tuple[str, int]]] = {}
        self.name = name

    @property
    def cursor_path(self) -> Path:
        """The file that holds this consumer's positions."""
        return self._file.path

    def cursor(self) -> Cursor:
        """Return what the cursor file says now."""
        return self._file.load()

    def position(self, room: str | Room) -> dict[str, int]:
        """Return how far this consumer has acknowledged a room; {} for not at all."""
        return dict(self._file.load().positions().get(self._ledger.room(room).id, {}))

    def unread(
        self,
        rooms: Iterable[str | Room] | None = None,
        *,
        members_only: bool = False,
        at: str | datetime | None = None,
    ) -> list[UnreadRoom]:
        """Return the rooms that hold unread messages, by path.

        ``rooms`` names the ones to look at; None means all but the direct rooms of others.
        ``members_only`` leaves out those that do not list this consumer. Raises Conflict when the
        cursor does not fit a room: it is past the end, or names another record than the one that
        stands there.

        ``at`` looks at the rooms and their members as they were at a commit or time, with the
        cursor as it is now: what of that state is past it. A cursor that is past the end of such
        a room has read all of it.
        """
        cursor = self._file.load()
        if at is not None:
            return self._unread_at(self._ledger.commit_at(at), rooms, cursor, members_only)
        if rooms is not None:
            chosen = sorted({self._ledger.room(room) for room in rooms}, key=lambda room: room.path)
            if members_only:
                chosen = [room for room in chosen if self.name in room.members]
            counted = (self.unread_in(room, cursor) for room in chosen)
            return [item for item in counted if item is not None]
        index = self._ledger.index
        rows, heads = index.rooms_and_heads()
        positions = cursor.positions()
        nothing: Mapping[str, int] = {}
        found = []
        for row in rows:
            mine = heads.get(row.path, ())
            position = positions.get(row.id, nothing)
            for head in mine:
                if position.get(head.origin, 0) != head.last:
                    break
            else:
                if len(position) <= len(mine):
                    continue
            if (members_only or is_direct(row.id)) and self.name not in row.members:
                continue
            room = Room(self._ledger, row.path, row)
            newest = {head.origin: head.last for head in mine}
            self._check_fits(room, position, newest, cursor)
            counts = [index.count_speech(head, position.get(head.origin, 0)) for head in mine]
            # With several origins one id may stand twice, and only reading tells which one counts.
            known = [count for count in counts if count is not None]
            exact = len(mine) == 1 and len(known) == len(counts)
            count = sum(known) if exact else _count(room.reader(), position)
            if count:
                found.append(self._item(room, count, position, newest))
        return found

    def _unread_at(
        self,
        commit: str,
        rooms: Iterable[str | Room] | None,
        cursor: Cursor,
        members_only: bool,  # noqa: FBT001 - one call inside this class gives it by place
    ) -> list[UnreadRoom]:
        source = self._ledger.source_at(commit)
        if rooms is None:
            paths = reading.rooms(source)
        else:
            named = (self._ledger.room(room, at=commit) for room in rooms)
            paths = sorted({there.room for room in named if (there := reader_in(source, room))})
        positions = cursor.positions()
        found = []
        for path in paths:
            if not reading.is_room(source, path):
                continue
            reader = RoomReader(source, None, path)
            state = reader.state()
            ours = members_only or (rooms is None and is_direct(state.id))
            if ours and self.name not in state.members:
                continue
            position = positions.get(state.id, {})
            if count := _count(reader, position):
                room = Room(self._ledger, path, state)
                newest = reader.positions()
                found.append(self._item(room, count, position, newest, commit))
        return found

    def unread_in(self, room: Room, cursor: Cursor | None = None) -> UnreadRoom | None:
        """Count one room's unread messages from its records alone; None when there are none."""
        cursor = cursor or self._file.load()
        position = cursor.positions().get(room.id, {})
        reader = room.reader()
        newest = reader.positions()
        self._check_fits(room, position, newest, cursor)
        count = _count(reader, position)
        return self._item(room, count, position, newest) if count else None

    def acknowledge(
        self,
        room: str | Room,
        through: Message | int | str | Mapping[str, int] | None = None,
        *,
        rewind: bool = False,
    ) -> dict[str, int]:
        """Move the cursor in a room past what was read, and return the new position.

        ``through`` is the last message that was read, its number or reference, a position, or
        None for everything that is there now. A message among those that ``UnreadRoom.messages``
        has just given stands for all given before it, in whatever origin. The cursor only moves
        forward unless ``rewind`` says otherwise; then it is set to what is given, 0 meaning the
        beginning. Raises InvalidInput past the end, Conflict when the cursor does not fit the
        room. Only the cursor file is written.
        """
        place = self._ledger.room(room)
        reader = place.reader()
        newest = reader.positions()
        wanted = newest if through is None else self._wanted(place, through)
        beyond = {o: n for o, n in wanted.items() if n > newest.get(o, 0)}
        if beyond:
            named = ", ".join(f"{n}@{o}" for o, n in sorted(beyond.items()))
            raise InvalidInput(
                f"{place.path} does not reach {named}; its newest are "
                f"{', '.join(f'{n}@{o}' for o, n in sorted(newest.items())) or 'none'}.",
                code="past_end",
                room=place.path,
                through=named,
            )
        now = from_datetime(datetime.now(UTC))

        def edit(cursor: Cursor) -> Cursor:
            marks = cursor.marks(place.id)
            if rewind:
                if not wanted:
                    marks = {}
            else:
                self._check_fits(place, {o: m.n for o, m in marks.items()}, newest, cursor)
            moved = dict(marks)
            for origin, n in wanted.items():
                if rewind or n > (marks[origin].n if origin in marks else 0):
                    found = reader.find(origin, n)
                    moved[origin] = Mark(n, found.id if found else "")
            if moved == cursor.marks(place.id):
                return cursor
            return cursor.moved(place.id, moved, title=place.title, path=place.path, at=now)

        after = self._file.change(edit)
        return dict(after.positions().get(place.id, {}))

    def was_given(self, room: Room, messages: Iterable[Message]) -> None:
        """Remember what was handed over, and in which order, for ``acknowledge``."""
        self._given[room.id] = [(message.origin, message.n) for message in messages]

    def _wanted(
        self, room: Room, through: Message | int | str | Mapping[str, int]
    ) -> dict[str, int]:
        position = position_of(through, room.origin)
        if len(position) != 1:
            return position
        mark = next(iter(position.items()))
        given = self._given.get(room.id, [])
        if mark in given:
            for origin, n in given[: given.index(mark)]:
                position[origin] = max(n, position.get(origin, 0))
        return position

    def _check_fits(
        self, room: Room, position: Mapping[str, int], newest: Mapping[str, int], cursor: Cursor
    ) -> None:
        """Refuse a cursor that is past a room's end or names another record (invariant 6)."""
        marks = cursor.marks(room.id)
        reader: RoomReader | None = None
        for origin, n in position.items():
            if n == 0:
                continue
            if n > newest.get(origin, 0):
                why = f"is at {n}@{origin}, past the end of {room.path}"
            else:
                reader = reader or room.reader()
                found = reader.find(origin, n)
                if found is None or not marks[origin].id or found.id == marks[origin].id:
                    continue
                why = f"names another record {n}@{origin} than {room.path} holds"
            raise Conflict(
                f"The cursor {self.cursor_path} {why}: the ledger is not the one that was read, or "
                "an older copy of it. Look at the room, then set the cursor with rewind "
                "(`rooms seen ROOM --through N --rewind`).",
                code="cursor_mismatch",
                room=room.path,
                path=str(self.cursor_path),
                position=f"{n}@{origin}",
            )

    def _item(
        self,
        room: Room,
        count: int,
        position: Mapping[str, int],
        newest: Mapping[str, int],
        at: str | None = None,
    ) -> UnreadRoom:
        return UnreadRoom(
            room=room,
            count=count,
            position=dict(position),
            newest=dict(newest),
            _consumer=self,
            _at=at,
        )


def _count(reader: RoomReader, position: Mapping[str, int]) -> int:
    return sum(not is_history(message.kind) for message in reader.after(position))
