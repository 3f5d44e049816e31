"""`rooms diff` and `rooms log --message`, in words and as JSON."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from agent_chatroom_ledger import Ledger

if TYPE_CHECKING:
    from pathlib import Path

    from tests.cli.conftest import Ask, Invoke


@pytest.fixture
def old(root: Path) -> str:
    """Give a commit after which everything that a diff shows has changed."""
    with Ledger.open(root) as ledger:
        room = ledger.create_room("Design review", members=["Reviewer"])
        room.post_many([{"author": "Analyst", "body": f"number {n}"} for n in range(1, 5)])
        room.exclude("4", by="Reviewer")
        old = ledger.commit_at("main")
        room.post("Reviewer", "looks\n\x1b[2Jright")
        room.exclude("1-2", by="Reviewer", reason="noise")
        room.include("4", by="Reviewer")
        room.add_standin("2", "in short", by="Reviewer")
    return old


def test_diff_in_words(old: str, invoke: Invoke) -> None:
    result = invoke("diff", "design-review", old)
    assert result.exit_code == 0
    lines = result.stdout.splitlines()
    assert lines[0].startswith(f"design-review {old[:10]}..")
    assert lines[1] == "1 message added"
    assert "        \\x1b[2Jright" in lines
    assert "left out now: #1-2" in lines
    assert "shown again: #4" in lines
    assert "new stand-in 1" in lines
    assert "3 operations" in lines
    assert lines[-1].endswith("Z Reviewer: " + lines[-1].rpartition("Reviewer: ")[2])


def test_diff_as_json(old: str, ask: Ask) -> None:
    found = ask("diff", "design-review", old, "main")
    assert [m["n"] for m in found["messages"]["added"]] == [5]
    assert [o["kind"] for o in found["operations"]] == [
        "policy.exclude",
        "policy.include",
        "policy.standin",
    ]
    back = ask("diff", "design-review", "main", old)
    assert back["messages"]["missing"][0].startswith("5@")


def test_diff_of_nothing(old: str, invoke: Invoke) -> None:
    assert invoke("diff", "design-review", old, old).stdout.endswith("nothing changed\n")
    assert invoke("diff", "design-review", "main").stdout.endswith("nothing changed\n")
    made = invoke("diff", "design-review", f"{old}~5", old).stdout
    assert "messages added" in made
    assert "the room was made" in invoke("diff", "design-review", f"{old}~6", old).stdout
    assert "the room is gone" in invoke("diff", "design-review", old, f"{old}~6").stdout


def test_diff_with_a_revision_that_is_not_there(old: str, ask: Ask) -> None:
    assert ask("diff", "design-review", "nowhere")["error"]["code"] == "not_found"
    assert ask("diff", "design-review", old, "nowhere")["error"]["code"] == "not_found"


@pytest.mark.usefixtures("old")
def test_log_of_a_message(ask: Ask, invoke: Invoke) -> None:
    found = ask("log", "design-review", "--message", "2")
    assert [e["kinds"] for e in found["entries"]] == [
        ["policy.standin"],
        ["policy.exclude"],
        ["message"],
    ]
    assert ask("log", "design-review", "--message", "99")["error"]["code"] == "not_found"
    assert invoke("log", "--message", "2").exit_code == 2
