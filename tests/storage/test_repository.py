"""Creating and opening: one ledger per directory, one origin per clone, and clear refusals."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from typing import TYPE_CHECKING

import msgspec
import pytest

from agent_chatroom_ledger.domain.clock import from_micros
from agent_chatroom_ledger.domain.drafts import Draft
from agent_chatroom_ledger.errors import Busy, Conflict, Corrupt, Forbidden, InvalidInput, NotFound
from agent_chatroom_ledger.storage import journal, repository
from agent_chatroom_ledger.storage.objects import Objects
from agent_chatroom_ledger.storage.writer import Writer
from tests.storage.samples import ORIGIN, ROOM, git, write, write_room

if TYPE_CHECKING:
    from pathlib import Path

    from agent_chatroom_ledger.storage.layout import Layout


def config(root: Path, key: str) -> str:
    return git(root, "config", key, check=False).decode().strip()


def prepared(layout: Layout) -> str:
    """Do what the first write does, and return the origin."""
    objects = Objects(layout)
    try:
        return repository.prepare(layout, objects)
    finally:
        objects.close()


def test_a_new_ledger_is_an_ordinary_repository_with_one_commit(layout: Layout) -> None:
    root = layout.root
    assert git(root, "status", "--porcelain") == b""
    git(root, "fsck", "--full", "--strict")
    assert git(root, "symbolic-ref", "HEAD").strip() == b"refs/heads/main"
    assert git(root, "ls-files").decode().split() == [".gitattributes", "ledger.json"]
    assert git(root, "rev-list", "--all", "--count").strip() == b"1"
    assert git(root, "rev-parse", "refs/ledger/tip") == git(root, "rev-parse", "main")
    described = msgspec.json.decode((root / "ledger.json").read_bytes())
    assert described["format"] == 1
    assert f"Ledger: {described['ledger']}" in git(root, "log", "-1", "--format=%B").decode()
    assert repository.origin_of(layout) == ORIGIN == config(root, "ledger.origin")
    assert journal.generations(layout) == [1]
    assert not list(root.glob(".git-new-*"))


def test_line_ends_are_never_translated(layout: Layout) -> None:
    git(layout.root, "config", "core.autocrlf", "true")
    (layout.root / "rooms").mkdir()
    (layout.root / "rooms" / "x.jsonl").write_bytes(b"1\r\n2\n")
    git(layout.root, "add", "rooms/x.jsonl")
    assert git(layout.root, "show", ":rooms/x.jsonl") == b"1\r\n2\n"
    git(layout.root, "rm", "-q", "--cached", "rooms/x.jsonl")


def test_creating_again_opens_what_is_there(layout: Layout) -> None:
    before = git(layout.root, "rev-parse", "main")
    again = repository.create(layout.root, origin="other-1234")
    assert again == layout
    assert git(layout.root, "rev-parse", "main") == before
    assert repository.origin_of(again) == ORIGIN


def test_several_processes_create_one_ledger(tmp_path: Path) -> None:
    program = (
        "import sys; from pathlib import Path\n"
        "from agent_chatroom_ledger.storage import repository\n"
        "sys.stdin.read(1)\n"
        "print(repository.origin_of(repository.create(Path(sys.argv[1]))))\n"
    )
    root = tmp_path / "deep" / "ledger"
    children = [
        subprocess.Popen(
            [sys.executable, "-c", program, str(root)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for _ in range(4)
    ]
    origins = {child.communicate("x")[0] for child in children}
    assert len(origins) == 1
    assert all(child.returncode == 0 for child in children)
    assert not list(root.glob(".git-new-*"))
    git(root, "fsck", "--full", "--strict")
    assert git(root, "status", "--porcelain") == b""


def test_what_a_killed_creation_left_is_swept(tmp_path: Path) -> None:
    root = tmp_path / "ledger"
    (root / ".git-new-abc" / "objects").mkdir(parents=True)
    layout = repository.create(root)
    assert [path.name for path in root.iterdir() if path.name.startswith(".git-")] == []
    (root / "ledger.json").unlink()  # as if it had died before this
    assert repository.create(root) == layout
    assert git(root, "status", "--porcelain") == b""


def test_files_that_were_there_stay_and_are_not_ours(tmp_path: Path) -> None:
    root = tmp_path / "ledger"
    root.mkdir()
    (root / "notes.txt").write_text("mine")
    repository.create(root)
    assert git(root, "status", "--porcelain") == b"?? notes.txt\n"


@pytest.mark.parametrize("kind", ["repository", "link", "file"])
def test_a_foreign_repository_is_refused_and_left_alone(tmp_path: Path, kind: str) -> None:
    root = tmp_path / "place"
    root.mkdir()
    if kind == "repository":
        git(root, "init", "-q")
    elif kind == "link":
        (root / ".git").symlink_to("/none/where")
    else:
        (root / ".git").write_text("gitdir: elsewhere\n")
    with pytest.raises(Conflict) as caught:
        repository.create(root)
    assert caught.value.code == "foreign_repository"
    assert [path.name for path in root.iterdir()] == [".git"]


@pytest.mark.parametrize("name", ["UPPER CASE", "a/b", "x" * 100, "..", "a\nb"])
def test_an_origin_that_is_no_name_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(InvalidInput):
        repository.create(tmp_path / "ledger", origin=name)
    assert not (tmp_path / "ledger" / ".git").exists()


def test_no_ledger_is_not_found_and_nothing_is_made(tmp_path: Path) -> None:
    with pytest.raises(NotFound):
        repository.open_layout(tmp_path)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.broken_on_purpose
@pytest.mark.parametrize(
    ("setting", "value"),
    [
        ("extensions.objectFormat", "sha256"),
        ("extensions.refStorage", "reftable"),
        ("extensions.partialClone", "origin"),
        ("remote.origin.promisor", "true"),
    ],
)
def test_repositories_of_another_kind_are_refused(layout: Layout, setting: str, value: str) -> None:
    with (layout.git / "config").open("a") as stream:
        section, _, key = setting.rpartition(".")
        head, _, name = section.partition(".")
        stream.write(f'[{head} "{name}"]\n' if name else f"[{head}]\n")
        stream.write(f"\t{key} = {value}\n")
    with pytest.raises(InvalidInput) as caught:
        repository.open_layout(layout.root)
    assert caught.value.code == "unsupported_repository"


@pytest.mark.broken_on_purpose
def test_a_linked_work_tree_is_refused(layout: Layout, tmp_path: Path) -> None:
    git(layout.root, "worktree", "add", "-q", "--detach", str(tmp_path / "linked"))
    with pytest.raises(InvalidInput) as caught:
        repository.open_layout(tmp_path / "linked")
    assert caught.value.code == "linked_work_tree"


@pytest.mark.broken_on_purpose
@pytest.mark.parametrize(
    ("text", "code"),
    [
        ('{"format": 2}', "newer_format"),
        ('{"format": "1"}', "newer_format"),
        ("{", "bad_ledger_file"),
        ("[]", "bad_ledger_file"),
        ("{}", "bad_ledger_file"),
    ],
)
def test_another_format_is_refused(layout: Layout, text: str, code: str) -> None:
    (layout.root / "ledger.json").write_text(text)
    with pytest.raises(Corrupt) as caught:
        repository.open_layout(layout.root)
    assert caught.value.code == code


def test_opening_writes_nothing(layout: Layout) -> None:
    before = {path: path.stat().st_mtime_ns for path in layout.root.rglob("*")}
    repository.open_layout(layout.root)
    repository.origin_of(layout)
    assert {path: path.stat().st_mtime_ns for path in layout.root.rglob("*")} == before


def test_a_clone_mints_an_origin_of_its_own_and_begins_after_what_it_holds(
    layout: Layout, tmp_path: Path
) -> None:
    with_writer(layout, "one")
    git(tmp_path, "clone", "-q", str(layout.root), "clone")
    clone = repository.open_layout(tmp_path / "clone")
    assert repository.origin_of(clone) is None
    assert not clone.private.exists()
    origin = prepared(clone)
    assert origin != ORIGIN
    assert repository.origin_of(clone) == origin == prepared(clone)
    follower = journal.Follower(clone)
    follower.new_frames()
    header = follower.header
    assert header is not None
    assert (header.base, header.origin) == (
        git(layout.root, "rev-parse", "main").decode().strip(),
        origin,
    )
    # A commit has whole seconds: the next record comes after everything it may hold.
    newest = int(git(layout.root, "log", "-1", "--format=%ct"))
    assert from_micros((newest + 1) * 1_000_000) == header.newest_at
    git(tmp_path / "clone", "fsck", "--full", "--strict")


@pytest.mark.parametrize("seconds", [4_000_000_000, 253_402_300_799, 253_402_300_800, 0])
def test_a_clone_begins_after_the_ledgers_newest_commit_whatever_others_clocks_said(
    layout: Layout, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seconds: int
) -> None:
    with_writer(layout, "one")
    newest = int(git(layout.root, "log", "-1", "--format=%ct"))
    monkeypatch.setenv("GIT_COMMITTER_DATE", f"@{seconds} +0000")
    git(layout.root, "commit", "-q", "--allow-empty", "-m", "by hand")
    monkeypatch.delenv("GIT_COMMITTER_DATE")
    git(tmp_path, "clone", "-q", str(layout.root), "clone")
    clone = repository.open_layout(tmp_path / "clone")
    prepared(clone)
    follower = journal.Follower(clone)
    follower.new_frames()
    assert follower.header is not None
    assert follower.header.newest_at == from_micros((newest + 1) * 1_000_000)
    follower.close()
    with_writer(clone, "two")


def with_writer(layout: Layout, body: str) -> str:
    """Post through a writer of its own, and return the origin of the record's log."""
    writer = Writer(layout)
    try:
        if writer.present.origin == ORIGIN and body == "one":
            write_room(writer)
        (stored,) = write(writer, Draft(author="Analyst", body=body))
        return stored.log.rpartition("/")[2]
    finally:
        writer.close()


