"""Which commits a push brings: what is new, parents first, whatever the shape of history."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

import pytest

from agent_chatroom_ledger import limits
from agent_chatroom_ledger.errors import Corrupt, InvalidInput
from agent_chatroom_ledger.storage import push
from agent_chatroom_ledger.storage.objects import NO_OBJECT
from agent_chatroom_ledger.storage.push import PushedObjects, new_commits

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from tests.conftest import Git

    Commit = Callable[..., str]


@pytest.fixture
def bare(tmp_path: Path, git: Git) -> Path:
    path = tmp_path / "some.git"
    git(tmp_path, "init", "-q", "--bare", str(path))
    return path


@pytest.fixture
def objects(bare: Path) -> Iterator[PushedObjects]:
    found = PushedObjects(bare)
    yield found
    found.close()


@pytest.fixture
def commit(bare: Path, git: Git, monkeypatch: pytest.MonkeyPatch) -> Commit:
    tree = git(bare, "write-tree").strip()
    count = 0

    def make(*parents: str, seconds: int | None = None) -> str:
        nonlocal count
        count += 1
        date = f"{1_700_000_000 + count if seconds is None else seconds} +0000"
        monkeypatch.setenv("GIT_COMMITTER_DATE", date)
        named = [word for parent in parents for word in ("-p", parent)]
        return git(bare, "commit-tree", tree, "-m", f"commit {count}", *named).strip()

    return make


def test_a_line_of_commits(objects: PushedObjects, commit: Commit) -> None:
    a = commit()
    b = commit(a)
    c = commit(b)
    assert new_commits(objects, c, a) == ((b, c), True)
    assert new_commits(objects, c, NO_OBJECT) == ((a, b, c), True)
    assert new_commits(objects, c, c) == ((), True)


def test_what_does_not_build_on_main(objects: PushedObjects, commit: Commit) -> None:
    a = commit()
    b = commit(a)
    c = commit(a)
    assert new_commits(objects, a, b) == ((), False)
    assert new_commits(objects, c, b) == ((c,), False)
    assert new_commits(objects, commit(), b).builds_on is False


def test_a_merge_brings_the_other_side(objects: PushedObjects, commit: Commit) -> None:
    a = commit()
    here = commit(a)
    there = commit(commit(a))
    merge = commit(here, there)
    order, builds_on = new_commits(objects, merge, here)
    assert builds_on
    assert order[-1] == merge
    assert len(order) == 3
    assert here not in order


def test_clocks_that_run_back_lose_nothing(objects: PushedObjects, commit: Commit) -> None:
    a = commit(seconds=2_000_000_000)
    b = commit(a, seconds=1_000_000_000)
    c = commit(b, seconds=1_900_000_000)
    assert new_commits(objects, c, a) == ((b, c), True)
    assert new_commits(objects, a, c) == ((), False)


@pytest.mark.parametrize("seed", range(4))
def test_any_history_is_judged_as_git_judges_it(
    objects: PushedObjects, commit: Commit, bare: Path, git: Git, seed: int
) -> None:
    chance = random.Random(seed)
    made = [commit()]
    for _ in range(18):
        parents = chance.sample(made[-5:], min(len(made), chance.choice((1, 1, 2))))
        made.append(commit(*parents, seconds=1_700_000_000 + chance.randrange(30)))
    for _ in range(12):
        new, known = chance.choice(made), chance.choice(made)
        order, builds_on = new_commits(objects, new, known)
        assert set(git(bare, "rev-list", new, f"^{known}").split()) == set(order)
        assert len(set(order)) == len(order)
        ancestors = git(bare, "rev-list", new).split()
        assert builds_on == (known in ancestors)
        for oid in order:
            above = objects.commit(oid).parents
            assert all(order.index(p) < order.index(oid) for p in above if p in order)


def test_too_many_commits_name_the_limit(
    objects: PushedObjects, commit: Commit, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(push, "PUSH_COMMITS_MAX", 2)
    tip = commit(commit(commit()))
    with pytest.raises(InvalidInput, match="at most 2 commits"):
        new_commits(objects, tip, NO_OBJECT)
    assert limits.PUSH_COMMITS_MAX == 1_000_000


def test_a_missing_commit_is_named(objects: PushedObjects) -> None:
    with pytest.raises(Corrupt, match="missing or damaged"):
        new_commits(objects, "1" * 40, NO_OBJECT)


def test_objects_are_found_in_the_quarantine_and_beyond(
    bare: Path, git: Git, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, commit: Commit
) -> None:
    """Loose or packed, in the first directory, in the second, or in an alternate of that."""
    other = tmp_path / "other.git"
    git(tmp_path, "init", "-q", "--bare", str(other))
    first = commit()
    git(bare, "update-ref", "refs/heads/main", first)
    git(bare, "repack", "-q", "-a", "-d")
    (other / "objects" / "info" / "alternates").write_text(f"{bare / 'objects'}\n")
    quarantine = tmp_path / "incoming"
    quarantine.mkdir()
    monkeypatch.setenv("GIT_OBJECT_DIRECTORY", str(quarantine))
    monkeypatch.setenv("GIT_ALTERNATE_OBJECT_DIRECTORIES", str(bare / "objects"))
    tree = git(bare, "rev-parse", f"{first}^{{tree}}").strip()
    second = git(bare, "commit-tree", tree, "-p", first, "-m", "second").strip()
    objects = PushedObjects(other, (str(quarantine), str(other / "objects")))
    try:
        assert new_commits(objects, second, first) == ((second,), True)
        assert objects.commit(first).parents == ()
    finally:
        objects.close()
    assert not PushedObjects(other).has(second)
