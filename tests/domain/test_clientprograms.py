"""Which process is an agent's client: no shell, no launcher, not our own command."""

from __future__ import annotations

import pytest

from agent_chatroom_ledger.domain.clientprograms import client_name, is_init, is_passed_over

CLAUDE = "/opt/node_modules/@anthropic-ai/claude-code/cli.js"


@pytest.mark.parametrize(
    ("name", "command"),
    [
        ("sh", "sh -c rooms"),
        ("bash", "-bash"),
        ("zsh", "/usr/bin/zsh -l"),
        ("powershell.exe", "C:\\Windows\\powershell.exe"),
        ("env", "/usr/bin/env rooms mcp"),
        ("timeout", "timeout 10 rooms hook agent"),
        ("uv", "uv run rooms mcp"),
        ("uvx", "/home/me/.local/bin/uvx agent-chatroom-ledger mcp"),
        ("python3", "python3 -m agent_chatroom_ledger.cli mcp"),
        ("python3.11", "/venv/bin/python3.11 -X utf8 /venv/bin/rooms mcp"),
        ("python", "python -I -m agent_chatroom_ledger mcp"),
        ("rooms", "rooms mcp"),
        ("rooms.exe", "C:\\venv\\Scripts\\rooms.exe mcp"),
        ("bash", ""),
    ],
)
def test_what_only_starts_others_is_passed_over(name: str, command: str) -> None:
    assert is_passed_over(name, command.split())


@pytest.mark.parametrize(
    ("name", "command", "called"),
    [
        ("claude", "claude --resume x", "claude-code"),
        ("2.1.197", "claude", "claude-code"),
        ("node", f"node --max-old-space-size=4 {CLAUDE} -p hi", "claude-code"),
        ("node", f"/usr/bin/node -r ./x.js {CLAUDE}", "claude-code"),
        ("claude.exe", "C:\\bin\\claude.exe", "claude-code"),
        ("codex", "/opt/node_modules/@openai/codex/vendor/codex exec hi", "codex"),
        ("node", "node /usr/bin/codex", "codex"),
        ("node", "node /usr/bin/gemini", "gemini-cli"),
        ("cursor-agent", "cursor-agent", "cursor"),
        ("node", "node /srv/agent.mjs", "agent"),
        ("node", "node", "node"),
        ("node", "node -e 1", "node"),
        ("python3", "python3 /srv/My_Agent.py --flag", "my_agent"),
        ("python3", "python3 -m pytest", "pytest"),
        ("tmux: server", "tmux new -s x", "tmux"),
        ("secret", "", "secret"),
    ],
)
def test_a_client_is_called_by_what_it_runs(name: str, command: str, called: str) -> None:
    words = command.split()
    assert not is_passed_over(name, words)
    assert client_name(name, words) == called


def test_the_first_process_is_nobodys_client() -> None:
    assert is_init("systemd", ["/sbin/init"])
    assert is_init("systemd", ["/usr/lib/systemd/systemd", "--user"])
    assert not is_init("claude", ["claude"])
