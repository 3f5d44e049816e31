"""Placement: copies with their provenance, in one commit across both rooms."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from agent_chatroom_ledger import Conflict, InvalidInput, Ledger, placement
from agent_chatroom_ledger.limits import REFERENCES_MAX
from tests.commits import record_commits

if TYPE_CHECKING:
    from agent_chatroom_ledger import Room
    from tests.conftest import MakeLedger

WHY = "belongs there"


@pytest.fixture
def source(ledger: Ledger) -> Room:
    found = ledger.create_room("Design review")
    found.post("Ana", "one  \n", kind="proposal", mentions=("Ben",), to=("Ben",))
    found.post("Ben", "two", said_at="2020-01-02T03:04:05.000000Z", data={"k": [1]})
    found.post("Ana", "three", reply_to="2", status="done")
    return found


@pytest.fixture
def target(ledger: Ledger) -> Room:
    found = ledger.create_room("Planning")
    found.post("Cleo", "hello")
    return found


def test_copies_keep_what_was_said_and_say_where_from(source: Room, target: Room) -> None:
    done = source.place("1-3", target, reason=WHY, by="Ana")
    originals = source.messages()
    assert [m.n for m in done.messages] == [2, 3, 4]
    assert [m.n for m in target.messages()] == [1, 2, 3, 4]
    assert target.messages(since=1) == list(done.messages)
    for copy, said in zip(done.messages, originals, strict=True):
        assert (copy.author, copy.kind, copy.body) == (said.author, said.kind, said.body)
        assert (copy.mentions, copy.data, copy.status) == (said.mentions, said.data, said.status)
        assert copy.said_at == (said.said_at or said.at)
        assert (copy.to, copy.reply_to) == ((), None)
        provenance = copy.placed_from
        assert provenance is not None
        assert provenance["room"] == source.id
        assert provenance["message"] == said.full_ref
        assert provenance["record"] == said.id
        assert provenance["speaker"] == said.author
        assert provenance["reason"] == WHY
        assert provenance["placed_by"] == "Ana"
        assert provenance["operation_id"] == done.report["operation_id"]
        assert provenance["placed_at"] == done.report["created_at"]
    assert len(originals) == 3


def test_both_rooms_keep_the_operation_in_one_commit(source: Room, target: Room) -> None:
    ledger = source.ledger
    before = len(record_commits(ledger))
    done = source.place("2-3", target, reason=WHY, by="Ana")
    entries = record_commits(ledger)
    assert len(entries) == before + 1
    entry = entries[0]
    assert set(entry.rooms) == {source.path, target.path}
    assert entry.kinds == ("messages.place", "message", "message", "messages.place")
    assert entry.subject == "planning place: #2-3 of design-review (Ana) (+3)"
    assert (entry.requested_by, entry.reason) == ("Ana", WHY)
    kept = [next(room.reader().descending(log="operations")) for room in (target, source)]
    assert [(k.data or {})["report"] for k in kept] == [done.report, done.report]
    assert kept[0].id == done.report["operation_id"]
    assert kept[1].cause == kept[0].id
    assert done.report["target"]["messages"] == [f"2-3@{target.origin}"]


def test_the_same_again_is_skipped_with_a_warning(source: Room, target: Room) -> None:
    source.place("1-2", target, reason=WHY)
    commits = len(record_commits(source.ledger))
    again = source.place("1-2", target, reason=WHY)
    assert (again.messages, again.report) == ((), {})
    assert [m.n for m in again.skipped] == [1, 2]
    assert len(record_commits(source.ledger)) == commits
    partly = source.place("1-3", target, reason=WHY)
    assert [m.body for m in partly.messages] == ["three"]
    statuses = [(a["status"], a["count"]) for a in partly.report["actions"]]
    assert statuses == [("placed", 1), ("skipped_duplicate", 2)]
    assert "stand in rooms/planning for the same reason already" in partly.report["warnings"][0]
    assert len(source.place("1", target, reason="another reason").messages) == 1
    assert [m.n for m in target.messages()] == [1, 2, 3, 4, 5]


def test_a_duplicate_is_made_all_the_same(source: Room, target: Room) -> None:
    source.duplicate("1", target, reason=WHY)
    source.duplicate("1", target, reason=WHY)
    assert [m.body for m in target.messages()] == ["hello", "one  \n", "one  \n"]
    assert source.place("1", target, reason=WHY).messages == ()


def test_what_was_placed_is_known_after_reopening(source: Room, target: Room) -> None:
    source.place("1-3", target, reason=WHY)
    source.ledger.close()
    with Ledger.open(source.ledger.root) as ledger:
        again = ledger.room("design-review").place("1-3", ledger.room("planning"), reason=WHY)
        assert len(again.skipped) == 3


def test_a_plan_writes_nothing_and_tells_the_same(source: Room, target: Room) -> None:
    source.place("1", target, reason=WHY)
    before = len(record_commits(source.ledger))
    plan = placement.plan_place(source, "1-3", target, reason=WHY, by="Ana")
    statuses = [action["status"] for action in plan.report["actions"]]
    assert statuses == ["would_place", "skipped_duplicate"]
    assert len(plan.warnings) == 1
    assert len(record_commits(source.ledger)) == before
    done = plan.apply()
    assert [action["status"] for action in done["actions"]] == ["placed", "skipped_duplicate"]
    assert (done["applied"], done["dry_run"]) == (True, False)
    nothing = placement.plan_place(source, "1-3", target, reason=WHY)
    assert nothing.actions[0].startswith("nothing: ")
    assert nothing.apply()["applied"] is False
    twice = placement.plan_duplicate(source, "1", target, reason=WHY)
    assert twice.report["actions"][0]["status"] == "would_duplicate"


def test_a_copy_can_be_placed_on(source: Room, target: Room) -> None:
    third = source.ledger.create_room("Third")
    source.place("2", target, reason=WHY)
    (copy,) = target.place("2", third, reason=WHY).messages
    assert copy.said_at == source.message(2).said_at
    assert copy.placed_from is not None
    assert copy.placed_from["room"] == target.id


@pytest.mark.parametrize("refs", ["4", "2-9", "", "x", "1-10001"])
def test_what_cannot_be_placed_is_named_and_nothing_is_written(
    source: Room, target: Room, refs: str
) -> None:
    with pytest.raises(InvalidInput):
        source.place(refs, target, reason=WHY)
    assert len(target.messages()) == 1


def test_a_reason_is_required_and_a_room_is_not_placed_in_itself(
    source: Room, target: Room
) -> None:
    for reason in ("", "  ", "two\nlines"):
        with pytest.raises(InvalidInput) as refused:
            source.place("1", target, reason=reason)
        assert refused.value.fields["field"] == "reason"
    with pytest.raises(InvalidInput):
        source.place("1", source, reason=WHY)


def test_archived_rooms_take_no_part(source: Room, target: Room) -> None:
    ledger = source.ledger
    archived = target.id
    ledger.archive_room(target)
    with pytest.raises(Conflict) as refused:
        source.place("1", ledger.room(archived), reason=WHY)
    assert refused.value.code == "archived"
    # Another room at the same path is not taken for the one that was archived.
    ledger.create_room("Planning")
    with pytest.raises(Conflict):
        source.place("1", ledger.room(archived), reason=WHY)


def test_rooms_of_two_ledgers(source: Room, make_ledger: MakeLedger) -> None:
    other = make_ledger("other").create_room("Elsewhere")
    with pytest.raises(InvalidInput):
        source.place("1", other, reason=WHY)


def test_ten_thousand_messages_are_one_commit(make_ledger: MakeLedger) -> None:
    ledger = make_ledger("large", commit="group")
    seed, source = ledger.create_room("Seed"), ledger.create_room("Source")
    target = ledger.create_room("Target")
    seed.post_many({"author": "A", "body": f"message {n}"} for n in range(REFERENCES_MAX // 40))
    for _ in range(40):
        seed.duplicate(f"1-{REFERENCES_MAX // 40}", source, reason="to have many")
    ledger.flush()
    before = len(record_commits(ledger))
    done = source.place(f"1-{REFERENCES_MAX}", target, reason=WHY)
    assert len(done.messages) == REFERENCES_MAX
    assert target.last_position() == {target.origin: REFERENCES_MAX}
    ledger.flush()
    assert len([e for e in ledger.log(limit=5) if e.kinds[:1] == ("messages.place",)]) == 1
    assert len(record_commits(ledger)) == before + 1
    again = source.place(f"1-{REFERENCES_MAX}", target, reason=WHY)
    assert len(again.skipped) == REFERENCES_MAX


def test_what_does_not_fit_into_one_transaction_is_refused(make_ledger: MakeLedger) -> None:
    ledger = make_ledger("heavy", commit="group")
    source, target = ledger.create_room("Source"), ledger.create_room("Target")
    source.post_many({"author": "A", "body": "x" * 250_000} for _ in range(140))
    with pytest.raises(InvalidInput) as refused:
        source.place("1-140", target, reason=WHY)
    assert "split it" in refused.value.message
    assert target.messages() == []
    assert len(source.place("1-100", target, reason=WHY).messages) == 100
