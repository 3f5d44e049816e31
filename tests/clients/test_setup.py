from __future__ import annotations

import json
import os
import stat
import tomllib
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from agent_chatroom_ledger.clients import setup
from agent_chatroom_ledger.clients.diskfile import FileChange
from agent_chatroom_ledger.clients.launcher import Launcher
from agent_chatroom_ledger.errors import Conflict, Forbidden, InvalidInput, LedgerError
from agent_chatroom_ledger.limits import CLIENT_FILE_BYTES_MAX
from tests.clients.conftest import CLIENTS, Home

if TYPE_CHECKING:
    from pathlib import Path

FILES = {
    "claude": {".claude.json", ".claude/settings.json"},
    "codex": {".codex/config.toml", ".codex/hooks.json"},
    "cursor": {".cursor/mcp.json", ".cursor/hooks.json"},
    "gemini": {".gemini/settings.json"},
}
PROJECT_FILES = {
    "claude": {"app/.mcp.json", "app/.claude/settings.json"},
    "codex": {"app/.codex/config.toml", "app/.codex/hooks.json"},
    "cursor": {"app/.cursor/mcp.json", "app/.cursor/hooks.json"},
    "gemini": {"app/.gemini/settings.json"},
}
SERVERS = {
    "claude": ".claude.json",
    "cursor": ".cursor/mcp.json",
    "gemini": ".gemini/settings.json",
}


@pytest.mark.parametrize("client", CLIENTS)
def test_a_plan_writes_nothing(home: Home, client: str) -> None:
    plan = setup.plan(client, home.around)
    assert plan.changed
    assert {change.action for change in plan.changes} == {"create"}
    assert not home.files()


@pytest.mark.parametrize("client", CLIENTS)
def test_applied_twice_is_applied_once_and_removed_is_never_applied(
    home: Home, client: str
) -> None:
    home.apply(client, allow_tools=True)
    files = home.files()
    assert set(files) == FILES[client]
    assert home.status(client).state == "current"
    assert not home.apply(client, allow_tools=True).changed
    assert not home.apply(client).changed
    assert home.files() == files
    home.remove(client)
    assert home.files() == {}
    assert not home.remove(client).changed
    assert home.status(client).state == "absent"


@pytest.mark.parametrize("client", CLIENTS)
def test_a_project_has_files_of_its_own(home: Home, client: str) -> None:
    project = home.path / "app"
    project.mkdir()
    home.apply(client, project=project)
    assert set(home.files()) == PROJECT_FILES[client]
    assert home.status(client).state == "absent"
    home.remove(client, project=project)
    assert home.files() == {}


@pytest.mark.parametrize("client", CLIENTS)
def test_no_name_and_no_token_is_written(home: Home, client: str) -> None:
    environment = {**home.around.environment, "ROOMS_NAME": "Hidden", "ROOMS_TOKEN": "sesame"}
    home.apply(client, environment=environment, allow_tools=True)
    written = b"".join(home.files().values())
    assert b"Hidden" not in written
    assert b"sesame" not in written


def test_codex_hands_the_server_our_variables(home: Home) -> None:
    home.apply("codex", allow_tools=True)
    server = tomllib.loads(home.files()[".codex/config.toml"].decode())["mcp_servers"]["rooms"]
    assert server == {
        "command": "rooms",
        "args": ["mcp"],
        "env_vars": ["ROOMS_NAME", "ROOMS_ROOT"],
        "default_tools_approval_mode": "approve",
    }


def test_allowing_tools_is_said_in_each_clients_own_way(home: Home) -> None:
    home.put(".cursor/permissions.json", '{"mcpAllowlist": ["x:*"]} // mine\n')
    for client in CLIENTS:
        home.apply(client, allow_tools=True)
    files = {name: data.decode() for name, data in home.files().items()}
    assert json.loads(files[".claude/settings.json"])["permissions"] == {"allow": ["mcp__rooms"]}
    assert json.loads(files[".gemini/settings.json"])["mcpServers"]["rooms"]["trust"] is True
    assert files[".cursor/permissions.json"] == '{"mcpAllowlist": ["x:*", "rooms:*"]} // mine\n'
    home.remove("cursor")
    assert home.files()[".cursor/permissions.json"] == b'{"mcpAllowlist": ["x:*"]} // mine\n'


def test_a_list_of_allowed_tools_is_not_begun_for_cursor(home: Home) -> None:
    plan = home.apply("cursor", allow_tools=True)
    assert ".cursor/permissions.json" not in home.files()
    assert "rooms:*" in plan.notes[0]


