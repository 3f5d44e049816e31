"""`rooms import irc`: real logs, bad lines named, twice is once."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

    from tests.cli.conftest import Ask, Invoke

LOG = b"""\
[10:00] <ann> hello
[10:01] <bob> what \xff is this
[10:02]  * ann waves
"""


def written(folder: Path) -> str:
    path = folder / "2005-02-06.log"
    path.write_bytes(LOG)
    return str(path)


def test_an_import_makes_its_room_and_accounts_for_every_line(ask: Ask, tmp_path: Path) -> None:
    done = ask("import", "irc", written(tmp_path), "--room", "irc/Ubuntu")
    assert done["room"]["path"] == "rooms/irc/ubuntu"
    assert (done["files"], done["lines"]) == (1, 3)
    assert done["messages"] + done["events"] == 3
    assert [(bad["file"], bad["line"]) for bad in done["bad_lines"]] == [("2005-02-06.log", 2)]
    messages = ask("read", "irc/ubuntu")["messages"]
    assert messages[0]["author"] == "ann"
    assert messages[0]["said_at"].startswith("2005-02-06T10:00")


def test_a_second_import_adds_nothing(ask: Ask, invoke: Invoke, tmp_path: Path) -> None:
    file = written(tmp_path)
    ask("import", "irc", file, "--room", "ubuntu")
    again = ask("import", "irc", file, "--room", "ubuntu")
    assert (again["messages"], again["skipped"]) == (0, 3)
    assert (
        "3 lines were in the room already"
        in invoke("import", "irc", file, "--room", "ubuntu").stdout
    )


def test_bad_lines_are_named_in_words(invoke: Invoke, tmp_path: Path) -> None:
    shown = invoke("import", "irc", written(tmp_path), "--room", "ubuntu").stdout
    assert "2005-02-06.log:2: " in shown


def test_a_missing_file_leaves_nothing_behind(ask: Ask) -> None:
    error = ask("import", "irc", "/nowhere/2005-02-06.log", "--room", "r")["error"]
    assert error["code"] == "not_found"
    assert ask("list")["rooms"] == []
