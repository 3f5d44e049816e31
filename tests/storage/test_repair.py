"""Repair: what others did to main, the work tree, the index or the journal is mended, none lost."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from agent_chatroom_ledger import Ledger
from agent_chatroom_ledger.errors import LedgerError
from agent_chatroom_ledger.storage import journal

if TYPE_CHECKING:
    from pathlib import Path

    from tests.conftest import Git, MakeLedger

# Opening a ledger that somebody has broken says so; these tests break it on purpose.
pytestmark = pytest.mark.filterwarnings("ignore:The ledger in")

BODIES = [f"body {number}" for number in range(8)]


@pytest.fixture
def root(make_ledger: MakeLedger) -> Path:
    """A closed ledger with one room, one exclusion and eight messages, in two checkpoints."""
    ledger = make_ledger()
    room = ledger.create_room("Design review", members=["Analyst"])
    room.post_many([{"author": "Analyst", "body": body} for body in BODIES[:4]])
    ledger.flush()
    room.exclude("2", by="Analyst")
    room.post_many([{"author": "Reviewer", "body": body} for body in BODIES[4:]])
    ledger.close()
    return ledger.root


def mended(root: Path) -> list[str]:
    """Repair, then check that the ledger is sound, holds everything and can be written to."""
    with Ledger.open(root) as ledger:
        report = ledger.verify()
        assert not report.ok, "the test broke nothing"
        done = ledger.mend(report)
        after = ledger.verify(full=True)
        # What a foreign commit did stays in history and is named there; nothing else is wrong.
        left = {issue.code for issue in after.issues if issue.severity == "error"}
        assert left <= {"log_changed", "foreign_records", "commit_record_mismatch"}, after.issues
        room = ledger.room("design-review")
        assert [m.body for m in room.messages()] == BODIES
        posted = room.post("Analyst", "after the repair")
        assert posted.n == len(BODIES) + 1
    return done


def writing_is_refused(root: Path) -> LedgerError:
    with pytest.raises(LedgerError) as caught, Ledger.open(root) as ledger:
        ledger.room("design-review").post("Analyst", "must not get a number twice")
    return caught.value


def test_a_rewound_main_moves_forward_again(root: Path, git: Git) -> None:
    """`git reset --hard` to an old commit: writes refuse, repair goes on where the ledger was."""
    before = git(root, "rev-parse", "main").strip()
    git(root, "reset", "-q", "--hard", "HEAD~5")
    assert "rewound" in str(writing_is_refused(root))
    mended(root)
    assert before in git(root, "rev-list", "main")
    assert git(root, "status", "--porcelain") == ""
    git(root, "fsck", "--full", "--strict")


@pytest.mark.broken_on_purpose
def test_a_rewound_main_with_commits_on_top_is_reunited(root: Path, git: Git) -> None:
    """Both lines stay in history, and the user's own file stays in the tree."""
    before = git(root, "rev-parse", "main").strip()
    git(root, "reset", "-q", "--hard", "HEAD~3")
    (root / "notes.txt").write_text("mine\n")
    git(root, "add", "notes.txt")
    git(root, "commit", "-q", "-m", "Notes")
    foreign = git(root, "rev-parse", "main").strip()
    done = mended(root)
    history = git(root, "rev-list", "main")
    assert before in history
    assert foreign in history
    assert any("reunited" in line for line in done)
    assert git(root, "show", "main:notes.txt") == "mine\n"
    assert git(root, "status", "--porcelain") == ""


def test_main_deleted_and_main_damaged(root: Path, git: Git) -> None:
    """The journal's base and its frames say what main was."""
    before = git(root, "rev-parse", "main").strip()
    (root / ".git/refs/heads/main").unlink()
    mended(root)
    assert before in git(root, "rev-list", "main")
    (root / ".git/refs/heads/main").write_bytes(b"\0" * 41)
    with Ledger.open(root) as ledger:
        ledger.verify(repair=True)
        assert ledger.verify().ok
    assert before in git(root, "rev-list", "main")


def test_head_elsewhere(root: Path, git: Git) -> None:
    """A detached HEAD with a commit of its own: HEAD is main again, the commit is kept."""
    git(root, "checkout", "-q", "--detach", "HEAD~2")
    git(root, "commit", "-q", "--allow-empty", "-m", "Somewhere else")
    astray = git(root, "rev-parse", "HEAD").strip()
    assert "HEAD" in str(writing_is_refused(root))
    mended(root)
    assert astray in git(root, "for-each-ref", "refs/ledger/kept", "--format=%(objectname)")
    assert git(root, "symbolic-ref", "HEAD").strip() == "refs/heads/main"


@pytest.mark.broken_on_purpose
def test_a_foreign_commit_that_edits_a_log(root: Path, git: Git) -> None:
    """The bytes are put back; the forged ones stay in the foreign commit."""
    segment = next(root.glob("rooms/design-review/messages/*/*/*/*.jsonl"))
    segment.write_bytes(segment.read_bytes().replace(b"body 1", b"BODY 1"))
    git(root, "commit", "-q", "-a", "-m", "Forge")
    forged = git(root, "rev-parse", "main").strip()
    assert "never" in str(writing_is_refused(root))
    mended(root)
    assert "BODY 1" in git(root, "show", f"{forged}:{segment.relative_to(root)}")
    assert "BODY" not in git(root, "show", f"main:{segment.relative_to(root)}")


