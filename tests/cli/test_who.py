"""`rooms who`: your own name, and who is here."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from agent_chatroom_ledger import Ledger, presence
from agent_chatroom_ledger.domain.agentnames import derived_name
from agent_chatroom_ledger.identity import identify
from tests.clientlike import Program, running

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.cli.conftest import Ask, Invoke


@pytest.fixture
def core(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "core"
    folder.mkdir()
    monkeypatch.chdir(folder)
    return folder


@pytest.fixture
def one(root: Path, core: Path) -> Iterator[Program]:
    """Give a client that lives under the name lead."""
    with running(core) as program, Ledger.open(root) as ledger:
        client = program.client(core, pane="tmux:%1", model="m-1", door="hook")
        identify(ledger, {"ROOMS_NAME": "lead"}, client, claim=True)
        yield program


def test_alone(invoke: Invoke, ask: Ask, core: Path) -> None:
    name = derived_name(str(core))
    assert invoke("who").stdout == f"You are {name}.\nNobody is here.\n"
    assert ask("who") == {"name": name, "source": "derived", "warnings": [], "agents": []}


def test_who_is_here(invoke: Invoke, ask: Ask, core: Path, one: Program, root: Path) -> None:
    (agent,) = ask("who")["agents"]
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT[\d:.]{15}Z", agent.pop("since"))
    assert (
        agent.items()
        >= {
            "name": "lead",
            "self": False,
            "live": True,
            "reach": "next turn",
            "client": "claude-code",
            "process": one.id.pid,
            "directory": str(core),
            "pane": "tmux:%1",
            "model": "m-1",
        }.items()
    )
    me, headings, row = invoke("who").stdout.splitlines()
    assert me == f"You are {derived_name(str(core))}."
    assert headings.split()[:4] == ["name", "reach", "waiting", "client"]
    assert row.split()[:4] == ["lead", "next", "turn", "claude-code"]
    with Ledger.open(root) as ledger, presence.waiter(ledger, "lead"):
        assert ask("who")["agents"][0]["reach"] == "wakes"


def test_what_waits_is_counted(ask: Ask, invoke: Invoke, one: Program, root: Path) -> None:
    with Ledger.open(root) as ledger:
        ledger.create_room("Review", members=["Ana", "lead"])
    assert one.id
    assert ask("post", "review", "hello", "--as", "Ana")["recipients"][0]["reach"] == "next turn"
    assert ask("who")["agents"][0]["waiting"] == 1
    assert invoke("who").stdout.splitlines()[2].split()[:4] == ["lead", "next", "turn", "1"]
    assert {one["name"]: one["waiting"] for one in ask("who", "--all")["agents"]} == {
        "Ana": 0,
        "lead": 1,
    }


def test_a_star_stands_before_oneself(
    invoke: Invoke, ask: Ask, one: Program, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ROOMS_NAME", "lead")
    assert one.id
    assert ask("who")["agents"][0]["self"] is True
    assert invoke("who").stdout.splitlines()[1].startswith("*  lead  next turn")


def test_the_dead_are_not_listed(ask: Ask, one: Program) -> None:
    assert len(ask("who")["agents"]) == 1
    one.kill()
    assert ask("who")["agents"] == []


def test_members_who_are_not_here_are_listed_with_all(ask: Ask, root: Path, one: Program) -> None:
    with Ledger.open(root) as ledger:
        ledger.create_room("Review", members=["Ana", "lead"])
    assert one.id
    assert [agent["name"] for agent in ask("who")["agents"]] == ["lead"]
    absent, here = ask("who", "--all")["agents"]
    assert (absent["name"], absent["live"], absent["reach"]) == ("Ana", False, "queued")
    assert (absent["process"], absent["since"]) == (0, None)
    assert here["live"] is True


def test_names_drive_no_terminal(invoke: Invoke, root: Path, core: Path) -> None:
    with running(core) as program, Ledger.open(root) as ledger:
        client = program.client("/w/\x1b[31m", pane="\x1b]0;x\x07", model="\u202e")
        identify(ledger, {"ROOMS_NAME": "lead"}, client, claim=True)
        shown = invoke("who").stdout
    assert "\x1b" not in shown
    assert "\\x1b[31m" in shown
    assert "\u202e" not in shown


def test_a_pin_that_is_not_followed_is_told(
    ask: Ask, invoke: Invoke, root: Path, core: Path
) -> None:
    assert invoke("pins", "set", "cwd", "boss").exit_code == 0
    assert ask("who")["name"] == "boss"
    with running(core, "claude"):
        found = ask("who")
        assert found["source"] == "derived"
        assert "2 live clients" in found["warnings"][0]
        assert "2 live clients" in invoke("who").stderr
    assert root


@pytest.mark.broken_on_purpose
@pytest.mark.usefixtures("one")
def test_who_is_here_is_told_though_receipts_are_damaged(
    root: Path, ask: Ask, invoke: Invoke
) -> None:
    place = root / ".git" / "ledger" / "receipts" / "receipts.sqlite3"
    place.parent.mkdir(exist_ok=True)
    place.write_bytes(b"no receipts" * 100)
    found = ask("who")
    assert [(agent["name"], agent["waiting"]) for agent in found["agents"]] == [("lead", None)]
    assert "move it away" in found["warnings"][-1]
    result = invoke("who")
    assert result.exit_code == 0
    assert "?" in result.stdout
    assert "What waits is not known" in result.stderr
