"""What a ledger has to do with a name, asked of the index."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from agent_chatroom_ledger.storage.indexfile import mark_of

if TYPE_CHECKING:
    import sqlite3

    from agent_chatroom_ledger.storage.index import Index


class Addressed(NamedTuple):
    """Where a record stands that names somebody: the room's path and id, origin and number."""

    path: str
    room: str
    origin: str
    n: int


def is_involved(index: Index, name: str) -> bool:
    """Tell whether a name is or was a member of a room, or was ever written to by name."""

    def ask(link: sqlite3.Connection) -> bool:
        # The empty name marks a room whose memberships are out of date below.
        return name != "" and any(
            link.execute(
                f"SELECT 1 FROM {schema}.{table} WHERE name = ? LIMIT 1",  # noqa: S608 - only names from this package
                (name,),
            ).fetchone()
            for schema in _schemas(link)
            for table in ("memberships", "recipients")
        )

    return index.ask(ask, thorough=True)


def addressed_to(index: Index, name: str, *, low: int, mark: str) -> list[Addressed]:
    """Return the records of others that may be addressed to a name, oldest first.

    Only those later than ``low`` if the index still bears ``mark``. It costs what is addressed to
    the name, however much else is in its rooms.
    """

    def ask(link: sqlite3.Connection) -> list[Addressed]:
        since = low if mark == (mark_of(link) or "") else 0
        parts = [
            f"SELECT l.room, p.id, l.origin, r.n, r.at FROM {schema}.recipients AS t"  # noqa: S608 - only names from this package
            f" CROSS JOIN {schema}.records AS r ON r.log_id = t.log_id AND r.n = t.n"
            " CROSS JOIN main.logs AS l ON l.log_id = r.log_id AND r.n <= l.last"
            " CROSS JOIN main.rooms AS p ON p.path = l.room"
            " WHERE t.name = :name AND r.at > :since AND r.author <> :name"
            for schema in _schemas(link)
        ]
        rows = link.execute(
            f"{' UNION ALL '.join(parts)} ORDER BY 5, 2, 3, 4", {"name": name, "since": since}
        )
        return [Addressed(*row[:4]) for row in rows]

    return index.ask(ask, thorough=True)


def _schemas(link: sqlite3.Connection) -> list[str]:
    found = {row[1] for row in link.execute("PRAGMA database_list")}
    return [schema for schema in ("main", "disk") if schema in found]
