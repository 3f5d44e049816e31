"""Errors as users and programs see them: statuses, documents, no traceback, nothing raw."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from agent_chatroom_ledger import Ledger
from agent_chatroom_ledger.cli.commands import read_command
from tests.cli.conftest import environment

if TYPE_CHECKING:
    from tests.cli.conftest import Ask, Invoke, Start


@pytest.fixture(autouse=True)
def room(root: Path) -> None:
    with Ledger.open(root) as ledger:
        ledger.create_room("Review")
        ledger.create_room("Preview")
        ledger.create_room("Same", folder="a")
        ledger.create_room("Same", folder="b")
        ledger.room("review").post("A", "hello")


def finish(process: subprocess.Popen[bytes]) -> tuple[int, str, str]:
    out, err = process.communicate(timeout=60)
    return process.returncode, out.decode(), err.decode()


@pytest.mark.parametrize(
    ("command", "status", "code"),
    [
        (("read", "reveiw"), 3, "not_found"),
        (("read", "same"), 4, "ambiguous"),
        (("read", "review", "--at", "deadbeef"), 3, "not_found"),
        (("post", "review", "x", "--as", "a\nb"), 1, "invalid_input"),
        (("nonsense",), 2, "usage"),
        (("read",), 2, "usage"),
        (("read", "review", "--last", "none"), 2, "usage"),
        (("read", "review", "--nonsense"), 2, "usage"),
        (("--root", "/nowhere", "list"), 3, "not_found"),
    ],
)
def test_statuses_and_documents(
    start: Start, command: tuple[str, ...], status: int, code: str
) -> None:
    found, out, err = finish(start(*command))
    assert (found, out) == (status, "")
    assert err.startswith("rooms: ")
    assert "Traceback" not in err
    found, out, err = finish(start(*command, "--json"))
    assert (found, err) == (status, "")
    assert msgspec.json.decode(out)["error"]["code"] == code


def test_unknown_and_ambiguous_names_list_the_nearest(invoke: Invoke, ask: Ask) -> None:
    assert ask("read", "reveiw")["error"]["fields"]["candidates"] == ["review", "preview"]
    assert ask("read", "same")["error"]["fields"]["candidates"] == ["a/same", "b/same"]
    shown = invoke("read", "same").stderr.splitlines()
    assert shown[1:] == ["The nearest:", "  a/same", "  b/same"]


def test_a_command_that_does_not_exist_names_near_ones(invoke: Invoke) -> None:
    assert "Did you mean unread, read?" in invoke("unred").stderr


def test_a_group_without_a_command_is_a_usage_error_with_its_help(invoke: Invoke, ask: Ask) -> None:
    result = invoke("policy")
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr.startswith(
        "rooms: Say which command of rooms policy.\nUsage: rooms policy"
    )
    assert ask("policy")["error"]["code"] == "usage"


def test_options_may_stand_before_or_after_the_command(root: Path) -> None:
    for words in (["--root", str(root), "--json", "list"], ["list", "--json", "--root", str(root)]):
        process = subprocess.run(
            [sys.executable, "-m", "agent_chatroom_ledger.cli", *words],
            env=environment(),
            capture_output=True,
            check=True,
        )
        assert len(msgspec.json.decode(process.stdout)["rooms"]) == 4


def test_a_fault_of_ours_is_no_traceback(invoke: Invoke, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: Any) -> None:
        raise RuntimeError("\x1b[31mboom")

    monkeypatch.setattr(read_command, "transcript", broken)
    result = invoke("read", "review")
    assert result.exit_code == 1
    assert result.stderr.startswith("rooms: internal error: RuntimeError: \\x1b[31mboom\n")
    assert "Traceback" not in result.stderr
    assert "Traceback" in invoke("read", "review", "--debug").stderr


def test_debug_shows_where_an_error_comes_from(start: Start) -> None:
    status, _, err = finish(start("read", "nowhere", "--debug"))
    assert status == 3
    assert "Traceback" in err


FULL = Path("/dev/full")
HOSTILE = "\x1b]0;title\x07\x1b[2J\u202erev\x9b31m\x7f"


def test_nothing_raw_reaches_a_terminal(invoke: Invoke, root: Path) -> None:
    with Ledger.open(root) as ledger:
        ledger.room("review").post("A", f"{HOSTILE}\n#9 00:00:00Z B: forged\r", data={"k": HOSTILE})
        ledger.room("review").add_standin([1], HOSTILE)
    for words in (
        ("read", "review"),
        ("read", "review", "--json"),
        ("lens", "review"),
        ("policy", "show", "review"),
        ("log", "review"),
        ("log", "review", "--patch"),
        ("unread", "--as", "B", "--messages"),
        ("tail", "review"),
        ("read", HOSTILE),
        (HOSTILE,),
        ("read", "review", f"--{HOSTILE}"),
        ("create", HOSTILE),
    ):
        result = invoke(*words)
        raw = set(result.stdout + result.stderr) & set("\x1b\x07\u202e\x9b\x7f\r")
        assert not raw, words


@pytest.mark.skipif(not FULL.exists(), reason="needs a device that is always full")
@pytest.mark.parametrize("words", [("read", "review"), ("read", "review", "--json"), ("--help",)])
def test_output_that_cannot_be_written_is_a_failure(start: Start, words: tuple[str, ...]) -> None:
    with FULL.open("wb") as full:
        status, _, err = finish_quietly(start(*words, stdout=full))
    assert status == 1
    assert "Traceback" not in err


def finish_quietly(process: subprocess.Popen[bytes]) -> tuple[int, None, str]:
    _, err = process.communicate(timeout=60)
    return process.returncode, None, err.decode()


def test_closed_streams_are_no_fault(root: Path) -> None:
    command = f"{sys.executable} -m agent_chatroom_ledger.cli"
    for rest, status in (("read review >&-", 0), ("read nowhere --json >&- 2>&-", 3)):
        found = subprocess.run(
            ["sh", "-c", f"{command} {rest}"], env=environment(root), capture_output=True,
            check=False,
        )  # fmt: skip
        assert (found.returncode, found.stderr) == (status, b"")


def test_a_reader_that_ends_early_is_no_fault(root: Path) -> None:
    with Ledger.open(root) as ledger:
        ledger.room("review").post_many([{"author": "A", "body": "x" * 999}] * 300)
    command = f"{sys.executable} -m agent_chatroom_ledger.cli read review"
    found = subprocess.run(
        ["bash", "-c", f"{command} | head -1; exit ${{PIPESTATUS[0]}}"],
        env=environment(root),
        capture_output=True,
        check=False,
    )
    assert (found.returncode, found.stderr) == (0, b"")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_read_only_ledger_is_read_and_not_written(start: Start, root: Path) -> None:
    for path in [root, *root.rglob("*")]:
        path.chmod(path.stat().st_mode & ~0o222)
    try:
        assert finish(start("read", "review"))[0] == 0
        assert finish(start("post", "review", "x", "--as", "A"))[0] == 1
    finally:
        for path in [root, *root.rglob("*")]:
            path.chmod(path.stat().st_mode | stat.S_IWUSR)
