"""A kill, and a full disk, between every two steps of the write path (invariants 3, 4, 5)."""

from __future__ import annotations

import signal
from typing import TYPE_CHECKING

import pytest

from agent_chatroom_ledger import Ledger
from agent_chatroom_ledger.storage import failpoints
from tests.faults import children, workload
from tests.faults.life import full
from tests.faults.soundness import Notebook, assert_sound, git, noted, seen_in
from tests.faults.strikes import MODES, moments, strike_at

if TYPE_CHECKING:
    from pathlib import Path

    from tests.faults.workload import Mode


def check(folder: Path) -> None:
    """Check what a life left; it may have ended before there was a ledger."""
    with Ledger.open(folder / "ledger", create=True) as ledger:
        rooms = ledger.rooms()
        if rooms:
            room = ledger.room(rooms[0].path)
            position = ledger.consumer("Reviewer").position(room).get(room.origin, 0)
            assert position >= seen_in(folder / "notes"), "the cursor went back"
    assert_sound(folder / "ledger", noted(folder / "notes"))


@pytest.mark.parametrize("mode", MODES)
def test_a_kill_at_any_point_loses_nothing(tmp_path: Path, mode: Mode, *, thorough: bool) -> None:
    """A process that dies between two steps leaves whole transactions and all it acknowledged."""
    lives = strike_at(
        tmp_path,
        mode,
        moments(tmp_path, mode, more=thorough),
        strike=lambda _point, _folder: children.die(),
        check=check,
        end=-signal.SIGKILL,
    )
    assert lives > 35


@pytest.mark.parametrize("mode", MODES)
def test_a_full_disk_at_any_point_is_a_clear_error_and_passes(
    tmp_path: Path, mode: Mode, *, thorough: bool
) -> None:
    """The call that meets it says so in the ledger's words, and the same process goes on."""
    lives = strike_at(
        tmp_path,
        mode,
        moments(tmp_path, mode, more=thorough),
        strike=lambda point, _folder: full(point),
        check=check,
    )
    assert lives > 35


def test_a_pack_that_main_is_on_survives_whoever_stores_it_again(tmp_path: Path) -> None:
    """A process dies between moving main and noting it; another that built on the same tip goes on.

    The other builds the very same commit and pack, and loses the race for main to the dead: it
    must not take back the pack as one of its own that nobody refers to.
    """
    root, notes = tmp_path / "ledger", Notebook(tmp_path / "notes")
    with Ledger.open(root, create=True) as ledger:
        room = ledger.create_room("Design review")
        notes.note(room.path, room.post("A", "the tip of both"))

        def post_and_die() -> None:
            workload.without_background()
            with Ledger.open(root) as mine:
                failpoints.arm("commit.moved", lambda _: children.die())
                mine.room(room.path).post("B", "committed, and not noted")

        assert children.run(post_and_die) == -signal.SIGKILL
        ledger.writer().commit()
        git(root, "rev-parse", "--verify", "main^{commit}")
        notes.note(room.path, room.post("A", "goes on"))
    assert_sound(root, noted(tmp_path / "notes"))
