"""Archiving and restoring a room of 100,000 messages beside one of 100: no message is copied."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from tests.benchmarks import ledgers
from tests.benchmarks.measure import Row, Scale, interleaved, row

if TYPE_CHECKING:
    from collections.abc import Callable

    from agent_chatroom_ledger import Ledger

ROUNDS = 5
_SMALL = "Side room 1"


def archiving(scale: Scale) -> list[Row]:
    """Archive and restore a large and a small room of the same ledger, checkpoints included."""
    with ledgers.opened(ledgers.large(scale)) as ledger:
        ledgers.fill(ledger.room(_SMALL), 90)
        ledger.flush()
        timed: dict[str, Callable[[], float]] = {}
        for size, name in (("large", ledgers.ROOM), ("small", _SMALL)):
            timed[f"archive {size}"] = _archive(ledger, name)
            timed[f"restore {size}"] = _restore(ledger, name)
        figures = interleaved(ROUNDS, timed)
    size = f"a room of {scale.size(100_000, 5_000):,} messages"
    return [
        row(
            "archive", f"{act} {size}", figures, ours=f"{act} large", peer=f"{act} small",
            better="less", must=1.5,
        )
        for act in ("archive", "restore")
    ]  # fmt: skip


def _archive(ledger: Ledger, name: str) -> Callable[[], float]:
    def run() -> float:
        begin = time.perf_counter()
        ledger.archive_room(name)
        return time.perf_counter() - begin

    return run


def _restore(ledger: Ledger, name: str) -> Callable[[], float]:
    def run() -> float:
        begin = time.perf_counter()
        ledger.restore_room(name)
        return time.perf_counter() - begin

    return run


GROUPS = {"archive": archiving}
