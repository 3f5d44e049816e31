"""What a command loads: a process is started for every message, so it must be little."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from agent_chatroom_ledger import Ledger
from agent_chatroom_ledger.identity import find_client, identify
from tests.cli.conftest import environment

if TYPE_CHECKING:
    from pathlib import Path

HEAVY = {
    *("dulwich", "rich", "psutil", "platformdirs", "isal"),
    *("asyncio", "logging", "tempfile", "socket"),
}
COMMAND = """
import sys
from agent_chatroom_ledger.cli.program import run
status = run(sys.argv[1:])
print(*sorted(sys.modules), sep="\\n", file=sys.stderr)
sys.exit(status)
"""


def loaded(root: Path, *words: str) -> set[str]:
    found = subprocess.run(
        [sys.executable, "-c", COMMAND, *words],
        env=environment(root),
        capture_output=True,
        check=True,
    )
    return set(found.stderr.decode().split())


@pytest.fixture(autouse=True)
def room(root: Path) -> None:
    with Ledger.open(root) as ledger:
        ledger.create_room("Review").post("A", "hello")


@pytest.mark.parametrize(
    ("words", "more"),
    [
        (("read", "review"), {"sqlite3", "hashlib", "json", "ctypes"}),
        (("read", "review", "--json"), {"sqlite3", "hashlib", "json", "ctypes"}),
        (("tail", "review"), {"sqlite3", "hashlib", "json", "ctypes"}),
        (("lens", "review"), {"sqlite3", "hashlib", "json", "ctypes"}),
        (("unread", "--as", "A"), {"json", "ctypes"}),
        (("seen", "review", "--as", "A"), {"sqlite3", "ctypes"}),
        (("inbox", "--as", "B"), {"hashlib", "json", "ctypes"}),
        (("receipts", "review#1", "--as", "A"), {"hashlib", "json", "ctypes"}),
        (("list",), {"hashlib", "json", "ctypes"}),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_reading_loads_nothing_heavy(root: Path, words: tuple[str, ...], more: set[str]) -> None:
    assert not loaded(root, *words) & (HEAVY | more)


@pytest.mark.parametrize(
    "words",
    [("unread",), ("post", "review", "hello"), ("seen", "review"), ("dm", "B", "hi")],
    ids=" ".join,
)
def test_a_name_needs_no_table_of_processes(
    root: Path, words: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "psutil" not in loaded(root, *words)
    with Ledger.open(root) as ledger:
        client = find_client({}, root, door="mcp")
        identify(ledger, {"ROOMS_NAME": "A"}, client, claim=True)
    assert "psutil" not in loaded(root, *words, "--as", "A")
    monkeypatch.setenv("ROOMS_NAME", "A")
    assert "agent_chatroom_ledger.identity" in loaded(root, *words)
    assert "psutil" not in loaded(root, *words)


def test_a_command_loads_no_other_command(root: Path) -> None:
    commands = {name for name in loaded(root, "read", "review") if "cli.commands." in name}
    assert commands == {"agent_chatroom_ledger.cli.commands.read_command"}


def test_importing_the_entry_point_loads_nothing() -> None:
    code = "import sys, typing, agent_chatroom_ledger.cli; print(*sys.modules)"
    found = subprocess.run(
        [sys.executable, "-c", code], env=environment(), capture_output=True, check=True
    )
    modules = set(found.stdout.decode().split())
    assert not modules & (HEAVY | {"click", "msgspec", "pathlib"})
    assert {name for name in modules if name.startswith("agent_chatroom_ledger")} == {
        "agent_chatroom_ledger",
        "agent_chatroom_ledger.cli",
    }
