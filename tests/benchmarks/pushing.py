"""What a server's hook costs, beside what git itself does with the same push."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from typing import TYPE_CHECKING

from tests.benchmarks import ledgers
from tests.benchmarks.measure import Row, child_environment, git, interleaved, row

if TYPE_CHECKING:
    from pathlib import Path

    from tests.benchmarks.measure import Scale

ROUNDS = 5
_NO_COMMIT = "0" * 40
_PIECE = 1_000


def push(scale: Scale) -> list[Row]:
    """Judging a push of 10,000 commits beside `git index-pack` and `git rev-list --objects`."""
    count = scale.size(10_000, 1_000)
    root = ledgers.made(scale, "pushed", messages=count, rooms=1)
    main = git(root, "rev-parse", "main").decode().strip()
    packed = scale.fresh("push").with_suffix(".pack")
    with packed.open("wb") as stream:
        source = subprocess.Popen(["git", "rev-parse", "main"], cwd=root, stdout=subprocess.PIPE)
        git(root, "pack-objects", "--revs", "--stdout", "-q", stdin=source.stdout, stdout=stream)
        source.communicate()
    bare = _received(scale, packed)
    peaks: list[int] = []

    def judge() -> float:
        begin = time.perf_counter()
        peaks.append(_judged(bare, _NO_COMMIT, main))
        return time.perf_counter() - begin

    def peer() -> float:
        begin = time.perf_counter()
        fresh = _received(scale, packed)
        git(fresh, "rev-list", "--objects", main, stdout=subprocess.DEVNULL)
        return time.perf_counter() - begin

    figures = interleaved(ROUNDS, {"hook": judge, "git": peer})
    base = git(root, "rev-parse", f"main~{min(_PIECE, count // 2)}").decode().strip()
    piece = _judged(bare, base, main)
    peak = max(peaks)
    return [
        row(
            "push", f"hook on a push of {count:,} commits", figures, ours="hook", peer="git",
            better="less", must=10, aim=5,
        ),
        Row(
            name="push",
            measure=f"memory of the hook, {count:,} commits beside {min(_PIECE, count // 2):,}",
            ours=f"{peak / 1e6:.0f} MB",
            peer=f"{piece / 1e6:.0f} MB",
            ratio=peak / piece,
            better="less",
            must=3,
            rounds={"hook": peaks, "piece": [piece]},
        ),
    ]  # fmt: skip


def _received(scale: Scale, packed: Path) -> Path:
    """Return a bare repository that has indexed the pack of a push."""
    bare = scale.fresh("hub")
    bare.mkdir()
    git(bare, "init", "-q", "--bare", "-b", "main")
    with packed.open("rb") as stream:
        git(bare, "index-pack", "--stdin", "--fix-thin", stdin=stream)
    return bare


def _judged(bare: Path, old: str, new: str) -> int:
    """Run the hook as a server does; return the most memory that it held."""
    process = subprocess.Popen(
        [sys.executable, "-m", "agent_chatroom_ledger.cli", "hook", "pre-receive"],
        cwd=bare,
        env=child_environment(),
        stdin=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
    assert process.stdin is not None
    process.stdin.write(f"{old} {new} refs/heads/main\n".encode())
    process.stdin.close()
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise RuntimeError(f"the hook has refused a good push with status {process.returncode}")
    return usage.ru_maxrss * (1 if sys.platform == "darwin" else 1024)


GROUPS = {"push": push}
