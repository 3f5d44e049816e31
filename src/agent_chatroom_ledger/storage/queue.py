"""What waits for a name, asked of the index: records that may be for it, in the order of time.

The index knows time, author, recipients and memberships of every record, so that the oldest five
are found without reading a room, however much waits. Who hands a record over looks at it again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, TypeAlias

import msgspec

from agent_chatroom_ledger.domain.clock import from_micros
from agent_chatroom_ledger.storage.indexfile import mark_of
from agent_chatroom_ledger.storage.indexfill import NEVER

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Mapping
    from collections.abc import Set as AbstractSet

    from agent_chatroom_ledger.storage.index import Index

# A log of messages, whatever path its room has: the room's id and the origin.
LogKey: TypeAlias = tuple[str, str]


class Waiting(msgspec.Struct, frozen=True, kw_only=True):
    """A record that may be for a name, and where it stands.

    ``at`` is its time in microseconds as the index orders it; ``excludes`` says that the policy of
    its room leaves something out.
    """

    path: str
    room: str
    origin: str
    n: int
    at: int
    excludes: bool


class Count(msgspec.Struct, frozen=True, kw_only=True):
    """How many records of one log may be for a name; ``numbers`` only where a policy excludes."""

    path: str
    room: str
    origin: str
    count: int
    excludes: bool
    numbers: tuple[int, ...] = ()


class Queue(msgspec.Struct, frozen=True, kw_only=True):
    """The oldest records that may be for a name.

    ``whole`` says that there are no more. ``mark`` and ``newest`` are the state of the index that
    was asked: while the mark stays the same, whatever comes is newer than ``newest``, the time of
    the newest message of the ledger's own origin. (One of another origin may be of a clock ahead.)
    """

    rows: tuple[Waiting, ...]
    whole: bool
    mark: str
    newest: int


# The last microsecond that a stored time can name.
_LATEST: Final = 253_402_300_799_999_999
# Whether the records at `r` in the log `l` may be for :me. A row without a name among a room's
# memberships in memory says that those of the file below are out of date.
_MEMBER: Final = """EXISTS (SELECT 1 FROM main.memberships AS m WHERE m.room = l.room
    AND m.name = :me AND m.joined_at < r.at AND r.at < m.left_at)"""
_MEMBER_BELOW: Final = """(EXISTS (SELECT 1 FROM disk.memberships AS m WHERE m.room = l.room
    AND m.name = :me AND m.joined_at < r.at AND r.at < m.left_at)
    AND NOT EXISTS (SELECT 1 FROM main.memberships AS s WHERE s.room = l.room AND s.name = ''))"""
_ADDRESSED: Final = """EXISTS (SELECT 1 FROM {schema}.recipients AS t
    WHERE t.name = :me AND t.log_id = r.log_id AND t.n = r.n)"""
_SOURCE: Final = """
    FROM {schema}.records AS r INDEXED BY records_by_at
    CROSS JOIN main.logs AS l ON l.log_id = r.log_id
    CROSS JOIN main.rooms AS p ON p.path = l.room
    WHERE r.at > :low AND r.n <= l.last AND r.author <> :me
    AND (:room = '' OR l.room = :room)
    AND r.n > coalesce((SELECT d.n FROM temp.done AS d WHERE d.log_id = r.log_id), 0)
    AND ({member} OR {addressed}){once}"""
# Others go on writing to the file below an index in memory, which may have taken a record from the
# journal itself.
_ONCE: Final = """
    AND NOT EXISTS (SELECT 1 FROM main.records AS o WHERE o.log_id = r.log_id AND o.n = r.n)"""


# The same from a name's memberships and recipients, log by log: quicker where much waits, and
# without an order. ``low_at`` is ``low`` as text, by which logs are passed over unread.
_IN_ROOMS: Final = """
    FROM ({memberships}) AS m
    CROSS JOIN main.logs AS l ON l.room = m.room AND l.kind = 'messages' AND l.last_at > :low_at
    CROSS JOIN main.rooms AS p ON p.path = l.room
    CROSS JOIN {schema}.records AS r ON r.log_id = l.log_id AND r.n <= l.last
    AND r.n > coalesce((SELECT d.n FROM temp.done AS d WHERE d.log_id = l.log_id), 0)
    WHERE (:room = '' OR m.room = :room) AND r.at > :low AND r.author <> :me
    AND m.joined_at < r.at AND r.at < m.left_at{once}"""
_BY_NAME: Final = """
    FROM {schema}.recipients AS t
    CROSS JOIN {schema}.records AS r ON r.log_id = t.log_id AND r.n = t.n
    CROSS JOIN main.logs AS l ON l.log_id = r.log_id AND r.n <= l.last
    CROSS JOIN main.rooms AS p ON p.path = l.room
    WHERE t.name = :me AND (:room = '' OR l.room = :room) AND r.at > :low AND r.author <> :me
    AND r.n > coalesce((SELECT d.n FROM temp.done AS d WHERE d.log_id = r.log_id), 0)
    AND NOT {member}{once}"""
_MINE: Final = "SELECT room, joined_at, left_at FROM main.memberships WHERE name = :me"
_MINE_BELOW: Final = """SELECT room, joined_at, left_at FROM disk.memberships AS f
    WHERE f.name = :me AND NOT EXISTS
    (SELECT 1 FROM main.memberships AS s WHERE s.room = f.room AND s.name = '')"""


def queued(
    index: Index,
    me: str,
    *,
    mine: str,
    low: int,
    mark: str,
    places: Mapping[LogKey, int],
    limit: int,
    room: str = "",
) -> Queue:
    """Return the oldest records that may be for a name and lie past its places.

    Only those later than ``low`` are looked at if the index still bears ``mark``; ``room``, a
    path, asks for one room. ``mine`` is the ledger's own origin. At most ``limit`` rows.
    """

    def ask(link: sqlite3.Connection) -> Queue:
        now = mark_of(link) or ""
        since = low if mark == now else _beginning(link, me)
        _note_places(link, places)
        parts = [
            f"SELECT l.room, p.id, l.origin, r.n, r.at, p.excludes, r.log_id {source}"
            for source in _sources(link)
        ]
        query = f"{' UNION ALL '.join(parts)} ORDER BY 5, 7, 4 LIMIT :limit"
        values = {"me": me, "low": since, "room": room, "limit": limit + 1}
        rows = link.execute(query, values).fetchall()
        return Queue(
            rows=tuple(
                Waiting(path=path, room=room_id, origin=origin, n=n, at=at, excludes=bool(excludes))
                for path, room_id, origin, n, at, excludes, _ in rows[:limit]
            ),
            whole=len(rows) <= limit,
            mark=now,
            newest=_newest(link, mine),
        )

    return index.ask(ask, thorough=True)


def counts(
    index: Index,
    me: str,
    *,
    low: int,
    mark: str,
    places: Mapping[LogKey, int],
    beyond: AbstractSet[tuple[str, str, int]],
    room: str = "",
) -> list[Count]:
    """Return, by log, how many records may be for a name and lie past its places.

    ``beyond`` are those past a place that do not count; the rest is as in ``queued``.
    """

    def ask(link: sqlite3.Connection) -> list[Count]:
        since = low if mark == (mark_of(link) or "") else _beginning(link, me)
        _note_places(link, places)
        values = {"me": me, "low": since, "low_at": from_micros(min(since, _LATEST)), "room": room}
        totals: dict[tuple[str, str, str, bool], int] = {}
        numbers: dict[tuple[str, str, str, bool], list[int]] = {}
        for source in _counted_sources(link):
            query = (
                f"SELECT l.room, p.id, l.origin, p.excludes, count(*) {source} GROUP BY r.log_id"
            )
            for path, room_id, origin, excludes, count in link.execute(query, values):
                key = path, room_id, origin, bool(excludes)
                totals[key] = totals.get(key, 0) + count
            query = f"SELECT l.room, p.id, l.origin, r.n {source} AND p.excludes = 1"
            for path, room_id, origin, n in link.execute(query, values):
                numbers.setdefault((path, room_id, origin, True), []).append(n)
        return [
            Count(
                path=path,
                room=room_id,
                origin=origin,
                count=count - sum(1 for r, o, _ in beyond if (r, o) == (room_id, origin)),
                excludes=excludes,
                numbers=tuple(numbers.get((path, room_id, origin, excludes), ())),
            )
            for (path, room_id, origin, excludes), count in totals.items()
        ]

    return index.ask(ask, thorough=True)


def records_since(index: Index, after: int, through: int, limit: int = 1_000) -> int:
    """Return how many messages lie between two times, at most ``limit``."""

    def ask(link: sqlite3.Connection) -> int:
        return sum(
            link.execute(
                f"SELECT count(*) FROM (SELECT 1 FROM {schema}.records INDEXED BY records_by_at"  # noqa: S608 - only names from this package
                " WHERE at > ? AND at <= ? LIMIT ?)",
                (after, through, limit),
            ).fetchone()[0]
            for schema in _schemas(link)
        )

    return index.ask(ask, thorough=True)


def _newest(link: sqlite3.Connection, origin: str) -> int:
    """Return the time of an origin's newest message; 0 for none."""
    wrote = "SELECT 1 FROM main.logs WHERE origin = ? AND kind = 'messages' LIMIT 1"
    if link.execute(wrote, (origin,)).fetchone() is None:
        return 0
    newest = 0
    for schema in _schemas(link):
        row = link.execute(
            f"SELECT r.at FROM {schema}.records AS r INDEXED BY records_by_at"  # noqa: S608 - only names from this package
            " CROSS JOIN main.logs AS l ON l.log_id = r.log_id"
            " WHERE r.at IS NOT NULL AND l.origin = ? AND r.n <= l.last ORDER BY r.at DESC LIMIT 1",
            (origin,),
        ).fetchone()
        newest = max(newest, row[0] if row else 0)
    return newest