def test_a_foreign_commit_that_edits_projections(root: Path, git: Git) -> None:
    """room.json, policy.json and a page are folded again from the logs."""
    for name in ("room.json", "policy.json"):
        path = root / "rooms/design-review" / name
        path.write_text(path.read_text() + "\n")
    page = next(root.glob("rooms/design-review/view/*/*.md"))
    page.write_text("forged\n")
    git(root, "commit", "-q", "-a", "-m", "Edit projections")
    with Ledger.open(root) as ledger:
        codes = {issue.code for issue in ledger.verify().issues}
    assert "state_message_mismatch" in codes
    mended(root)
    assert "forged" not in page.read_text()


def test_a_foreign_commit_that_removes_the_room(root: Path, git: Git) -> None:
    """Its directory comes back from the newest commit that has it."""
    tree = git(root, "rev-parse", "HEAD:rooms/design-review").strip()
    git(root, "rm", "-q", "-r", "rooms/design-review")
    git(root, "commit", "-q", "-m", "Remove")
    with Ledger.open(root) as ledger:
        assert "room_missing" in {issue.code for issue in ledger.verify().issues}
        ledger.verify(repair=True)
    assert git(root, "rev-parse", "HEAD:rooms/design-review").strip() == tree


def test_work_tree_and_index_edited(root: Path, git: Git) -> None:
    """Foreign bytes go to quarantine, byte for byte; the files show main again."""
    segment = next(root.glob("rooms/design-review/messages/*/*/*/*.jsonl"))
    segment.write_bytes(b"not a record\n")
    (root / "rooms/design-review/room.json").unlink()
    git(root, "add", "-A")
    (root / "rooms/design-review/policy.json").unlink()
    (root / "rooms/design-review/policy.json").symlink_to("/etc/hostname")
    done = mended(root)
    kept = [
        path.read_bytes()
        for path in (root / ".git/ledger/quarantine").iterdir()
        if not path.is_symlink()
    ]
    assert b"not a record\n" in kept
    assert any("quarantine" in line for line in done)
    assert not (root / "rooms/design-review/policy.json").is_symlink()
    assert git(root, "status", "--porcelain") == ""


@pytest.mark.parametrize("name", ["index", "ledger/state", "ledger/packs"])
def test_deleted_files_come_back(root: Path, git: Git, name: str) -> None:
    """The index, the hint and the list of packs are derived."""
    (root / ".git" / name).unlink()
    with Ledger.open(root) as ledger:
        ledger.room("design-review").post("Analyst", "goes on")
    assert git(root, "status", "--porcelain") == ""


def test_a_rotten_journal_is_left(root: Path, git: Git) -> None:
    """Damage before valid frames that main has: a new generation begins, the bytes are kept."""
    with Ledger.open(root) as ledger:
        room = ledger.room("design-review")
        room.post("Analyst", "one more")
        room.post("Analyst", "and one")
        path = journal.generation_path(ledger.layout, journal.generations(ledger.layout)[-1])
        data = bytearray(path.read_bytes())
        lines = data.split(b"\n")
        damaged = len(lines[0]) + 1 + 30
        data[damaged] ^= 0xFF
    # Written over as a disk would do it, after the checkpoint has made everything durable.
    newest = journal.generation_path(ledger.layout, journal.generations(ledger.layout)[-1])
    header = newest.read_bytes().split(b"\n")[0] + b"\n"
    frames = b"\n".join(bytes(line) for line in data.split(b"\n")[1:])
    newest.write_bytes(header + frames)
    with Ledger.open(root, read_only=True) as ledger:
        assert "journal_rot" in {issue.code for issue in ledger.verify().issues}
    with Ledger.open(root) as ledger:
        done = ledger.mend(ledger.verify())
        assert any("journal" in line for line in done)
        assert ledger.verify(full=True).ok
        assert ledger.room("design-review").post("Analyst", "goes on").n == len(BODIES) + 3
    assert git(root, "status", "--porcelain") == ""


def test_a_file_of_the_users_own_is_his_business(root: Path, git: Git) -> None:
    """Edited, staged or neither: verify says nothing, and repair would not touch it."""
    (root / "notes.txt").write_text("one\n")
    git(root, "add", "notes.txt")
    git(root, "commit", "-q", "-m", "Notes")
    (root / "notes.txt").write_text("two\n")
    (root / "more.txt").write_text("staged\n")
    git(root, "add", "more.txt")
    with Ledger.open(root) as ledger:
        ledger.room("design-review").post("Analyst", "goes on")
        assert ledger.verify(full=True).ok
    assert (root / "notes.txt").read_text() == "two\n"
    assert git(root, "status", "--porcelain") == "A  more.txt\n M notes.txt\n"
