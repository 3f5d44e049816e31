"""Main is moved by compare-and-swap under git's own locks, and our marks are known as ours."""

from __future__ import annotations

import subprocess
import threading
import time
from typing import TYPE_CHECKING

import pytest

from agent_chatroom_ledger.errors import Busy, Conflict, Corrupt
from agent_chatroom_ledger.storage import failpoints, refs
from agent_chatroom_ledger.storage.refs import MAIN, NO_OBJECT, TIP, Marks
from tests.storage.samples import empty_place, git

if TYPE_CHECKING:
    from pathlib import Path

    from agent_chatroom_ledger.storage.layout import Layout


@pytest.fixture
def place(tmp_path: Path) -> Layout:
    return empty_place(tmp_path / "place")


@pytest.fixture
def commits(place: Layout) -> list[str]:
    """Four commits that nothing names."""
    tree = git(place.root, "mktree").decode().strip()
    return [git(place.root, "commit-tree", tree, "-m", f"{n}").decode().strip() for n in range(4)]


def gits(place: Layout, name: str = MAIN) -> str:
    return git(place.root, "rev-parse", name).decode().strip()


def test_a_ref_is_read_loose_and_packed(place: Layout, commits: list[str]) -> None:
    assert refs.read_main(place) == NO_OBJECT
    git(place.root, "update-ref", MAIN, commits[0])
    assert refs.read_main(place) == commits[0]
    git(place.root, "pack-refs", "--all")
    assert not (place.git / MAIN).exists()
    assert refs.read_main(place) == commits[0]
    git(place.root, "update-ref", MAIN, commits[1])  # loose again, and the packed one is stale
    assert refs.read_main(place) == commits[1]
    assert refs.read_ref(place, "refs/heads/mai") == NO_OBJECT


def test_a_directory_of_refs_is_no_ref(place: Layout, commits: list[str]) -> None:
    git(place.root, "update-ref", "refs/heads/a/b", commits[0])
    for name in ("refs/heads/a", "refs/heads", "refs/heads/a/b/c", f"refs/heads/{'x' * 300}"):
        assert refs.read_ref(place, name) == NO_OBJECT
    # git leaves the directory behind, and a packed ref may be called as it is.
    (place.git / "refs/heads/a/b").unlink()
    (place.git / "packed-refs").write_text(f"{commits[1]} refs/heads/a\n", encoding="ascii")
    assert refs.read_ref(place, "refs/heads/a") == commits[1]


@pytest.mark.parametrize("data", [b"", b"\0" * 41, b"no id\n"])
def test_a_damaged_ref_is_corrupt_and_not_missing(place: Layout, data: bytes) -> None:
    (place.git / MAIN).write_bytes(data)
    with pytest.raises(Corrupt) as caught:
        refs.read_main(place)
    assert caught.value.code == "bad_ref"


def test_main_is_moved_only_from_what_it_is(place: Layout, commits: list[str]) -> None:
    one, two, three, _ = commits
    marks = Marks(place)
    assert marks.move_main(NO_OBJECT, one)
    assert gits(place) == one
    assert not marks.move_main(two, three)
    assert not marks.move_main(NO_OBJECT, three)
    assert gits(place) == one
    assert marks.move_main(one, two)
    assert gits(place) == two
    assert not list(place.git.glob("**/*.lock"))


def test_a_move_by_git_between_two_of_ours_is_noticed(place: Layout, commits: list[str]) -> None:
    """Who remembers what main named looks again when its file was replaced, or was packed."""
    one, two, three, four = commits
    marks = Marks(place)
    assert marks.move_main(NO_OBJECT, one)
    git(place.root, "update-ref", MAIN, two)
    assert not marks.main_names(one)
    assert not marks.move_main(one, three)
    assert marks.move_main(two, three)
    git(place.root, "pack-refs", "--all")
    assert marks.main_names(three)
    assert marks.move_main(three, four)
    assert gits(place) == four
    assert Marks(place).main_names(four)


@pytest.mark.parametrize("sync", [False, True])
def test_a_ref_of_ours_is_made_with_its_directory(
    place: Layout, commits: list[str], *, sync: bool
) -> None:
    assert refs.move(place, TIP, NO_OBJECT, commits[0], sync=sync)
    assert gits(place, TIP) == commits[0]
    assert refs.move(place, TIP, commits[0], commits[1], sync=sync)
    assert gits(place, TIP) == commits[1]


def test_git_moves_nothing_while_we_do(place: Layout, commits: list[str]) -> None:
    seen: list[int] = []

    def meanwhile(_: str) -> None:
        argv = ["git", "update-ref", MAIN, commits[3]]
        seen.append(
            subprocess.run(argv, cwd=place.root, capture_output=True, check=False).returncode
        )

    failpoints.arm("refs.locked", meanwhile)
    assert refs.move(place, MAIN, NO_OBJECT, commits[0])
    assert seen[0] != 0
    assert gits(place) == commits[0]


