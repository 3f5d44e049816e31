"""Rooms whose titles a person takes for the same, out of very many, in little time."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agent_chatroom_ledger.domain.names import fold_title

if TYPE_CHECKING:
    import sqlite3

    from agent_chatroom_ledger.storage.index import Index, RoomRow


def same_titled(index: Index, title: str) -> list[RoomRow]:
    """Return the rooms whose title is the same, whatever its case and spacing; by path.

    It is asked under the journal's lock, so only the titles of the others are looked at.
    """
    wanted = fold_title(title)
    alike = [known for known in index.ask(_titles) if fold_title(known) == wanted]
    found = [row for known in alike for row in index.rooms_by_title(known)]
    return sorted(found, key=lambda row: row.path)


def _titles(link: sqlite3.Connection) -> list[str]:
    return [title for (title,) in link.execute("SELECT DISTINCT title FROM rooms")]