@pytest.mark.parametrize(
    ("variable", "client", "files"),
    [
        ("CLAUDE_CONFIG_DIR", "claude", {"other/.claude.json", "other/settings.json"}),
        ("CODEX_HOME", "codex", {"other/config.toml", "other/hooks.json"}),
        ("GEMINI_CLI_HOME", "gemini", {"other/.gemini/settings.json"}),
    ],
)
def test_the_clients_own_variables_move_its_files(
    home: Home, variable: str, client: str, files: set[str]
) -> None:
    environment = {**home.around.environment, variable: str(home.path / "other")}
    home.apply(client, environment=environment)
    assert set(home.files()) == files


def test_codex_keeps_hooks_where_its_user_keeps_them(home: Home) -> None:
    theirs = '[[hooks.Stop]]\n[[hooks.Stop.hooks]]\ntype = "command"\ncommand = "theirs"\n'
    home.put(".codex/config.toml", theirs)
    home.apply("codex")
    assert set(home.files()) == {".codex/config.toml"}
    assert home.status("codex").state == "current"
    home.remove("codex")
    assert home.files() == {".codex/config.toml": theirs.encode()}


def test_with_hooks_in_both_places_codex_has_ours_in_one(home: Home) -> None:
    table = '[[hooks.Stop]]\n[[hooks.Stop.hooks]]\ntype = "command"\ncommand = "theirs"\n'
    both = '{"hooks":{"Stop":[{"hooks":[{"type":"command","command":"theirs"}]}]}}'
    home.put(".codex/config.toml", table)
    home.put(".codex/hooks.json", both)
    before = home.files()
    home.apply("codex")
    assert home.files()[".codex/config.toml"].decode().count("hook agent") == 0
    assert home.files()[".codex/hooks.json"].decode().count("hook agent") == 4
    assert not home.apply("codex").changed
    home.remove("codex")
    assert home.files() == before


def test_a_file_of_two_that_is_refused_leaves_both(home: Home) -> None:
    home.put(".claude.json", "{ // said\n}")
    for client, name in (("claude", ".claude/settings.json"), ("codex", ".codex/hooks.json")):
        home.put(name, '{"hooks": {},}')
        before = home.files()
        with pytest.raises(InvalidInput, match="comma before a closing bracket"):
            home.apply(client)
        assert home.files() == before
        state = home.status(client)
        assert state.state == "unreadable"
        assert "comma" in "".join([*(file.problem or "" for file in state.files), *state.notes])


@pytest.mark.parametrize("client", SERVERS)
@pytest.mark.parametrize(
    "data",
    [b"\xff\xfe{\x00}\x00", b'{"a": "\xff"}', b"\x00", b'{"a": 1', b'"x"', b'{"a": 1}\x00'],
    ids=range(6),
)
def test_bytes_that_are_no_document_are_left_alone(home: Home, client: str, data: bytes) -> None:
    path = home.put(SERVERS[client], data)
    with pytest.raises(InvalidInput) as refused:
        home.apply(client)
    assert str(path) in refused.value.message
    assert home.files() == {SERVERS[client]: data}


def test_comments_are_kept_for_gemini_and_refused_for_others(home: Home) -> None:
    text = '{\n  // mine\n  "mcpServers": {"x": {"command": "y"}}\n}\n'
    for client, name in SERVERS.items():
        home.put(name, text)
        if client == "gemini":
            home.apply(client)
            assert "// mine" in home.files()[name].decode()
            home.remove(client)
        else:
            with pytest.raises(InvalidInput, match="comment"):
                home.apply(client)
        assert home.files()[name] == text.encode()


def test_mode_and_link_of_a_file_stay(home: Home) -> None:
    real = home.put("dotfiles/claude.json", '{"oauth": "secret"}')
    real.chmod(0o600)
    link = home.path / ".claude.json"
    link.symlink_to("dotfiles/claude.json")
    home.apply("claude")
    assert link.is_symlink()
    assert stat.S_IMODE(real.stat().st_mode) == 0o600
    assert "mcpServers" in real.read_text(encoding="utf-8")
    home.remove("claude")
    assert link.is_symlink()
    assert real.read_text(encoding="utf-8") == '{"oauth": "secret"}'
    assert not list(home.path.rglob("*.tmp"))


