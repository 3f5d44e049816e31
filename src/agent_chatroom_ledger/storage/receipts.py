"""Receipts: what was handed over to whom, outside version control and never leaving the machine.

One SQLite file for all agents of a ledger. It is no derived data: one that cannot be read is an
error that names it and the way out, never taken for a first run, which would hand everything out
again. A record is never handed over twice because two tables disagree: receipt and place are
written in one transaction. A power cut may take back the last of them; what they told of is then
handed over once more, never lost.
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
import threading
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import msgspec

from agent_chatroom_ledger.errors import Busy, Corrupt, Forbidden, InvalidInput, LedgerError
from agent_chatroom_ledger.storage import failpoints, files
from agent_chatroom_ledger.storage.sqliteuri import sqlite_uri

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from pathlib import Path

    from agent_chatroom_ledger.storage.layout import Layout

FORMAT: Final = 1
WAIT_SECONDS_MAX: Final = 10.0
# Room id and origin: a log of messages, whatever path its room has.
LogKey: TypeAlias = tuple[str, str]

_DDL: Final = """
CREATE TABLE handed (
    name TEXT NOT NULL, room TEXT NOT NULL, origin TEXT NOT NULL, n INTEGER NOT NULL,
    record TEXT NOT NULL, at TEXT NOT NULL, last_at TEXT NOT NULL, times INTEGER NOT NULL,
    door TEXT NOT NULL, session TEXT NOT NULL, beyond INTEGER NOT NULL,
    PRIMARY KEY (name, room, origin, n)) WITHOUT ROWID;
CREATE INDEX handed_by_record ON handed (record);
CREATE INDEX handed_beyond ON handed (name) WHERE beyond = 1;
CREATE TABLE places (
    name TEXT NOT NULL, room TEXT NOT NULL, origin TEXT NOT NULL, n INTEGER NOT NULL,
    PRIMARY KEY (name, room, origin)) WITHOUT ROWID;
CREATE TABLE low_water (name TEXT PRIMARY KEY, mark TEXT NOT NULL, at INTEGER NOT NULL)
    WITHOUT ROWID;
CREATE TABLE told (target TEXT NOT NULL, sender TEXT NOT NULL, PRIMARY KEY (target, sender))
    WITHOUT ROWID;
CREATE INDEX told_by_sender ON told (sender);
CREATE TABLE sends (session TEXT PRIMARY KEY, count INTEGER NOT NULL) WITHOUT ROWID;
"""


class Handed(msgspec.Struct, frozen=True, kw_only=True):
    """A receipt: one record that a door gave to one name.

    ``at`` is the first time and ``last_at`` the last of ``times``; door and session are of the
    last time.
    """

    name: str
    room: str
    origin: str
    n: int
    record: str
    at: str
    last_at: str
    times: int
    door: str
    session: str


class Given(msgspec.Struct, frozen=True, kw_only=True):
    """A record that a door is giving: its room's id, where it stands, and its own id."""

    room: str
    origin: str
    n: int
    record: str


class LowWater(msgspec.Struct, frozen=True, kw_only=True):
    """Up to which time nothing waits for a name, as long as a mark of the index stays the same."""

    mark: str
    at: int


# What SQLite's codes mean for us; the low byte is the kind (https://sqlite.org/rescode.html).
_PRIMARY: Final = 0xFF
_DAMAGE: Final = {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_ERROR}
_DENIED: Final = {sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_PERM}
_COLUMNS: Final = "name, room, origin, n, record, at, last_at, times, door, session"


