"""The timeline: which commit stood when, and which commits name a room, without reading history.

A small SQLite file, derived and disposable (invariant 8): a row for each commit of main, with its
time, its generation (the longest way from the first commit) and the rooms in its trailers. It is
extended by the commits that main has gained since, and made anew when main was rewound, when a
shallow clone was deepened, and when the file is damaged. Deleting it costs one walk of history.
"""

from __future__ import annotations

import contextlib
import hashlib
import re
import sqlite3
import threading
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from agent_chatroom_ledger.storage import files, refs
from agent_chatroom_ledger.storage.indexfile import WAIT_SECONDS_MAX, asked, is_damage, transaction
from agent_chatroom_ledger.storage.objects import COMMIT, NO_OBJECT
from agent_chatroom_ledger.storage.packreader import PackReader

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from agent_chatroom_ledger.storage.layout import Layout
    from agent_chatroom_ledger.storage.objects import Objects

T = TypeVar("T")
SCHEMA = "1"
_HEAD = re.compile(
    rb"tree [0-9a-f]{40}\n((?:parent [0-9a-f]{40}\n)*)author [^\n]*\ncommitter [^\n]*> (\d{1,10}) "
)
_ROOM = re.compile(rb"\nRoom: ([^\n]*)(?=\n)")
_FRAME = re.compile(rb"\nFrame: (\d{1,18})(?=\n)")
_DDL = """
CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE commits (place INTEGER PRIMARY KEY, oid BLOB NOT NULL UNIQUE,
    seconds INTEGER NOT NULL, generation INTEGER NOT NULL);
CREATE INDEX commits_by_time ON commits (seconds, generation);
CREATE TABLE rooms (room_id INTEGER PRIMARY KEY, path TEXT NOT NULL UNIQUE);
CREATE TABLE touched (room_id INTEGER NOT NULL, place INTEGER NOT NULL,
    PRIMARY KEY (room_id, place)) WITHOUT ROWID;
"""


class _New(NamedTuple):
    """A commit that the file lacks."""

    parents: tuple[bytes, ...]
    seconds: int
    rooms: tuple[bytes, ...]


