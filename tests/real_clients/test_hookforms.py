"""What we refuse the real clients drop without a word, and what we keep they keep as well."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from agent_chatroom_ledger.clients.appserver import listed_hooks
from tests.clients.test_hookforms import CLAUDE as SETTINGS
from tests.clients.test_hookforms import CODEX as HOOKS
from tests.clients.test_hookforms import GEMINI as GEMINIS
from tests.clients.test_hookforms import KEPT, REFUSED
from tests.real_clients.conftest import QUESTION
from tests.real_clients.fakemodel import FakeModel, Say
from tests.real_clients.programs import CLAUDE, CODEX, GEMINI, program
from tests.real_clients.test_claude import environment

if TYPE_CHECKING:
    from tests.real_clients.world import World

pytestmark = pytest.mark.clients


def refused(name: str) -> list[str]:
    return [text for file, text, _ in REFUSED if file == name]


def kept(name: str) -> list[str]:
    return [text for file, text in KEPT if file == name]


def put(world: World, name: str, text: str) -> None:
    path = world.home / name
    path.parent.mkdir()
    path.write_text(text, encoding="utf-8")


@pytest.mark.parametrize("text", refused(SETTINGS))
def test_claude_runs_no_hook_of_what_we_refuse(world: World, text: str) -> None:
    document = json.loads(text)
    document["hooks"]["UserPromptSubmit"] = [
        {"hooks": [{"type": "command", "command": "echo heard-5150"}]}
    ]
    put(world, SETTINGS, json.dumps(document))
    with FakeModel(lambda _: Say("Hello.")) as model:
        claude = program(CLAUDE, "2.1.197", "claude")
        assert world.run(claude, "-p", "hello", **environment(model)).returncode == 0
    assert not [heard for heard in model.heard if "heard-5150" in heard.text]


@pytest.mark.parametrize("version", ["2.1.197", "2.1.332"])
@pytest.mark.parametrize("text", kept(SETTINGS))
def test_claude_runs_ours_beside_what_we_keep(review: World, text: str, version: str) -> None:
    put(review, SETTINGS, text)
    review.rooms("setup", "claude", "--apply")
    with FakeModel(lambda _: Say("Hello.")) as model:
        claude = program(CLAUDE, version, "claude")
        assert review.run(claude, "-p", "hello", **environment(model)).returncode == 0
    assert [heard for heard in model.heard if QUESTION in heard.text]


@pytest.mark.parametrize("text", refused(HOOKS))
def test_codex_knows_no_hook_of_what_we_refuse(world: World, text: str) -> None:
    put(world, HOOKS, text)
    codex = program(CODEX, "0.171.0", "codex")
    assert listed_hooks(str(codex), world.environment, world.work) == []


@pytest.mark.parametrize("text", kept(HOOKS))
def test_codex_knows_ours_beside_what_we_keep(world: World, text: str) -> None:
    put(world, HOOKS, text)
    world.rooms("setup", "codex", "--apply")
    codex = program(CODEX, "0.171.0", "codex")
    hooks = listed_hooks(str(codex), world.environment, world.work) or []
    assert len([hook for hook in hooks if "rooms hook agent" in hook["command"]]) == 4


@pytest.mark.parametrize("text", refused(GEMINIS))
def test_gemini_does_not_start_with_what_we_refuse(world: World, text: str) -> None:
    put(world, GEMINIS, text)
    assert world.run(program(GEMINI, "0.61.0", "gemini"), "mcp", "list").returncode != 0


@pytest.mark.parametrize("text", kept(GEMINIS))
def test_gemini_starts_with_what_we_keep(world: World, text: str) -> None:
    put(world, GEMINIS, text)
    world.rooms("setup", "gemini", "--apply")
    done = world.run(program(GEMINI, "0.61.0", "gemini"), "mcp", "list")
    assert done.returncode == 0
    assert "rooms: rooms mcp" in done.stdout + done.stderr
