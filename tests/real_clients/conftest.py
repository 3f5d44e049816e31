"""What the tests with real clients share: a world each, in which nothing is left running."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.real_clients.world import World

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    """Give a world with a room of two members and one message for Ana."""
    made = World(tmp_path)
    yield made
    left = made.end()
    assert not left, f"still running: {left}"


@pytest.fixture
def review(world: World) -> World:
    """Give the world with the room Design review of Ana and Bob, and Bob's question to Ana."""
    world.rooms(
        "create", "Design review", "--member", "Ana", "--member", "Bob", "--apply", "--as", "me"
    )
    world.rooms("post", "design-review", "--as", "Bob", "--to", "Ana", QUESTION)
    return world


QUESTION = "which two checks are flaky-7731?"
