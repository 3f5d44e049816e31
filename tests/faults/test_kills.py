"""kill -9 of random writers while several processes write (invariants 1, 3, 4, 5, 10)."""

from __future__ import annotations

import os
import shutil
import signal
import time
from functools import partial
from random import Random
from typing import TYPE_CHECKING

import pytest

from agent_chatroom_ledger import Ledger
from agent_chatroom_ledger.storage import files, refs, repository
from agent_chatroom_ledger.storage.layout import Layout
from tests.faults import children, workload
from tests.faults.soundness import assert_sound, git, noted

if TYPE_CHECKING:
    from pathlib import Path

    from tests.faults.workload import Mode

SEED = 20261129
LEDGERS = 3
KILLS_OF_ONE_LEDGER = 90
WRITERS: tuple[Mode, ...] = ("sync", "sync", "group")


def begin(root: Path) -> None:
    """Make a ledger with one room, so that writers begin at once."""
    with Ledger.open(root, create=True) as ledger:
        ledger.create_room("Design review")


def let_writers_be_killed(root: Path, random: Random, round_: int) -> list[Path]:
    """Start writers, kill each at a random moment, and return their notebooks."""
    notebooks = []
    running = []
    for place, mode in enumerate(WRITERS):
        notes = root.parent / f"{root.name}-{round_}-{place}.notes"
        notebooks.append(notes)
        seed = random.randrange(1 << 30)

        name = f"Writer{place}"
        write = partial(workload.keep_writing, root, name, mode, notes, seed)
        running.append((random.uniform(0.01, 0.2), children.fork(write)))
    started = time.monotonic()
    for moment, child in sorted(running):
        time.sleep(max(moment - (time.monotonic() - started), 0))
        if random.random() < 0.3:
            # The process that commits for a group writer dies like any other.
            for committer in children.committers(root):
                os.kill(committer, signal.SIGKILL)
        os.kill(child, signal.SIGKILL)
        assert children.end_of(child) == -signal.SIGKILL, "a writer failed before it was killed"
    return notebooks


@pytest.mark.parametrize("ledger_number", range(LEDGERS))
def test_killed_writers_lose_nothing_that_was_acknowledged(
    tmp_path: Path, kills: int, ledger_number: int
) -> None:
    """Every acknowledged message survives, once, with its bytes; git stays content."""
    random = Random(SEED + ledger_number)
    notebooks: list[Path] = []
    killed = 0
    while killed < kills / LEDGERS:
        if killed % KILLS_OF_ONE_LEDGER == 0:
            # Checking takes as long as the history is, so a long run begins anew now and then.
            root = tmp_path / f"ledger-{killed}"
            begin(root)
            notebooks = []
        notebooks += let_writers_be_killed(root, random, killed)
        killed += len(WRITERS)
        children.wait_for_committers(root)
        assert_sound(root, noted(*notebooks))
    assert noted(*notebooks), "nobody ever acknowledged anything"


def keep_place(root: Path) -> None:
    """Let a copied directory pass for the one it was copied from, which a replay compares with."""
    layout = Layout(root)
    origin = repository._settings(layout)["ledger", "origin"]
    repository._note_origin(layout, origin)


def commits_with_records(root: Path) -> list[str]:
    """Return the commits of main that hold records, oldest first; view commits have no fixed id."""
    listed = git(root, "log", "--reverse", "--format=%H %(trailers:key=Record,valueonly)", "main")
    return [line.split()[0] for line in listed.decode().split("\n") if len(line.split()) == 2]


def test_replaying_after_a_kill_gives_the_commits_that_there_would_have_been(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same frames on the same base give the same ids, however recovery gets there.

    A killed ledger is copied: one copy goes on from the hint, one has lost the hint, one believes
    that the machine was switched off and commits every frame anew from the base. And no commit
    that main has ever named while the writers lived is replaced by another.
    """
    random = Random(SEED)
    root = tmp_path / "ledger"
    begin(root)
    for round_ in range(6):
        let_writers_be_killed(root, random, round_)
        children.wait_for_committers(root)
        before = refs.read_main(Layout(root))
        found = []
        for way in ("hint", "no hint", "boot"):
            copy = tmp_path / f"copy-{round_}-{way}"
            shutil.copytree(root, copy, symlinks=True)
            keep_place(copy)
            with monkeypatch.context() as patch:
                if way == "no hint":
                    (copy / ".git/ledger/state").unlink(missing_ok=True)
                if way == "boot":
                    patch.setattr(files, "boot_id", lambda: "another boot")
                Ledger.open(copy).close()
            found.append(commits_with_records(copy))
            assert before in git(copy, "rev-list", "main").decode().split()
        assert found[0] == found[1] == found[2]
        for copy in tmp_path.glob("copy-*"):
            shutil.rmtree(copy)
