"""`rooms archive`, `rooms restore` and `rooms operations`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from agent_chatroom_ledger import Ledger

if TYPE_CHECKING:
    from pathlib import Path

    from tests.cli.conftest import Ask, Invoke
    from tests.conftest import Git


@pytest.fixture(autouse=True)
def room(root: Path) -> None:
    with Ledger.open(root) as ledger:
        made = ledger.create_room("Review", members=["Ana"])
        made.post_many([{"author": "A", "body": str(n)} for n in range(1, 4)])


def test_a_room_goes_to_the_archive_and_comes_back(invoke: Invoke, ask: Ask) -> None:
    assert "Nothing was written." in invoke("archive", "review").stdout
    done = ask("archive", "review", "--as", "Ana", "--reason", "done", "--apply")
    assert done["report"]["actions"][0]["status"] == "archived"
    error = ask("post", "review", "more", "--as", "Ana")["error"]
    assert (error["code"], "rooms restore" in error["message"]) == ("archived", True)
    assert len(ask("read", "review")["messages"]) == 3
    back = ask("restore", "review", "--apply")
    assert back["report"]["room"] == "rooms/review"
    assert ask("restore", "review")["error"]["code"] == "not_archived"
    assert ask("post", "review", "more", "--as", "Ana")["message"]["n"] == 4


def test_policy_and_members_are_put_back(invoke: Invoke, ask: Ask) -> None:
    ask("policy", "exclude", "review", "1", "--apply")
    commit = ask("log", "review", "--limit", "1")["entries"][0]["commit"]
    ask("policy", "clear", "review", "--apply")
    invoke("members", "review", "add", "Ben", "--apply")
    plan = invoke("restore", "review", "--from", commit, "--only", "policy").stdout
    assert "restore the policy as of" in plan
    assert "members" not in plan
    done = ask("restore", "review", "--from", commit, "--apply")
    assert len(done["report"]["operations"]) == 2
    assert ask("members", "review")["members"] == ["Ana"]
    assert len(ask("policy", "show", "review")["excluded"]) == 1
    assert invoke("restore", "review", "--only", "policy").exit_code == 2
    assert ask("restore", "nowhere", "--apply")["error"]["code"] == "not_found"


def test_a_deleted_directory_is_put_back(ask: Ask, root: Path, git: Git) -> None:
    git(root, "rm", "-rq", "rooms/review")
    git(root, "commit", "-qm", "gone")
    assert ask("restore", "review")["report"]["operation"] == "ledger.repair"
    done = ask("restore", "review", "--apply")
    assert done["report"]["target"]["path"] == "rooms/review"
    assert len(ask("read", "review")["messages"]) == 3


def test_operations_in_words_and_as_json(invoke: Invoke, ask: Ask) -> None:
    ask("policy", "exclude", "review", "1", "--as", "Ana", "--reason", "noise", "--apply")
    found = ask("operations")["operations"]
    assert [one["kind"] for one in found] == ["room.create", "policy.exclude"]
    assert (found[1]["by"], found[1]["reason"]) == ("Ana", "noise")
    assert [one["kind"] for one in ask("operations", "--limit", "1")["operations"]] == [
        "policy.exclude"
    ]
    lines = invoke("operations", "review").stdout.splitlines()
    assert lines[0].endswith("review: Created the room Review (Ledger)")
    assert lines[1].endswith(" (Ana): noise")


def test_archived_rooms_are_listed_when_asked_for(invoke: Invoke, ask: Ask) -> None:
    """`rooms list --status` chooses; a list without it shows what one can write to."""
    assert invoke("post", "two", "--create", "--as", "Analyst", "hello").exit_code == 0
    ask("archive", "review", "--apply")
    shown = {
        status: [(r["path"], r["status"]) for r in ask("list", "--status", status)["rooms"]]
        for status in ("active", "archived", "all")
    }
    one, two = ("rooms/review", "archived"), ("rooms/two", "active")
    assert shown == {"active": [two], "archived": [one], "all": [one, two]}
    assert "(archived)" in invoke("list", "--status", "all").stdout
