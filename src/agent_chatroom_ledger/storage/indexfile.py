"""The SQLite file behind the index: its schema, how it is opened, and how it is thrown away.

Nothing in it is the only copy of anything (invariant 8), so it is written without syncing, and one
that is damaged, old or of another schema is deleted and built again. A rollback journal is used
and not a write-ahead log, because a reader without the right to write can then open it too.
"""

from __future__ import annotations

import contextlib
import sqlite3
from typing import TYPE_CHECKING, TypeVar

from agent_chatroom_ledger.storage.locks import holding
from agent_chatroom_ledger.storage.sqliteuri import sqlite_uri

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    from agent_chatroom_ledger.storage.layout import Layout

T = TypeVar("T")

SCHEMA = 5
WAIT_SECONDS_MAX = 30.0
_ASKED_MAX = 500  # ids in one question: SQLite takes at least 999 values
# Tables that a read-only index copies into memory; it leaves the large `records` where it is.
SMALL_TABLES = ("meta", "rooms", "logs", "history")

_DDL = """
CREATE TABLE IF NOT EXISTS meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS rooms (
    path TEXT PRIMARY KEY, id TEXT NOT NULL, title TEXT NOT NULL, folder TEXT NOT NULL,
    slug TEXT NOT NULL, members TEXT NOT NULL, created_at TEXT NOT NULL,
    created_by TEXT NOT NULL, origin TEXT NOT NULL, excludes INTEGER NOT NULL) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS rooms_by_id ON rooms (id);
CREATE INDEX IF NOT EXISTS rooms_by_title ON rooms (title);
CREATE INDEX IF NOT EXISTS rooms_by_slug ON rooms (slug);
CREATE TABLE IF NOT EXISTS logs (
    log_id INTEGER PRIMARY KEY, log TEXT NOT NULL UNIQUE, room TEXT NOT NULL, kind TEXT NOT NULL,
    origin TEXT NOT NULL, last INTEGER NOT NULL, last_id TEXT NOT NULL, last_at TEXT NOT NULL,
    last_history INTEGER NOT NULL);
CREATE INDEX IF NOT EXISTS logs_by_room ON logs (room);
CREATE TABLE IF NOT EXISTS memberships (
    room TEXT NOT NULL, name TEXT NOT NULL, joined_at INTEGER NOT NULL, left_at INTEGER NOT NULL,
    PRIMARY KEY (room, name, joined_at)) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS memberships_by_name ON memberships (name);
CREATE TABLE IF NOT EXISTS history (
    log_id INTEGER NOT NULL, n INTEGER NOT NULL, PRIMARY KEY (log_id, n)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS records (
    log_id INTEGER NOT NULL, n INTEGER NOT NULL, id INTEGER NOT NULL, correlation TEXT, cause TEXT,
    at INTEGER, author TEXT NOT NULL, PRIMARY KEY (log_id, n)) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS records_by_at ON records (at) WHERE at IS NOT NULL;
CREATE INDEX IF NOT EXISTS records_by_id ON records (id);
CREATE INDEX IF NOT EXISTS records_by_correlation ON records (correlation)
    WHERE correlation IS NOT NULL;
CREATE INDEX IF NOT EXISTS records_by_cause ON records (cause) WHERE cause IS NOT NULL;
CREATE TABLE IF NOT EXISTS recipients (
    name TEXT NOT NULL, log_id INTEGER NOT NULL, n INTEGER NOT NULL,
    PRIMARY KEY (name, log_id, n)) WITHOUT ROWID;
"""


