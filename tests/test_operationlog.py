"""The operations of all rooms, read back in order."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from agent_chatroom_ledger import InvalidInput
from agent_chatroom_ledger.operationlog import operations

if TYPE_CHECKING:
    from agent_chatroom_ledger import Ledger


def test_operations_of_all_rooms_come_back_in_order(ledger: Ledger) -> None:
    one = ledger.create_room("One", by="Ana", reason="to begin")
    two = ledger.create_room("Two")
    one.post("Ana", "hello")
    one.exclude(1, by="Ben", reason="noise")
    two.add_member("Cleo")
    placed = one.place("1", two, reason="belongs there", by="Ana")
    two.clear_policy()  # nothing to clear, so nothing is written
    ledger.archive_room(two, by="Ana", reason="done")
    found = operations(ledger)
    assert [(o.room, o.record.kind) for o in found] == [
        ("rooms/one", "room.create"),
        ("rooms/two", "room.create"),
        ("rooms/one", "policy.exclude"),
        ("rooms/two", "members.add"),
        ("rooms/two", "messages.place"),
        ("", "room.archive"),
    ]
    assert found[4].report == placed.report
    for operation in found:
        assert operation.report["applied"] is True
        assert operation.report["operation_id"] == operation.record.id
        assert operation.report["target"]["title"] in {"One", "Two"}
    assert found[0].report["provenance"]["reason"] == "to begin"
    assert found[2].report["compile_policy"] == {"excluded_count": 1, "standin_count": 0}
    back = ledger.restore_room("two")
    assert operations(ledger)[-1].record.kind == "room.restore"
    assert [o.record.kind for o in operations(ledger, back)] == [
        "room.create",
        "members.add",
        "messages.place",
    ]


def test_a_limit_keeps_the_newest(ledger: Ledger) -> None:
    for title in ("One", "Two", "Three"):
        ledger.create_room(title)
    assert [o.room for o in operations(ledger, limit=2)] == ["rooms/two", "rooms/three"]
    assert operations(ledger, limit=0) == []
    with pytest.raises(InvalidInput):
        operations(ledger, limit=-1)


def test_the_source_of_a_placement_shows_it_too(ledger: Ledger) -> None:
    one, two = ledger.create_room("One"), ledger.create_room("Two")
    one.post("Ana", "hello")
    one.place("1", two, reason="why")
    assert [o.record.kind for o in operations(ledger, one)] == ["room.create", "messages.place"]