@pytest.mark.parametrize("client", SERVERS)
def test_a_read_only_file_is_left_alone(home: Home, client: str) -> None:
    home.put(SERVERS[client], "{}").chmod(0o444)
    with pytest.raises(Forbidden) as refused:
        home.apply(client)
    assert refused.value.code == "client_file_read_only"
    assert home.files()[SERVERS[client]] == b"{}"


def test_what_is_no_file_is_left_alone(home: Home) -> None:
    (home.path / ".claude.json").symlink_to("nowhere")
    with pytest.raises(InvalidInput, match="leads nowhere"):
        home.apply("claude")
    (home.path / ".gemini" / "settings.json").mkdir(parents=True)
    (home.path / ".codex").mkdir()
    os.mkfifo(home.path / ".codex" / "config.toml")
    with pytest.raises(InvalidInput, match="not a file"):
        home.apply("codex")
    with pytest.raises(InvalidInput, match="not a file"):
        home.apply("gemini")
    (home.path / ".cursor").write_text("", encoding="utf-8")
    with pytest.raises(LedgerError, match="not a file"):
        home.apply("cursor")


def test_a_file_beyond_the_limit_is_left_alone(home: Home) -> None:
    path = home.put(".claude.json", b" " * (CLIENT_FILE_BYTES_MAX + 1))
    with pytest.raises(InvalidInput, match="CLIENT_FILE_BYTES_MAX"):
        home.apply("claude")
    assert path.stat().st_size == CLIENT_FILE_BYTES_MAX + 1


def test_a_file_that_somebody_wrote_meanwhile_is_left_alone(home: Home) -> None:
    plan = setup.plan("claude", home.around)
    home.put(".claude.json", '{"new": 1}')
    with pytest.raises(Conflict) as refused:
        plan.apply()
    assert refused.value.code == "client_file_changed"
    assert home.files()[".claude.json"] == b'{"new": 1}'
    home.apply("claude")
    assert json.loads(home.files()[".claude.json"])["new"] == 1