class Timeline:
    """Answers for main as it stands when it is asked.

    With ``writable`` false nothing on disk changes: what the file lacks is added in memory.
    """

    def __init__(self, layout: Layout, objects: Objects, *, writable: bool) -> None:
        """Open nothing yet."""
        self._layout = layout
        self._objects = objects
        self._path = layout.private / "timeline.sqlite3"
        self._writable = writable and layout.writable
        self._guard = threading.RLock()
        self._connection: sqlite3.Connection | None = None

    def close(self) -> None:
        """Close the file."""
        with self._guard:
            if self._connection is not None:
                self._connection.close()
                self._connection = None

    def behind(self) -> int:
        """Return about how many commits the file lacks.

        It compares frame numbers, so commits by hand do not count.
        """
        main = refs.read_main(self._layout)
        known: dict[str, str] = {}
        if self._path.is_file():
            with self._guard, contextlib.suppress(sqlite3.DatabaseError):
                known = _meta(self._connected())
        if known.get("main") == main:
            return 0
        return abs(self._frame(main) - int(known.get("frame", "0")))

    def follow(self) -> None:
        """Bring the file up to main."""
        self._answer(lambda _: None)

    def commit_at(self, seconds: int) -> str | None:
        """Return the newest commit that was written at or before a time; None for none.

        Where a clock ran back, a commit counts as written no earlier than its parents.
        """

        def ask(link: sqlite3.Connection) -> str | None:
            row = link.execute(
                "SELECT oid FROM commits WHERE seconds <= ?"
                " ORDER BY seconds DESC, generation DESC, oid LIMIT 1",
                (seconds,),
            ).fetchone()
            return None if row is None else bytes(row[0]).hex()

        return self._answer(ask)

    def touching(self, room: str, *, seconds: int | None = None) -> list[str]:
        """Return the commits that name a room, newest first; of one second if it is given."""

        def ask(link: sqlite3.Connection) -> list[str]:
            rows = link.execute(
                "SELECT oid FROM rooms JOIN touched USING (room_id) JOIN commits USING (place)"
                " WHERE path = ?1 AND seconds = coalesce(?2, seconds)"
                " ORDER BY seconds DESC, generation DESC, oid",
                (room, seconds),
            )
            return [bytes(oid).hex() for (oid,) in rows]

        return self._answer(ask)

    def written_at(self, seconds: int) -> list[str]:
        """Return the commits of one second, newest first."""

        def ask(link: sqlite3.Connection) -> list[str]:
            rows = link.execute(
                "SELECT oid FROM commits WHERE seconds = ? ORDER BY generation DESC, oid",
                (seconds,),
            )
            return [bytes(oid).hex() for (oid,) in rows]

        return self._answer(ask)

    def ancestor(self, commit: str, steps: int) -> str | None:
        """Return the commit so many steps before another; None where main is no single line."""

        def ask(link: sqlite3.Connection) -> str | None:
            count, top = link.execute("SELECT count(*), max(generation) FROM commits").fetchone()
            if count != top:
                return None
            row = link.execute(
                "SELECT a.oid FROM commits AS a, commits AS b"
                " WHERE b.oid = ? AND a.place = b.place - ?",
                (bytes.fromhex(commit), steps),
            ).fetchone()
            return None if row is None else bytes(row[0]).hex()

        return self._answer(ask)

    # --- following -----------------------------------------------------------------------------

    def _answer(self, ask: Callable[[sqlite3.Connection], T]) -> T:
        with self._guard:
            try:
                return self._asked(ask)
            except sqlite3.DatabaseError as error:
                if not is_damage(error):
                    raise
            self.close()
            if self._writable:
                _remove(self._path)
            else:
                # A reader may neither mend nor delete the file: it does without.
                self._connection = _fresh(":memory:")
            return self._asked(ask)

    def _asked(self, ask: Callable[[sqlite3.Connection], T]) -> T:
        link = self._connected()
        main = refs.read_main(self._layout)
        stamp = self._stamp()
        known = _meta(link)
        if (known.get("main"), known.get("shallow")) != (main, stamp):
            with transaction(link):
                self._extend(link, main, stamp)
        return asked(link, ask)

    def _stamp(self) -> str:
        """Return what changes when a shallow clone is cut off elsewhere."""
        shallow = files.read_bytes(self._layout.git / "shallow") or b""
        return hashlib.sha1(shallow, usedforsecurity=False).hexdigest() if shallow else ""

    def _connected(self) -> sqlite3.Connection:
        if self._connection is None:
            if self._writable:
                self._connection = _open(self._path)
            else:
                self._connection = _in_memory(self._path)
        return self._connection

    def _frame(self, main: str) -> int:
        found = None if main == NO_OBJECT else _FRAME.search(self._objects.data(main, COMMIT))
        return 0 if found is None else int(found[1])

    def _extend(self, link: sqlite3.Connection, main: str, stamp: str) -> None:
        known = _meta(link)
        tip = known.get("main", NO_OBJECT)
        new, met = self._gather(link, main)
        if known.get("shallow", "") != stamp or (tip != NO_OBJECT and tip not in met):
            # Main no longer holds all that the file speaks of.
            for table in ("touched", "rooms", "commits"):
                link.execute(f"DELETE FROM {table}")  # noqa: S608 - only names from this package
            new, _ = self._gather(link, main)
        self._insert(link, new, main)
        link.executemany(
            "INSERT OR REPLACE INTO meta VALUES (?, ?)",
            [("main", main), ("shallow", stamp), ("frame", str(self._frame(main)))],
        )

    def _gather(self, link: sqlite3.Connection, main: str) -> tuple[dict[bytes, _New], set[str]]:
        """Return the commits of main that the file lacks, and those it has where they begin."""
        new: dict[bytes, _New] = {}
        met: set[str] = set()
        waiting = [] if main == NO_OBJECT else [main]
        names: dict[bytes, bytes] = {}
        some = link.execute("SELECT 1 FROM commits LIMIT 1").fetchone() is not None
        # For all of history it pays to read packs by a way of our own.
        packs = None if some else PackReader(self._layout)
        while waiting:
            oid = waiting.pop()
            name = bytes.fromhex(oid)
            if name in new:
                continue
            if some and link.execute("SELECT 1 FROM commits WHERE oid = ?", (name,)).fetchone():
                met.add(oid)
                continue
            if packs is None:
                data = self._objects.data(oid, COMMIT)
            else:
                data = packs.commit(self._objects, oid)
            head = _HEAD.match(data)
            parents: tuple[str, ...] = ()
            if head is None:
                # A commit that another tool has laid out in its own way, or of an odd time.
                info = self._objects.as_commit(oid, data)
                parents, seconds = info.parents, info.committer_seconds
            else:
                seconds = int(head[2])
                if not self._objects.is_cut_off(oid):
                    parents = tuple(head[1].decode("ascii").replace("parent ", "").split())
            waiting.extend(parents)
            rooms = tuple(dict.fromkeys(names.setdefault(r, r) for r in _ROOM.findall(data)))
            new[name] = _New(tuple(map(bytes.fromhex, parents)), seconds, rooms)
        if packs is not None:
            packs.close()
        return new, met

    def _insert(self, link: sqlite3.Connection, new: dict[bytes, _New], main: str) -> None:
        """Add commits, each after its parents."""
        place = link.execute("SELECT coalesce(max(place), 0) FROM commits").fetchone()[0]
        rooms = {path: room_id for room_id, path in link.execute("SELECT * FROM rooms")}
        done: dict[bytes, tuple[int, int]] = {}
        commits: list[tuple[int, bytes, int, int]] = []
        touched: list[tuple[int, int]] = []
        waiting = [] if main == NO_OBJECT or not new else [bytes.fromhex(main)]
        while waiting:
            name = waiting[-1]
            if name in done:
                waiting.pop()
                continue
            commit = new[name]
            missing = [p for p in commit.parents if p in new and p not in done]
            if missing:
                waiting += missing
                continue
            waiting.pop()
            above = [done.get(p) or _known(link, p) for p in commit.parents]
            seconds = max([commit.seconds, *(s for s, _ in above)])
            generation = 1 + max((g for _, g in above), default=0)
            done[name] = (seconds, generation)
            place += 1
            commits.append((place, name, seconds, generation))
            for room in commit.rooms:
                path = room.decode("utf-8", "replace")
                touched.append((rooms.setdefault(path, len(rooms) + 1), place))
        link.executemany("INSERT INTO commits VALUES (?, ?, ?, ?)", commits)
        link.executemany(
            "INSERT OR IGNORE INTO rooms VALUES (?, ?)", [(i, path) for path, i in rooms.items()]
        )
        link.executemany("INSERT OR IGNORE INTO touched VALUES (?, ?)", touched)


