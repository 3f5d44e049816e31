"""A foreign `git add` and `git commit` at every moment: it fails, or nothing is lost (4)."""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING

import pytest

from agent_chatroom_ledger import Ledger
from tests.faults import children
from tests.faults.life import Life
from tests.faults.soundness import assert_sound, git, noted
from tests.faults.strikes import MODES, moments, strike_at

if TYPE_CHECKING:
    from pathlib import Path

    from tests.faults.workload import Mode

FOREIGN = "notes.txt"


def commit(root: Path, *, everything: bool) -> None:
    """Commit a file of one's own, as a person does in a terminal; git may refuse."""
    if not (root / ".git").is_dir():
        return
    (root / FOREIGN).write_text("mine", encoding="utf-8")
    steps = [["add", "--all" if everything else FOREIGN], ["commit", "-q", "-m", "a note"]]
    if everything:
        steps[1].insert(1, "-a")
    for step in steps:
        if subprocess.run(["git", *step], cwd=root, capture_output=True, check=False).returncode:
            return


def check(folder: Path) -> bool:
    """Check that neither side lost anything; True when the foreign commit had been made."""
    root = folder / "ledger"
    with Ledger.open(root):
        pass
    made = "a note" in git(root, "log", "--format=%s", "main").decode().split("\n")
    if not made:
        (root / FOREIGN).write_text("mine", encoding="utf-8")
        git(root, "add", FOREIGN)
        git(root, "commit", "-q", "-m", "a note")
    assert_sound(root, noted(folder / "notes"))
    assert git(root, "show", f"main:{FOREIGN}") == b"mine"
    return made


@pytest.mark.parametrize("everything", [False, True], ids=["one file", "everything"])
@pytest.mark.parametrize("mode", MODES)
def test_a_foreign_commit_at_any_point_fails_or_loses_nothing(
    tmp_path: Path, mode: Mode, *, everything: bool, thorough: bool
) -> None:
    """`git add` of one file or of all that git sees, then `git commit`, between any two steps."""
    # Each of the four ways takes its share of the moments, and all take every kind of point.
    share = slice(0, None) if thorough else slice(2 * (mode == "group") + everything, None, 4)
    chosen = moments(tmp_path, mode, more=thorough)[share]
    made = []
    strike_at(
        tmp_path,
        mode,
        chosen,
        strike=lambda _, folder: commit(folder / "ledger", everything=everything),
        check=lambda folder: made.append(check(folder)),
    )
    assert any(made), "git was refused every time, so nothing was tested"


def tidy(root: Path) -> None:
    """Throw away all that git finds nobody to refer to, and move everything else."""
    if (root / ".git").is_dir():
        for command in (["gc", "-q", "--prune=now"], ["pack-refs", "--all"], ["repack", "-adq"]):
            subprocess.run(["git", *command], cwd=root, capture_output=True, check=False)


@pytest.mark.parametrize("mode", MODES)
def test_tidying_up_at_any_point_takes_nothing_that_is_needed(
    tmp_path: Path, mode: Mode, *, thorough: bool
) -> None:
    """`git gc --prune=now`, `git pack-refs --all` and `git repack -ad` between any two steps."""
    strike_at(
        tmp_path,
        mode,
        moments(tmp_path, mode, more=thorough)[mode == "group" :: 3],
        strike=lambda _, folder: tidy(folder / "ledger"),
        check=lambda folder: assert_sound(folder / "ledger", noted(folder / "notes")),
    )


def test_foreign_commits_in_a_loop_beside_a_writer(tmp_path: Path) -> None:
    """Both go on for a while; the writer waits or says that its record is safe."""
    root, notes = tmp_path / "ledger", tmp_path / "notes"
    with Ledger.open(root, create=True) as ledger:
        ledger.create_room("Design review", id="01a229c5-23d6-7000-8000-000000000001")

    def write() -> None:
        life = Life(root, notes, "sync")
        with Ledger.open(root) as ledger:
            room = ledger.room("design-review")
            for number in range(120):
                life.post(room, number)

    writer = children.fork(write)
    made = 0
    for turn in range(40):
        (root / FOREIGN).write_text(f"{turn}", encoding="utf-8")
        made += (
            subprocess.run(
                ["git", "commit", "-q", "-m", f"turn {turn}", "--", FOREIGN]
                if made
                else ["sh", "-c", f"git add {FOREIGN} && git commit -q -m 'turn {turn}'"],
                cwd=root,
                capture_output=True,
                check=False,
            ).returncode
            == 0
        )
    assert children.end_of(writer) == 0
    Ledger.open(root).close()
    git(root, "add", FOREIGN)
    git(root, "commit", "-q", "--allow-empty", "-m", "the last")
    assert_sound(root, noted(notes))
    subjects = git(root, "log", "--format=%s", "main").decode().split("\n")
    assert sum(subject.startswith("turn ") for subject in subjects) == made
