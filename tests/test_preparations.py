"""Version cursors: only for what needs no more work, with the hashes of what was there."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from agent_chatroom_ledger import Conflict, Corrupt, InvalidInput, Ledger, versions
from agent_chatroom_ledger.domain.versions import levels_shape
from agent_chatroom_ledger.preparations import entry_name, mark_prepared, preparations
from tests.commits import record_commits

if TYPE_CHECKING:
    from pathlib import Path

    from agent_chatroom_ledger import Room


@pytest.fixture
def room(ledger: Ledger) -> Room:
    made = ledger.create_room("Design review")
    made.post_many([{"author": "Analyst", "body": f"message {n}"} for n in range(1, 4)])
    shape = levels_shape(("message 2", *("short",) * 9))
    versions.set_versions(made, 2, shape, by="Editor")
    return made


def test_a_message_that_needs_work_is_refused(room: Room) -> None:
    with pytest.raises(InvalidInput) as refused:
        mark_prepared(room, 1, agent="Editor")
    assert refused.value.code == "versions_need_work"
    assert isinstance(refused.value, ValueError)
    assert not room.ledger.layout.preparations.exists()


def test_an_entry_holds_the_hashes(room: Room) -> None:
    mark_prepared(room, 1, agent="Editor", mode="structural")
    found = mark_prepared(room, 2, agent="Editor")
    bundle = versions.bundle_of(room, 2)
    name = f"chat_{room.id.replace('-', '')}:2:semantic"
    assert entry_name(room, "2", "semantic") == name
    assert set(found["completed"]) == {name, name.replace(":2:semantic", ":1:structural")}
    entry = found["completed"][name]
    assert (entry["bundle_hash"], entry["source_hash"]) == (
        bundle.bundle_hash,
        bundle.source_hash,
    )
    assert preparations(room.ledger, "Editor") == found
    assert preparations(room.ledger, "Other")["completed"] == {}


def test_the_file_is_the_caller_s_and_nothing_else_is_written(room: Room, tmp_path: Path) -> None:
    room.ledger.flush()
    commits = len(record_commits(room.ledger))
    place = tmp_path / "editor.json"
    mark_prepared(room, 2, agent="Editor", path=place)
    assert json.loads(place.read_text())["consumer"] == "Editor"
    assert len(record_commits(room.ledger)) == commits
    with pytest.raises(InvalidInput):
        mark_prepared(room, 2, agent="Other", path=place)


def test_a_reader_may_keep_one_too(room: Room) -> None:
    room.ledger.close()
    with Ledger.open(room.ledger.root, read_only=True) as ledger:
        mark_prepared(ledger.room("design-review"), 2, agent="Editor")
        assert len(preparations(ledger, "Editor")["completed"]) == 1


def test_what_is_wrong_is_named(room: Room) -> None:
    with pytest.raises(InvalidInput):
        mark_prepared(room, 2, agent="Editor", mode="magical")
    with pytest.raises(InvalidInput):
        mark_prepared(room, 2, agent="")
    with pytest.raises((InvalidInput, Conflict, FileNotFoundError)):
        mark_prepared(room, 9, agent="Editor")


@pytest.mark.broken_on_purpose
def test_a_damaged_file_is_an_error_that_verify_names(room: Room) -> None:
    mark_prepared(room, 2, agent="Editor")
    room.ledger.flush()
    assert room.ledger.verify().ok
    (path,) = room.ledger.layout.preparations.iterdir()
    path.write_text("{")
    with pytest.raises(Corrupt):
        mark_prepared(room, 2, agent="Editor")
    (issue,) = room.ledger.verify().issues
    assert issue.code == "consumer_state_invalid"
