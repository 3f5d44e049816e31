"""Filling the index: from frames as they come, or by comparing it with the logs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from agent_chatroom_ledger.domain.attendance import CHANGES_MEMBERS, attendance
from agent_chatroom_ledger.domain.clock import to_micros
from agent_chatroom_ledger.domain.records import decode_record, is_history
from agent_chatroom_ledger.domain.tombstones import restores_room
from agent_chatroom_ledger.errors import Corrupt, InvalidInput, NotFound
from agent_chatroom_ledger.storage import reading
from agent_chatroom_ledger.storage.indexfile import fingerprint
from agent_chatroom_ledger.storage.overlay import number_of
from agent_chatroom_ledger.storage.reading import MESSAGES, OPERATIONS, log_path
from agent_chatroom_ledger.storage.roomreader import RoomReader

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Callable, Iterable

    from agent_chatroom_ledger.domain.frames import Frame
    from agent_chatroom_ledger.domain.records import Record
    from agent_chatroom_ledger.storage.overlay import Overlay
    from agent_chatroom_ledger.storage.source import Source

ROOM_COLUMNS = "path, id, title, folder, slug, members, created_at, created_by, origin"
# The kind of the logs of rooms that are gone: no answer is about them.
ASIDE = "aside"
# When somebody leaves who is still a member.
NEVER = 1 << 62
# Ids of logs that only an index in memory knows, apart from those of the file below it.
_MEMORY_IDS = 1 << 40


class Filler:
    """Writes into one connection, inside a transaction of the caller's.

    ``thorough`` says whether every record is read or only the newest of each log; ``memory``,
    whether the connection lies over a file that others go on writing.
    """

    def __init__(
        self,
        link: sqlite3.Connection,
        look: Callable[[], tuple[Source, Overlay]],
        *,
        thorough: bool,
        memory: bool,
    ) -> None:
        self._link = link
        self._look = look
        self._thorough = thorough
        self._memory = memory
        self._attended: set[str] = set()
        found = {row[1] for row in link.execute("PRAGMA database_list")}
        self._schemas = [schema for schema in ("main", "disk") if schema in found]

    def apply(self, frames: Iterable[Frame]) -> None:
        """Take in frames; those that the index has already change nothing."""
        lines: dict[str, dict[int, bytes]] = {}
        for frame in frames:
            if restores_room(frame):
                continue  # when the room is there, a mark says so, and `compare` finds it
            for entry in frame.records:
                line = bytes(entry.record)
                lines.setdefault(entry.log, {})[number_of(line)] = line
        changed: set[str] = set()
        for log, numbered in lines.items():
            room = reading.room_of(log)
            if not room:
                continue
            if f"/{OPERATIONS}/" in log:
                changed.add(room)
            _, last, _ = self._log(log)
            new = sorted(n for n in numbered if n > last)
            if new and new[0] != last + 1:
                self._read_on(log, last)
            else:
                self._add(log, ((n, numbered[n]) for n in new))
        self._renew_rooms(changed)

    def compare(self) -> None:
        """Bring every log up to its files and the journal, reading only what is new."""
        source, overlay = self._look()
        present = set(reading.rooms(source, overlay))
        known = {path for (path,) in self._link.execute("SELECT path FROM rooms")}
        changed = set(present) - known
        self._attended |= changed
        for room in known - present:
            self._set_aside(room)
        self._take_back(changed)
        for room in sorted(present):
            query = "SELECT log, log_id FROM logs WHERE room = ? AND last > 0"
            left = dict(self._link.execute(query, (room,)).fetchall())
            for kind in (MESSAGES, OPERATIONS):
                for origin in reading.origins(source, room, kind, overlay):
                    log = log_path(room, kind, origin)
                    left.pop(log, None)
                    log_id, last, last_id = self._log(log)
                    now = reading.last_number(source, log, overlay)
                    line = reading.record(source, log, last, overlay) if last else None
                    if last and (now < last or line is None or identity(line) != last_id):
                        # Another past than the one that was indexed.
                        self._forget_log(log_id)
                        last = 0
                    if now > last:
                        self._read_on(log, last)
                        if kind == OPERATIONS:
                            changed.add(room)
            for log_id in left.values():
                # Of another room, which was at this path before.
                self._forget_log(log_id)
        self._renew_rooms(changed)

    def _read_on(self, log: str, last: int) -> None:
        source, overlay = self._look()
        if self._thorough:
            self._add(log, reading.records(source, log, last, None, overlay))
            return
        newest = reading.last_records(source, log, 1, overlay)
        self._add(log, newest, skipped=True)

    def _add(
        self,
        log: str,
        lines: Iterable[tuple[int, bytes]],
        *,
        skipped: bool = False,
    ) -> None:
        log_id, _, _ = self._log(log)
        speech = f"/{MESSAGES}/" in log
        if skipped and not speech:
            self._attended.add(reading.room_of(log))
        last, last_id, last_at = 0, "", ""
        newest_at = self._newest_at(log_id) if speech else 0
        history: list[tuple[int, int]] = []
        rows: list[tuple[int, int, int, str | None, str | None, int | None, str]] = []
        recipients: list[tuple[str, int, int]] = []
        for n, line in lines:
            last = n
            try:
                record = decode_record(line)
            except Corrupt:
                # Every fold skips it, so it is never unread.
                last_id = identity(line)
                history.append((log_id, n))
                continue
            last_id, last_at = record.id, record.at
            at: int | None = None
            if not speech and record.kind in CHANGES_MEMBERS:
                self._attended.add(reading.room_of(log))
            if record.n != n or is_history(record.kind):
                history.append((log_id, n))
            elif speech:
                newest_at = at = max(newest_at, _micros(record))
            digest = fingerprint(record.id)
            rows.append((log_id, n, digest, record.correlation, record.cause, at, record.author))
            recipients += [(name, log_id, n) for name in dict.fromkeys(record.to)]
        if not last:
            return
        self._link.executemany("INSERT OR IGNORE INTO records VALUES (?, ?, ?, ?, ?, ?, ?)", rows)
        self._link.executemany("INSERT OR IGNORE INTO history VALUES (?, ?)", history)
        self._link.executemany("INSERT OR IGNORE INTO recipients VALUES (?, ?, ?)", recipients)
        newest = -1 if skipped else history[-1][1] if history else 0
        self._link.execute(
            "UPDATE logs SET last = ?, last_id = ?,"
            " last_at = CASE WHEN ? = '' THEN last_at ELSE ? END,"
            " last_history = CASE WHEN ? < 0 OR last_history < 0 THEN -1"
            " ELSE max(last_history, ?) END WHERE log_id = ?",
            (last, last_id, last_at, last_at, newest, newest, log_id),
        )

    def _log(self, log: str) -> tuple[int, int, str]:
        found = self._link.execute(
            "SELECT log_id, last, last_id FROM logs WHERE log = ?", (log,)
        ).fetchone()
        if found is not None:
            return int(found[0]), int(found[1]), str(found[2])
        room, kind, origin = log.rsplit("/", 2)
        newest = self._link.execute("SELECT coalesce(max(log_id), 0) FROM main.logs").fetchone()[0]
        log_id = max(int(newest), _MEMORY_IDS if self._memory else 0) + 1
        self._link.execute(
            "INSERT INTO logs (log_id, log, room, kind, origin, last, last_id, last_at,"
            " last_history) VALUES (?, ?, ?, ?, ?, 0, '', '', 0)",
            (log_id, log, room, kind, origin),
        )
        return log_id, 0, ""

    def _renew_rooms(self, rooms: Iterable[str]) -> None:
        waiting = sorted(rooms)
        if not waiting:
            return
        source, overlay = self._look()
        for room in waiting:
            reader = RoomReader(source, overlay, room)
            try:
                state = reader.state()
                if room in self._attended:
                    self._renew_attendance(reader)
            except (NotFound, Corrupt):
                # verify names what is wrong with it; it cannot be addressed without a state.
                self._link.execute("DELETE FROM rooms WHERE path = ?", (room,))
                continue
            self._link.execute(
                f"INSERT OR REPLACE INTO rooms ({ROOM_COLUMNS}, excludes)"  # noqa: S608 - only names from this package
                " VALUES (?,?,?,?,?,?,?,?,?,?)",
                (
                    room,
                    state.id,
                    state.title,
                    state.folder,
                    state.slug,
                    msgspec.json.encode(state.members).decode(),
                    state.created_at,
                    state.created_by,
                    state.origin,
                    bool(state.policy.excluded),
                ),
            )

    def _renew_attendance(self, reader: RoomReader) -> None:
        """Write anew who was a member of a room, and when.

        The row without a name says that the room's rows here are whole, whatever the file below an
        index in memory has of it.
        """
        room = reader.room
        rows = [(room, "", 0, 0)]
        for interval in attendance(reader.after(log=OPERATIONS)):
            left = NEVER if interval.left_at is None else to_micros(interval.left_at)
            rows.append((room, interval.name, to_micros(interval.joined_at), left))
        self._link.execute("DELETE FROM main.memberships WHERE room = ?", (room,))
        self._link.executemany("INSERT OR REPLACE INTO main.memberships VALUES (?, ?, ?, ?)", rows)

    def _newest_at(self, log_id: int) -> int:
        """Return the time of a log's newest message that may wait for somebody.

        Within a log the index's times never run back, as positions never do, whatever a foreign
        writer put there.
        """
        query = (
            "SELECT at FROM {}.records WHERE log_id = ? AND at IS NOT NULL ORDER BY n DESC LIMIT 1"
        )
        found = (self._link.execute(query.format(s), (log_id,)).fetchone() for s in self._schemas)
        return max((int(row[0]) for row in found if row), default=0)

    def _set_aside(self, room: str) -> None:
        """Keep what is known of a room that is gone under its id: an archived one may come back.

        Its records are not touched, however many they are.
        """
        (room_id,) = self._link.execute("SELECT id FROM rooms WHERE path = ?", (room,)).fetchone()
        logs = self._link.execute("SELECT log_id, kind, origin FROM logs WHERE room = ?", (room,))
        for log_id, kind, origin in logs.fetchall():
            self._rename(log_id, f"{ASIDE}/{room_id}", f"{kind}/{origin}", ASIDE)
        self._link.execute("DELETE FROM rooms WHERE path = ?", (room,))
        self._link.execute("DELETE FROM main.memberships WHERE room = ?", (room,))

    def _take_back(self, rooms: Iterable[str]) -> None:
        """Give rooms that are new the logs that were set aside under their ids."""
        if not self._link.execute("SELECT 1 FROM logs WHERE kind = ? LIMIT 1", (ASIDE,)).fetchone():
            return
        source, overlay = self._look()
        for room in sorted(rooms):
            try:
                room_id = RoomReader(source, overlay, room).state().id
            except (NotFound, Corrupt):
                continue
            aside = f"{ASIDE}/{room_id}"
            logs = self._link.execute("SELECT log_id, log FROM logs WHERE room = ?", (aside,))
            for log_id, log in logs.fetchall():
                name = log.removeprefix(f"{aside}/")
                self._rename(log_id, room, name, name.partition("/")[0])

    def _rename(self, log_id: int, room: str, name: str, kind: str) -> None:
        log = f"{room}/{name}"
        other = self._link.execute("SELECT log_id FROM logs WHERE log = ?", (log,)).fetchone()
        if other is not None:
            self._forget_log(other[0])
            self._link.execute("DELETE FROM logs WHERE log_id = ?", other)
        self._link.execute(
            "UPDATE logs SET log = ?, room = ?, kind = ? WHERE log_id = ?",
            (log, room, kind, log_id),
        )

    def _forget_log(self, log_id: int) -> None:
        for table in ("records", "history", "recipients"):
            self._link.execute(f"DELETE FROM main.{table} WHERE log_id = ?", (log_id,))  # noqa: S608 - only names from this package
        self._link.execute(
            "UPDATE logs SET last = 0, last_id = '', last_at = '', last_history = 0"
            " WHERE log_id = ?",
            (log_id,),
        )


def _micros(record: Record) -> int:
    """Return a record's time; 0 where it is none, and readers skip the record."""
    try:
        return to_micros(record.at)
    except InvalidInput:
        return 0


def identity(line: bytes) -> str:
    """Return the id of a record line, or ``""`` for a line that is no record."""
    try:
        return decode_record(line).id
    except Corrupt:
        return ""
