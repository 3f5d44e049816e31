"""The hooks of a clone: before a commit and a push, and after git has moved something."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from agent_chatroom_ledger import Ledger
from agent_chatroom_ledger.hookscripts import install
from tests.hooks.conftest import git, make_bare, run

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def clone(tmp_path: Path, rooms_on_path: Path) -> Path:
    """Give a ledger with our hooks, a room with messages, and a file of the user's."""
    root = tmp_path / "ledger"
    with Ledger.open(root, create=True) as ledger:
        room = ledger.create_room("Review")
        for n in range(3):
            room.post("Analyst", f"check {n}")
    install(root, server=False, command=str(rooms_on_path / "rooms"))
    (root / "README.md").write_text("About\n")
    git(root, "add", "README.md")
    git(root, "commit", "-q", "-m", "Readme")
    with Ledger.open(root) as ledger:
        ledger.flush()
    return root


def segment(root: Path) -> Path:
    return next(root.glob("rooms/review/messages/*/00/00/00000001.jsonl"))


def stopped(done: subprocess.CompletedProcess[str], code: str) -> None:
    assert done.returncode != 0
    assert f"rooms: {code}:" in done.stderr, done.stderr


@pytest.mark.parametrize("how", [("-a",), ("--only", "rooms")])
def test_a_commit_that_edits_a_log_is_stopped(clone: Path, how: tuple[str, ...]) -> None:
    path = segment(clone)
    before = path.read_bytes()
    path.write_bytes(before.replace(b"check 1", b"check 9"))
    done = run(clone, "commit", "-m", "Edit", *how)
    stopped(done, "log_changed")
    assert "git restore" in done.stderr
    git(clone, "restore", "--staged", "--worktree", "--", str(path))
    assert path.read_bytes() == before


def test_a_commit_that_shrinks_a_log_is_stopped(clone: Path) -> None:
    path = segment(clone)
    path.write_bytes(path.read_bytes().split(b"\n")[0] + b"\n")
    git(clone, "add", str(path))
    stopped(run(clone, "commit", "-m", "Shrink"), "log_changed")
    git(clone, "restore", "--staged", "--worktree", ".")


def test_a_commit_with_a_projection_that_is_not_the_fold_is_stopped(clone: Path) -> None:
    path = clone / "rooms" / "review" / "policy.json"
    path.write_text(path.read_text().replace("[]", '["1@x"]', 1))
    stopped(run(clone, "commit", "-a", "-m", "Policy"), "state_message_mismatch")
    git(clone, "restore", "--staged", "--worktree", ".")


def test_a_commit_that_removes_a_room_is_stopped(clone: Path) -> None:
    git(clone, "rm", "-rq", "rooms/review")
    stopped(run(clone, "commit", "-m", "Gone"), "room_missing")
    git(clone, "restore", "--staged", "--worktree", ".")


def test_a_commit_of_ones_own_files_is_let_through(clone: Path) -> None:
    (clone / "README.md").write_text("About this\n")
    git(clone, "commit", "-q", "-a", "-m", "Own file")
    # What is not committed is not judged.
    path = segment(clone)
    before = path.read_bytes()
    path.write_bytes(b"")
    (clone / "README.md").write_text("About this ledger\n")
    git(clone, "commit", "-q", "-m", "Own file again", "README.md")
    path.write_bytes(before)


def test_a_merge_is_let_through_and_the_ledger_goes_on(clone: Path) -> None:
    git(clone, "switch", "-q", "-c", "notes")
    (clone / "notes.md").write_text("Notes\n")
    git(clone, "add", "notes.md")
    git(clone, "commit", "-q", "-m", "Notes")
    git(clone, "switch", "-q", "main")
    with Ledger.open(clone) as ledger:
        ledger.room("Review").post("Analyst", "meanwhile")
    git(clone, "merge", "-q", "--no-commit", "notes")
    git(clone, "commit", "-q", "-m", "Merge notes")
    assert (clone / "notes.md").is_file()
    assert git(clone, "status", "--porcelain") == ""


