"""A checkpoint: work tree and index equal main, all is durable, the next generation begins."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_chatroom_ledger import Ledger
from agent_chatroom_ledger.storage import committer, failpoints, files, journal, packlist, refs
from agent_chatroom_ledger.storage.checkpoint import _Neighbours
from agent_chatroom_ledger.storage.journal import Follower
from agent_chatroom_ledger.storage.layout import Layout
from agent_chatroom_ledger.storage.objects import NO_OBJECT, Objects
from agent_chatroom_ledger.storage.packs import PackBuilder
from agent_chatroom_ledger.storage.trees import TreeEditor
from agent_chatroom_ledger.storage.writer import Writer
from tests.storage.kills import Killed, kill
from tests.storage.processes import Silent
from tests.storage.samples import MESSAGES, ROOM, bodies, git, say, write, write_room

if TYPE_CHECKING:
    from collections.abc import Iterator

SEGMENT = f"{MESSAGES}/00/00/00000001.jsonl"


@pytest.fixture
def quiet(layout: Layout) -> Iterator[Writer]:
    """A writer with a room, whose checkpoints are those that the test makes."""
    made = Writer(layout)
    made._background = Silent()
    write_room(made)
    made.checkpoint()
    yield made
    made.close()


def main(layout: Layout) -> str:
    return git(layout.root, "rev-parse", "main").decode().strip()


def assert_settled(layout: Layout) -> None:
    """Work tree, index, anchor and generation stand for main, and no mark of ours is left."""
    root = layout.root
    assert git(root, "status", "--porcelain") == b""
    git(root, "diff-files", "--quiet")  # by the stat alone: no file is read
    listed = git(root, "ls-files", "--stage").decode().splitlines()
    tree = git(root, "ls-tree", "-r", "main").decode().splitlines()
    assert [line.split()[1] for line in listed] == [line.split()[2] for line in tree]
    tip = main(layout)
    assert git(root, "rev-parse", refs.TIP).decode().strip() == tip
    follower = Follower.newest(layout)
    follower.new_frames()
    assert follower.header is not None
    assert follower.header.base == tip
    follower.close()
    assert not [*layout.git.glob("*.lock"), *(layout.git / "refs").rglob("*.lock")]
    assert not list(layout.packs.glob("*.keep"))
    assert all(pack.synced for pack in packlist.read(layout))


def test_everything_stands_for_main(quiet: Writer, layout: Layout) -> None:
    write(quiet, *(say(f"{n}") for n in range(70)))
    assert not (layout.root / SEGMENT).exists()
    assert (layout.git / "index.lock").exists()
    quiet.checkpoint()
    assert_settled(layout)
    assert (layout.root / SEGMENT).read_bytes() == git(layout.root, "show", f"main:{SEGMENT}")
    git(layout.root, "fsck", "--full", "--strict")


@pytest.mark.skipif(not Path("/proc/self/maps").exists(), reason="asks Linux")
def test_no_pack_stays_in_memory_after_it(quiet: Writer, layout: Layout) -> None:
    """One that a merge deletes would keep its space on disk for as long as somebody maps it."""
    write(quiet, *(say(f"{n}") for n in range(70)))
    assert quiet.present.names(ROOM)
    quiet.checkpoint()
    mapped = Path("/proc/self/maps").read_text(encoding="utf-8", errors="replace")
    assert str(layout.packs) not in mapped


def test_nothing_is_done_when_nothing_happened(quiet: Writer, layout: Layout) -> None:
    write(quiet, say("one"))
    quiet.checkpoint()
    before = main(layout), journal.generations(layout)
    steps: list[str] = []
    failpoints.observe(steps.append)
    quiet.checkpoint()
    quiet.flush()
    assert (main(layout), journal.generations(layout)) == before
    assert not steps


def test_views_of_all_rooms_that_were_written_to_are_one_commit(
    quiet: Writer, layout: Layout
) -> None:
    write_room(quiet, "rooms/other", "0199c0de-0000-7000-8000-000000000002")
    write(quiet, say("one"))
    write(quiet, say("two"), path="rooms/other")
    before = main(layout)
    quiet.checkpoint()
    subjects = git(layout.root, "log", "--format=%s", f"{before}..main").decode().splitlines()
    assert subjects == ["views: 2 rooms"]
    assert len(list(layout.root.glob("rooms/*/view/*/*.md"))) == 2


@pytest.mark.parametrize("damage", ["changed", "deleted", "a directory", "a link"])
def test_a_spoiled_page_is_written_again_when_its_room_is_named(
    quiet: Writer, layout: Layout, damage: str
) -> None:
    write(quiet, say("one"))
    quiet.checkpoint()
    (page,) = layout.root.glob(f"{ROOM}/view/*/*.md")
    text = page.read_bytes()
    page.unlink()
    if damage == "changed":
        page.write_bytes(text + b"mine")
    elif damage == "a directory":
        page.mkdir()
    elif damage == "a link":
        page.symlink_to("/none/where")
    quiet.checkpoint()
    assert git(layout.root, "status", "--porcelain") != b""  # nobody asked
    quiet.checkpoint([ROOM])
    assert page.read_bytes() == text
    assert_settled(layout)


def test_frames_that_are_not_committed_yet_are_carried_over(quiet: Writer, layout: Layout) -> None:
    """Under steady load there always are some; followers get each of them once."""
    follower = Follower.newest(layout)
    follower.new_frames()
    other = Writer(layout, commit="group")
    other._background = Silent()
    write(quiet, say("one"))

    def meanwhile(_: str) -> None:
        failpoints.disarm()
        write(other, say("two"), say("three"))

    failpoints.arm("checkpoint.durable", meanwhile)
    quiet.checkpoint()
    newest = Follower.newest(layout)
    assert len(newest.new_frames()) == 2
    assert bodies(layout) == ["one"]
    quiet.checkpoint()
    assert bodies(layout) == ["one", "two", "three"]
    frames = [frame.frame for frame in follower.new_frames()]
    assert frames == list(range(frames[0], frames[0] + len(frames)))
    assert not follower.lost
    other.close()
    assert_settled(layout)


@pytest.mark.parametrize("point", ["commit.remembered", "checkpoint.view_appended"])
def test_views_show_what_came_while_they_were_made(
    quiet: Writer, layout: Layout, point: str
) -> None:
    """What is committed with a view is in it, and what comes after it is in the next."""
    other = Writer(layout, commit="group")
    other._background = Silent()
    write(other, say("one"))

    def meanwhile(_: str) -> None:
        failpoints.disarm()
        write_room(other, "rooms/other", "0199c0de-0000-7000-8000-000000000002")
        write(other, say("two"))
        write(other, say("three"), path="rooms/other")

    failpoints.arm(point, meanwhile)
    quiet.checkpoint()
    quiet.checkpoint()
    pages = sorted(page.read_text() for page in layout.root.glob("rooms/*/view/*/*.md"))
    assert [("> one" in page, "> two" in page, "> three" in page) for page in pages] in (
        [(True, True, False), (False, False, True)],
        [(False, False, True), (True, True, False)],
    )
    other.close()
    assert_settled(layout)


def test_views_of_what_a_foreign_tip_stands_on_are_made_too(quiet: Writer, layout: Layout) -> None:
    """The checkpoint that makes a foreign tip durable builds nothing on it, so no view."""
    write(quiet, say("one"))
    tree = git(layout.root, "rev-parse", "main^{tree}").decode().strip()
    made = git(layout.root, "commit-tree", tree, "-p", "main", "-m", "mine").decode().strip()
    git(layout.root, "update-ref", "refs/heads/main", made)
    write_room(quiet, "rooms/other", "0199c0de-0000-7000-8000-000000000002")
    write(quiet, say("two"), path="rooms/other")
    quiet.checkpoint()
    assert len(list(layout.root.glob("rooms/*/view/*/*.md"))) == 2
    assert_settled(layout)


def test_the_users_own_files_stay_as_they_are(quiet: Writer, layout: Layout) -> None:
    """What he committed, staged, changed and left alone."""
    root = layout.root
    for name in ("committed", "changed"):
        (root / name).write_text("x\n")
        git(root, "add", name)
    git(root, "commit", "-q", "-m", "Mine")
    (root / "staged").write_text("x\n")
    git(root, "add", "staged")
    (root / "changed").write_text("y\n")
    (root / "untracked").write_text("x\n")
    write(quiet, say("one"))
    quiet.checkpoint()
    assert git(root, "status", "--porcelain").decode().splitlines() == [
        " M changed",
        "A  staged",
        "?? untracked",
    ]
    git(root, "commit", "-q", "-m", "More of mine")
    assert "A\tstaged" in git(root, "show", "--name-status", "--format=", "main").decode()
    assert bodies(layout) == ["one"]
    git(root, "commit", "-q", "-am", "The rest")
    write(quiet, say("two"))
    assert bodies(layout) == ["one", "two"]


def test_a_log_that_somebody_made_a_program_becomes_a_file_again(
    quiet: Writer, layout: Layout
) -> None:
    write(quiet, say("one"))
    quiet.checkpoint()
    (layout.root / SEGMENT).chmod(0o755)
    git(layout.root, "commit", "-q", "-am", "chmod")
    write(quiet, say("two"))
    quiet.checkpoint()
    assert (layout.root / SEGMENT).read_bytes().count(b"\n") == 2
    assert_settled(layout)


@pytest.mark.parametrize(
    "change",
    [
        ["update-index", "--index-version", "4"],
        ["update-index", "--split-index"],
        ["update-index", "--untracked-cache"],
        ["read-tree", "main"],
        ["rm", "-rq", "--cached", "rooms"],
    ],
    ids=lambda words: words[1] if isinstance(words, list) else None,
)
def test_whatever_git_made_of_the_index_it_stands_for_main_again(
    quiet: Writer, layout: Layout, change: list[str]
) -> None:
    write(quiet, say("one"))
    quiet.checkpoint()
    git(layout.root, *change)
    write(quiet, *(say(f"{n}") for n in range(3)))
    quiet.checkpoint()
    if change[0] != "rm":
        assert git(layout.root, "status", "--porcelain") == b""
    (layout.git / "index").unlink()
    write(quiet, say("two"))
    quiet.checkpoint()
    assert_settled(layout)


def test_many_files_at_once_are_brought_up_to_date(quiet: Writer, layout: Layout) -> None:
    for n in range(25):
        write_room(quiet, f"rooms/r{n}", f"0199c0de-0000-7000-8000-0000000001{n:02d}")
    quiet.checkpoint()
    assert len(list(layout.root.glob("rooms/*/room.json"))) == 26
    assert_settled(layout)


def test_a_foreign_commit_fails_while_the_index_is_behind(quiet: Writer, layout: Layout) -> None:
    """Otherwise it would take the new messages back (invariant 4)."""
    write(quiet, say("one"))
    (layout.root / "notes").write_text("x")
    git(layout.root, "add", "notes", check=False)
    git(layout.root, "commit", "-q", "-am", "Mine", check=False)
    assert "notes" not in git(layout.root, "ls-tree", "--name-only", "main").decode()
    quiet.checkpoint()
    git(layout.root, "add", "notes")
    git(layout.root, "commit", "-q", "-am", "Mine")
    assert bodies(layout) == ["one"]


def test_the_index_is_let_go_under_steady_load(
    quiet: Writer, layout: Layout, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(committer, "INDEX_LOCK_HELD_SECONDS_MAX", 0.0)
    write(quiet, say("one"))
    assert not (layout.git / "index.lock").exists()


POINTS = [
    "checkpoint.view_appended",
    "worktree.put",
    "worktree.written",
    "checkpoint.files",
    "checkpoint.synced",
    "gitindex.write",
    "gitindex.written",
    "checkpoint.durable",
    "journal.rotate",
    "journal.rotate_written",
    "checkpoint.rotated",
]


@pytest.mark.parametrize("point", POINTS)
def test_a_checkpoint_that_failed_is_finished_by_the_next(
    quiet: Writer, layout: Layout, point: str
) -> None:
    write(quiet, say("one"))

    def full(_: str) -> None:
        raise OSError(errno.ENOSPC, "full")

    failpoints.arm(point, full)
    with pytest.raises((OSError, committer.LedgerError)):
        quiet.checkpoint()
    failpoints.disarm()
    assert bodies(layout) == ["one"]
    quiet.checkpoint()
    assert_settled(layout)


@pytest.mark.parametrize("archives", [False, True])
def test_a_change_within_the_second_of_gits_index_is_not_hidden(
    layout: Layout, *, archives: bool
) -> None:
    """git looks at the content then, and an index that is younger would keep it from that."""
    root = layout.root
    with Ledger.open(root) as ledger:
        room = ledger.create_room("Room")
    status = ("--no-optional-locks", "status", "--porcelain")
    # The seconds have to be all that tells: a test cannot wait for the moment.
    git(root, "config", "core.trustctime", "false")
    git(root, "config", "core.checkstat", "minimal")
    second = 1_700_000_000
    for name in ("same", "other", "link"):
        if name == "link":
            (root / name).symlink_to("same")
        else:
            (root / name).write_text("x\n")
        os.utime(root / name, (second, second), follow_symlinks=False)
    git(root, "add", "same", "other", "link")
    git(root, "commit", "-q", "-m", "Mine")
    (root / "other").write_text("y\n")
    (root / "link").unlink()
    (root / "link").symlink_to("some")
    for name in ("other", "link"):
        os.utime(root / name, (second, second), follow_symlinks=False)
    os.utime(layout.git / "index", (second, second))
    assert git(root, *status) == b" M link\n M other\n"
    with Ledger.open(root) as ledger:
        if archives:
            ledger.archive_room(room.path)
        else:
            ledger.room(room.path).post("Ana", "hello")
        ledger.flush()
        assert git(root, *status) == b" M link\n M other\n"
    git(root, "fsck", "--full", "--strict")


@pytest.mark.parametrize("cut", [False, True], ids=["killed", "power cut"])
@pytest.mark.parametrize("point", ["checkpoint.files", "gitindex.written", "checkpoint.durable"])
def test_what_an_unfinished_checkpoint_has_shown_is_taken_back(
    layout: Layout, point: str, monkeypatch: pytest.MonkeyPatch, *, cut: bool
) -> None:
    """What was so for a moment does not differ from the base of the generation any more."""
    with Ledger.open(layout.root) as ledger:
        path = ledger.create_room("Stays", members=["Ana"]).path
    killed, other = Ledger.open(layout.root), Ledger.open(layout.root)
    for one in (killed, other):
        one.writer()._background = Silent()
    killed.room(path).add_member("Ben")
    brief = killed.create_room("Brief")
    failpoints.arm(point, kill)
    with pytest.raises(Killed):
        killed.writer().checkpoint()
    failpoints.disarm()
    assert (layout.root / brief.path / "room.json").exists()
    other.room(path).remove_member("Ben")
    if cut:
        (layout.private / "showing").unlink()
        other.writer()._release()
        monkeypatch.setattr(files, "boot_id", lambda: "the boot after the cut")
        other = Ledger.open(layout.root)
        other.writer()._background = Silent()
    else:
        other.archive_room(brief.path)
        assert not (layout.root / brief.path).exists()
    other.flush()
    assert_settled(layout)
    assert not list(layout.quarantine.glob("*"))
    assert not (layout.private / "showing").exists()
    assert other.verify(full=True).issues == ()
    other.close()
    killed.writer()._release()


NAMES = st.lists(st.sampled_from(["a", "a-b", "a.b", "a0", "b"]), min_size=1, max_size=3)


@given(st.sets(NAMES.map("/".join), max_size=8), NAMES.map("/".join))
def test_the_file_before_another_is_that_of_gits_index(paths: set[str], path: str) -> None:
    editor, pack = TreeEditor(Objects(Layout(Path("/none"))), NO_OBJECT), PackBuilder()
    files: set[str] = set()
    for one in sorted(paths):
        if not any(one.startswith(f"{other}/") for other in files):
            editor.write(one, b"x", pack)
            files.add(one)
    names = _Neighbours(editor)
    before = [other for other in files if other.encode() < path.encode()]
    if not any(path.startswith(f"{other}/") for other in files):
        assert names.before(path) == max(before, key=str.encode, default=None)
    assert names.last() == max(files, key=str.encode, default=None)
