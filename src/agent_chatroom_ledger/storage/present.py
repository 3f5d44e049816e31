"""The present state as a writer sees it under the journal's lock: base commit plus frames."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING

import msgspec

from agent_chatroom_ledger.domain import rooms as room_fold
from agent_chatroom_ledger.domain.clock import from_micros, new_id, to_micros
from agent_chatroom_ledger.domain.records import decode_record, message_at, message_of
from agent_chatroom_ledger.domain.tombstones import (
    ROOM_ARCHIVE,
    ROOM_RESTORE,
    Tombstone,
    decode_tombstone,
    tombstone_path,
)
from agent_chatroom_ledger.errors import Conflict, Corrupt, InvalidInput, NotFound
from agent_chatroom_ledger.limits import NUMBER_MAX
from agent_chatroom_ledger.storage import artifacts, reading
from agent_chatroom_ledger.storage.layout import room_of_log
from agent_chatroom_ledger.storage.objects import NO_OBJECT
from agent_chatroom_ledger.storage.source import CommitTree

if TYPE_CHECKING:
    from collections.abc import Sequence

    from agent_chatroom_ledger.domain.frames import Frame, Header
    from agent_chatroom_ledger.domain.records import Message, Record
    from agent_chatroom_ledger.domain.roomstate import RoomState
    from agent_chatroom_ledger.storage.objects import Objects
    from agent_chatroom_ledger.storage.source import Source

CLOCK_BEHIND_MICROS_MAX = 24 * 3600 * 1_000_000


Lookup = Callable[[str, Iterable[str]], Mapping[str, tuple[str, int]]]


class _Moment(msgspec.Struct):
    """The one field of a record that orders it."""

    at: str


_MOMENT = msgspec.json.Decoder(_Moment)


class Unsettled(Exception):
    """A room was archived or restored since the last checkpoint, and has to be read anew."""


class _Hiding:
    """A source without the directories of rooms that were archived since."""

    def __init__(self, source: Source, gone: set[str]) -> None:
        self._source = source
        self._gone = gone

    def _hidden(self, path: str) -> bool:
        return any(path == room or path.startswith(f"{room}/") for room in self._gone)

    def names(self, directory: str) -> list[str]:
        if self._hidden(directory):
            return []
        found = self._source.names(directory)
        return [n for n in found if f"{directory}/{n.rstrip('/')}" not in self._gone]

    def read(self, path: str) -> bytes | None:
        return None if self._hidden(path) else self._source.read(path)


class Present:
    """Answers questions about the ledger as it is now, and gives out numbers and times.

    Numbers and times that a build function took are given back when its call fails (`rollback`).
    Valid only while the journal's lock is held.
    """

    def __init__(
        self,
        objects: Objects,
        origin: str,
        lookup: Lookup,
    ) -> None:
        """Read through `objects`; `lookup(room path, ids)` asks the index for older ids."""
        self._objects = objects
        self._lookup = lookup
        self.origin = origin
        self._base = NO_OBJECT
        self._source: Source | None = None
        self._numbers: dict[str, int] = {}
        self._lines: dict[tuple[str, int], bytes] = {}
        self._ids: dict[tuple[str, str], tuple[str, int]] = {}
        self._rooms: dict[str, RoomState | None] = {}
        self._operations: dict[str, list[Message]] = {}
        self._untaken: list[Frame] = []
        self._gone: set[str] = set()
        self._unsettled: set[str] = set()
        self._newest = 0
        self._undo: list[tuple[str, int | None]] = []
        self._newest_before = 0
        self._looked_up: dict[tuple[str, str], tuple[str, int] | None] = {}

    def reset(self, header: Header, frames: Sequence[Frame]) -> None:
        """Begin anew with a generation."""
        self._base = header.base
        self._source = None
        self._numbers.clear()
        self._lines.clear()
        self._ids.clear()
        self._rooms.clear()
        self._operations.clear()
        self._gone.clear()
        self._unsettled.clear()
        self._untaken.clear()
        self._newest = max(self._newest, to_micros(header.newest_at))
        for frame in frames:
            self.take(frame)

    def take(self, frame: Frame) -> None:
        """Take in a frame that stands in the journal: its time now, the rest when asked for.

        A committer reads every frame and asks nothing but the newest time.
        """
        at = frame.at or _MOMENT.decode(frame.records[-1].record).at
        self._newest = max(self._newest, to_micros(at))
        self._untaken.append(frame)

    def _absorb(self) -> None:
        """Take in what has only been put aside so far."""
        frames, self._untaken = self._untaken, []
        for frame in frames:
            for item in frame.records:
                line = bytes(item.record)
                self.note(item.log, decode_record(line), line)

    def note(self, log: str, record: Record, line: bytes) -> None:
        """Take in one record that stands in the journal."""
        self._numbers[log] = record.n
        self._newest = max(self._newest, to_micros(record.at))
        self._lines[log, record.n] = line
        room = room_of_log(log)
        if room is None:
            if record.kind in (ROOM_ARCHIVE, ROOM_RESTORE):
                self._hide(str((record.data or {}).get("path")), record.kind)
            return
        self._ids[room, record.id] = (log, record.n)
        if "/operations/" in log:
            origin = log.rpartition("/")[2]
            message = message_of(line, origin, "operations", primary=False)
            self._operations.setdefault(room, []).append(message)
            self._rooms.pop(room, None)

    def _hide(self, room: str, kind: str) -> None:
        """Forget a room that was archived, or that is only there again after a checkpoint."""
        for log in [log for log in self._numbers if log.startswith(f"{room}/")]:
            del self._numbers[log]
        for place in [place for place in self._lines if place[0].startswith(f"{room}/")]:
            del self._lines[place]
        for known in [known for known in self._ids if known[0] == room]:
            del self._ids[known]
        self._rooms.pop(room, None)
        self._operations.pop(room, None)
        if self._source is not None and not self._gone:
            self._source = None  # the next reader gets one that hides
        self._gone.add(room)
        if kind == ROOM_RESTORE:
            self._unsettled.add(room)
        else:
            self._unsettled.discard(room)

    def begin(self) -> None:
        """Remember what `rollback` goes back to."""
        if self._untaken:
            self._absorb()
        self._undo = []
        self._looked_up.clear()
        self._newest_before = self._newest

    def rollback(self) -> None:
        """Give back the numbers and times taken since `begin`."""
        for log, number in reversed(self._undo):
            if number is None:
                self._numbers.pop(log, None)
            else:
                self._numbers[log] = number
        self._undo = []
        self._newest = self._newest_before

    @property
    def source(self) -> Source:
        """The files of the base commit."""
        if self._untaken:
            self._absorb()
        if self._source is None:
            self._source = (
                _Nothing() if self._base == NO_OBJECT else CommitTree(self._objects, self._base)
            )
            if self._gone:
                self._source = _Hiding(self._source, self._gone)
        return self._source

    def next_time(self) -> str:
        """Return the time of the next record: now, or just after the newest in the ledger.

        Raises Conflict when this machine's clock is more than a day behind the ledger.
        """
        now = time.time_ns() // 1000
        if self._newest - now > CLOCK_BEHIND_MICROS_MAX:
            raise Conflict(
                f"the newest record is from {from_micros(self._newest)}, more than a day ahead of "
                "this machine's clock; set the clock right",
                code="clock_behind",
                newest_at=from_micros(self._newest),
            )
        self._newest = max(now, self._newest + 1)
        return from_micros(self._newest)

    def go_on_from(self, at: str) -> None:
        """Give out times after one that somebody else's record bears.

        One more than a day ahead of this machine's clock binds nobody, or it would stop all of us.
        """
        moment = to_micros(at)
        if moment - time.time_ns() // 1000 <= CLOCK_BEHIND_MICROS_MAX:
            self._newest = max(self._newest, moment)

    def new_id(self) -> str:
        """Return a fresh UUIDv7 of the time that was given out last."""
        return new_id(self._newest, os.urandom(10))

    @property
    def newest_at(self) -> str:
        """The newest time in the ledger."""
        return from_micros(self._newest)

    def last_number(self, log: str) -> int:
        """Return the number of a log's newest record, 0 for none."""
        if self._untaken:
            self._absorb()
        number = self._numbers.get(log)
        if number is None:
            number = self._numbers[log] = reading.last_number(self.source, log)
        return number

    def next_number(self, log: str) -> int:
        """Give out the next number of one of this origin's logs."""
        number = self.last_number(log)
        if number >= NUMBER_MAX:
            raise InvalidInput(
                f"{log} is full: a log holds at most {NUMBER_MAX} records; start another room",
                field="n",
                limit=NUMBER_MAX,
            )
        self._undo.append((log, number))
        self._numbers[log] = number + 1
        return number + 1

    def record(self, log: str, n: int) -> Record | None:
        """Return one record, None when there is none of that number."""
        if self._untaken:
            self._absorb()
        line = self._lines.get((log, n))
        if line is None:
            line = reading.record(self.source, log, n)
        return None if line is None else decode_record(line)

    def line(self, log: str, n: int) -> bytes | None:
        """Return the stored bytes of one record."""
        if self._untaken:
            self._absorb()
        line = self._lines.get((log, n))
        return reading.record(self.source, log, n) if line is None else line

    def look_up(self, room: str, record_ids: Iterable[str]) -> None:
        """Ask the index for many ids at once, for `find_id` under the same lock."""
        if self._untaken:
            self._absorb()
        unknown = [i for i in record_ids if (room, i) not in self._ids]
        if self._base == NO_OBJECT or not self._has_room_in_base(room):
            self._looked_up.update({(room, i): None for i in unknown})
            return
        found = self._lookup(room, unknown) if unknown else {}
        self._looked_up.update({(room, i): found.get(i) for i in unknown})

    def find_id(self, room: str, record_id: str) -> tuple[str, Record] | None:
        """Return the log and the record that has an id in a room's logs, None when it is unused."""
        found = self._ids.get((room, record_id))
        if found is None:
            if (room, record_id) not in self._looked_up:
                self.look_up(room, (record_id,))
            found = self._looked_up.get((room, record_id))
        if found is None:
            return None
        record = self.record(*found)
        if record is None or record.id != record_id:
            return None  # the index knows fingerprints of ids, and two may have the same
        return found[0], record

    def has_artifact(self, name: str) -> bool:
        """Tell whether a record may name an artifact: it is committed, or waits for its commit."""
        if artifacts.is_staged(self._objects.layout, name):
            return True
        return artifacts.committed(self.source, name) is not None

    def ids_in_use(self, room: str, record_ids: Sequence[str]) -> set[str]:
        """Return those of many ids that records of a room's logs have already."""
        self.look_up(room, record_ids)
        used = {record_id for record_id in record_ids if (room, record_id) in self._ids}
        places: dict[str, set[int]] = {}
        for record_id in record_ids:
            place = self._looked_up.get((room, record_id))
            if place is not None:
                places.setdefault(place[0], set()).add(place[1])
        # The index may mean another id with the same fingerprint: what it finds is read.
        found = {
            decode_record(line).id
            for log, numbers in places.items()
            for _, line in reading.some_records(self.source, log, numbers)
        }
        return used | found.intersection(record_ids)

    def _has_room_in_base(self, room: str) -> bool:
        return bool(self.source.names(room))

    def origins(self, room: str, log: str = "messages") -> list[str]:
        """Return the origins that have written to a room's log."""
        if self._untaken:
            self._absorb()
        found = set(reading.origins(self.source, room, log))
        prefix = f"{room}/{log}/"
        found |= {name[len(prefix) :] for name in self._numbers if name.startswith(prefix)}
        return sorted(o for o in found if self.last_number(f"{prefix}{o}"))

    def room(self, path: str) -> RoomState | None:
        """Return the folded state of the room at a path, None when there is none.

        Raises Unsettled, which the writer answers with a checkpoint, for one just restored.
        """
        if self._untaken:
            self._absorb()
        if path in self._unsettled:
            raise Unsettled(path)
        if path in self._rooms:
            return self._rooms[path]
        state: RoomState | None = None
        described = self.source.read(f"{path}/room.json")
        policy = self.source.read(f"{path}/policy.json")
        if described is not None and policy is not None:
            try:
                state = room_fold.state_from_projections(described, policy)
            except Corrupt as error:
                if error.code == "newer_format":
                    raise
                state = self._folded(path)  # the projections are not the truth, the logs are
        newer = self._operations.get(path, [])
        if newer and state and reading.is_followed(self.source, path, newer[0], {self.origin}):
            state = self._folded(path, newer)
            newer = []
        for message in newer:
            state = room_fold.apply_operation(state, message)
        self._rooms[path] = state
        return state

    def required(self, path: str) -> RoomState:
        """Return the state of a room that has to be there.

        Raises NotFound, or Conflict (code `archived`) when the room there was archived.
        """
        state = self.room(path)
        if state is not None:
            return state
        if self.is_archived(path):
            name = path.removeprefix("rooms/")
            raise Conflict(
                f"{name} is archived; `rooms restore {name}` brings it back",
                code="archived",
                room=path,
            )
        raise NotFound(f"There is no room at {path}.", room=path)

    def tombstones(self) -> Iterator[Tombstone]:
        """Give the tombstones of rooms that were archived before the last checkpoint."""
        for part in self.source.names("archive"):
            for name in self.source.names(f"archive/{part.rstrip('/')}"):
                data = self.source.read(f"archive/{part.rstrip('/')}/{name}")
                if data is not None:
                    with contextlib.suppress(Corrupt):  # verify names it
                        yield decode_tombstone(data)

    def tombstone(self, room_id: str) -> Tombstone | None:
        """Return the tombstone of one room."""
        data = self.source.read(tombstone_path(room_id))
        return None if data is None else decode_tombstone(data)

    def is_archived(self, path: str) -> bool:
        """Tell whether the room that was at a path is archived, for a clear refusal."""
        return path in self._gone or any(found.path == path for found in self.tombstones())

    def require_settled(self) -> None:
        """Raise Unsettled when a room was archived or restored since the last checkpoint."""
        if self._untaken:
            self._absorb()
        if self._gone:
            raise Unsettled

    def _folded(self, path: str, newer: Iterable[Message] = ()) -> RoomState | None:
        messages = [
            message
            for origin in reading.origins(self.source, path, "operations")
            for n, line in reading.records(self.source, f"{path}/operations/{origin}")
            if (message := message_at(line, origin, "operations", n, primary=False))
        ]
        messages += newer
        return room_fold.fold_room(messages) if messages else None

    def names(self, directory: str) -> list[str]:
        """Return the names in a directory of the ledger, rooms still in the journal included."""
        if self._untaken:
            self._absorb()
        found = set(self.source.names(directory))
        prefix = f"{directory}/"
        for room in self._operations:
            if room.startswith(prefix):
                rest = room[len(prefix) :]
                found.add(f"{rest.partition('/')[0]}/")
        return sorted(found)


class _Nothing:
    """The files of a branch that has no commit yet."""

    def names(self, directory: str) -> list[str]:
        """Return nothing."""
        del directory
        return []

    def read(self, path: str) -> bytes | None:
        """Return nothing."""
        del path
        return None
