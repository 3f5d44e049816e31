"""Members: one operation each way, and where a name is listed."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from agent_chatroom_ledger import Conflict, InvalidInput, members
from agent_chatroom_ledger.limits import MEMBERS_MAX
from tests.commits import record_commits

if TYPE_CHECKING:
    from agent_chatroom_ledger import Ledger, Room


@pytest.fixture
def room(ledger: Ledger) -> Room:
    return ledger.create_room("Design review", members=["Ana"])


def test_adding_and_removing_are_one_commit_each(room: Room) -> None:
    before = len(record_commits(room.ledger))
    assert room.add_member("Ben", by="Ana", reason="asked to") == ("Ana", "Ben")
    assert room.remove_member("Ana", by="Ben") == ("Ben",)
    entries = [entry for entry in room.ledger.log() if entry.operations]
    assert [entry.kinds for entry in entries[:2]] == [("members.remove",), ("members.add",)]
    assert entries[1].subject == "design-review members: add Ben (Ana)"
    assert entries[1].reason == "asked to"
    assert len(record_commits(room.ledger)) == before + 2


def test_what_is_so_already_writes_nothing(room: Room) -> None:
    before = len(record_commits(room.ledger))
    room.add_member("Ana")
    room.remove_member("Nobody")
    plan = members.plan_add(room, "Ana")
    assert plan.actions == ("nothing: Ana is a member of rooms/design-review already",)
    assert plan.report["actions"][0]["status"] == "noop"
    assert plan.apply()["applied"] is False
    assert len(record_commits(room.ledger)) == before


def test_a_plan_reports_and_leaves_its_report(room: Room) -> None:
    plan = members.plan_add(room, "Ben", by="Ana", reason="r", threshold_chars=9_000)
    assert room.members == ("Ana",)
    assert plan.report["actions"][0]["status"] == "would_add"
    assert plan.report["target"]["path"] == room.path
    done = plan.apply()
    assert done["members"] == ["Ana", "Ben"]
    kept = next(room.reader().descending(log="operations"))
    assert kept.id == done["operation_id"]
    assert (kept.data or {})["threshold_chars"] == 9_000
    assert (kept.data or {})["report"]["actions"][0]["status"] == "added"
    removal = members.plan_remove(room, "Ben")
    assert removal.report["actions"][0]["status"] == "would_remove"
    assert removal.apply()["members"] == ["Ana"]


def test_what_a_removed_member_said_stays(room: Room) -> None:
    room.post("Ana", "mine")
    room.remove_member("Ana")
    assert [m.body for m in room.messages()] == ["mine"]


@pytest.mark.parametrize("name", ["", " a", "a\nb", "x" * 65])
def test_names_that_nobody_may_have(room: Room, name: str) -> None:
    with pytest.raises(InvalidInput):
        room.add_member(name)
    with pytest.raises(InvalidInput):
        members.coverage(room.ledger, name)


def test_a_threshold_is_a_number_of_characters(room: Room) -> None:
    with pytest.raises(InvalidInput):
        members.plan_add(room, "Ben", threshold_chars=0)


def test_a_room_has_a_limit_of_members(ledger: Ledger) -> None:
    full = ledger.create_room("Full", members=[f"M{n}" for n in range(MEMBERS_MAX)])
    with pytest.raises(InvalidInput) as refused:
        full.add_member("One more")
    assert refused.value.fields["limit"] == MEMBERS_MAX


def test_coverage_tells_where_a_name_is_listed(ledger: Ledger, room: Room) -> None:
    other = ledger.create_room("Other")
    archived = ledger.create_room("Old", members=["Ana"])
    ledger.archive_room(archived)
    found = members.coverage(ledger, "Ana")
    assert [one.path for one in found.listed] == [room.path]
    assert [one.path for one in found.not_listed] == [other.path]
    everywhere = members.coverage(ledger, "Ana", "all")
    assert {one.path for one in everywhere.listed} == {room.path, "rooms/old"}


def test_the_members_of_an_archived_room_stay_as_they_are(ledger: Ledger, room: Room) -> None:
    ledger.archive_room(room)
    with pytest.raises(Conflict) as refused:
        ledger.room("design-review").add_member("Ben")
    assert refused.value.code == "archived"