def test_what_a_client_writes_while_ours_is_synced_stays(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    home.put(".claude.json", "{}")
    plan = setup.plan("claude", home.around)
    sync = os.fsync

    def slow(descriptor: int) -> None:
        sync(descriptor)
        home.put(".claude.json", '{"new": 1}')

    monkeypatch.setattr(os, "fsync", slow)
    with pytest.raises(Conflict) as refused:
        plan.apply()
    assert refused.value.code == "client_file_changed"
    assert home.files()[".claude.json"] == b'{"new": 1}'
    assert not [name for name in home.files() if name.endswith(".tmp")]


@pytest.mark.parametrize("indent", [2, None])
def test_the_difference_shows_nobodys_credentials(home: Home, indent: int | None) -> None:
    """What a command prints goes into transcripts, and other servers' tokens stand beside ours."""
    other = {"command": "x", "env": {"TOKEN": "secret-1"}, "args": ["secret-2"]}
    home.put(".claude.json", json.dumps({"mcpServers": {"other": other}}, indent=indent))
    home.put(".codex/config.toml", '[mcp_servers.other]\ncommand = "secret-3"\n')
    for client in ("claude", "codex"):
        plan = setup.plan(client, home.around)
        shown = "".join(change.diff() for change in plan.changes)
        assert "secret" not in shown
        assert '"mcp"' in shown
        plan.apply()
    for client in ("claude", "codex"):
        removal = setup.removal(client, home.around)
        shown = "".join(change.diff() for change in removal.changes)
        assert "secret" not in shown
        assert '"mcp"' in shown


def test_the_difference_is_a_diff_whose_long_lines_are_cut(home: Home) -> None:
    home.put(".claude.json", json.dumps({"blob": list(range(2_000))}))
    change = next(c for c in setup.plan("claude", home.around).changes if c.before is not None)
    diff = change.diff()
    assert diff.startswith(f"--- {change.place.path}\n+++ {change.place.path}\n@@ ")
    assert max(map(len, diff.splitlines())) < 500
    assert "characters more)" in diff
    assert FileChange(change.place, "same", "same").diff() == ""


@pytest.mark.parametrize("client", CLIENTS)
def test_another_launcher_is_drift_until_it_is_applied(home: Home, client: str) -> None:
    home.apply(client)
    before = home.files()
    other = replace(home.around, launcher=Launcher(("/opt/my rooms/bin/rooms",), "not on PATH"))
    assert setup.status(client, other).state == "drifted"
    plan = setup.plan(client, other)
    assert plan.warnings == ("not on PATH",)
    plan.apply()
    assert setup.status(client, other).state == "current"
    assert b"'/opt/my rooms/bin/rooms' hook agent" in b"".join(home.files().values())
    home.apply(client)
    assert home.files() == before
    other = replace(
        home.around, launcher=Launcher(("/usr/bin/python3", "-m", "agent_chatroom_ledger.cli"))
    )
    setup.plan(client, other).apply()
    assert setup.status(client, other).state == "current"
    home.remove(client)
    assert home.files() == {}


def test_an_installation_without_the_server_is_warned_of(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert setup.plan("claude", home.around).warnings == ()
    monkeypatch.setattr(setup, "find_spec", lambda _name: None)
    assert "[mcp]" in setup.plan("claude", home.around).warnings[0]


def test_status_says_what_claude_code_waits_for(home: Home) -> None:
    project = home.path / "app"
    project.mkdir()
    around = replace(home.around, project=project)
    home.apply("claude", project=project)
    state = setup.status("claude", around)
    assert (state.state, state.trust) == ("current", "untrusted")
    assert "pending approval" in " ".join(state.notes)
    known = {"hasTrustDialogAccepted": True, "enabledMcpjsonServers": ["rooms"]}
    home.put(".claude.json", json.dumps({"projects": {str(project): known}}))
    assert setup.status("claude", around).trust == "trusted"
    home.put("app/.claude/settings.local.json", '{"disabledMcpjsonServers": ["rooms"]}')
    assert "rejected" in " ".join(setup.status("claude", around).notes)
    home.put(".claude/settings.json", '{"disableAllHooks": true}')
    assert "no hook runs" in " ".join(setup.status("claude", around).notes)


def test_status_says_what_gemini_waits_for(home: Home) -> None:
    home.apply("gemini")
    assert home.status("gemini").trust == "unknown"
    folders = {str(home.path): "TRUST_FOLDER"}
    home.put(".gemini/trustedFolders.json", json.dumps(folders))
    assert home.status("gemini").trust == "trusted"
    home.put(".gemini/trustedFolders.json", json.dumps({str(home.path.parent): "DO_NOT_TRUST"}))
    assert home.status("gemini").trust == "untrusted"


def test_status_says_what_codex_keeps_of_trust(home: Home) -> None:
    home.apply("codex")
    assert home.status("codex").trust == "untrusted"
    key = f"{home.path}/.codex/hooks.json:stop:0:0"
    with (home.path / ".codex/config.toml").open("a", encoding="utf-8") as file:
        file.write(f'\n[hooks.state."{key}"]\ntrusted_hash = "sha256:00"\n')
    assert home.status("codex").trust == "unknown"
    home.remove("codex")
    assert home.files()[".codex/config.toml"].decode().startswith("\n[hooks.state.")


def test_codex_itself_is_asked_where_it_is_there(home: Home, tmp_path: Path) -> None:
    binary = tmp_path / "bin" / "codex"
    binary.parent.mkdir()
    hooks = [{"command": "rooms hook agent --client codex", "trustStatus": "trusted"}]
    answers = [{"id": 1, "result": {}}, {"method": "noise"}, {"id": 2, "result": {"data": []}}]
    answers[2] = {"id": 2, "result": {"data": [{"hooks": hooks}]}}
    lines = "\n".join(json.dumps(answer) for answer in answers)
    binary.write_text(f"#!/bin/sh\ncat <<'X'\n{lines}\nX\nexec sleep 60\n", encoding="utf-8")
    binary.chmod(0o755)
    environment = {**home.around.environment, "PATH": f"{binary.parent}:/usr/bin:/bin"}
    home.apply("codex")
    around = replace(home.around, environment=environment)
    state = setup.status("codex", around)
    assert (state.installed, state.trust) == (True, "trusted")
    binary.write_text(binary.read_text(encoding="utf-8").replace('"trusted"', '"modified"'))
    assert setup.status("codex", around).trust == "modified"
    binary.write_text("#!/bin/sh\nexit 1\n", encoding="utf-8")
    state = setup.status("codex", around)
    assert "did not answer" in state.notes[0]


def test_a_file_of_a_new_owner_follows_the_umask(home: Home) -> None:
    before = os.umask(0o027)
    try:
        home.apply("claude")
    finally:
        os.umask(before)
    assert stat.S_IMODE((home.path / ".claude.json").stat().st_mode) == 0o640
