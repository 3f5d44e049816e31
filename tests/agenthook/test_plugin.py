"""The plugin for Claude Code says what the table of entries says."""

from __future__ import annotations

import json
from typing import Any

from agent_chatroom_ledger import __version__
from agent_chatroom_ledger.agenthook.entries import documents
from tests.conftest import REPOSITORY

PLUGIN = REPOSITORY / "hooks" / "claude-code"


def document(path: str) -> Any:
    return json.loads((PLUGIN / path).read_text(encoding="utf-8"))


def test_its_hooks_are_those_of_the_set_up() -> None:
    assert document("hooks/hooks.json")["hooks"] == documents("claude")


def test_its_server_is_ours() -> None:
    assert document(".mcp.json") == {"mcpServers": {"rooms": {"command": "rooms", "args": ["mcp"]}}}


def test_its_version_is_that_of_the_package() -> None:
    manifest = document(".claude-plugin/plugin.json")
    assert (manifest["name"], manifest["version"]) == ("rooms", __version__)


def test_the_folder_is_a_marketplace_with_this_one_plugin() -> None:
    listed = document(".claude-plugin/marketplace.json")["plugins"]
    assert [(entry["name"], entry["source"]) for entry in listed] == [("rooms", "./")]
