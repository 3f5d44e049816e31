"""A kill, and a full disk, between every two steps of the write path (invariants 3, 4, 5)."""

from __future__ import annotations

import json
import shutil
import signal
from collections import Counter
from random import Random
from typing import TYPE_CHECKING

import pytest

from agent_chatroom_ledger import Ledger
from agent_chatroom_ledger.storage import failpoints
from tests.faults import children, workload
from tests.faults.life import Life, full
from tests.faults.soundness import Notebook, assert_sound, git, noted, seen_in

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.faults.workload import Mode

SEED = 7
MODES: tuple[Mode, ...] = ("sync", "group")


def lived(folder: Path, mode: Mode, strike: Callable[[str, int], None]) -> int:
    """Live in a child, with `strike(point, how often it was reached)` at every point."""

    def live() -> None:
        workload.without_background()
        workload.merge_early()
        reached: Counter[str] = Counter()

        def at(point: str) -> None:
            reached[point] += 1
            strike(point, reached[point])

        failpoints.observe(at)
        Life(folder / "ledger", folder / "notes", mode).live()
        (folder / "reached").write_text(json.dumps(reached), encoding="ascii")

    folder.mkdir()
    return children.run(live)


def points(folder: Path, mode: Mode) -> dict[str, int]:
    """Return every point that a life reaches, and how often."""
    assert lived(folder / "plain", mode, lambda _point, _time: None) == 0
    found: dict[str, int] = json.loads((folder / "plain" / "reached").read_text(encoding="ascii"))
    shutil.rmtree(folder / "plain")
    return found


def moments(found: dict[str, int], *, more: bool) -> list[tuple[str, int]]:
    """Choose when to strike at each point: at some time, and the first or the last one."""
    random = Random(SEED)
    chosen = []
    for point, times in sorted(found.items()):
        whens = {random.randint(1, times)}
        if more:
            whens |= {1, times, *random.sample(range(1, times + 1), min(5, times))}
        else:
            whens.add(random.choice((1, times)))
        chosen += [(point, when) for when in sorted(whens)]
    return chosen


def check(folder: Path) -> None:
    """Check what a life left; it may have ended before there was a ledger."""
    with Ledger.open(folder / "ledger", create=True) as ledger:
        rooms = ledger.rooms()
        if rooms:
            room = ledger.room(rooms[0].path)
            position = ledger.consumer("Reviewer").position(room).get(room.origin, 0)
            assert position >= seen_in(folder / "notes"), "the cursor went back"
    assert_sound(folder / "ledger", noted(folder / "notes"))


def strike_everywhere(
    tmp_path: Path, mode: Mode, strike: Callable[[str], None], expected: int, *, thorough: bool
) -> int:
    """Live once for every moment, strike there, and check; return how many lives there were."""
    failures = []
    chosen = moments(points(tmp_path, mode), more=thorough)
    for number, (point, when) in enumerate(chosen):
        folder = tmp_path / f"{number}"

        def at(name: str, times: int, point: str = point, when: int = when) -> None:
            if (name, times) == (point, when):
                strike(name)

        status = lived(folder, mode, at)
        try:
            assert status == expected, f"the life ended with {status}"
            check(folder)
        except Exception as error:  # noqa: BLE001 - every point is to be named
            failures.append(f"{point} #{when}: {type(error).__name__}: {str(error)[:400]}")
        shutil.rmtree(folder)
    assert not failures, f"{len(failures)} of {len(chosen)}:\n" + "\n".join(failures)
    return len(chosen)


@pytest.mark.parametrize("mode", MODES)
def test_a_kill_at_any_point_loses_nothing(tmp_path: Path, mode: Mode, *, thorough: bool) -> None:
    """A process that dies between two steps leaves whole transactions and all it acknowledged."""
    lives = strike_everywhere(
        tmp_path, mode, lambda _: children.die(), -signal.SIGKILL, thorough=thorough
    )
    assert lives > 50


@pytest.mark.parametrize("mode", MODES)
def test_a_full_disk_at_any_point_is_a_clear_error_and_passes(
    tmp_path: Path, mode: Mode, *, thorough: bool
) -> None:
    """The call that meets it says so in the ledger's words, and the same process goes on."""
    assert strike_everywhere(tmp_path, mode, full, 0, thorough=thorough) > 50


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