def _known(link: sqlite3.Connection, name: bytes) -> tuple[int, int]:
    row = link.execute("SELECT seconds, generation FROM commits WHERE oid = ?", (name,)).fetchone()
    return (0, 0) if row is None else (int(row[0]), int(row[1]))


def _meta(link: sqlite3.Connection) -> dict[str, str]:
    return dict(link.execute("SELECT key, value FROM meta"))


def _open(path: Path) -> sqlite3.Connection:
    """Open the file for writing; one that is damaged or of another schema is made anew."""
    try:
        return _fresh(path)
    except sqlite3.DatabaseError as error:
        if not is_damage(error):
            raise
    _remove(path)
    return _fresh(path)


def _fresh(path: Path | str) -> sqlite3.Connection:
    link = sqlite3.connect(
        path, timeout=WAIT_SECONDS_MAX, isolation_level=None, check_same_thread=False
    )
    try:
        link.execute("PRAGMA journal_mode = TRUNCATE")
        link.execute("PRAGMA synchronous = OFF")
        with transaction(link):
            if not link.execute("SELECT 1 FROM sqlite_master WHERE name = 'meta'").fetchone():
                for statement in _DDL.split(";"):
                    link.execute(statement)
                link.execute("INSERT INTO meta VALUES ('schema', ?)", (SCHEMA,))
        _check_schema(link)
    except BaseException:
        link.close()
        raise
    return link


def _in_memory(path: Path) -> sqlite3.Connection:
    """Open a copy of the file in memory, or nothing where there is no sound file."""
    if path.is_file():
        link = sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)
        try:
            with contextlib.closing(
                sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True, timeout=WAIT_SECONDS_MAX)
            ) as file:
                file.backup(link)
            _check_schema(link)
        except sqlite3.DatabaseError:
            link.close()
        else:
            return link
    return _fresh(":memory:")


def _check_schema(link: sqlite3.Connection) -> None:
    if _meta(link).get("schema") != SCHEMA:
        raise sqlite3.DatabaseError("the timeline has another schema")


def _remove(path: Path) -> None:
    for suffix in ("", "-journal", "-wal", "-shm"):
        path.with_name(path.name + suffix).unlink(missing_ok=True)