def _beginning(link: sqlite3.Connection, me: str) -> int:
    """Return a time before which nothing can be for a name."""
    times: list[int] = []
    for schema in _schemas(link):
        joined = f"SELECT min(joined_at) FROM {schema}.memberships WHERE name = ?"  # noqa: S608 - only names from this package
        addressed = (
            f"SELECT min(at) FROM {schema}.recipients JOIN {schema}.records USING (log_id, n)"  # noqa: S608 - only names from this package
            " WHERE name = ?"
        )
        for query in (joined, addressed):
            (found,) = link.execute(query, (me,)).fetchone()
            if found is not None:
                times.append(found)
    return min(times) - 1 if times else NEVER


def _note_places(link: sqlite3.Connection, places: Mapping[LogKey, int]) -> None:
    link.execute(
        "CREATE TEMP TABLE IF NOT EXISTS done (log_id INTEGER PRIMARY KEY, n INTEGER NOT NULL)"
    )
    link.execute("DELETE FROM temp.done")
    link.executemany(
        "INSERT OR REPLACE INTO temp.done SELECT log_id, ?3 FROM main.rooms JOIN main.logs"
        " ON logs.room = path WHERE rooms.id = ?1 AND logs.origin = ?2 AND kind = 'messages'",
        [(room, origin, n) for (room, origin), n in places.items()],
    )


def _sources(link: sqlite3.Connection) -> list[str]:
    schemas = _schemas(link)
    member = f"{_MEMBER} OR {_MEMBER_BELOW}" if len(schemas) > 1 else _MEMBER
    return [
        _SOURCE.format(
            schema=s, member=member, addressed=_ADDRESSED.format(schema=s), once=_once(s)
        )
        for s in schemas
    ]


def _counted_sources(link: sqlite3.Connection) -> list[str]:
    schemas = _schemas(link)
    below = len(schemas) > 1
    memberships = f"{_MINE} UNION ALL {_MINE_BELOW}" if below else _MINE
    member = f"({_MEMBER} OR {_MEMBER_BELOW})" if below else _MEMBER
    return [
        source.format(schema=schema, memberships=memberships, member=member, once=_once(schema))
        for schema in schemas
        for source in (_IN_ROOMS, _BY_NAME)
    ]


def _once(schema: str) -> str:
    return "" if schema == "main" else _ONCE


def _schemas(link: sqlite3.Connection) -> list[str]:
    found = {row[1] for row in link.execute("PRAGMA database_list")}
    return [schema for schema in ("main", "disk") if schema in found]
