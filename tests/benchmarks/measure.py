"""Rows of the benchmark table and the ways to measure them."""

from __future__ import annotations

import contextlib
import gc
import json
import os
import statistics
import subprocess
import sys
import time
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

REPOSITORY = Path(__file__).resolve().parents[2]
SOURCES = REPOSITORY / "src"
BODY = "18 checks passed, 2 are waiting for a review; the log is attached to the build. " * 2


@dataclass(frozen=True, kw_only=True)
class Row:
    """One line of the table: our figure, the peer's, and their ratio.

    `better` says which way: "more" (how many times as many a second as the peer) or "less" (how
    many times the peer's cost). `must` and `aim` are bounds of the ratio, None where there is none.
    """

    name: str
    measure: str
    ours: str
    peer: str
    ratio: float | None
    better: Literal["more", "less"]
    must: float | None = None
    aim: float | None = None
    rounds: Mapping[str, Sequence[float]] = field(default_factory=dict)

    def verdict(self) -> str:
        """Say which of the two bounds is reached."""
        if self.ratio is None:
            return "not available"
        for bound, word in ((self.aim, "aim"), (self.must, "reached")):
            if bound is not None and (
                self.ratio >= bound if self.better == "more" else self.ratio <= bound
            ):
                return word
        return "missed" if self.must is not None else "-"

    def as_dict(self) -> dict[str, Any]:
        """Return the row as plain JSON values."""
        return {**asdict(self), "verdict": self.verdict()}


@dataclass(frozen=True, kw_only=True)
class Scale:
    """How much to measure, and where the temporary directories and the channel logs are."""

    quick: bool
    folder: Path
    irc: tuple[Path, ...]

    def size(self, full: int, quick: int) -> int:
        """Return one of the two sizes."""
        return quick if self.quick else full

    def fresh(self, name: str) -> Path:
        """Return a path in the temporary directory that nothing has taken."""
        number = 0
        while (path := self.folder / f"{name}-{number}").exists():
            number += 1
        return path


def interleaved(rounds: int, timed: Mapping[str, Callable[[], float]]) -> dict[str, list[float]]:
    """Run every function once a round, A B A B, and return the figures of each by its name."""
    figures: dict[str, list[float]] = {name: [] for name in timed}
    for _ in range(rounds):
        for name, run in timed.items():
            gc.collect()
            figures[name].append(run())
    return figures


def each(count: int, call: Callable[[], object], last: Callable[[], object] | None = None) -> float:
    """Return the seconds per call of `count` calls, with `last` once at the end in the time."""
    begin = time.perf_counter()
    for _ in range(count):
        call()
    if last is not None:
        last()
    return (time.perf_counter() - begin) / count


def row(
    name: str,
    measure: str,
    figures: Mapping[str, Sequence[float]],
    *,
    ours: str,
    peer: str,
    better: Literal["more", "less"],
    must: float | None,
    aim: float | None = None,
) -> Row:
    """Make a row of two of the figures, which are seconds; `peer` may be missing."""
    mine = statistics.median(figures[ours])
    if not figures.get(peer):
        return Row(
            name=name, measure=measure, ours=seconds(mine), peer=f"{peer}: not available",
            ratio=None, better=better, must=must, aim=aim, rounds={ours: figures[ours]},
        )  # fmt: skip
    theirs = statistics.median(figures[peer])
    return Row(
        name=name,
        measure=measure,
        ours=seconds(mine),
        peer=f"{peer} {seconds(theirs)}",
        ratio=theirs / mine if better == "more" else mine / theirs,
        better=better,
        must=must,
        aim=aim,
        rounds={ours: figures[ours], peer: figures[peer]},
    )


def seconds(value: float) -> str:
    """Return a time with a unit that keeps three figures."""
    for unit, factor in (("s", 1.0), ("ms", 1e3), ("µs", 1e6)):
        if value * factor >= 1:
            return f"{value * factor:.3g} {unit}"
    return f"{value * 1e9:.3g} ns"


def git(root: Path, *args: str, stdin: Any = None, stdout: Any = subprocess.PIPE) -> bytes:
    """Run the git binary in a directory, away from the user's configuration."""
    done = subprocess.run(
        ["git", *args], cwd=root, env=git_environment(), check=True, stdin=stdin, stdout=stdout,
        stderr=subprocess.PIPE,
    )  # fmt: skip
    return done.stdout or b""


def git_environment() -> dict[str, str]:
    """Return an environment in which git knows a committer and reads no one's configuration."""
    env = dict(os.environ)
    for who in ("AUTHOR", "COMMITTER"):
        env |= {f"GIT_{who}_NAME": "Analyst", f"GIT_{who}_EMAIL": "analyst@example.invalid"}
    return env | {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}


def child_environment() -> dict[str, str]:
    """Return an environment in which a child imports this checkout and these benchmarks.

    Bytecode is kept, as an installed package has it: without, compiling takes half the time.
    """
    paths = [str(SOURCES), str(REPOSITORY), os.environ.get("PYTHONPATH", "")]
    found = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in paths if path)}
    found.pop("PYTHONDONTWRITEBYTECODE", None)
    return found


def child(*args: str) -> subprocess.Popen[str]:
    """Start `tests.benchmarks.child` with arguments; it speaks JSON lines on stdout."""
    return subprocess.Popen(
        [sys.executable, "-m", "tests.benchmarks.child", *args],
        cwd=REPOSITORY, env=child_environment(), text=True,
        stdin=subprocess.PIPE, stdout=subprocess.PIPE,
    )  # fmt: skip


def child_result(*args: str) -> dict[str, Any]:
    """Run a child to its end and return the JSON object it printed last."""
    process = child(*args)
    out, _ = process.communicate()
    if process.returncode:
        raise RuntimeError(f"the child {args[0]} failed with status {process.returncode}")
    result: dict[str, Any] = json.loads(out.splitlines()[-1])
    return result


def peak_bytes() -> int:
    """Return the most memory this process ever held."""
    with contextlib.suppress(OSError):
        for line in Path("/proc/self/status").read_text(encoding="ascii").splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) * 1024
    import resource

    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit


def children_peak_bytes() -> int:
    """Return the most memory that any one child of this process held which has ended."""
    import resource

    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * unit


def tree_bytes(root: Path) -> int:
    """Return the sizes of all files below a directory, each counted once."""
    seen: dict[tuple[int, int], int] = {}
    for path in root.rglob("*"):
        if path.is_file() and not path.is_symlink():
            stat = path.stat()
            seen[stat.st_dev, stat.st_ino] = stat.st_size
    return sum(seen.values())
