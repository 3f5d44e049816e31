"""The index: rooms, newest numbers, what counts as unread, ids, recipients and correlations.

Derived and disposable (invariant 8). It follows the journal; when generations that it needed are
gone, or main moved without frames, it compares the newest record of every log and reads on from
there. Several processes may use one file; a reader that may not write keeps its own in memory.
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
import threading
from typing import TYPE_CHECKING, TypeVar

import msgspec

from agent_chatroom_ledger.errors import Busy
from agent_chatroom_ledger.storage import foreign, indexfile, journal, reading
from agent_chatroom_ledger.storage.indexfile import fingerprint
from agent_chatroom_ledger.storage.indexfill import ASIDE, ROOM_COLUMNS, Filler, identity
from agent_chatroom_ledger.storage.overlay import Overlay
from agent_chatroom_ledger.storage.reading import MESSAGES, log_path
from agent_chatroom_ledger.storage.source import WorkTree

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from agent_chatroom_ledger.storage.layout import Layout
    from agent_chatroom_ledger.storage.source import Source

T = TypeVar("T")
_BEHIND_ALL_BYTES = 1 << 40


class RoomRow(msgspec.Struct, frozen=True, kw_only=True):
    """A room as the index knows it."""

    path: str
    id: str
    title: str
    folder: str
    slug: str
    members: tuple[str, ...]
    created_at: str
    created_by: str
    origin: str


class Head(msgspec.Struct, frozen=True, kw_only=True):
    """The newest message of one origin in one room.

    ``last_history`` is the newest number that is history (0 for none, -1 when the index did not
    look): past it, every message counts as unread.
    """

    log_id: int
    origin: str
    last: int
    last_at: str
    last_history: int


class Index:
    """Answers questions about many rooms without reading them.

    Every question first follows the journal; its answer is of one moment, no older than that. With
    ``writable`` false nothing on disk changes: the index lives in memory, over the file when
    there is a sound one, otherwise over the newest records only.
    """

    def __init__(
        self,
        layout: Layout,
        look: Callable[[], tuple[Source, Overlay]] | None = None,
        *,
        writable: bool = True,
    ) -> None:
        """``look`` gives the work tree and what the journal holds beyond it, both as of now."""
        self._layout = layout
        self._look = look or self._look_alone
        self._writable = writable
        self._guard = threading.RLock()
        self._process = os.getpid()
        self._connection: sqlite3.Connection | None = None
        self._attached = False
        self._thorough = True
        self._seen: tuple[int, int, int, int] | None = None
        self._rooms: list[RoomRow] | None = None
        self._heads: dict[str, tuple[Head, ...]] | None = None

    def close(self) -> None:
        """Close the file."""
        with self._guard:
            if self._connection is not None and self._process == os.getpid():
                self._connection.close()
            self._connection = None
            self._seen = self._rooms = self._heads = None

    def behind_bytes(self) -> int | None:
        """Return how much of the journal the file lacks; None without a sound file.

        More than any journal has where all rooms have to be compared.
        """
        if not self._layout.index_db.is_file():
            return None
        with self._guard:
            connection = self._connected()
            if not (self._writable or self._attached):
                return None
            generation, offset, _ = self._place(connection)
            known = indexfile.mark_of(connection)
        kept = journal.generations(self._layout)
        if known != foreign.read(self._layout) or (kept and generation not in kept):
            return _BEHIND_ALL_BYTES
        newer = (journal.generation_path(self._layout, g) for g in kept if g >= generation)
        try:
            return sum(path.stat().st_size for path in newer) - offset if kept else 0
        except FileNotFoundError:  # taken away since
            return _BEHIND_ALL_BYTES

    def rooms(self) -> list[RoomRow]:
        """Return all rooms, by path."""
        return self._answer(self._all_rooms)

    def room_at(self, path: str) -> RoomRow | None:
        """Return the room at a path."""
        return next(iter(self._find("path = ?", path)), None)

    def room_by_id(self, room_id: str) -> RoomRow | None:
        """Return the room with an id."""
        return next(iter(self._find("id = ?", room_id)), None)

    def rooms_by_title(self, title: str) -> list[RoomRow]:
        """Return the rooms that bear a title."""
        return self._find("title = ?", title)

    def rooms_by_slug(self, slug: str) -> list[RoomRow]:
        """Return the rooms whose directory bears a name."""
        return self._find("slug = ?", slug)

    def candidates(self, name: str) -> list[RoomRow]:
        """Return the few rooms whose path, slug or title is nearest to a name, best first."""
        from agent_chatroom_ledger.storage.nearest import nearest

        return nearest(self.rooms(), name)

    def heads(self) -> Mapping[str, tuple[Head, ...]]:
        """Return, by room path, the newest message of each origin that wrote there."""
        return self._answer(self._all_heads)

    def rooms_and_heads(self) -> tuple[list[RoomRow], Mapping[str, tuple[Head, ...]]]:
        """Return all rooms and all heads, as of one moment."""
        return self._answer(lambda link: (self._all_rooms(link), self._all_heads(link)))

    def count_speech(self, head: Head, after: int) -> int | None:
        """Return how many messages past a number are not history; None when it does not know."""
        if after >= head.last:
            return 0
        if head.last_history < 0:
            return None
        count = head.last - after
        if head.last_history <= after:
            return count

        query = "SELECT count(*) FROM history WHERE log_id = ? AND n > ? AND n <= ?"
        with self._guard:
            link = self._connected()
            history = link.execute(query, (head.log_id, after, head.last)).fetchone()[0]
        return count - int(history)

    def find_id(self, room: str, record_id: str) -> tuple[str, int] | None:
        """Return log and number of the message of a room that bears an id; None for none."""
        if not self._is_thorough():
            return self._scan_for_id(room, record_id)
        source, overlay = self._look()
        for place, kind, origin, n in self._places("id = ?", (fingerprint(record_id),)):
            if (place, kind) == (room, MESSAGES):
                log = log_path(room, MESSAGES, origin)
                line = reading.record(source, log, n, overlay)
                if line is not None and identity(line) == record_id:
                    return log, n
        return None

    def bearers_of(self, record_id: str) -> list[tuple[str, str, int]]:
        """Return room, origin and number of the messages of all rooms that may bear an id.

        The caller looks at the record itself: another id may have the same fingerprint.
        """
        if not self._is_thorough():
            found = ((row.path, self._scan_for_id(row.path, record_id)) for row in self.rooms())
            return [(room, at[0].rpartition("/")[2], at[1]) for room, at in found if at]
        places = self._places("id = ?", (fingerprint(record_id),))
        return [(room, origin, n) for room, kind, origin, n in places if kind == MESSAGES]

    def find_ids(self, room: str, record_ids: Iterable[str]) -> dict[str, tuple[str, int]]:
        """Return log and number of the messages of a room that may bear one of many ids.

        The caller looks at the record itself: another id may have the same fingerprint. The
        journal is followed once, so that many ids cost little more than one.
        """
        if not self._writable:
            found = {i: self.find_id(room, i) for i in record_ids}
            return {i: place for i, place in found.items() if place is not None}

        wanted = tuple(record_ids)
        return self._answer(lambda link: indexfile.places_of_ids(link, room, wanted))

    def correlated(self, correlation: str) -> list[tuple[str, str, str, int]]:
        """Return room, log, origin and number of the records of a correlation."""
        return self._places("correlation = ?", (correlation,))

    def caused_by(self, cause: str) -> list[tuple[str, str, str, int]]:
        """Return room, log, origin and number of the records that answer an id."""
        return self._places("cause = ?", (cause,))

    def addressed_to(self, name: str) -> list[tuple[str, str, str, int]]:
        """Return room, log, origin and number of the records addressed to a name."""
        return self._places(
            "(log_id, n) IN (SELECT log_id, n FROM main.recipients WHERE name = ?1"  # noqa: S608 - only names from this package
            + (
                " UNION SELECT log_id, n FROM disk.recipients WHERE name = ?1"
                if self._on_disk()
                else ""
            )
            + ")",
            (name,),
        )

    def ask(self, question: Callable[[sqlite3.Connection], T], *, thorough: bool = False) -> T:
        """Follow the journal and return what a question finds in ``main``.

        With ``thorough`` every record is there, or in ``disk`` below an index in memory; one that
        lies over no file reads all logs for that.
        """
        with self._guard:
            if thorough and not self._is_thorough():
                self.close()
                self._connection, self._attached = indexfile.open_memory(None)
                self._process, self._thorough = os.getpid(), True
            return self._answer(question)

    def follow(self) -> None:
        """Bring the index up to what the journal holds now."""
        self._answer(lambda _link: None)

    def rebuild(self) -> None:
        """Throw everything away and read all logs again."""
        with self._guard:
            self.close()
            if self._writable:
                self._connection = indexfile.replace_file(self._layout)
                self._process = os.getpid()
            self.follow()

    # --- following -----------------------------------------------------------------------------

    def _answer(self, ask: Callable[[sqlite3.Connection], T]) -> T:
        """Follow the journal, then ask; a damaged file is thrown away and built again, once."""
        with self._guard:
            try:
                self._catch_up()
                return indexfile.asked(self._connected(), ask)
            except sqlite3.OperationalError as error:
                if not indexfile.is_damage(error):
                    raise Busy(
                        f"The index {self._layout.index_db} is in use: {error}.",
                        path=str(self._layout.index_db),
                    ) from error
            except sqlite3.DatabaseError:
                pass
            self.close()
            self._connection = self._fresh()
            self._catch_up()
            return indexfile.asked(self._connected(), ask)

    def _fresh(self) -> sqlite3.Connection:
        self._process = os.getpid()
        if self._writable:
            return indexfile.replace_file(self._layout)
        self._attached, self._thorough = False, False
        return indexfile.open_memory(None)[0]

    def _connected(self) -> sqlite3.Connection:
        if self._connection is not None and self._process != os.getpid():
            # SQLite forbids a forked child to touch its parent's connection, even to close it.
            _abandoned.append(self._connection)
            self._connection = self._seen = self._rooms = self._heads = None
        if self._connection is None:
            self._process = os.getpid()
            if self._writable:
                self._connection = indexfile.open_file(self._layout)
            else:
                self._connection, self._attached = indexfile.open_memory(self._layout.index_db)
                self._thorough = self._attached
        return self._connection

    def _catch_up(self) -> None:
        link = self._connected()
        kept = journal.generations(self._layout)
        now = (0, 0, foreign.stamp_with_main(self._layout))
        if kept:
            with contextlib.suppress(FileNotFoundError):
                size = journal.generation_path(self._layout, kept[-1]).stat().st_size
                now = (kept[-1], size, now[2])
        version = self._version(link)
        if self._seen == (*now, version) and kept:
            return
        with indexfile.transaction(link):
            changed = self._apply_new(link)
        version = self._version(link)
        if changed or self._seen is None or self._seen[3] != version:
            self._rooms = self._heads = None
        self._seen = (*now, version)

    def _version(self, link: sqlite3.Connection) -> int:
        """Return what changes when another process has written to the file."""
        return int(link.execute("PRAGMA data_version").fetchone()[0]) if self._writable else 0

    def _apply_new(self, link: sqlite3.Connection) -> bool:
        generation, offset, last_frame = self._place(link)
        marked = foreign.read(self._layout)
        known = indexfile.mark_of(link)
        follower = journal.Follower(
            self._layout,
            None if generation < 0 else generation,
            max(offset, 0),
            None if last_frame < 0 else last_frame,
        )
        try:
            frames = follower.new_frames()
            place = (*follower.position, follower.last_frame or 0)
            compare = generation < 0 or follower.lost or known != marked
        finally:
            follower.close()
        if place == (generation, offset, last_frame) and not compare:
            return False
        filler = Filler(link, self._look, thorough=self._thorough, memory=not self._writable)
        if compare:
            filler.compare()
        else:
            filler.apply(frames)
        link.executemany(
            "INSERT OR REPLACE INTO meta VALUES (?, ?)",
            [
                ("generation", str(place[0])),
                ("offset", str(place[1])),
                ("frame", str(place[2])),
                ("foreign", marked),
            ],
        )
        return bool(frames) or compare

    def _place(self, link: sqlite3.Connection) -> tuple[int, int, int]:
        found = dict(link.execute("SELECT key, value FROM meta"))
        try:
            return int(found["generation"]), int(found["offset"]), int(found["frame"])
        except (KeyError, ValueError):
            return -1, -1, -1

    # --- asking --------------------------------------------------------------------------------

    def _all_rooms(self, link: sqlite3.Connection) -> list[RoomRow]:
        if self._rooms is None:
            found = link.execute(f"SELECT {ROOM_COLUMNS} FROM rooms ORDER BY path")  # noqa: S608 - only names from this package
            self._rooms = [_row(values) for values in found]
        return self._rooms

    def _all_heads(self, link: sqlite3.Connection) -> dict[str, tuple[Head, ...]]:
        if self._heads is None:
            heads: dict[str, tuple[Head, ...]] = {}
            for room, log_id, origin, last, last_at, last_history in link.execute(
                "SELECT room, log_id, origin, last, last_at, last_history FROM logs"
                " WHERE kind = 'messages' AND last > 0 ORDER BY origin"
            ):
                head = Head(
                    log_id=log_id,
                    origin=origin,
                    last=last,
                    last_at=last_at,
                    last_history=last_history,
                )
                heads[room] = (*heads.get(room, ()), head)
            self._heads = heads
        return self._heads

    def _find(self, condition: str, value: str) -> list[RoomRow]:
        query = f"SELECT {ROOM_COLUMNS} FROM rooms WHERE {condition} ORDER BY path"  # noqa: S608 - only names from this package
        return self._answer(lambda link: [_row(row) for row in link.execute(query, (value,))])

    def _places(
        self, condition: str, values: tuple[str | int, ...]
    ) -> list[tuple[str, str, str, int]]:
        def ask(link: sqlite3.Connection) -> list[tuple[str, str, str, int]]:
            found: set[tuple[str, str, str, int]] = set()
            for schema in ("main", "disk") if self._attached else ("main",):
                # Numbers past what a log is known to hold belong to a past that was given up.
                query = (
                    f"SELECT logs.room, logs.kind, logs.origin, n FROM {schema}.records AS records"  # noqa: S608 - only names from this package
                    f" JOIN main.logs AS logs USING (log_id) WHERE {condition} AND n <= logs.last"
                    f" AND logs.kind <> '{ASIDE}'"
                )
                found.update(link.execute(query, values))
            return sorted(found)

        return self._answer(ask)

    def _on_disk(self) -> bool:
        with self._guard:
            self._connected()
            return self._attached

    def _is_thorough(self) -> bool:
        with self._guard:
            self._connected()
            return self._thorough

    def _scan_for_id(self, room: str, record_id: str) -> tuple[str, int] | None:
        source, overlay = self._look()
        for origin in reading.origins(source, room, MESSAGES, overlay):
            log = log_path(room, MESSAGES, origin)
            for n, line in reading.records(source, log, 0, None, overlay):
                if identity(line) == record_id:
                    return log, n
        return None

    def _look_alone(self) -> tuple[Source, Overlay]:
        follower = journal.Follower.newest(self._layout)
        try:
            return WorkTree(self._layout.root), Overlay(follower.new_frames())
        finally:
            follower.close()


_abandoned: list[sqlite3.Connection] = []


def _row(values: tuple[str, ...]) -> RoomRow:
    path, room_id, title, folder, slug, members, created_at, created_by, origin = values
    return RoomRow(
        path=path,
        id=room_id,
        title=title,
        folder=folder,
        slug=slug,
        members=tuple(msgspec.json.decode(members)),
        created_at=created_at,
        created_by=created_by,
        origin=origin,
    )
