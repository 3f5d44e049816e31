"""What an open ledger holds on to: closing lets go of all of it, whatever there is to finish."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agent_chatroom_ledger.storage.index import Index

if TYPE_CHECKING:
    from tests.conftest import MakeLedger


def test_closing_brings_the_index_file_up_also_to_new_rooms(make_ledger: MakeLedger) -> None:
    """The rooms that it has to read anew are read, although the ledger counts as closed."""
    ledger = make_ledger()
    ledger.create_room("First")
    ledger.index.follow()
    room = ledger.create_room("Second", members=["Ben"])
    room.post_many([{"author": "Ana", "body": "x" * 1_000}] * 100)
    assert (ledger.index.behind_bytes() or 0) > 65_536
    ledger.close()
    ledger.close()
    index = Index(ledger.layout)
    assert (index.behind_bytes() or 0) < 65_536
    assert index.room_at(room.path) is not None
    index.close()
