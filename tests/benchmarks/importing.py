"""Import of channel logs: time, size on disk, memory."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from tests.benchmarks.measure import (
    Row,
    Scale,
    child_result,
    git,
    interleaved,
    row,
    tree_bytes,
)

if TYPE_CHECKING:
    from pathlib import Path

ROUNDS = 5


def importing(scale: Scale) -> list[Row]:
    """Import beside `git fast-import` of the same history, and the size beside a full repack."""
    logs = scale.irc[: scale.size(len(scale.irc), 2)]
    last: list[Path] = []

    def ours() -> float:
        root = scale.fresh("import")
        last[:] = [root]
        begin = time.perf_counter()
        _import(root, logs)
        return time.perf_counter() - begin

    ours()
    history = scale.fresh("history")
    with history.open("wb") as file:
        git(last[0], "fast-export", "refs/heads/main", stdout=file)

    def theirs() -> float:
        root = scale.fresh("fast-import")
        root.mkdir()
        git(root, "init", "-q", "-b", "main")
        with history.open("rb") as file:
            begin = time.perf_counter()
            git(root, "fast-import", "--quiet", stdin=file)
            return time.perf_counter() - begin

    figures = interleaved(ROUNDS, {"import": ours, "git fast-import": theirs})
    commits = int(git(last[0], "rev-list", "--count", "main"))
    return [
        row(
            "import", f"import of {len(logs)} days, {commits:,} commits", figures,
            ours="import", peer="git fast-import", better="less", must=1.25, aim=1.0,
        ),
        _size(scale, last[0]),
    ]  # fmt: skip


def _import(root: Path, logs: tuple[Path, ...]) -> None:
    from agent_chatroom_ledger import Ledger
    from agent_chatroom_ledger.adapters.irc import import_irc

    # As `rooms import irc` does: in group mode, and at the end of the block, within the time,
    # everything is committed and checkpointed and the committer has ended.
    with Ledger.open(root, create=True, commit="group") as ledger:
        import_irc(ledger, ledger.create_room("Channel"), logs)


def _size(scale: Scale, root: Path) -> Row:
    """Return the row of `.git` after an import beside a clone that git has packed anew."""
    clone = scale.fresh("clone")
    git(scale.folder, "clone", "-q", root.as_uri(), str(clone))
    git(clone, "repack", "-adfq")
    mine, theirs = tree_bytes(root / ".git"), tree_bytes(clone / ".git")
    packs = tree_bytes(root / ".git" / "objects")
    return Row(
        name="import",
        measure=".git after that import",
        ours=f"{mine / 1e6:.1f} MB (objects {packs / 1e6:.1f})",
        peer=f"clone after git repack -adf {theirs / 1e6:.1f} MB",
        ratio=mine / theirs,
        better="less",
        must=1.15,
        rounds={"bytes": [mine], "objects_bytes": [packs], "clone_bytes": [theirs]},
    )


def memory(scale: Scale) -> list[Row]:
    """Peak memory of an import of N lines beside one of 4 N: its process and its committer's."""
    many = scale.irc[: scale.size(len(scale.irc), 8)]
    few = many[: max(1, len(many) // 4)]
    peaks: dict[str, list[float]] = {"4 N": [], "N": []}
    lines = {"4 N": 0, "N": 0}
    for _ in range(scale.size(ROUNDS, 1)):
        for name, logs in (("4 N", many), ("N", few)):
            found = child_result("import", str(scale.fresh("memory")), *map(str, logs))
            peaks[name].append(found["peak_bytes"])
            lines[name] = found["lines"]
    mine, theirs = (
        sorted(peaks["4 N"])[len(peaks["4 N"]) // 2],
        sorted(peaks["N"])[len(peaks["N"]) // 2],
    )
    return [
        Row(
            name="memory",
            measure=f"peak memory of the import of {lines['4 N']:,} lines, committer included",
            ours=f"{mine / 1e6:.0f} MB",
            peer=f"{lines['N']:,} lines {theirs / 1e6:.0f} MB",
            ratio=mine / theirs,
            better="less",
            # Bounded: four times the lines may cost what is within the noise, not four times.
            must=1.25,
            rounds=peaks,
        )
    ]


GROUPS = {"import": importing, "memory": memory}
