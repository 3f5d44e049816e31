"""Whether a ledger has anything to do with a name, asked of the index."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import sqlite3

    from agent_chatroom_ledger.storage.index import Index


def is_involved(index: Index, name: str) -> bool:
    """Tell whether a name is or was a member of a room, or was ever written to by name."""

    def ask(link: sqlite3.Connection) -> bool:
        schemas = {row[1] for row in link.execute("PRAGMA database_list")} & {"main", "disk"}
        # The empty name marks a room whose memberships are out of date below.
        return name != "" and any(
            link.execute(
                f"SELECT 1 FROM {schema}.{table} WHERE name = ? LIMIT 1",  # noqa: S608 - names of ours
                (name,),
            ).fetchone()
            for schema in sorted(schemas)
            for table in ("memberships", "recipients")
        )

    return index.ask(ask, thorough=True)
