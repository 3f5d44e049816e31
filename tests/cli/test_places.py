"""init, root, the user's own ledger, completion, version and help."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from click.testing import CliRunner

from agent_chatroom_ledger import Ledger, __version__
from agent_chatroom_ledger.cli.program import rooms

if TYPE_CHECKING:
    from tests.cli.conftest import Ask, Invoke, Start


def test_init_makes_a_ledger_once(ask: Ask, tmp_path: Path) -> None:
    path = str(tmp_path / "new" / "place")
    first = ask("init", path)
    assert (first["root"], first["created"]) == (path, True)
    assert ask("init", path) == {**first, "created": False}


def test_init_without_a_name_takes_the_current_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = tmp_path / "here"
    place.mkdir()
    monkeypatch.chdir(place)
    assert CliRunner().invoke(rooms, ["init"]).exit_code == 0
    assert Ledger.find(place) == place


def test_init_leaves_a_foreign_repository_alone(ask: Ask, tmp_path: Path) -> None:
    (tmp_path / "theirs" / ".git").mkdir(parents=True)
    assert ask("init", str(tmp_path / "theirs"))["error"]["code"] == "foreign_repository"


def test_root_says_which_and_why(ask: Ask, invoke: Invoke, root: Path) -> None:
    assert ask("root") == {"root": str(root), "source": "environment", "exists": True}
    result = invoke("root", "--root", "/nowhere")
    assert result.stdout == "/nowhere\n"
    assert result.stderr == "named by --root; no ledger there yet\n"


def test_the_users_own_ledger_begins_with_the_first_message(
    ask: Ask, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("ROOMS_ROOT")
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    monkeypatch.chdir(tmp_path)
    error = ask("list")["error"]
    assert error["code"] == "not_found"
    assert "rooms init" in error["message"]
    assert "error" in ask("post", "notes", "x", "--as", "A")
    assert not (tmp_path / "data").exists()
    ask("post", "notes", "x", "--as", "A", "--create")
    own = ask("root")
    assert (own["source"], own["exists"]) == ("default", True)
    assert Path(own["root"]).is_relative_to(tmp_path / "data")
    assert len(ask("read", "notes")["messages"]) == 1


def test_a_named_directory_never_becomes_a_ledger_by_posting(ask: Ask, tmp_path: Path) -> None:
    there = str(tmp_path / "typo")
    error = ask("post", "notes", "x", "--as", "A", "--create", "--root", there)["error"]
    assert error["fields"]["root"] == there
    assert not Path(there).exists()


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_scripts(invoke: Invoke, ask: Ask, shell: str) -> None:
    script = invoke("completion", shell).stdout
    assert "_ROOMS_COMPLETE" in script
    assert ask("completion", shell)["script"].strip() == script.strip()


def test_the_bash_script_is_bash(invoke: Invoke) -> None:
    script = invoke("completion", "bash").stdout
    subprocess.run(["bash", "-n"], input=script.encode(), check=True)


@pytest.mark.parametrize(
    ("words", "offered"),
    [
        ("rooms unr", {"unread"}),
        ("rooms read de", {"design-review", "deploy"}),
        ("rooms policy ex", {"exclude"}),
        ("rooms read --la", {"--last"}),
    ],
)
def test_what_a_shell_is_offered(root: Path, start: Start, words: str, offered: set[str]) -> None:
    with Ledger.open(root) as ledger:
        ledger.create_room("Design review")
        ledger.create_room("Deploy")
    from tests.cli.conftest import environment

    count = len(words.split()) - 1
    asked = {"COMP_WORDS": words, "COMP_CWORD": str(count), "_ROOMS_COMPLETE": "bash_complete"}
    process = start(env={**environment(root), **asked})
    out, err = process.communicate()
    assert {line.partition(",")[2] for line in out.decode().split()} == offered
    assert err == b""


def test_completion_without_a_ledger_is_silent(tmp_path: Path, start: Start) -> None:
    asked = {
        "COMP_WORDS": "rooms read x",
        "COMP_CWORD": "2",
        "_ROOMS_COMPLETE": "bash_complete",
        "ROOMS_ROOT": str(tmp_path / "nowhere"),
    }
    from tests.cli.conftest import environment

    out, err = start(env={**environment(), **asked}).communicate()
    assert (out.strip(), err) == (b"", b"")


def test_version_and_help(invoke: Invoke) -> None:
    assert invoke("--version").stdout == f"rooms {__version__}\n"
    helped = invoke("--help")
    assert invoke().stdout == helped.stdout
    for name in ("Talk:", "unread", "Exit status:"):
        assert name in helped.stdout
    assert invoke("read", "-h").stdout == invoke("read", "--help").stdout


def test_an_alias_is_shown_under_its_own_name(tmp_path: Path) -> None:
    result = CliRunner().invoke(rooms, ["read"], prog_name="agent-chatroom-ledger")
    assert result.stderr.startswith("agent-chatroom-ledger: ")
    assert not any(tmp_path.iterdir())
