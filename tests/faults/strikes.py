"""Strikes: something done to a life of a ledger at one named point, in a child of its own."""

from __future__ import annotations

import json
import shutil
from collections import Counter
from functools import partial
from random import Random
from typing import TYPE_CHECKING

from agent_chatroom_ledger.storage import failpoints
from tests.faults import children, workload
from tests.faults.life import Life

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from pathlib import Path

    from tests.faults.workload import Mode

SEED = 7
MODES: tuple[Mode, ...] = ("sync", "group")
Moment = tuple[str, int]


def _live(folder: Path, mode: Mode, strike: Callable[[str], None], moment: Moment) -> int:
    """Live in a child, and strike when a point is reached for the so-manieth time."""

    def live() -> None:
        workload.without_background()
        workload.merge_early()
        reached: Counter[str] = Counter()

        def at(point: str) -> None:
            reached[point] += 1
            if (point, reached[point]) == moment:
                strike(point)

        failpoints.observe(at)
        Life(folder / "ledger", folder / "notes", mode).live()
        (folder / "reached").write_text(json.dumps(reached), encoding="ascii")

    folder.mkdir()
    return children.run(live)


def _there(strike: Callable[[str, Path], None], folder: Path, point: str) -> None:
    strike(point, folder)


def _points(folder: Path, mode: Mode) -> dict[str, int]:
    """Return every point that a life reaches, and how often."""
    assert _live(folder, mode, lambda _: None, ("", 0)) == 0
    found: dict[str, int] = json.loads((folder / "reached").read_text(encoding="ascii"))
    shutil.rmtree(folder)
    return found


def moments(tmp_path: Path, mode: Mode, *, more: bool) -> list[Moment]:
    """Choose when to strike at each point: at some time; in sync mode the first or last one too."""
    random = Random(SEED)
    chosen = []
    for point, times in sorted(_points(tmp_path / "plain", mode).items()):
        whens = {random.randint(1, times)}
        if more:
            whens |= {1, times, *random.sample(range(1, times + 1), min(5, times))}
        elif mode == "sync":
            whens.add(random.choice((1, times)))
        chosen += [(point, when) for when in sorted(whens)]
    return chosen


def strike_at(
    tmp_path: Path,
    mode: Mode,
    chosen: Iterable[Moment],
    *,
    strike: Callable[[str, Path], None],
    check: Callable[[Path], object],
    end: int = 0,
) -> int:
    """Live once for every moment; `strike(point, folder)` there, and `check(folder)` afterwards.

    Names every moment that came out badly; returns how many there were.
    """
    failures, number = [], 0
    for number, moment in enumerate(chosen, 1):
        folder = tmp_path / f"{number}"
        status = _live(folder, mode, partial(_there, strike, folder), moment)
        try:
            assert status == end, f"the life ended with {status}"
            check(folder)
        except Exception as error:  # noqa: BLE001 - every moment is to be named
            name = f"{moment[0]} #{moment[1]}"
            failures.append(f"{name}: {type(error).__name__}: {str(error)[:500]}")
        shutil.rmtree(folder)
    assert not failures, f"{len(failures)} of {number}:\n" + "\n".join(failures)
    return number