def test_a_foreign_lock_is_waited_for_and_then_named(
    place: Layout, commits: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    lock = place.git / f"{MAIN}.lock"
    lock.write_text("")
    timer = threading.Timer(0.05, lock.unlink)
    timer.start()
    assert refs.move(place, MAIN, NO_OBJECT, commits[0])
    timer.join()
    lock.write_text("")
    monkeypatch.setattr(refs, "FOREIGN_LOCK_WAIT_SECONDS_MAX", 0.02)
    with pytest.raises(Busy) as caught:
        refs.move(place, MAIN, commits[0], commits[1])
    assert caught.value.code == "git_locked"
    assert caught.value.fields["path"] == str(lock)
    assert lock.exists()
    assert gits(place) == commits[0]


def test_a_mark_of_ours_that_somebody_left_is_adopted(place: Layout, commits: list[str]) -> None:
    path = f"{place.git}/index.lock"
    assert not refs.take_mark(place, path, 0.0)
    assert refs.take_mark(place, path, 0.0)
    assert not refs.take_mark(place, f"{place.git}/{MAIN}.lock", 0.0)
    assert refs.move(place, MAIN, NO_OBJECT, commits[0])  # a killed process had it
    refs.drop_mark(place, path)
    refs.drop_mark(place, path)
    assert not (place.git / "index.lock").exists()


def test_a_mark_is_ours_by_inode_or_by_content(place: Layout) -> None:
    """A power cut, or a copy of the directory, may part the link from the permanent file."""
    path = place.git / "index.lock"
    assert not refs.ours(place, str(path))
    path.write_bytes((place.locks / "own").read_bytes())
    assert refs.ours(place, str(path))
    assert refs.take_mark(place, str(path), 0.0)
    path.write_bytes(b"DIRC")
    assert not refs.ours(place, str(path))
    with pytest.raises(Busy):
        refs.take_mark(place, str(path), 0.0)
    refs.drop_mark(place, str(path))
    assert path.exists()


def test_forgotten_ref_locks_are_dropped_if_they_are_ours(place: Layout) -> None:
    ours, foreign = place.git / f"{MAIN}.lock", place.git / f"{TIP}.lock"
    foreign.parent.mkdir(parents=True)
    foreign.write_text("git's")
    refs.take_mark(place, str(ours), 0.0)
    refs.drop_forgotten(place)
    assert not ours.exists()
    assert foreign.exists()


def test_a_lock_is_gone_after_a_failure(place: Layout, commits: list[str]) -> None:
    def fail(_: str) -> None:
        raise OSError("no")

    failpoints.arm("refs.moved", fail)
    with pytest.raises(OSError, match="no"):
        refs.move(place, MAIN, NO_OBJECT, commits[0])
    assert not list(place.git.glob("**/*.lock"))


def test_writing_needs_head_on_main(place: Layout, commits: list[str]) -> None:
    marks = Marks(place)
    git(place.root, "update-ref", MAIN, commits[0])
    marks.require_head_on_main()
    assert refs.head(place) == MAIN
    git(place.root, "switch", "-q", "--detach")
    for check in (marks.require_head_on_main, lambda: refs.require_head_on_main(place)):
        with pytest.raises(Conflict) as caught:
            check()
        assert caught.value.code == "not_on_main"
        assert caught.value.fields["head"] == commits[0]
    git(place.root, "switch", "-q", "-c", "other")
    with pytest.raises(Conflict):
        marks.require_head_on_main()
    git(place.root, "switch", "-q", "main")
    marks.require_head_on_main()


def test_head_comes_back_to_main(place: Layout, commits: list[str]) -> None:
    git(place.root, "update-ref", MAIN, commits[0])
    git(place.root, "switch", "-q", "--detach")
    refs.point_head_at_main(place)
    assert git(place.root, "symbolic-ref", "HEAD").decode().strip() == MAIN
    assert not list(place.git.glob("*.lock"))


def test_a_damaged_main_can_be_replaced(place: Layout, commits: list[str]) -> None:
    (place.git / MAIN).write_bytes(b"\0" * 41)
    refs.replace_main(place, commits[2])
    assert gits(place) == commits[2]
    assert not list(place.git.glob("**/*.lock"))


def test_main_is_made_durable_loose_or_packed(place: Layout, commits: list[str]) -> None:
    synced: list[str] = []
    failpoints.observe(lambda name: synced.append(name) if name.startswith("files.sync") else None)
    git(place.root, "update-ref", MAIN, commits[0])
    refs.sync_main(place)
    git(place.root, "pack-refs", "--all")
    refs.sync_main(place)
    assert synced == ["files.sync", "files.sync_directory"] * 2


def test_readers_see_one_commit_or_the_other(place: Layout, commits: list[str]) -> None:
    """While main is moved hundreds of times, whoever reads it finds a whole id."""
    marks = Marks(place)
    assert marks.move_main(NO_OBJECT, commits[0])
    seen: set[str] = set()
    stop = time.monotonic() + 0.3

    def watch() -> None:
        while time.monotonic() < stop:
            seen.add(refs.read_main(place))

    reader = threading.Thread(target=watch)
    reader.start()
    number = 0
    while time.monotonic() < stop:
        assert marks.move_main(commits[number % 4], commits[(number + 1) % 4])
        number += 1
    reader.join()
    assert seen <= set(commits)
