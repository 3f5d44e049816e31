"""The demonstration, and that what it says to try next works as pasted."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.cli.conftest import environment

if TYPE_CHECKING:
    from tests.cli.conftest import Ask, Invoke
    from tests.conftest import Git


@pytest.fixture
def rooms_on_path(tmp_path: Path) -> dict[str, str]:
    """Return an environment in which `rooms` is this command line."""
    place = tmp_path / "bin"
    place.mkdir()
    script = place / "rooms"
    script.write_text(f'#!/bin/sh\nexec {sys.executable} -m agent_chatroom_ledger.cli "$@"\n')
    script.chmod(0o755)
    found = environment()
    found["PATH"] = f"{place}{os.pathsep}{found['PATH']}"
    return found


def test_the_demonstration_tells_the_whole_story(invoke: Invoke, tmp_path: Path, git: Git) -> None:
    root = tmp_path / "a demo"
    result = invoke("demo", "--root", str(root))
    assert result.exit_code == 0, result.stderr
    for claim in (
        "Two readers diverge",
        "One restarts",
        "left out of the view",
        "broken on purpose and rebuilt",
        "ok: 0 issues in 10 commits",
        "1 page, 1 room, 1 cursor",
        "the lens shows [1, 2, 4, 5]",
        "the log holds  [1, 2, 3, 4, 5]",
        "design-review policy: exclude #3 (Reviewer)",
        str(root),
    ):
        assert claim in result.stdout
    assert git(root, "status", "--porcelain") == ""
    git(root, "fsck", "--full", "--strict")


def test_what_it_says_to_try_next_works(
    ask: Ask, tmp_path: Path, rooms_on_path: dict[str, str]
) -> None:
    told = ask("demo", "--root", str(tmp_path / "it's here"))
    assert len(told["next"]) == 3
    for command in told["next"]:
        done = subprocess.run(
            ["sh", "-c", command], env=rooms_on_path, cwd="/", capture_output=True, check=False
        )
        assert (done.returncode, done.stderr) == (0, b"")
        assert done.stdout


def test_by_default_it_makes_a_fresh_directory_each_time(ask: Ask, root: Path) -> None:
    places = [Path(ask("demo")["root"]) for _ in range(2)]
    try:
        assert places[0] != places[1]
        assert root not in places
        assert all(place.name.startswith("rooms-demo-") for place in places)
    finally:
        for place in places:
            shutil.rmtree(place)


def test_it_leaves_a_directory_in_use_alone(ask: Ask, root: Path) -> None:
    before = sorted(root.rglob("*"))
    error = ask("demo", "--root", str(root))["error"]
    assert error["code"] == "conflict"
    assert sorted(root.rglob("*")) == before
