"""Versions of messages: set, audited, compared, restored; one commit each, and plans write none."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from agent_chatroom_ledger import Conflict, Forbidden, InvalidInput, Ledger, NotFound, versions
from agent_chatroom_ledger.domain.versions import levels_shape
from agent_chatroom_ledger.domain.worddiff import word_diff_text
from tests.commits import record_commits

if TYPE_CHECKING:
    from agent_chatroom_ledger import Room

BODY = "18 checks have passed, and none has failed"


@pytest.fixture
def room(ledger: Ledger) -> Room:
    made = ledger.create_room("Design review")
    made.post_many([{"author": "Analyst", "body": f"{BODY} ({n})"} for n in range(1, 5)])
    ledger.flush()
    return made


def levels(room: Room, n: int, fill: str = "short") -> dict[str, Any]:
    body = room.message(n).body
    return levels_shape((body, *(f"{fill} {level}" for level in range(1, 10))))


def test_a_message_that_nobody_prepared_has_ten_equal_levels(room: Room) -> None:
    found = versions.bundle_of(room, 1)
    assert set(found.levels) == {room.message(1).body}
    assert (len(found.levels), found.semantic, found.prepared_by) == (10, False, "")


def test_setting_is_one_commit_that_names_who_prepared_it(room: Room) -> None:
    before = len(record_commits(room.ledger))
    found = versions.set_versions(room, 2, levels(room, 2), by="Editor", reason="to save room")
    assert found.levels[9] == "short 9"
    assert (found.semantic, found.prepared_by) == (True, "Editor")
    assert versions.bundle_of(room, "2") == found
    entry = room.ledger.log()[0]
    assert len(record_commits(room.ledger)) == before + 1
    assert (entry.author, entry.kinds, entry.reason) == (
        "Editor",
        ("versions.set",),
        "to save room",
    )
    assert entry.subject == "design-review versions: set #2 (Editor)"


def test_setting_the_same_again_writes_nothing(room: Room) -> None:
    versions.set_versions(room, 2, levels(room, 2), by="Editor")
    before = len(record_commits(room.ledger))
    versions.set_versions(room, 2, levels(room, 2), by="Editor")
    assert versions.plan_set(room, 2, levels(room, 2), by="Editor").actions[0].startswith("nothing")
    assert len(record_commits(room.ledger)) == before


def test_a_plan_writes_nothing_and_holds_no_text(room: Room) -> None:
    before = len(record_commits(room.ledger))
    plan = versions.plan_set(room, 2, levels(room, 2), by="Editor")
    assert "short" not in str(plan.report)
    assert plan.operation == "versions.set"
    assert len(record_commits(room.ledger)) == before
    done = plan.apply()
    assert (done["applied"], done["dry_run"]) == (True, False)
    assert len(record_commits(room.ledger)) == before + 1
    record = next(room.reader().descending(log="operations"))
    assert (record.data or {})["report"]["operation_id"] == record.id


def test_what_is_refused_leaves_nothing(room: Room) -> None:
    before = len(record_commits(room.ledger))
    for wrong in ({}, levels(room, 3), {**levels(room, 2), "5": {"message": "x", "char_count": 2}}):
        with pytest.raises(InvalidInput) as refused:
            versions.set_versions(room, 2, wrong, by="Editor")
        assert refused.value.code == "version_invalid"
    with pytest.raises(NotFound):
        versions.set_versions(room, 99, levels(room, 2), by="Editor")
    assert len(record_commits(room.ledger)) == before


def test_a_large_bundle_waits_as_an_artifact_and_is_committed_with_its_record(room: Room) -> None:
    wide = levels_shape((room.message(1).body, *("x" * 20_000 for _ in range(9))))
    found = versions.set_versions(room, 1, wide, by="Editor")
    record = next(room.reader().descending(log="operations"))
    assert record.artifacts == (found.bundle_hash,)
    room.ledger.flush()
    path = room.ledger.root / "artifacts" / found.bundle_hash[:2] / found.bundle_hash
    assert path.is_file()
    assert versions.bundle_of(room, 1) == found


def test_a_reader_may_look_and_plan_and_not_set(room: Room) -> None:
    room.ledger.close()
    with Ledger.open(room.ledger.root, read_only=True) as ledger:
        reader = ledger.room("design-review")
        plan = versions.plan_set(reader, 1, levels(reader, 1), by="Editor")
        with pytest.raises(Forbidden):
            plan.apply()
        with pytest.raises(Forbidden):
            versions.set_versions(reader, 1, levels(reader, 1), by="Editor")
        assert not versions.bundle_of(reader, 1).prepared


def test_an_archived_room_keeps_its_versions_and_takes_no_new_ones(room: Room) -> None:
    versions.set_versions(room, 1, levels(room, 1), by="Editor")
    room.ledger.archive_room(room)
    archived = room.ledger.room("design-review")
    assert versions.bundle_of(archived, 1).prepared_by == "Editor"
    with pytest.raises(Conflict) as refused:
        versions.set_versions(archived, 1, levels(archived, 1, "new"), by="Editor")
    assert refused.value.code == "archived"
    restored = room.ledger.restore_room(archived)
    assert versions.bundle_of(restored, 1).prepared_by == "Editor"


def test_an_audit_tells_what_needs_work(room: Room) -> None:
    versions.set_versions(room, 2, levels(room, 2), by="Editor")
    versions.set_versions(room, 3, levels(room, 3), by="Script", semantic=False)
    assert not any(item.needs_work for item in versions.audit([room]))
    found = {item.message.n: item.reasons for item in versions.audit([room], semantic=True)}
    assert found == {
        1: ("not_semantic",),
        2: (),
        3: ("not_semantic",),
        4: ("not_semantic",),
    }
    (one,) = versions.audit([room], semantic=True, ref=2)
    assert (one.needs_work, one.bundle.prepared_by) == (False, "Editor")


def test_history_names_each_bundle_and_its_commit(room: Room) -> None:
    versions.set_versions(room, 2, levels(room, 2, "first"), by="Editor", reason="why")
    versions.set_versions(room, 2, levels(room, 2, "second"), by="Other")
    versions.set_versions(room, 3, levels(room, 3), by="Other")
    first, second = versions.history(room, 2)
    assert (first.by, first.reason, second.by) == ("Editor", "why", "Other")
    assert first.bundle is not None
    assert first.bundle.levels[1] == "first 1"
    commits = {entry.commit for entry in room.ledger.log()}
    assert {first.commit, second.commit} <= commits
    assert versions.history(room, 1) == []


def test_the_commit_of_a_bundle_is_not_that_of_the_archive(room: Room) -> None:
    """The ledger's own operations have numbers too, and their commits name the room."""
    back = room.ledger.restore_room(room.ledger.archive_room(room).id)
    versions.set_versions(back, 1, levels(back, 1), by="Editor")
    (entry,) = versions.history(back, 1)
    (made,) = [one for one in room.ledger.log(back) if "versions.set" in one.kinds]
    assert entry.commit == made.commit


