from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from tests.cli.conftest import environment

if TYPE_CHECKING:
    from pathlib import Path

    from tests.cli.conftest import Ask, Invoke

CLIENTS = ("claude", "codex", "cursor", "gemini")


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "home"
    path.mkdir()
    monkeypatch.setenv("HOME", str(path))
    monkeypatch.chdir(path)
    return path


def files(home: Path) -> dict[str, bytes]:
    found = (path for path in sorted(home.rglob("*")) if path.is_file())
    return {str(path.relative_to(home)): path.read_bytes() for path in found}


@pytest.mark.parametrize("client", CLIENTS)
def test_the_plan_is_shown_and_written_only_with_apply(ask: Ask, home: Path, client: str) -> None:
    plan = ask("setup", client, "--allow-tools")
    assert plan["applied"] is False
    assert plan["apply_with"] == f"rooms setup {client} --allow-tools --json --apply"
    assert {file["action"] for file in plan["files"]} == {"create"}
    assert files(home) == {}
    done = ask("setup", client, "--allow-tools", "--apply")
    assert done["applied"] is True
    assert "apply_with" not in done
    written = files(home)
    assert {str(home / name) for name in written} == {file["path"] for file in done["files"]}
    again = ask("setup", client, "--apply")
    assert {file["action"] for file in again["files"]} == {"none"}
    assert files(home) == written
    taken = ask("setup", "remove", client, "--apply")
    assert {file["action"] for file in taken["files"]} == {"remove"}
    assert files(home) == {}


def test_the_difference_comes_first_in_words(invoke: Invoke, home: Path) -> None:
    (home / ".claude.json").write_text('{\n  "a": 1\n}\n', encoding="utf-8")
    shown = invoke("setup", "claude").output
    assert shown.startswith(f"--- /dev/null\n+++ {home}/.claude/settings.json\n")
    assert f"--- {home}/.claude.json\n+++ {home}/.claude.json\n" in shown
    assert '-  "a": 1\n+  "a": 1,\n' in shown
    assert "Nothing was written. To write it:\n  rooms setup claude --apply\n" in shown
    shown = invoke("setup", "claude", "--apply").output
    assert shown.endswith("Written.\n")
    assert "nothing to change" in invoke("setup", "claude", "--apply").output


def test_status_names_each_client_and_its_files(ask: Ask, invoke: Invoke, home: Path) -> None:
    ask("setup", "gemini", "--apply")
    document = ask("setup", "status")
    assert {one["client"]: one["state"] for one in document["clients"]} == {
        "claude": "absent",
        "codex": "absent",
        "cursor": "absent",
        "gemini": "current",
    }
    lines = invoke("setup", "status").output
    assert "gemini: current, hooks: unknown" in lines
    assert f"  {home}/.gemini/settings.json: server current, hooks current\n" in lines


def test_a_project_is_that_of_the_current_directory(ask: Ask, home: Path) -> None:
    (home / "app").mkdir()
    os.chdir(home / "app")
    ask("setup", "codex", "--project", "--apply")
    assert set(files(home)) == {"app/.codex/config.toml", "app/.codex/hooks.json"}
    states = {one["client"]: one["state"] for one in ask("setup", "status", "--project")["clients"]}
    assert states["codex"] == "current"
    ask("setup", "remove", "codex", "--project", "--apply")
    assert files(home) == {}


def test_a_refused_file_is_an_error_that_names_it(ask: Ask, invoke: Invoke, home: Path) -> None:
    (home / ".claude.json").write_text('{\n  "a": 1, // b\n}\n', encoding="utf-8")
    before = files(home)
    failure = ask("setup", "claude", "--apply")["error"]
    assert failure["code"] == "client_file_unreadable"
    assert failure["fields"] == {"path": str(home / ".claude.json"), "line": 2}
    result = invoke("setup", "claude", "--apply")
    assert result.exit_code == 1
    assert f"rooms: {home}/.claude.json, line 2: a comment" in result.stderr
    assert files(home) == before


def test_nothing_of_a_file_acts_on_the_terminal(invoke: Invoke, home: Path) -> None:
    hostile = "\x1b]0;owned\x07\u202e\u2028\x9b31m"
    text = json.dumps({"a": hostile.replace("\x1b", "").replace("\x07", "")}, ensure_ascii=False)
    (home / ".claude.json").write_text(text, encoding="utf-8")
    (home / ".codex").mkdir()
    (home / ".codex/config.toml").write_text("# \u202e \x9b31m\n", encoding="utf-8")
    for client in ("claude", "codex"):
        shown = invoke("setup", client).output
        assert not set(shown) & set(hostile[:1] + "\x07\u202e\u2028\x9b")


def test_the_running_script_is_written_by_its_bare_name_where_path_leads_to_it(
    rooms_on_path: Path, home: Path
) -> None:
    path = os.pathsep.join([str(rooms_on_path), os.environ["PATH"]])
    done = subprocess.run(
        ["rooms", "setup", "claude", "--apply", "--json"],
        env={**environment(), "PATH": path, "HOME": str(home)},
        capture_output=True,
        check=True,
    )
    assert json.loads(done.stdout)["warnings"] == []
    server = json.loads((home / ".claude.json").read_bytes())["mcpServers"]["rooms"]
    assert (server["command"], server["args"]) == ("rooms", ["mcp"])


def test_no_other_command_loads_the_editing_of_files() -> None:
    code = "import sys; from agent_chatroom_ledger.cli.program import run; run(['root'])"
    code += "; print(*sys.modules, file=sys.stderr)"
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment(), capture_output=True, check=True
    )
    loaded = done.stderr.decode().split()
    assert not [name for name in loaded if "tomlkit" in name or ".clients" in name]
