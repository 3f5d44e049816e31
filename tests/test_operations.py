"""Administrative operations: planned without a trace, applied in one commit each."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from agent_chatroom_ledger import Conflict, InvalidInput, Ledger, NotFound, operations
from tests.commits import record_commits

if TYPE_CHECKING:
    from collections.abc import Callable

    from agent_chatroom_ledger import Room


@pytest.fixture
def room(ledger: Ledger) -> Room:
    found = ledger.create_room("Design review")
    found.post_many([{"author": "A", "body": str(n)} for n in range(1, 5)])
    ledger.flush()
    return found


PLANS: dict[str, Callable[[Room], operations.Plan]] = {
    "policy.exclude": lambda room: operations.plan_exclude(room, "1-2", by="Cleo", reason="noise"),
    "policy.include": lambda room: operations.plan_include(room, 4, by="Cleo"),
    "policy.standin": lambda room: operations.plan_standin(room, [1, 2], "short", standin_id="s"),
    "policy.clear": operations.plan_clear,
    "room.create": lambda room: operations.plan_create(room.ledger, "Other", members=["A"]),
}


@pytest.mark.parametrize("name", PLANS)
def test_a_plan_writes_nothing_and_applying_writes_one_commit(room: Room, name: str) -> None:
    room.exclude(4)
    room.ledger.flush()
    before = len(record_commits(room.ledger))
    plan = PLANS[name](room)
    assert plan.operation == name
    assert plan.actions
    assert len(record_commits(room.ledger)) == before
    assert plan.report["operation"] == name
    done = plan.apply()
    entries = [entry for entry in room.ledger.log() if entry.operations]
    assert len(entries) == 3
    assert entries[0].kinds[0] == name
    assert [action["text"] for action in plan.report["actions"]] == list(plan.actions)
    assert (plan.report["dry_run"], plan.report["applied"]) == (True, False)
    assert (done["dry_run"], done["applied"]) == (False, True)
    assert done["operation_type"] == name
    assert done["operation_id"] in entries[0].records


def test_a_reader_may_plan_and_not_apply(room: Room) -> None:
    room.ledger.close()
    with Ledger.open(room.ledger.root, read_only=True) as reader:
        plan = operations.plan_exclude(reader.room("design-review"), 1)
        assert plan.report["messages"] == [f"1@{reader.origin}"]
        with pytest.raises(PermissionError):
            plan.apply()


def test_a_plan_says_when_there_is_nothing_to_do(room: Room) -> None:
    before = len(record_commits(room.ledger))
    plan = operations.plan_include(room, 1)
    assert plan.actions == ("nothing: it is so already",)
    plan.apply()
    assert len(record_commits(room.ledger)) == before


def test_a_plan_refuses_what_applying_would(room: Room) -> None:
    for plan in (
        lambda: operations.plan_exclude(room, "3-9"),
        lambda: operations.plan_exclude(room, []),
        lambda: operations.plan_standin(room, 1, "x", insert_after=12),
        lambda: operations.plan_create(room.ledger, ""),
    ):
        with pytest.raises(InvalidInput):
            plan()
    with pytest.raises(Conflict):
        operations.plan_create(room.ledger, "x", folder="design-review")


def test_a_taken_name_is_a_warning(room: Room) -> None:
    plan = operations.plan_create(room.ledger, "Design review")
    assert plan.room == "rooms/design-review_2"
    assert len(plan.warnings) == 1
    assert plan.apply()["room"] == "rooms/design-review_2"


def test_what_changed_since_the_plan_is_seen_when_it_is_applied(room: Room) -> None:
    create = operations.plan_create(room.ledger, "Other")
    room.ledger.create_room("Other")
    assert create.room == "rooms/other"
    assert create.apply()["room"] == "rooms/other_2"
    standin = operations.plan_standin(room, 1, "x", standin_id="s")
    room.add_standin(2, "y", id="s")
    with pytest.raises(Conflict):
        standin.apply()


def test_two_who_exclude_lose_nothing(room: Room) -> None:
    first, second = operations.plan_exclude(room, 1), operations.plan_exclude(room, 2)
    first.apply()
    assert second.apply()["excluded"] == [f"1-2@{room.origin}"]


def test_a_room_that_is_gone_is_not_found(ledger: Ledger) -> None:
    from agent_chatroom_ledger import Room

    with pytest.raises(NotFound):
        operations.exclude(Room(ledger, "rooms/nowhere"), 1)


def test_a_sound_ledger_needs_no_repair(room: Room) -> None:
    plan = operations.plan_repair(room.ledger)
    assert plan.report["ok"]
    assert plan.actions == ("nothing: the ledger is sound",)
    assert plan.apply()["ok"]


@pytest.mark.parametrize("broken", ["view", "state", "log"])
def test_a_repair_puts_back_what_main_has(room: Room, broken: str) -> None:
    room.compile()
    path = {
        "view": room.visible_path,
        "state": room.ledger.root / room.path / "room.json",
        "log": next((room.ledger.root / room.path / "messages").rglob("*.jsonl")),
    }[broken]
    assert path is not None
    right = path.read_bytes()
    path.write_bytes(b"broken\n")
    plan = operations.plan_repair(room.ledger)
    assert not plan.report["ok"]
    assert path.read_bytes() == b"broken\n"
    done = plan.apply()
    assert done["ok"], done
    assert path.read_bytes() == right
    assert len(room.messages()) == 4
