"""Gemini CLI against a fake model, and its own `mcp list` in folders that are trusted or not."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from tests.real_clients.conftest import QUESTION
from tests.real_clients.fakemodel import Answer, FakeModel, Heard, Say, Use
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


def test_tools_are_listed_a_message_comes_through_the_hook_and_an_answer_goes_back(
    review: World, gemini: Path
) -> None:
    settings = review.home / ".gemini" / "settings.json"
    settings.parent.mkdir()
    text = '{"security": {"auth": {"selectedType": "gemini-api-key"}}}'
    settings.write_text(text, encoding="utf-8")
    review.rooms("setup", "gemini", "--allow-tools", "--apply")
    turns: list[Heard] = []

    def answer(heard: Heard) -> Answer:
        if not any("rooms_post" in name for name in heard.tools):
            return Say("{}")  # another model is asked first which one is to answer
        turns.append(heard)
        if len(turns) == 1:
            tool = next(name for name in heard.tools if name.endswith("rooms_post"))
            body = {"room": "design-review", "body": "the parser", "to": ["Bob"]}
            return Use(tool, body)
        return Say("Answered.")

    with FakeModel(answer) as model:
        done = review.run(
            *(gemini, "--skip-trust", "-p", "good morning"),
            GEMINI_API_KEY="only-the-fake-model-hears-this",
            GOOGLE_GEMINI_BASE_URL=model.url,
            ROOMS_NAME="Ana",
        )
    assert done.returncode == 0, done.stdout + done.stderr
    assert not model.failed
    assert QUESTION in turns[0].text, done.stdout + done.stderr
    assert review.bodies("design-review") == [f"Bob: {QUESTION}", "Ana: the parser"]


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