def test_a_merge_of_another_clone_by_hand(clone: Path, tmp_path: Path, rooms_on_path: Path) -> None:
    """Both wrote to one room: git unites the logs, and cannot fold the view."""
    other = tmp_path / "other"
    git(tmp_path, "clone", "-q", str(clone), str(other))
    with Ledger.open(other) as ledger:
        ledger.room("Review").post("Reviewer", "from there")
    with Ledger.open(clone) as ledger:
        ledger.room("Review").post("Analyst", "from here")
    assert run(clone, "pull", "-q", "--no-rebase", str(other), "main").returncode != 0
    git(clone, "add", "-A")
    stopped(run(clone, "commit", "-m", "Merge"), "compiled_parse_failed")
    # A view that lags behind is sound; the hook after a merge brings it up to date.
    git(clone, "checkout", "-q", "HEAD", "--", "rooms/review/view")
    git(clone, "commit", "-q", "-m", "Merge")
    subprocess.run([rooms_on_path / "rooms", "hook", "post-merge"], cwd=clone, check=True)
    assert git(clone, "status", "--porcelain") == ""
    with Ledger.open(clone) as ledger:
        assert ledger.verify().ok
        assert len(ledger.room("Review").messages()) == 5


def test_after_a_checkout_of_files_they_show_main(clone: Path) -> None:
    with Ledger.open(clone) as ledger:
        ledger.room("Review").post("Analyst", "newer")
    path = segment(clone)
    newest = path.read_bytes()
    git(clone, "checkout", "-q", "main~2", "--", "rooms")
    assert path.read_bytes() == newest
    assert git(clone, "status", "--porcelain", "--", "rooms") == ""


def test_what_the_user_has_staged_stays_staged(clone: Path) -> None:
    (clone / "README.md").write_text("Staged\n")
    (clone / "new.md").write_text("New\n")
    git(clone, "add", "README.md", "new.md")
    (clone / "README.md").write_text("Not staged\n")
    git(clone, "checkout", "-q", "main~1", "--", "rooms")
    assert git(clone, "diff", "--cached", "--name-only").split() == ["README.md", "new.md"]
    assert git(clone, "show", ":README.md") == "Staged"
    assert (clone / "README.md").read_text() == "Not staged\n"
    git(clone, "reset", "-q", "--hard")


def test_another_branch_may_be_checked_out(clone: Path) -> None:
    git(clone, "switch", "-q", "-c", "aside", "main~2")
    git(clone, "switch", "-q", "main")
    assert git(clone, "status", "--porcelain") == ""


def test_an_amended_commit_is_named_and_can_be_mended(clone: Path) -> None:
    (clone / "README.md").write_text("About it\n")
    done = run(clone, "commit", "-q", "-a", "--amend", "--no-edit")
    assert "rooms verify --repair" in done.stderr
    with Ledger.open(clone, read_only=True) as ledger:
        assert {issue.code for issue in ledger.verify().issues} == {"rewound"}
    subprocess.run(
        [sys.executable, "-m", "agent_chatroom_ledger.cli", "verify", "--repair", "--apply"],
        check=True,
        cwd=clone,
    )
    with Ledger.open(clone) as ledger:
        ledger.room("Review").post("Analyst", "going on")


def test_a_push_that_a_server_would_refuse_is_stopped_here(
    clone: Path, tmp_path: Path, rooms_on_path: Path
) -> None:
    bare = make_bare(tmp_path / "hub.git", rooms_on_path)
    (bare / "hooks" / "pre-receive").unlink()
    git(clone, "remote", "add", "hub", str(bare))
    git(clone, "push", "-q", "hub", "main")
    path = clone / "rooms" / "review" / "room.json"
    path.write_text(path.read_text() + "\n")
    git(clone, "commit", "-q", "-a", "--no-verify", "-m", "Oops")
    stopped(run(clone, "push", "hub", "main"), "state_message_mismatch")
    assert git(bare, "rev-parse", "main") == git(clone, "rev-parse", "main~1")
    stopped(run(clone, "push", "hub", ":main"), "main_deleted")
    with Ledger.open(clone) as ledger:
        assert ledger.verify(repair=True).ok
    git(clone, "push", "-q", "hub", "main")


def test_a_push_over_commits_that_are_not_here_is_stopped(
    clone: Path, tmp_path: Path, rooms_on_path: Path
) -> None:
    bare = make_bare(tmp_path / "hub.git", rooms_on_path)
    (bare / "hooks" / "pre-receive").unlink()
    git(clone, "remote", "add", "hub", str(bare))
    git(clone, "push", "-q", "hub", "main")
    other = tmp_path / "other"
    git(tmp_path, "clone", "-q", str(bare), str(other))
    (other / "more.md").write_text("More\n")
    git(other, "add", "more.md")
    git(other, "commit", "-q", "-m", "More")
    git(other, "push", "-q", "origin", "main")
    stopped(run(clone, "push", "--force", "hub", "main"), "forced_push")