def test_a_copied_directory_mints_and_a_moved_one_keeps_its_origin(
    layout: Layout, tmp_path: Path
) -> None:
    """Two places that give numbers under one name would fork its logs (invariant 1)."""
    assert with_writer(layout, "one") == ORIGIN
    moved = tmp_path / "moved"
    layout.root.rename(moved)
    assert with_writer(repository.open_layout(moved), "two") == ORIGIN
    copy = tmp_path / "copy"
    shutil.copytree(moved, copy, symlinks=True)
    other = with_writer(repository.open_layout(copy), "three")
    assert other != ORIGIN
    assert with_writer(repository.open_layout(copy), "four") == other
    assert with_writer(repository.open_layout(moved), "five") == ORIGIN
    found = git(copy, "ls-tree", "--name-only", f"main:{ROOM}/messages").decode().split()
    assert found == sorted([ORIGIN, other])


def test_the_users_settings_survive_a_new_origin(layout: Layout, tmp_path: Path) -> None:
    git(layout.root, "config", "user.name", "Ann; #1")
    git(layout.root, "config", "remote.hub.url", "ssh://hub/ledger")
    shutil.copytree(layout.root, tmp_path / "copy", symlinks=True)
    copy = repository.open_layout(tmp_path / "copy")
    prepared(copy)
    assert config(copy.root, "user.name") == "Ann; #1"
    assert config(copy.root, "remote.hub.url") == "ssh://hub/ledger"
    assert config(copy.root, "ledger.origin") == repository.origin_of(copy)


def test_a_held_lock_of_the_settings_is_named(layout: Layout, tmp_path: Path) -> None:
    shutil.copytree(layout.root, tmp_path / "copy", symlinks=True)
    copy = repository.open_layout(tmp_path / "copy")
    lock = copy.git / "config.lock"
    lock.write_text("")
    with pytest.raises(Busy) as caught:
        prepared(copy)
    assert caught.value.fields["path"] == str(lock)
    lock.unlink()
    assert prepared(copy)


def test_a_ledger_that_cannot_be_written_is_read_and_said_so(layout: Layout) -> None:
    if not os.geteuid():
        read_only = type(layout)(layout.root, writable=False)  # root may write anywhere
    else:
        layout.git.chmod(0o555)
        read_only = repository.open_layout(layout.root)
        layout.git.chmod(0o755)
    with pytest.raises(Forbidden) as caught:
        prepared(read_only)
    assert caught.value.code == "read_only"


def test_what_is_missing_beside_git_is_made_anew(layout: Layout) -> None:
    """`.git/ledger` may have been left out of a backup."""
    shutil.rmtree(layout.private)
    assert prepared(layout) == ORIGIN
    assert journal.generations(layout) == [1]
    assert (layout.locks / "own").exists()
