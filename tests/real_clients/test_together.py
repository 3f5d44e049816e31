"""The README's first screen: two agents in one room answer each other, and a person steps in."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.real_clients import test_claude, test_codex
from tests.real_clients.fakemodel import Answer, FakeModel, Heard, Say, Use
from tests.real_clients.programs import CLAUDE, CODEX, program

if TYPE_CHECKING:
    from tests.real_clients.world import World

pytestmark = pytest.mark.clients


def test_two_agents_answer_each_other_in_one_room(world: World) -> None:
    claude, codex = program(CLAUDE, "2.1.332", "claude"), program(CODEX, "0.171.0", "codex")
    said = {
        "Ana": ("flaky-7731", "Bob, your list?"),
        "Bob": ("Bob, your list?", "lexer and parser"),
    }

    def answer(heard: Heard) -> Answer:
        name = "Bob" if heard.path == "/v1/responses" else "Ana"
        asked, body = said[name]
        if not heard.tools or body in heard.text or asked not in heard.text:
            return Say("Done.")
        tool = "mcp__rooms/rooms_post" if name == "Bob" else "mcp__rooms__rooms_post"
        other = "Ana" if name == "Bob" else "Bob"
        return Use(tool, {"room": "design-review", "body": body, "to": [other]})

    with FakeModel(answer) as model:
        test_codex.configure(world, model)
        world.rooms("setup", "claude", "--allow-tools", "--apply")
        world.rooms("setup", "codex", "--apply")
        test_codex.trust_hooks(world, codex)
        people = ("--member", "Ana", "--member", "Bob")
        world.rooms("create", "Design review", *people, "--as", "me", "--apply")
        world.rooms("join", "design-review", "--as", "me")
        world.rooms("post", "design-review", "--as", "me", "--to", "Ana", "which are flaky-7731?")
        variables = test_claude.environment(model)
        first = world.run(claude, "-p", "hello", **variables)
        second = world.run(codex, "exec", "--skip-git-repo-check", "hello", ROOMS_NAME="Bob")
        third = world.run(claude, "-p", "and now?", **variables)
        for done in (first, second, third):
            assert done.returncode == 0, done.stderr
        assert not model.failed
        assert "lexer and parser" in model.heard[-1].text
    assert world.bodies("design-review")[1:] == [
        "me: which are flaky-7731?",
        "Ana: Bob, your list?",
        "Bob: lexer and parser",
    ]
    world.rooms("verify")
