"""Cursor by fixture: no program of it can be driven here, so the files of its documentation are."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tests.clients.conftest import Home

# The forms of cursor.com/docs: hooks are flat and their events in camel case, version is 1.
HOOKS = """\
{
  "version": 1,
  "hooks": {
    "afterFileEdit": [{ "command": "./hooks/format.sh" }],
    "stop": [
      {
        "command": "./hooks/audit.sh",
        "loop_limit": 5
      }
    ]
  }
}
"""
SERVERS = """\
{
  "mcpServers": {
    "server-name": {
      "command": "npx",
      "args": ["-y", "mcp-server"],
      "env": {
        "API_KEY": "value"
      }
    }
  }
}
"""


def test_ours_stand_behind_what_the_documentation_shows(home: Home) -> None:
    home.put(".cursor/hooks.json", HOOKS)
    home.put(".cursor/mcp.json", SERVERS)
    before = home.files()
    home.apply("cursor")
    hooks = json.loads(home.files()[".cursor/hooks.json"])
    assert list(hooks) == ["version", "hooks"]
    assert hooks["version"] == 1
    assert hooks["hooks"]["afterFileEdit"] == [{"command": "./hooks/format.sh"}]
    assert [hook["command"] for hook in hooks["hooks"]["stop"]] == [
        "./hooks/audit.sh",
        "rooms hook agent --client cursor",
    ]
    assert set(hooks["hooks"]) == {
        "afterFileEdit",
        "stop",
        "sessionStart",
        "beforeSubmitPrompt",
        "postToolUse",
    }
    for event in ("sessionStart", "beforeSubmitPrompt", "postToolUse"):
        assert set(hooks["hooks"][event][0]) == {"command", "timeout"}
    servers = json.loads(home.files()[".cursor/mcp.json"])["mcpServers"]
    assert servers["rooms"] == {"command": "rooms", "args": ["mcp"]}
    assert servers["server-name"] == json.loads(SERVERS)["mcpServers"]["server-name"]
    home.remove("cursor")
    assert home.files() == before


def test_a_file_of_hooks_that_we_begin_says_its_format(home: Home) -> None:
    home.apply("cursor")
    assert json.loads(home.files()[".cursor/hooks.json"])["version"] == 1
    home.put(".cursor/hooks.json", '{"hooks": {}}')
    home.apply("cursor")
    assert "version" not in json.loads(home.files()[".cursor/hooks.json"])
    home.remove("cursor")
    assert home.files() == {".cursor/hooks.json": b'{"hooks": {}}'}
