"""Putting rooms back: from the archive, and as they stood at a commit."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from agent_chatroom_ledger import Conflict, InvalidInput, Ledger, NotFound, restoring
from tests.commits import record_commits

if TYPE_CHECKING:
    from agent_chatroom_ledger import Room
    from tests.conftest import Git


@pytest.fixture
def room(ledger: Ledger) -> Room:
    """A room whose policy and members are at "then", and have changed since."""
    found = ledger.create_room("Design review", members=["Ana", "Ben"])
    found.post_many([{"author": "A", "body": str(n)} for n in range(1, 7)])
    found.exclude("1-2")
    found.add_standin("4", "four", id="s")
    found.add_standin("5-6", "five and six", id="t", speaker="Ana", kind="review")
    found.include("5")  # the stand-in stays, for 6 is still left out
    return found


def then(room: Room) -> str:
    return room.ledger.commit_at("main")


def test_policy_and_members_come_back_as_they_stood_and_messages_stay(room: Room) -> None:
    policy, members, commit = room.policy(), room.members, then(room)
    room.clear_policy()
    room.exclude("3")
    room.remove_member("Ben")
    room.add_member("Cleo")
    room.post("Cleo", "later")
    before = len(record_commits(room.ledger))
    reports = restoring.restore_from(room, commit, by="Ana", reason="went wrong")
    assert (room.policy(), room.members) == (policy, members)
    assert [m.n for m in room.messages()] == [1, 2, 3, 4, 5, 6, 7]
    assert [report["operation_type"] for report in reports] == [
        "policy.restore",
        "members.restore",
    ]
    entries = record_commits(room.ledger)
    assert len(entries) == before + 1
    assert entries[0].reason == "went wrong"
    room.compile()


@pytest.mark.parametrize("part", ["policy", "members"])
def test_only_one_part_is_put_back(room: Room, part: restoring.Part) -> None:
    old, commit = room.state(), then(room)
    room.clear_policy()
    room.add_member("Cleo")
    new = room.state()
    restoring.restore_from(room, commit, only=[part])
    assert room.policy() == (old if part == "policy" else new).policy
    assert room.members == (old if part == "members" else new).members


def test_a_plan_says_what_would_change(room: Room) -> None:
    policy, commit = room.policy(), then(room)
    nothing = restoring.plan_restore_from(room, commit)
    assert nothing.report["actions"][0]["status"] == "noop"
    assert nothing.apply()["applied"] is False
    room.clear_policy()
    plan = restoring.plan_restore_from(room, commit, by="Ana")
    assert [a["status"] for a in plan.report["actions"]] == ["would_restore"]
    assert room.policy() != policy
    done = plan.apply()
    assert done["actions"][0]["status"] == "restored"
    assert room.policy() == policy
    kept = next(room.reader().descending(log="operations"))
    assert kept.id == done["operation_id"]
    assert (kept.data or {})["from"] == commit


def test_a_policy_larger_than_one_operation(room: Room) -> None:
    for number in range(4):
        room.add_standin("3", "x" * 30_000, id=f"large-{number}")
    policy, commit = room.policy(), then(room)
    room.clear_policy()
    reports = restoring.restore_from(room, commit)
    assert len(reports) > 1
    assert room.policy() == policy


def test_what_was_not_there_cannot_be_put_back(room: Room) -> None:
    other = room.ledger.create_room("Later")
    with pytest.raises(NotFound):
        restoring.restore_from(other, then(room) + "~1")
    with pytest.raises(NotFound):
        restoring.restore_from(room, "nowhere")
    with pytest.raises(InvalidInput):
        restoring.restore_from(room, "main", only=["views"])  # type: ignore[list-item] # what a caller may get wrong


def test_archiving_and_restoring_by_plan(room: Room) -> None:
    ledger = room.ledger
    plan = restoring.plan_archive(ledger, room, by="Ana", reason="done")
    assert ledger.room("design-review").status == "active"
    done = plan.apply()
    assert done["operation_type"] == "room.archive"
    assert done["actions"][0]["status"] == "archived"
    archived = ledger.room("design-review")
    assert archived.status == "archived"
    with pytest.raises(Conflict):
        restoring.plan_archive(ledger, archived)
    with pytest.raises(Conflict):
        restoring.restore_from(archived, "main")
    ledger.create_room("Design review")
    back = restoring.plan_unarchive(ledger, ledger.room(room.id))
    assert back.warnings
    assert back.apply()["room"] == "rooms/design-review_2"
    with pytest.raises(Conflict) as refused:
        restoring.plan_unarchive(ledger, ledger.room(room.id))
    assert refused.value.code == "not_archived"


def test_a_room_that_moved_is_known_by_its_id(room: Room) -> None:
    ledger, policy, commit = room.ledger, room.policy(), then(room)
    ledger.archive_room(room)
    ledger.create_room("Design review")
    moved = ledger.restore_room(room.id)
    moved.clear_policy()
    restoring.restore_from(moved, commit)
    assert moved.policy() == policy


def test_a_room_deleted_with_plain_git_comes_back(room: Room, git: Git) -> None:
    root, messages = room.ledger.root, room.messages()
    room.ledger.close()
    git(root, "rm", "-rq", room.path)
    git(root, "commit", "-qm", "gone")
    with Ledger.open(root) as ledger:
        assert restoring.plan_bring_back(ledger, "nowhere") is None
        plan = restoring.plan_bring_back(ledger, "design-review")
        assert plan is not None
        assert not (root / room.path).exists()
        assert plan.apply()["target"]["path"] == room.path
        assert ledger.room("design-review").messages() == messages


def test_a_deleted_room_comes_back_as_it_was_at_a_commit(room: Room, git: Git) -> None:
    """`--from` on a room that somebody deleted: the room first, then what it was."""
    root, messages = room.ledger.root, room.messages()
    room.exclude(1, by="Ana")
    room.ledger.flush()
    commit = git(root, "rev-parse", "HEAD").strip()
    policy = room.policy()
    room.clear_policy()
    room.ledger.close()
    git(root, "rm", "-rq", room.path)
    git(root, "commit", "-qm", "gone")
    with Ledger.open(root, read_only=True) as ledger, pytest.raises(NotFound):
        ledger.room(room.path.rpartition("/")[2])
    with Ledger.open(root) as ledger:
        plan = restoring.plan_bring_back(ledger, "design-review", commit, only=("policy",))
        assert plan is not None
        plan.apply()
        back = ledger.room("design-review")
        assert (back.messages(), back.policy()) == (messages, policy)
