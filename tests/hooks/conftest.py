"""A ledger, the bare repository that it pushes to with our hook, and commits that nobody may make.

Bad commits are made with the real git binary on a plain copy, which is no ledger to our code.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest

from agent_chatroom_ledger import Ledger
from agent_chatroom_ledger.hookscripts import install

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


def run(root: Path, *args: str, **options: str) -> subprocess.CompletedProcess[str]:
    """Run git in a directory, whatever comes of it; options are variables of the environment."""
    return subprocess.run(
        ["git", *args],
        cwd=root,
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, **options},
    )


def git(root: Path, *args: str, **options: str) -> str:
    """Run git in a directory, which has to succeed."""
    done = run(root, *args, **options)
    assert done.returncode == 0, f"git {' '.join(args)}: {done.stdout}{done.stderr}"
    return done.stdout.strip()


@dataclass(frozen=True)
class Pair:
    """A ledger, a plain copy of its repository, and the bare one that judges pushes."""

    ledger: Path
    copy: Path
    bare: Path

    def push(self, *refs: str) -> subprocess.CompletedProcess[str]:
        """Push from the plain copy."""
        return run(self.copy, "push", "origin", *(refs or ("main",)))

    def main(self) -> str:
        """Return what main names on the server."""
        return git(self.bare, "rev-parse", "main")

    def refresh(self) -> None:
        """Let the plain copy have what the ledger has."""
        git(self.copy, "fetch", "-q", str(self.ledger), "main")
        git(self.copy, "reset", "-q", "--hard", "FETCH_HEAD")

    def segment(self) -> Path:
        """Return the segment of the messages of the room "Review" in the copy."""
        return next(self.copy.glob("rooms/review/messages/*/00/00/00000001.jsonl"))

    def commit(self, message: str = "By hand", **options: str) -> None:
        """Commit everything in the plain copy."""
        git(self.copy, "add", "-A")
        git(self.copy, "commit", "-q", "-m", message, **options)


def make_bare(path: Path, command: Path) -> Path:
    """Make a bare repository that judges pushes."""
    git(path.parent, "init", "-q", "--bare", "-b", "main", str(path))
    install(path, server=True, command=str(command / "rooms"))
    return path


@pytest.fixture
def bare(tmp_path: Path, rooms_on_path: Path) -> Path:
    """Give a bare repository that judges pushes."""
    if shutil.which("git") is None:
        pytest.skip("hooks are git's, and there is no git on PATH")
    return make_bare(tmp_path / "hub.git", rooms_on_path)


@pytest.fixture
def pair(tmp_path: Path, bare: Path) -> Iterator[Pair]:
    """Give a ledger with three messages and a view that is pushed already."""
    root = tmp_path / "ledger"
    with Ledger.open(root, create=True) as ledger:
        room = ledger.create_room("Review", members=("Analyst", "Reviewer"))
        for n in range(3):
            room.post("Analyst", f"check {n}")
    copy = tmp_path / "copy"
    git(tmp_path, "clone", "-q", str(root), str(copy))
    git(copy, "remote", "set-url", "origin", str(bare))
    pair = Pair(root, copy, bare)
    done = pair.push()
    assert done.returncode == 0, done.stderr
    return pair
