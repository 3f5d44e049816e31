from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

from agent_chatroom_ledger.clients.launcher import launcher

if TYPE_CHECKING:
    from pathlib import Path

    import pytest


def script(folder: Path, name: str = "rooms") -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / name
    path.write_text("#!/bin/sh\n", encoding="utf-8")
    path.chmod(0o755)
    return path


def path_of(*folders: Path | str) -> dict[str, str]:
    return {"PATH": os.pathsep.join(str(folder) for folder in folders)}


def test_the_bare_name_serves_where_path_leads_to_it(tmp_path: Path) -> None:
    own = script(tmp_path / "bin")
    found = launcher(path_of(tmp_path / "bin"), str(own))
    assert (found.words, found.warning) == (("rooms",), None)


def test_a_link_on_path_to_this_installation_serves(tmp_path: Path) -> None:
    own = script(tmp_path / "tool/bin")
    (tmp_path / "local").mkdir()
    (tmp_path / "local/rooms").symlink_to(own)
    environment = {**path_of(own.parent, tmp_path / "local"), "VIRTUAL_ENV": str(tmp_path / "tool")}
    assert launcher(environment, "rooms").words == ("rooms",)


def test_what_only_the_active_environment_has_is_named_by_its_path(tmp_path: Path) -> None:
    own = script(tmp_path / "venv/bin")
    environment = {**path_of(own.parent, "/usr/bin"), "VIRTUAL_ENV": str(tmp_path / "venv")}
    found = launcher(environment, "rooms")
    assert found.words == (str(own),)
    assert "has no `rooms`" in (found.warning or "")


def test_another_installation_on_path_is_not_taken_for_this_one(tmp_path: Path) -> None:
    own, other = script(tmp_path / "mine"), script(tmp_path / "theirs")
    found = launcher(path_of(other.parent), str(own))
    assert found.words == (str(own),)
    assert str(other) in (found.warning or "")


def test_relative_directories_of_path_do_not_count(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = script(tmp_path / "bin")
    monkeypatch.chdir(tmp_path)
    assert launcher({"PATH": "bin"}, str(own)).words == (str(own),)


def test_without_a_script_the_interpreter_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "prefix", str(tmp_path))
    found = launcher({"PATH": ""}, "/somewhere/__main__.py")
    assert found.words == (sys.executable, "-m", "agent_chatroom_ledger.cli")
    assert found.warning


def test_a_path_with_blanks_is_quoted_for_a_shell(tmp_path: Path) -> None:
    own = script(tmp_path / "my tools")
    found = launcher({"PATH": ""}, str(own))
    assert found.command == f"'{own}'"
