"""Hooks side by side, and killed ones: nothing is lost, and nothing noted that was not said."""

from __future__ import annotations

import json
import random
import subprocess
import time
from typing import TYPE_CHECKING

from agent_chatroom_ledger import Ledger
from tests.agenthook.conftest import HOOK, event, hook_environment

if TYPE_CHECKING:
    from pathlib import Path

    from tests.agenthook.conftest import Fire, Say

ROUNDS = 25


def start(root: Path, name: str = "PostToolUse") -> subprocess.Popen[bytes]:
    process = subprocess.Popen(
        HOOK,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env=hook_environment(),
        cwd=root,
    )
    assert process.stdin is not None
    process.stdin.write(event(name, root))
    process.stdin.close()
    return process


def said(process: subprocess.Popen[bytes]) -> list[str]:
    """Return the ids of the records in what a hook wrote, if it wrote all of it."""
    assert process.stdout is not None
    with process.stdout as file:
        data = file.read()
    if not data.endswith(b"\n"):
        return []
    text = json.loads(data)["hookSpecificOutput"]["additionalContext"]
    return [json.loads(line)["id"] for line in text.split("\n") if line.startswith("{")]


def noted(root: Path) -> set[str]:
    with Ledger.open(root, read_only=True) as ledger:
        messages = list(ledger.room("design-review").messages())
        receipts = [ledger.receipts.of_record(message.id) for message in messages]
    return {found[0].record for found in receipts if found}


def test_hooks_side_by_side_hand_over_each_message_once(root: Path, say: Say, fire: Fire) -> None:
    fire("SessionStart", source="startup")
    for number in range(12):
        say(f"message {number}")
    heard: list[str] = []
    for _ in range(4):
        processes = [start(root) for _ in range(4)]
        heard += [record for process in processes for record in said(process)]
        assert {process.wait() for process in processes} == {0}
    assert len(heard) == len(set(heard)) == 12
    assert noted(root) == set(heard)


def test_killed_hooks_lose_nothing_and_note_nothing_unsaid(
    root: Path, say: Say, fire: Fire
) -> None:
    fire("SessionStart", source="startup")
    chance = random.Random(4)
    heard: set[str] = set()
    for number in range(ROUNDS):
        say(f"message {number}")
        process = start(root)
        time.sleep(chance.uniform(0.02, 0.25))
        process.kill()
        heard |= set(said(process))
        process.wait()
        assert noted(root) <= heard
    while ids := [record["id"] for record in fire("UserPromptSubmit", prompt="x").records]:
        heard |= set(ids)
    with Ledger.open(root, read_only=True) as ledger:
        assert {message.id for message in ledger.room("design-review").messages()} == heard
    assert noted(root) == heard