def fingerprint(record_id: str) -> int:
    """Return what stands for an id in the index: eight bytes of its hash instead of forty.

    Who finds one looks at the record itself, so two ids with one fingerprint do no harm.
    """
    try:
        from _blake2 import blake2b  # CPython's own, without all that hashlib loads
    except ImportError:
        from hashlib import blake2b

    digest = blake2b(record_id.encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return int.from_bytes(digest, "big", signed=True)


def open_file(layout: Layout) -> sqlite3.Connection:
    """Open the index file for writing, making it anew when it is missing, damaged or of old.

    The lock keeps two processes from throwing away each other's new file.
    """
    with holding(layout.locks / "index.lock"):
        try:
            return _checked(_connect(layout.index_db))
        except sqlite3.OperationalError as error:
            if _is_busy(error):
                raise
            remove_file(layout)
        except sqlite3.DatabaseError:
            remove_file(layout)
        return _checked(_connect(layout.index_db))


def replace_file(layout: Layout) -> sqlite3.Connection:
    """Throw the index file away and open a new, empty one."""
    with holding(layout.locks / "index.lock"):
        remove_file(layout)
        return _checked(_connect(layout.index_db))


def open_memory(file: Path | None) -> tuple[sqlite3.Connection, bool]:
    """Open an index in memory, over the file if there is a sound one.

    Returns the connection and whether the file is attached to it as ``disk``: then its small
    tables have been copied, and its records are there to be asked.
    """
    connection = sqlite3.connect(
        ":memory:", uri=True, isolation_level=None, check_same_thread=False
    )
    connection.executescript(_DDL)
    if file is None or not file.is_file():
        return connection, False
    try:
        connection.execute("ATTACH DATABASE ? AS disk", (sqlite_uri(file, "mode=ro"),))
        found = connection.execute("SELECT value FROM disk.meta WHERE key = 'schema'").fetchone()
        if found == (str(SCHEMA),):
            connection.execute("BEGIN")
            for table in SMALL_TABLES:
                connection.execute(f"INSERT INTO main.{table} SELECT * FROM disk.{table}")  # noqa: S608 - only names from this package
            connection.execute("COMMIT")
            return connection, True
    except sqlite3.DatabaseError:
        pass
    # A file that cannot be read is as good as none: a reader may neither mend nor delete it.
    connection.close()
    return open_memory(None)


def is_damage(error: sqlite3.DatabaseError) -> bool:
    """Tell whether an error means that the file is of no use, rather than that we are unlucky."""
    if isinstance(error, sqlite3.OperationalError):
        return not _is_busy(error) and "full" not in str(error)
    return not isinstance(error, sqlite3.ProgrammingError)


def mark_of(connection: sqlite3.Connection) -> str | None:
    """Return the mark of foreign commits that an index knows; None when it knows nothing yet."""
    found = connection.execute("SELECT value FROM main.meta WHERE key = 'foreign'").fetchone()
    return None if found is None else str(found[0])


def places_of_ids(
    connection: sqlite3.Connection, room: str, record_ids: Sequence[str]
) -> dict[str, tuple[str, int]]:
    """Return log and number of the messages of a room that may bear one of many ids."""
    marks = {i: fingerprint(i) for i in record_ids}
    waiting = list(marks.values())
    places: dict[int, tuple[str, int]] = {}
    for start in range(0, len(waiting), _ASKED_MAX):
        some = waiting[start : start + _ASKED_MAX]
        found = connection.execute(
            # In the order of these tables: a room may hold a hundred thousand records.
            "SELECT records.id, log, n FROM records CROSS JOIN logs USING (log_id)"  # noqa: S608 - question marks
            f" WHERE records.id IN ({','.join('?' * len(some))})"
            " AND room = ? AND kind = 'messages' AND n <= last",
            (*some, room),
        )
        for mark, log, n in found:
            places.setdefault(mark, (log, n))
    return {i: places[mark] for i, mark in marks.items() if mark in places}


@contextlib.contextmanager
def transaction(connection: sqlite3.Connection) -> Iterator[None]:
    """Change the index in one step, alone."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise
    connection.execute("COMMIT")


def asked(connection: sqlite3.Connection, question: Callable[[sqlite3.Connection], T]) -> T:
    """Return what a question of several parts finds, all of it as of one moment.

    Other processes write to the file. Between two parts of a question they may add what the first
    has not found and the second reckons with.
    """
    connection.execute("BEGIN")
    try:
        return question(connection)
    finally:
        if connection.in_transaction:
            connection.execute("COMMIT")


def remove_file(layout: Layout) -> None:
    """Delete the index file and what SQLite keeps beside it."""
    for suffix in ("", "-journal", "-wal", "-shm"):
        with contextlib.suppress(FileNotFoundError):
            layout.index_db.with_name(layout.index_db.name + suffix).unlink()


def _connect(path: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(
        path, timeout=WAIT_SECONDS_MAX, isolation_level=None, check_same_thread=False
    )
    connection.execute("PRAGMA journal_mode = TRUNCATE")
    connection.execute("PRAGMA synchronous = OFF")
    return connection


def _checked(connection: sqlite3.Connection) -> sqlite3.Connection:
    try:
        # The first word of an index that was being made while its maker was killed.
        names = {name for (name,) in connection.execute("SELECT name FROM sqlite_master")}
        if "meta" in names:
            _check_schema(connection)
            return connection
        with transaction(connection):
            for statement in _DDL.split(";"):
                connection.execute(statement)
            connection.execute("INSERT OR REPLACE INTO meta VALUES ('schema', ?)", (str(SCHEMA),))
    except BaseException:
        connection.close()
        raise
    return connection


def _check_schema(connection: sqlite3.Connection) -> None:
    found = connection.execute("SELECT value FROM meta WHERE key = 'schema'").fetchone()
    if found != (str(SCHEMA),):
        raise sqlite3.DatabaseError("the index has another schema")


def _is_busy(error: sqlite3.OperationalError) -> bool:
    return "locked" in str(error) or "busy" in str(error)
