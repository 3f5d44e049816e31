"""Gemini CLI's own `mcp list`, in a folder that is trusted and in one that is not."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from tests.real_clients.programs import GEMINI, program

if TYPE_CHECKING:
    from pathlib import Path

    from tests.real_clients.world import World

pytestmark = pytest.mark.clients

SETTINGS = """\
{
  // mine
  "mcpServers": {
    "other": {"command": "true"} // why
  },
  "privacy": {"usageStatisticsEnabled": false}
}
"""


@pytest.fixture
def gemini() -> Path:
    return program(GEMINI, "0.61.0", "gemini")


def test_the_server_is_listed_beside_what_was_there(world: World, gemini: Path) -> None:
    folder = world.home / ".gemini"
    folder.mkdir()
    settings = folder / "settings.json"
    settings.write_text(SETTINGS, encoding="utf-8")
    trusted = json.dumps({str(world.work): "TRUST_FOLDER"})
    (folder / "trustedFolders.json").write_text(trusted, encoding="utf-8")
    world.rooms("setup", "gemini", "--allow-tools", "--apply")
    done = world.run(gemini, "mcp", "list", ROOMS_NAME="Ana")
    shown = done.stdout + done.stderr
    assert "rooms: rooms mcp (stdio) - Connected" in shown, shown
    assert "other: true" in shown
    states = world.rooms("setup", "status")["clients"]
    assert next(one for one in states if one["client"] == "gemini")["trust"] == "trusted"
    world.rooms("setup", "remove", "gemini", "--apply")
    assert settings.read_text(encoding="utf-8") == SETTINGS
    shown = world.run(gemini, "mcp", "list").stdout
    assert "rooms" not in shown


def test_in_a_folder_that_is_not_trusted_the_server_is_disabled(world: World, gemini: Path) -> None:
    world.rooms("setup", "gemini", "--apply")
    done = world.run(gemini, "mcp", "list")
    assert "rooms: rooms mcp (stdio) - Disabled" in done.stdout + done.stderr


@pytest.mark.parametrize("text", ['{"mcpServers": {},}', '{"mcpServers": {', "{'a': 1}"])
def test_what_we_refuse_gemini_cannot_read_either(world: World, gemini: Path, text: str) -> None:
    settings = world.home / ".gemini" / "settings.json"
    settings.parent.mkdir()
    settings.write_text(text, encoding="utf-8")
    assert world.run("rooms", "setup", "gemini", "--apply").returncode == 1
    done = world.run(gemini, "mcp", "list")
    assert done.returncode != 0, done.stdout + done.stderr
    assert settings.read_text(encoding="utf-8") == text
