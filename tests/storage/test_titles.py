"""Rooms whose titles a person takes for the same."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agent_chatroom_ledger.storage.titles import same_titled

if TYPE_CHECKING:
    from agent_chatroom_ledger import Ledger


def test_case_and_spacing_make_no_difference(ledger: Ledger) -> None:
    made = [
        ledger.create_room(title, folder=folder)
        for title, folder in (
            ("Straße 7", "b"),
            ("STRASSE  7", "a"),
            ("Straße 7", "c"),
            ("Straße 70", ""),
        )
    ]
    found = [row.path for row in same_titled(ledger.index, " strasse 7")]
    assert found == sorted(room.path for room in made[:3])
    assert same_titled(ledger.index, "Strasse") == []
    ledger.archive_room(made[0])
    assert len(same_titled(ledger.index, "strasse 7")) == 2
