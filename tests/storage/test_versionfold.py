"""Versions projected by commits, folded by verify and repair, read under the journal."""

from __future__ import annotations

import random
import shutil
from typing import TYPE_CHECKING

import pytest

from agent_chatroom_ledger import Ledger
from agent_chatroom_ledger.changes import Change, apply_change
from agent_chatroom_ledger.domain import versions
from agent_chatroom_ledger.storage import artifacts, versionfold
from agent_chatroom_ledger.storage.source import WorkTree

if TYPE_CHECKING:
    from pathlib import Path

    from agent_chatroom_ledger import Room
    from tests.conftest import Git, MakeLedger


@pytest.fixture
def room(ledger: Ledger) -> Room:
    made = ledger.create_room("Review")
    made.post_many([{"author": "A", "body": f"message {n}, at some length"} for n in range(1, 8)])
    return made


def put(room: Room, n: int, fill: str = "short", *, size: int = 0) -> versions.Bundle:
    """Set a bundle of a message; with a size it is too large for its record."""
    message = room.message(n)
    levels = (message.body, *(f"{fill} {level} {'x' * size}" for level in range(1, 10)))
    bundle = versions.Bundle(origin=message.origin, n=n, levels=levels, semantic=True)
    draft, artifact = versions.set_draft(bundle, by="Editor")
    if artifact is not None:
        artifacts.stage(room.ledger.layout, artifact)
    apply_change(room, Change(kind=draft.kind, make=lambda *_: draft, by="Editor"))
    found = room.reader().versions(room.ledger.layout).find(message.origin, n)
    assert found is not None
    return found


def clear(room: Room, n: int) -> None:
    draft = versions.clear_draft(room.origin, n, by="Editor")
    apply_change(room, Change(kind=draft.kind, make=lambda *_: draft, by="Editor"))


def projected(room: Room) -> dict[str, bytes]:
    source = WorkTree(room.ledger.root)
    return {
        path: source.read(path) or b"" for path in versionfold.projected_paths(source, room.path)
    }


def test_a_message_without_a_bundle_costs_no_bytes(room: Room) -> None:
    room.ledger.flush()
    assert not (room.ledger.root / room.path / "versions").exists()
    assert room.reader().versions(room.ledger.layout).find(room.origin, 1) is None


@pytest.mark.parametrize("mode", ["sync", "group"])
@pytest.mark.parametrize("size", [0, 20_000])
def test_the_newest_bundle_is_seen_at_once_and_projected(
    make_ledger: MakeLedger, mode: str, size: int
) -> None:
    room = make_ledger(mode, commit=mode).create_room("Review")
    room.post("A", "at some length")
    put(room, 1, "first", size=size)
    assert put(room, 1, "second", size=size).levels[1].startswith("second")
    room.ledger.flush()
    ((path, data),) = projected(room).items()
    assert path == versions.versions_path(room.path, room.origin, 1)
    assert versions.bundle_from_json(data).levels[1].startswith("second")
    found = room.reader().versions(room.ledger.layout).find(room.origin, 1)
    assert found == versions.bundle_from_json(data)


def test_projections_equal_the_fold_whatever_was_set_and_cleared(room: Room) -> None:
    """Invariant 2, for versions."""
    dice = random.Random(3)
    for step in range(25):
        n = dice.randint(1, 7)
        if dice.random() < 0.3:
            clear(room, n)
        else:
            put(room, n, f"step {step}", size=dice.choice((0, 0, 7_000)))
        if dice.random() < 0.2:
            room.ledger.flush()
        reader = room.reader().versions(room.ledger.layout)
        every = reader.all()
        assert {key: reader.find(*key) for key in every} == every
    room.ledger.flush()
    source = WorkTree(room.ledger.root)
    assert projected(room) == versionfold.projections(source, room.path)


def test_a_cleared_bundle_leaves_nothing(room: Room) -> None:
    put(room, 2)
    room.ledger.flush()
    clear(room, 2)
    assert room.reader().versions(room.ledger.layout).find(room.origin, 2) is None
    room.ledger.flush()
    assert projected(room) == {}
    assert not (room.ledger.root / room.path / "versions").exists()


def test_any_commit_shows_the_bundle_of_its_time(room: Room) -> None:
    put(room, 1, "first")
    room.ledger.flush()
    before = room.ledger.log(limit=1)[0].commit
    put(room, 1, "second", size=9_000)
    room.ledger.flush()
    old = room.reader(before).versions(room.ledger.layout).find(room.origin, 1)
    assert old is not None
    assert old.levels[1].startswith("first")


def test_history_names_every_operation_with_what_it_left(room: Room) -> None:
    put(room, 1, "first")
    put(room, 1, "second", size=9_000)
    clear(room, 1)
    history = list(room.reader().versions(room.ledger.layout).history())
    assert [key for _, _, key in history] == [(room.origin, 1)] * 3
    first, second, cleared = (bundle for _, bundle, _ in history)
    assert first is not None
    assert second is not None
    assert first.levels[1].startswith("first")
    assert second.levels[1].startswith("second")
    assert cleared is None


def test_a_damaged_file_is_no_truth(room: Room) -> None:
    right = put(room, 3)
    put(room, 4)
    room.ledger.flush()
    path = room.ledger.root / versions.versions_path(room.path, room.origin, 3)
    kept = path.read_bytes()
    other = room.ledger.root / versions.versions_path(room.path, room.origin, 4)
    for content in (b"", kept.replace(b"short", b"wrong"), other.read_bytes()):
        path.write_bytes(content)
        found = room.reader().versions(room.ledger.layout).find(room.origin, 3)
        assert found == right
    path.write_bytes(kept)


def break_by_hand(git: Git, root: Path) -> None:
    git(root, "add", "-A")
    git(root, "commit", "-q", "-m", "by hand")


@pytest.mark.parametrize("damage", ["edited", "removed", "added"])
def test_verify_names_a_projection_that_is_not_the_fold_and_repair_folds_it(
    room: Room, git: Git, damage: str
) -> None:
    put(room, 1)
    put(room, 2)
    room.ledger.close()
    root = room.ledger.root
    path = root / versions.versions_path(room.path, room.origin, 1)
    right = path.read_bytes()
    if damage == "edited":
        path.write_bytes(right.replace(b"short", b"wrong"))
    elif damage == "removed":
        path.unlink()
    else:
        shutil.copy(path, path.with_name("6.json"))
    with Ledger.open(root) as ledger:
        issues = ledger.verify().issues
        if damage != "added":
            assert {issue.code for issue in issues} == {"message_version_invalid"}
    break_by_hand(git, root)
    with Ledger.open(root) as ledger:
        report = ledger.verify()
        assert "message_version_invalid" in {issue.code for issue in report.issues}
        assert ledger.verify(repair=True).ok
    assert path.read_bytes() == right
    assert not path.with_name("6.json").exists()


def test_an_operation_that_breaks_a_rule_is_skipped_by_every_fold(room: Room) -> None:
    right = put(room, 1)
    draft, _ = versions.set_draft(right, by="Editor")
    wrong = type(draft)(
        author="Editor",
        kind=draft.kind,
        body="forged",
        data={**(draft.data or {}), "levels": ["a"] * 10},
    )
    apply_change(room, Change(kind=draft.kind, make=lambda *_: wrong, by="Editor"))
    assert room.reader().versions(room.ledger.layout).find(room.origin, 1) == right
    room.ledger.flush()
    assert room.reader().versions(room.ledger.layout).find(room.origin, 1) == right
