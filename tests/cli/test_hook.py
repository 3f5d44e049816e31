"""The commands that git's hooks call, as programs see them."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from agent_chatroom_ledger import Ledger
from agent_chatroom_ledger.cli.commands.hook_command import _paths

if TYPE_CHECKING:
    from pathlib import Path

    from tests.cli.conftest import Ask, Invoke
    from tests.conftest import Git


def test_hooks_are_installed_and_taken_away(ask: Ask, root: Path) -> None:
    found = ask("hooks", "install", "--command", "/somewhere/rooms")
    assert found["directory"] == str(root / ".git" / "hooks")
    assert "pre-commit" in found["hooks"]
    assert found["chained"] == []
    assert ask("hooks", "uninstall")["hooks"] == found["hooks"]
    assert ask("hooks", "uninstall")["hooks"] == []


def test_all_is_well(ask: Ask, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(root)
    for name in ("pre-commit", "post-merge", "pre-push", "pre-receive"):
        found = ask("hook", name)
        assert (found["hook"], found["ok"], found["done"], found["issues"]) == (name, True, [], [])


def test_what_is_wrong_is_named(
    ask: Ask, invoke: Invoke, root: Path, git: Git, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(root)
    with Ledger.open(root) as ledger:
        ledger.create_room("Review")
    (root / "rooms" / "review" / "room.json").write_text("{}\n")
    git(root, "add", "-A")
    found = ask("hook", "pre-commit")
    assert not found["ok"]
    assert [issue["code"] for issue in found["issues"]] == ["state_parse_failed"]
    result = invoke("hook", "pre-commit")
    assert result.exit_code == 1
    assert "rooms: state_parse_failed: " in result.stderr
    assert result.stdout == ""
    git(root, "checkout", "-q", "HEAD", "--", ".")


@pytest.mark.parametrize(
    ("args", "stdin"),
    [(("update", "refs/heads/main"), ""), (("pre-receive",), "one two\n"), (("nothing",), "")],
)
def test_what_git_does_not_say_is_refused(
    invoke: Invoke, args: tuple[str, ...], stdin: str
) -> None:
    assert invoke("hook", *args, stdin=stdin).exit_code in {1, 2}


def test_a_list_of_directories_is_read_as_git_writes_it() -> None:
    text = os.pathsep.join(["/a", '"/b\\"c\\303\\244"', "/d e"])
    assert list(_paths(text)) == ["/a", '/b"c\u00e4', "/d e"]
    assert list(_paths("")) == []
