"""The generated reference: complete, and the same on every machine."""

from __future__ import annotations

import os
import subprocess
import sys

import click

from agent_chatroom_ledger.cli.program import rooms
from agent_chatroom_ledger.cli.reference import reference
from agent_chatroom_ledger.cli.schemas import DOCUMENTS
from tests.cli.conftest import environment


def leaves(group: click.Group, words: str = "") -> list[str]:
    context = click.Context(group)
    found: list[str] = []
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        path = f"{words} {name}".strip()
        found += leaves(command, path) if isinstance(command, click.Group) else [path]
    return found


def test_every_command_documents_its_json() -> None:
    assert {name for name in DOCUMENTS if "--" not in name} == set(leaves(rooms))


def test_every_command_is_in_the_reference() -> None:
    text = reference()
    for name in leaves(rooms):
        assert f"## `rooms {name}`" in text


def test_lines_fit_but_for_schemas() -> None:
    lines = [line for line in reference().split("\n") if not line.lstrip().startswith('"')]
    assert max(map(len, lines)) <= 100


def test_it_is_the_same_under_any_terminal() -> None:
    printed = [
        subprocess.run(
            [sys.executable, "-m", "agent_chatroom_ledger.cli.reference"],
            env={**environment(), "COLUMNS": columns, "PYTHONHASHSEED": columns, "NO_COLOR": "1"},
            capture_output=True,
            check=True,
        ).stdout
        for columns in ("40", "200")
    ]
    assert printed[0] == printed[1] == reference().encode()
    assert os.linesep.encode() in printed[0]
