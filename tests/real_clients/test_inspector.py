"""The MCP inspector's command line against `rooms mcp`."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from tests.real_clients.programs import INSPECTOR, program

if TYPE_CHECKING:
    from pathlib import Path

    from tests.real_clients.world import World

pytestmark = pytest.mark.clients


@pytest.fixture(params=["0.15.0", "2.12.0"])
def inspector(request: pytest.FixtureRequest) -> Path:
    return program(INSPECTOR, request.param, "mcp-inspector")


def test_the_tools_are_listed_with_their_hints(world: World, inspector: Path) -> None:
    done = world.run(inspector, "--cli", "rooms", "mcp", "--method", "tools/list")
    assert done.returncode == 0, done.stdout + done.stderr
    tools = json.loads(done.stdout)["tools"]
    assert len(tools) == 12
    for tool in tools:
        hints = tool["annotations"]
        assert hints["destructiveHint"] is False
        assert hints["openWorldHint"] is False
        assert {"readOnlyHint", "idempotentHint"} <= set(hints)
        assert tool["outputSchema"]["type"] == "object"


def test_a_tool_is_called(review: World, inspector: Path) -> None:
    words = ("--method", "tools/call", "--tool-name", "rooms_post")
    arguments = ("--tool-arg", "room=design-review", "--tool-arg", "body=hello")
    # The newer one hands a server nothing of its own environment.
    given = ("-e", "ROOMS_NAME=Ana", "-e", f"ROOMS_ROOT={review.ledger}")
    done = review.run(inspector, "--cli", *given, "rooms", "mcp", *words, *arguments)
    assert done.returncode == 0, done.stdout + done.stderr
    assert json.loads(done.stdout)["structuredContent"]["ref"] == "2"
    assert review.bodies("design-review")[-1] == "Ana: hello"
