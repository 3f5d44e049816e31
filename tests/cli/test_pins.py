"""`rooms pins`: names for a session, a pane, a directory."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from agent_chatroom_ledger import Ledger

if TYPE_CHECKING:
    from pathlib import Path

    from tests.cli.conftest import Ask, Invoke


@pytest.fixture(autouse=True)
def core(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Give the directory in which the commands run."""
    folder = tmp_path / "core"
    folder.mkdir()
    monkeypatch.chdir(folder)
    for variable in ("TMUX", "TMUX_PANE", "ZELLIJ_PANE_ID", "WEZTERM_PANE", "KITTY_WINDOW_ID"):
        monkeypatch.delenv(variable, raising=False)
    return folder


def test_a_pin_is_set_listed_and_removed(invoke: Invoke, ask: Ask, core: Path) -> None:
    assert invoke("pins", "list").stdout == "No pins.\n"
    assert invoke("pins", "set", "cwd", "lead").stdout == f"cwd:{core} is lead\n"
    assert invoke("pins", "set", "cwd", "lead").stdout == f"cwd:{core} was lead already\n"
    (pin,) = ask("pins", "list")["pins"]
    assert (pin["key"], pin["name"], pin["state"]) == (f"cwd:{core}", "lead", "waiting")
    assert "waiting" in invoke("pins", "list").stdout
    changed = ask("pins", "set", f"cwd:{core}", "boss")
    assert (changed["changed"], changed["before"], changed["left"]) == (True, "lead", [])
    assert changed["pin"]["set_by"] == "lead", "who set it is who one is"
    gone = ask("pins", "remove", "cwd")
    assert (gone["pin"], gone["before"]) == (None, "boss")
    assert invoke("pins", "remove", "cwd").exit_code == 3


def test_a_pinned_name_acts(invoke: Invoke, ask: Ask, monkeypatch: pytest.MonkeyPatch) -> None:
    """A post, a position, an administrative operation; the environment comes first."""
    invoke("pins", "set", "cwd", "lead")
    assert invoke("create", "Review", "--apply").exit_code == 0
    assert ask("show", "review")["created_by"] == "lead"
    assert ask("post", "review", "hello")["message"]["author"] == "lead"
    assert ask("unread")["consumer"] == "lead"
    monkeypatch.setenv("PI_AGENT_NAME", "agent")
    assert ask("unread")["consumer"] == "agent"
    monkeypatch.setenv("ROOMS_NAME", "named")
    assert ask("unread")["consumer"] == "named"
    assert ask("unread", "--as", "said")["consumer"] == "said"


def test_a_name_that_was_only_derived_asks_for_nothing(invoke: Invoke, ask: Ask) -> None:
    assert invoke("create", "Review", "--apply").exit_code == 0
    assert ask("show", "review")["created_by"] == "Ledger"


def test_a_pane_is_ones_own(invoke: Invoke, ask: Ask, monkeypatch: pytest.MonkeyPatch) -> None:
    result = invoke("pins", "set", "pane", "lead")
    assert result.exit_code == 1
    assert "No pane is known here" in result.stderr
    monkeypatch.setenv("TMUX_PANE", "%7")
    assert ask("pins", "set", "pane", "lead")["key"] == "pane:tmux:%7"
    assert ask("unread")["consumer"] == "lead"
    monkeypatch.setenv("TMUX_PANE", "%8")
    assert ask("unread")["consumer"] != "lead"


def test_a_rename_that_leaves_rooms_is_refused(invoke: Invoke, ask: Ask, root: Path) -> None:
    with Ledger.open(root) as ledger:
        ledger.create_room("dxdb", members=["lead"])
    invoke("pins", "set", "cwd", "lead")
    refused = invoke("pins", "set", "cwd", "renamed")
    assert refused.exit_code == 4
    assert "Refusing to rename lead -> renamed: it is a member of dxdb." in refused.stderr
    assert ask("pins", "set", "cwd", "renamed")["error"]["fields"]["rooms"] == ["dxdb"]
    assert invoke("pins", "remove", "cwd").exit_code == 4
    forced = invoke("pins", "set", "cwd", "renamed", "--force")
    assert forced.exit_code == 0
    assert "These rooms list a name that was given up: dxdb" in forced.stdout


@pytest.mark.parametrize(
    "words", [("cwd", "x" * 49), ("cwd", "\x1b[31m"), ("elsewhere", "lead"), ("pane:", "lead")]
)
def test_what_cannot_be_is_refused(invoke: Invoke, ask: Ask, words: tuple[str, str]) -> None:
    result = invoke("pins", "set", *words)
    assert result.exit_code == 1
    assert "\x1b" not in result.stderr
    assert ask("pins", "list")["pins"] == []


@pytest.mark.broken_on_purpose
def test_damaged_pins_name_the_file_and_the_way_out(
    invoke: Invoke, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = root / ".git" / "ledger" / "pins.json"
    file.write_text("{")
    for words in (("unread",), ("pins", "list"), ("who",)):
        result = invoke(*words)
        assert result.exit_code == 6
        assert str(file) in result.stderr
        assert "ROOMS_NAME" in result.stderr
    assert invoke("unread", "--as", "lead").exit_code == 0
    monkeypatch.setenv("ROOMS_NAME", "lead")
    assert invoke("unread").exit_code == 0
