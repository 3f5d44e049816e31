"""`rooms stats` and `rooms gc`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agent_chatroom_ledger import Ledger

if TYPE_CHECKING:
    from pathlib import Path

    from tests.cli.conftest import Ask, Invoke


def test_stats(root: Path, ask: Ask, invoke: Invoke) -> None:
    assert "authors        none" in invoke("stats").stdout
    with Ledger.open(root) as ledger:
        room = ledger.create_room("Design review")
        for number in range(12):
            room.post(f"Name {number}", "x")
    found = ask("stats")
    assert (found["rooms"], found["messages"], len(found["authors"])) == (1, 12, 12)
    assert "and 2 more" in invoke("stats").stdout


def test_gc(root: Path, ask: Ask, invoke: Invoke) -> None:
    with Ledger.open(root) as ledger:
        room = ledger.create_room("Design review")
        for number in range(12):
            room.post("Ann", str(number))
    found = ask("gc")
    assert found["after"]["packs"] < found["before"]["packs"]
    assert found["commit_graph"] in {"git", "ledger"}
    assert invoke("gc").stdout.startswith("packs: ")
