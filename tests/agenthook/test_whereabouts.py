"""The hook finds the ledger that every other command finds, and makes none."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agent_chatroom_ledger import Ledger
from agent_chatroom_ledger.agenthook.whereabouts import ledger_root, log_paths
from agent_chatroom_ledger.cli.root import default_path, find

if TYPE_CHECKING:
    from pathlib import Path

    import pytest


def test_option_environment_directory_in_this_order(root: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    Ledger.open(other, create=True).close()
    inside = root / "rooms" / "design-review"
    for option, environment, directory in [
        (None, {}, inside),
        (None, {"ROOMS_ROOT": str(other)}, inside),
        (str(root), {"ROOMS_ROOT": str(other)}, tmp_path),
    ]:
        found = find(option, environment, directory)
        assert ledger_root(option, environment, str(directory)) == found.path
        assert found.exists


def test_the_users_own_ledger_is_the_last_resort(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for environment in ({"XDG_DATA_HOME": str(tmp_path)}, {"HOME": str(tmp_path)}):
        monkeypatch.delenv("XDG_DATA_HOME", raising=False)
        for name, value in environment.items():
            monkeypatch.setenv(name, value)
        assert ledger_root(None, environment, str(tmp_path)) is None
        Ledger.open(default_path(), create=True).close()
        assert ledger_root(None, environment, str(tmp_path)) == default_path()


def test_what_is_named_and_is_no_ledger_is_none(root: Path, tmp_path: Path) -> None:
    assert ledger_root(str(tmp_path), {}, str(root)) is None
    assert ledger_root(None, {"ROOMS_ROOT": str(tmp_path / "no")}, str(root)) is None
    for directory in ("", "relative", "/nowhere/at/all"):
        assert ledger_root(None, {"XDG_DATA_HOME": str(tmp_path)}, directory) is None


def test_failures_go_to_the_ledger_else_to_the_users_state(tmp_path: Path) -> None:
    own = tmp_path / "agent-chatroom-ledger" / "hook.log"
    environment = {"XDG_STATE_HOME": str(tmp_path)}
    assert log_paths(None, environment) == (own,)
    ledger = tmp_path / "ledger"
    assert log_paths(ledger, environment) == (ledger / ".git" / "ledger" / "hook.log", own)
