"""Every command and option explains itself, and its page of the reference names it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click
import pytest

from agent_chatroom_ledger.cli.program import rooms
from tests.project.source_tree import REPOSITORY

if TYPE_CHECKING:
    from collections.abc import Iterator


def commands(command: click.Command, name: str) -> Iterator[tuple[str, click.Command]]:
    """Yield a command and all below it, each with the words that call it."""
    yield name, command
    if isinstance(command, click.Group):
        context = click.Context(command, info_name=name)
        for child in command.list_commands(context):
            found = command.get_command(context, child)
            assert found is not None, f"{name} lists {child} and does not have it"
            yield from commands(found, f"{name} {child}")


ALL = dict(commands(rooms, "rooms"))


@pytest.mark.parametrize("name", ALL)
def test_command_says_what_it_does(name: str) -> None:
    assert ALL[name].get_short_help_str()
    assert ALL[name].help


@pytest.mark.parametrize("name", ALL)
def test_every_option_is_explained(name: str) -> None:
    options = [param for param in ALL[name].params if isinstance(param, click.Option)]
    assert not [option.name for option in options if not option.help and not option.hidden]


@pytest.mark.parametrize("name", ALL)
def test_command_is_in_the_reference(name: str) -> None:
    page = (REPOSITORY / "docs" / "reference" / "cli.md").read_text(encoding="utf-8")
    assert f"`{name}`" in page or f"{name} [OPTIONS]" in page or f"{name}\n" in page