class Receipts:
    """The receipts of a ledger; safe for threads and for several processes.

    Reading makes no file. Raises Corrupt (code ``receipts_damaged``) for a file that is damaged,
    Busy when another process keeps it locked, Forbidden when it may not be written.
    """

    def __init__(self, layout: Layout) -> None:
        """Open nothing yet."""
        self._layout = layout
        self._guard = threading.RLock()
        self._process = os.getpid()
        self._connection: sqlite3.Connection | None = None
        self._writable = False

    @property
    def path(self) -> Path:
        """The file."""
        return self._layout.receipts

    def close(self) -> None:
        """Close the file; it is opened again when it is needed."""
        with self._guard:
            if self._connection is not None and self._process == os.getpid():
                self._connection.close()
            self._connection = None

    # --- reading -------------------------------------------------------------------------------

    def places(self, name: str, room: str | None = None) -> dict[LogKey, int]:
        """Return, by room id and origin, through which number everything is done with."""
        query = "SELECT room, origin, n FROM places WHERE name = ?1"
        if room is not None:
            query += " AND room = ?2"
        values = (name,) if room is None else (name, room)
        return {(row[0], row[1]): row[2] for row in self._rows(query, values)}

    def beyond(self, name: str) -> set[tuple[str, str, int]]:
        """Return room id, origin and number of what was handed over past its place."""
        query = "SELECT room, origin, n FROM handed WHERE name = ? AND beyond = 1"
        return {(row[0], row[1], row[2]) for row in self._rows(query, (name,))}

    def low_water(self, name: str) -> LowWater | None:
        """Return up to which time nothing waits for a name; None when that is not known."""
        rows = self._rows("SELECT mark, at FROM low_water WHERE name = ?", (name,))
        return LowWater(mark=rows[0][0], at=rows[0][1]) if rows else None

    def of_record(self, record: str) -> list[Handed]:
        """Return the receipts of the records that bear an id, in whatever room, by name."""
        query = f"SELECT {_COLUMNS} FROM handed WHERE record = ? ORDER BY name, room"  # noqa: S608 - only names from this package
        return [_handed(row) for row in self._rows(query, (record,))]

    def of_name(self, name: str, seen: Mapping[str, Mapping[str, int]], count: int) -> list[Handed]:
        """Return the newest receipts of a name that are past a position of each room.

        ``seen`` is by room id, then origin. At most ``count``, the one handed over last first.
        """
        query = (
            f"SELECT {_COLUMNS} FROM handed WHERE name = ?1 AND room = ?2 AND origin = ?3"  # noqa: S608 - only names from this package
            " AND n > ?4 ORDER BY n DESC LIMIT ?5"
        )
        logs = self._rows("SELECT DISTINCT room, origin FROM handed WHERE name = ?", (name,))
        found = [
            _handed(row)
            for room, origin in logs
            for row in self._rows(
                query, (name, room, origin, seen.get(room, {}).get(origin, 0), count)
            )
        ]
        found.sort(key=lambda receipt: (receipt.last_at, receipt.n), reverse=True)
        return found[:count]

    def told(self, sender: str) -> set[str]:
        """Return the names of which a sender has heard that nobody is live under them."""
        return {row[0] for row in self._rows("SELECT target FROM told WHERE sender = ?", (sender,))}

    def sends(self, session: str) -> int:
        """Return how many messages a session has sent."""
        rows = self._rows("SELECT count FROM sends WHERE session = ?", (session,))
        return int(rows[0][0]) if rows else 0

    def check(self) -> list[tuple[str, str, str, int]]:
        """Read the whole file, and return name, room id, origin and number of every place.

        Raises as every method does where it is damaged.
        """
        troubles = [row[0] for row in self._rows("PRAGMA quick_check(3)", ())]
        if troubles not in ([], ["ok"]):
            raise self._damaged("; ".join(str(trouble) for trouble in troubles))
        rows = self._rows("SELECT name, room, origin, n FROM places ORDER BY 1, 2, 3", ())
        return [(row[0], row[1], row[2], row[3]) for row in rows]

    # --- writing -------------------------------------------------------------------------------

    def confirm(
        self,
        name: str,
        given: Iterable[Given],
        places: Mapping[LogKey, int],
        low_water: LowWater | None = None,
        *,
        at: str,
        door: str,
        session: str = "",
    ) -> None:
        """Write receipts and places in one step; a place never moves back."""
        with self._transaction() as link:
            link.executemany(
                "INSERT INTO handed VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?6, 1, ?7, ?8, 1)"
                " ON CONFLICT DO UPDATE SET last_at = ?6, times = times + 1, door = ?7,"
                " session = ?8",
                [(name, g.room, g.origin, g.n, g.record, at, door, session) for g in given],
            )
            self._move(link, name, places)
            if low_water is not None:
                link.execute(
                    "INSERT OR REPLACE INTO low_water VALUES (?, ?, ?)",
                    (name, low_water.mark, low_water.at),
                )

    def drop(self, name: str, room: str, places: Mapping[str, int]) -> None:
        """Move a name's place in a room to where each origin's messages end: none of them waits.

        It is on stable storage when the call returns.
        """
        with self._transaction(durable=True) as link:
            self._move(link, name, {(room, origin): n for origin, n in places.items()})

    def tell(self, sender: str, targets: Iterable[str]) -> None:
        """Note that a sender hears that nobody is live under some names."""
        rows = [(sender, target) for target in targets]
        if rows:
            with self._transaction() as link:
                link.executemany("INSERT OR IGNORE INTO told (sender, target) VALUES (?, ?)", rows)

    def untell(self, targets: Iterable[str]) -> None:
        """Forget whom was told that nobody is live under some names: they are seen live."""
        seen = list(targets)
        marks = ",".join("?" * len(seen))
        if seen and self._rows(f"SELECT 1 FROM told WHERE target IN ({marks}) LIMIT 1", seen):  # noqa: S608 - question marks
            with self._transaction() as link:
                link.execute(f"DELETE FROM told WHERE target IN ({marks})", seen)  # noqa: S608 - question marks

    def count_send(self, session: str, limit: int | None = None) -> int | None:
        """Count one more message of a session and return how many; None if that is past a limit.

        Then nothing is counted.
        """
        with self._transaction() as link:
            row = link.execute("SELECT count FROM sends WHERE session = ?", (session,)).fetchone()
            count = (int(row[0]) if row else 0) + 1
            if limit is not None and count > limit:
                return None
            link.execute("INSERT OR REPLACE INTO sends VALUES (?, ?)", (session, count))
            return count

    def uncount_send(self, session: str) -> None:
        """Take back one message of a session that was counted and then not written."""
        with self._transaction() as link:
            link.execute(
                "UPDATE sends SET count = count - 1 WHERE session = ? AND count > 0", (session,)
            )

    def _move(self, link: sqlite3.Connection, name: str, places: Mapping[LogKey, int]) -> None:
        rows = [(name, room, origin, n) for (room, origin), n in places.items()]
        link.executemany(
            "INSERT INTO places VALUES (?, ?, ?, ?)"
            " ON CONFLICT DO UPDATE SET n = excluded.n WHERE excluded.n > n",
            rows,
        )
        # Of all that is beyond its place now: a place may have been moved while a door gave this.
        link.execute(
            "UPDATE handed SET beyond = 0 WHERE name = ? AND beyond = 1 AND n <= (SELECT p.n"
            " FROM places AS p WHERE p.name = handed.name AND p.room = handed.room"
            " AND p.origin = handed.origin)",
            (name,),
        )

    # --- the file ------------------------------------------------------------------------------

    def _rows(self, query: str, values: Iterable[object]) -> list[tuple[Any, ...]]:
        with self._guard, self._clear_errors():
            link = self._connected(write=False)
            return [] if link is None else link.execute(query, tuple(values)).fetchall()

    @contextlib.contextmanager
    def _transaction(self, *, durable: bool = False) -> Iterator[sqlite3.Connection]:
        with self._guard, self._clear_errors():
            link = self._connected(write=True)
            assert link is not None
            # With a write-ahead log nothing can tear it; a commit that a power cut takes back
            # means one more hand-over, so most of them do not wait for the disk.
            link.execute(f"PRAGMA synchronous = {'FULL' if durable else 'NORMAL'}")
            link.execute("BEGIN IMMEDIATE")
            try:
                yield link
                failpoints.reach("receipts.written")
            except BaseException:
                if link.in_transaction:
                    link.execute("ROLLBACK")
                raise
            link.execute("COMMIT")
            failpoints.reach("receipts.committed")

    def _connected(self, *, write: bool) -> sqlite3.Connection | None:
        if self._connection is not None and self._process != os.getpid():
            # SQLite forbids a forked child to touch its parent's connection, even to close it.
            _abandoned.append(self._connection)
            self._connection = None
        if self._connection is not None and write and not self._writable:
            self._connection.close()
            self._connection = None
        if self._connection is None:
            if not self.path.exists():
                if not write:
                    return None
                self._make()
            self._process = os.getpid()
            self._writable = os.access(self.path, os.W_OK) and os.access(self.path.parent, os.W_OK)
            if write and not self._writable:
                raise Forbidden(
                    f"The receipts {self.path} may not be written.",
                    code="read_only",
                    path=str(self.path),
                )
            self._connection = self._opened()
        return self._connection

    def _opened(self) -> sqlite3.Connection:
        # Without the right to write there is no shared memory for the write-ahead log, and nobody
        # of ours writes: the file is read as it stands.
        mode = "mode=rw" if self._writable else "mode=ro&immutable=1"
        link = sqlite3.connect(
            sqlite_uri(self.path, mode),
            uri=True,
            timeout=WAIT_SECONDS_MAX,
            isolation_level=None,
            check_same_thread=False,
        )
        try:
            number = link.execute("PRAGMA user_version").fetchone()[0]
            tables = {row[0] for row in link.execute("SELECT name FROM sqlite_master")}
        except BaseException:
            link.close()
            raise
        if number > FORMAT:
            link.close()
            raise InvalidInput(
                f"The receipts {self.path} have format {number}; this version knows {FORMAT}: use "
                "the newer version.",
                code="receipts_format",
                path=str(self.path),
            )
        if number < 1 or not {"handed", "places", "low_water", "told", "sends"} <= tables:
            # Also an empty file: ours come into being with their tables.
            link.close()
            raise self._damaged("it holds no receipts")
        return link

    def _make(self) -> None:
        """Make the file beside its place and give it its name when it is whole."""
        with files.clear_errors("making the file of receipts"):
            self.path.parent.mkdir(parents=True, exist_ok=True)
            temporary = self.path.with_name(f".{os.getpid()}-{threading.get_ident()}.tmp")
            for suffix in ("", "-wal", "-shm", "-journal"):
                with contextlib.suppress(FileNotFoundError):
                    os.unlink(f"{temporary}{suffix}")
            link = sqlite3.connect(temporary, isolation_level=None)
            try:
                link.executescript(f"BEGIN; {_DDL} PRAGMA user_version = {FORMAT}; COMMIT;")
                link.execute("PRAGMA journal_mode = WAL")
            finally:
                link.close()
            failpoints.reach("receipts.made")
            try:
                # Not a rename: of two that make it at once, the first one's file stays.
                with contextlib.suppress(FileExistsError):
                    os.link(temporary, self.path)
                failpoints.reach("receipts.named")
            finally:
                os.unlink(temporary)
            files.sync_directory(self.path.parent)

    @contextlib.contextmanager
    def _clear_errors(self) -> Iterator[None]:
        try:
            yield
        except (LedgerError, sqlite3.ProgrammingError):
            raise  # the second is a fault of ours
        except sqlite3.DatabaseError as error:
            kind = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR) & _PRIMARY
            path = str(self.path)
            if kind in {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED}:
                raise Busy(f"The receipts {path} are in use: {error}.", path=path) from error
            self.close()
            if kind in _DAMAGE:
                raise self._damaged(str(error)) from error
            if kind in _DENIED:
                raise Forbidden(
                    f"The receipts {path} cannot be opened: {error}. It has to be a file that you "
                    "may read and write; what else stands there can be moved away.",
                    code="read_only",
                    path=path,
                ) from error
            full = kind == sqlite3.SQLITE_FULL
            way_out = "make room and try again" if full else "the same call may succeed later"
            raise Busy(
                f"The receipts {path} cannot be written: {error}. Nothing was marked as handed "
                f"over; {way_out}.",
                code="disk_full" if full else "io_error",
                path=path,
            ) from error

    def _damaged(self, why: str) -> Corrupt:
        return Corrupt(
            f"The receipts {self.path} are damaged: {why}. Put back a copy of the file, or move "
            "it away with what lies beside it; then what was not read yet is handed over again "
            "from the beginning.",
            code="receipts_damaged",
            path=str(self.path),
        )


_abandoned: list[sqlite3.Connection] = []


def _handed(row: tuple[Any, ...]) -> Handed:
    return msgspec.convert(dict(zip(_COLUMNS.split(", "), row, strict=True)), Handed)