def test_any_two_commits_are_compared_word_by_word(room: Room) -> None:
    before = room.ledger.commit_at("main")
    versions.set_versions(room, 2, levels(room, 2, "first"), by="Editor")
    middle = room.ledger.commit_at("main")
    versions.set_versions(room, 2, levels(room, 2, "second"), by="Editor")
    newest = versions.compare(room, 2)
    assert [diff.level for diff in newest] == list(range(1, 10))
    assert word_diff_text(newest[0].pieces) == "[-first-]{+second+} 1"
    assert versions.compare(room, 2, middle) == newest
    assert versions.compare(room, 2, middle, middle) == []
    whole = versions.compare(room, 2, before, middle)
    assert (whole[8].old_chars, whole[8].new_chars) == (len(room.message(2).body), 7)
    assert versions.compare(room, 1) == []


def test_an_earlier_bundle_comes_back_as_it_was(room: Room) -> None:
    before = room.ledger.commit_at("main")
    first = versions.set_versions(room, 2, levels(room, 2, "first"), by="Editor")
    middle = room.ledger.commit_at("main")
    versions.set_versions(room, 2, levels(room, 2, "second"), by="Other")
    plan = versions.plan_restore(room, 2, middle, by="Restorer")
    assert plan.report["provenance"]["restored_from"] == middle
    assert versions.restore(room, 2, middle, by="Restorer") == first
    assert room.ledger.log()[0].author == "Restorer"
    gone = versions.restore(room, 2, before, by="Restorer")
    assert not gone.prepared
    assert versions.history(room, 2)[-1].bundle is None
    count = len(record_commits(room.ledger))
    versions.restore(room, 2, before)
    assert len(record_commits(room.ledger)) == count
    with pytest.raises(NotFound):
        versions.restore(room, 2, "main~99")


def test_a_message_that_was_not_there_yet_cannot_be_restored(room: Room) -> None:
    before = room.ledger.commit_at("main")
    room.post("Analyst", "later")
    with pytest.raises(NotFound, match="had no message"):
        versions.restore(room, 5, before)


def test_all_versions_of_a_room_can_be_brought_back(room: Room) -> None:
    versions.set_versions(room, 1, levels(room, 1, "first"), by="Editor")
    versions.set_versions(room, 2, levels(room, 2, "first"), by="Editor")
    before = room.ledger.commit_at("main")
    versions.set_versions(room, 2, levels(room, 2, "second"), by="Editor")
    versions.set_versions(room, 3, levels(room, 3, "second"), by="Editor")
    found = versions.drafts_to_restore(room, before, by="Restorer")
    assert [draft.kind for draft, _ in found] == ["versions.set", "versions.clear"]
    assert versions.drafts_to_restore(room, "main", by="Restorer") == []


def test_stored_bytes_wait_for_their_record(room: Room) -> None:
    name = versions.store(room.ledger, b"a long report")
    said = room.post("Analyst", "see there", artifacts=[name])
    room.ledger.flush()
    assert said.artifacts == (name,)
    assert (room.ledger.root / "artifacts" / name[:2] / name).read_bytes() == b"a long report"
