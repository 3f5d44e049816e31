"""On a terminal: colours, tables and progress, and never a foreign control character."""

from __future__ import annotations

import os
import subprocess
import sys
import unicodedata
from typing import TYPE_CHECKING

import pytest

from agent_chatroom_ledger import Ledger
from tests.cli.conftest import environment

if TYPE_CHECKING:
    from pathlib import Path

pty = pytest.importorskip("pty")

HOSTILE = "\x1b]0;title\x07\x1b[2J\u202erev\x9b31m\x7f [bold]markup[/bold] 日本 👩"
# What we send ourselves: colours, and what rich needs to draw a bar in place.
OURS = ("\x1b[2m", "\x1b[1m", "\x1b[32m", "\x1b[31m", "\x1b[22m", "\x1b[39m", "\x1b[0m")


def on_terminal(root: Path, *words: str, **more: str) -> str:
    """Run a command with a terminal for stdout and stderr; returns what the terminal got."""
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "agent_chatroom_ledger.cli", *words],
        env={**environment(root), "TERM": "xterm-256color", "COLUMNS": "100", **more},
        stdin=subprocess.DEVNULL,
        stdout=theirs,
        stderr=theirs,
    )
    os.close(theirs)
    shown = b""
    try:
        while piece := os.read(ours, 65536):
            shown += piece
    except OSError:
        # Linux says EIO where the other end is closed.
        pass
    os.close(ours)
    assert process.wait(60) == 0, shown
    return shown.decode()


@pytest.fixture(autouse=True)
def room(root: Path) -> None:
    with Ledger.open(root) as ledger:
        ledger.create_room("A [red]title[/red]").post("Analyst", HOSTILE, data={"k": HOSTILE})


@pytest.mark.parametrize(
    "words",
    [
        ("read", "a-red-title-red"),
        ("read", "a-red-title-red", "--json"),
        ("lens", "a-red-title-red"),
        ("list",),
        ("show", "a-red-title-red"),
        ("unread", "--as", "B", "--messages"),
        ("log", "--patch"),
    ],
    ids=" ".join,
)
def test_no_foreign_control_reaches_it(root: Path, words: tuple[str, ...]) -> None:
    shown = on_terminal(root, *words)
    for code in OURS:
        shown = shown.replace(code, "")
    controls = {c for c in shown if unicodedata.category(c) in {"Cc", "Cf"}} - {"\r", "\n"}
    assert not controls


def test_colours_are_there_and_can_be_refused(root: Path) -> None:
    assert "\x1b[1mAnalyst" in on_terminal(root, "read", "a-red-title-red")
    assert "\x1b" not in on_terminal(root, "read", "a-red-title-red", NO_COLOR="1")
    assert "\x1b" not in on_terminal(root, "read", "a-red-title-red", TERM="dumb")


def test_json_is_indented_for_a_person(root: Path) -> None:
    assert '\n  "rooms": [' in on_terminal(root, "list", "--json").replace("\r", "")


def test_a_table_shows_titles_as_they_are(root: Path) -> None:
    assert "A [red]title[/red]" in on_terminal(root, "list")


def test_long_work_shows_how_far_it_is(root: Path, tmp_path: Path) -> None:
    log = tmp_path / "2005-02-06.log"
    log.write_text("[10:00] <ann> hello\n")
    assert "Importing" in on_terminal(root, "import", "irc", str(log), "--room", "irc")
    assert "Verifying" in on_terminal(root, "verify")
