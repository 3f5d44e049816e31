"""The timeline: derived, disposable, and of one opinion with a walk of history."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from agent_chatroom_ledger import Ledger
from agent_chatroom_ledger.storage import history, refs
from agent_chatroom_ledger.storage.timeline import Timeline

if TYPE_CHECKING:
    from pathlib import Path

    from tests.conftest import Git


@pytest.fixture(params=[True, False], ids=["file", "memory"])
def writable(request: pytest.FixtureRequest) -> bool:
    """Give both kinds of timeline: one kept in a file, and one of a reader."""
    return bool(request.param)


def _talk(ledger: Ledger) -> None:
    for name in ("Here", "There"):
        ledger.create_room(name)
    for number in range(3):
        ledger.room("here").post("Ann", f"here {number}")
        ledger.room("there").post("Ben", f"there {number}")
    ledger.flush()


def _named(ledger: Ledger, room: str) -> list[str]:
    walked = history.walk(ledger.objects, refs.read_main(ledger.layout))
    return [commit.oid for commit in walked if f"\nRoom: {room}\n" in commit.message]


def _timeline(ledger: Ledger, *, writable: bool) -> Timeline:
    return Timeline(ledger.layout, ledger.objects, writable=writable)


def test_it_names_the_commits_of_a_room_newest_first(ledger: Ledger, *, writable: bool) -> None:
    _talk(ledger)
    timeline = _timeline(ledger, writable=writable)
    assert timeline.touching("rooms/here") == _named(ledger, "rooms/here")
    assert timeline.touching("rooms/nowhere") == []
    timeline.close()


def test_it_goes_on_from_where_it_was(ledger: Ledger, *, writable: bool) -> None:
    _talk(ledger)
    timeline = _timeline(ledger, writable=writable)
    before = timeline.touching("rooms/here")
    ledger.room("here").post("Ann", "one more")
    after = timeline.touching("rooms/here")
    assert after[1:] == before
    assert after == _named(ledger, "rooms/here")
    assert timeline.behind() == (0 if writable else timeline.behind())
    timeline.close()


def test_deleting_it_changes_no_answer(ledger: Ledger, git: Git) -> None:
    _talk(ledger)
    root = ledger.root
    kept = _timeline(ledger, writable=True)
    kept.follow()
    git(root, "checkout", "-q", "-b", "side", "HEAD~3")
    git(root, "commit", "-q", "--allow-empty", "-m", "aside")
    git(root, "checkout", "-q", "main")
    git(root, "merge", "-q", "--no-edit", "side")
    fresh = _timeline(ledger, writable=False)
    assert kept.touching("rooms/here") == fresh.touching("rooms/here")
    newest = int(git(root, "log", "-1", "--format=%ct").strip())
    for second in range(newest - 3, newest + 1):
        assert kept.commit_at(second) == fresh.commit_at(second)
    kept.close()
    fresh.close()


def test_it_finds_the_commit_of_a_time(ledger: Ledger, git: Git, *, writable: bool) -> None:
    _talk(ledger)
    root = ledger.root
    tree = git(root, "write-tree").strip()
    tip, made = git(root, "rev-parse", "HEAD").strip(), []
    start = 2_208_988_800
    for second in (start, start + 9, start + 5):
        body = f"tree {tree}\nparent {tip}\nauthor a <a> {second} +0000\n"
        (root / "body").write_text(f"{body}committer a <a> {second} +0000\n\nx\n")
        tip = git(root, "hash-object", "-t", "commit", "-w", "body").strip()
        made.append(tip)
    (root / "body").unlink()
    git(root, "update-ref", "refs/heads/main", tip)
    timeline = _timeline(ledger, writable=writable)
    assert timeline.commit_at(start - 1) not in made
    assert timeline.commit_at(start) == made[0]
    assert timeline.commit_at(start + 8) == made[0]
    # Where the clock ran back, the child counts as no older than its parent.
    assert timeline.commit_at(start + 9) == made[2]
    assert timeline.commit_at(0) is None
    timeline.close()


def test_it_counts_steps_on_a_single_line_only(ledger: Ledger, git: Git) -> None:
    _talk(ledger)
    root = ledger.root
    timeline = _timeline(ledger, writable=False)
    tip = git(root, "rev-parse", "main").strip()
    for steps in (0, 1, 5):
        assert timeline.ancestor(tip, steps) == git(root, "rev-parse", f"main~{steps}").strip()
    assert timeline.ancestor(tip, 999) is None
    git(root, "checkout", "-q", "-b", "side", "HEAD~3")
    git(root, "commit", "-q", "--allow-empty", "-m", "aside")
    git(root, "checkout", "-q", "main")
    git(root, "merge", "-q", "--no-edit", "side")
    assert timeline.ancestor(git(root, "rev-parse", "main").strip(), 1) is None
    timeline.close()


def test_it_is_made_anew_when_main_was_rewound(ledger: Ledger, git: Git, *, writable: bool) -> None:
    _talk(ledger)
    timeline = _timeline(ledger, writable=writable)
    before = timeline.touching("rooms/there")
    main = refs.read_main(ledger.layout)
    git(ledger.root, "update-ref", "refs/heads/main", "main~2")
    assert timeline.touching("rooms/there") == _named(ledger, "rooms/there") != before
    git(ledger.root, "update-ref", "refs/heads/main", main)
    assert timeline.touching("rooms/there") == before
    timeline.close()


@pytest.mark.parametrize("damage", [b"", b"not a database at all, but long enough" * 50])
def test_a_damaged_file_is_made_anew_or_done_without(
    ledger: Ledger, damage: bytes, *, writable: bool
) -> None:
    _talk(ledger)
    path = ledger.layout.private / "timeline.sqlite3"
    whole = _timeline(ledger, writable=True)
    whole.follow()
    whole.close()
    path.write_bytes(damage)
    timeline = _timeline(ledger, writable=writable)
    assert timeline.touching("rooms/here") == _named(ledger, "rooms/here")
    assert (path.read_bytes() == damage) is not writable
    timeline.close()


def test_a_reader_changes_no_file(ledger: Ledger) -> None:
    _talk(ledger)
    ledger.close()
    with Ledger.open(ledger.root, read_only=True) as reading:
        reading.timeline.follow()
    assert not (ledger.layout.private / "timeline.sqlite3").exists()


def test_a_shallow_clone_has_the_timeline_of_what_it_holds(
    ledger: Ledger, git: Git, tmp_path: Path
) -> None:
    _talk(ledger)
    root = tmp_path / "shallow"
    git(tmp_path, "clone", "-q", "--depth", "3", f"file://{ledger.root}", str(root))
    with Ledger.open(root, read_only=True) as clone:
        assert len(clone.timeline.touching("rooms/there")) < len(
            ledger.timeline.touching("rooms/there")
        )
        git(root, "fetch", "-q", "--unshallow")
        clone.objects.forget()
        assert clone.timeline.touching("rooms/there") == ledger.timeline.touching("rooms/there")


def test_log_and_times_are_the_same_with_the_timeline_and_without(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    _talk(ledger)
    moment = ledger.room("here").message(2).at
    walked = ledger.log("here"), ledger.commit_at(moment)
    old = ledger.commit_at("main~5")
    monkeypatch.setattr(history, "WALKED_MAX", 2)
    monkeypatch.setattr(history, "_WALKED_MIN", 1)
    assert ledger.commit_at("main~5") == old
    assert (ledger.log("here"), ledger.commit_at(moment)) == walked
