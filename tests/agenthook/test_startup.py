"""What the hook loads: it runs after every tool of every agent, so it must be little."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from tests.agenthook.conftest import event, hook_environment

if TYPE_CHECKING:
    from pathlib import Path

    from tests.agenthook.conftest import Fire, Say

# What no event needs, whatever it finds.
NEVER = {
    "agent_chatroom_ledger.cli.program",
    "asyncio",
    "click",
    "dulwich",
    "logging",
    "mcp",
    "platformdirs",
    "psutil",
    "rich",
    "socket",
    "tomlkit",
    "typing_extensions",
}
# What opens a ledger, and asks it.
OPENS = {
    "sqlite3",
    "agent_chatroom_ledger.ledger",
    "agent_chatroom_ledger.inbox",
    "agent_chatroom_ledger.presence",
}
COMMAND = """
import os, sys
end = os._exit
def show(status):
    print(*sorted(sys.modules), sep="\\n", file=sys.stderr)
    sys.stderr.flush()
    end(status)
os._exit = show
from agent_chatroom_ledger.cli import main
main()
"""


def loaded(root: Path, name: str, agent: str = "bob") -> set[str]:
    found = subprocess.run(
        [sys.executable, "-c", COMMAND, "hook", "agent"],
        input=event(name, root, source="startup"),
        env=hook_environment(agent),
        cwd=root,
        capture_output=True,
        check=True,
    )
    return set(found.stderr.decode().split())


@pytest.mark.parametrize("name", ["SessionStart", "UserPromptSubmit", "PostToolUse", "Stop"])
def test_an_event_loads_nothing_heavy(root: Path, fire: Fire, say: Say, name: str) -> None:
    fire("SessionStart", source="startup")
    say("hello", "bob")
    assert not loaded(root, name) & NEVER


def test_a_tool_after_which_nothing_has_changed_opens_no_ledger(root: Path, fire: Fire) -> None:
    # The first event makes the client known, which is a change; the second finds nothing new.
    fire("PostToolUse")
    assert loaded(root, "PostToolUse") & OPENS == OPENS
    assert not loaded(root, "PostToolUse") & (OPENS | NEVER)


def test_where_no_ledger_is_none_is_opened(tmp_path: Path) -> None:
    assert not loaded(tmp_path, "SessionStart") & (OPENS | NEVER)


def test_importing_the_package_loads_nothing() -> None:
    code = "import sys, agent_chatroom_ledger.agenthook; print(*sys.modules)"
    found = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, **hook_environment()},
        capture_output=True,
        check=True,
    )
    names = {n for n in found.stdout.decode().split() if n.startswith("agent_chatroom_ledger")}
    assert names == {"agent_chatroom_ledger", "agent_chatroom_ledger.agenthook"}
