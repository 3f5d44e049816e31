"""Administrative commands: a plan first, and nothing written without --apply."""

from __future__ import annotations

import shlex
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
        made = ledger.create_room("Review")
        made.post_many([{"author": "A", "body": str(n)} for n in range(1, 6)])
        ledger.create_room("Other")


def contents(root: Path) -> dict[str, bytes]:
    """Return every file of the ledger but its locks, with what stands in it."""
    return {
        str(path.relative_to(root)): path.read_bytes()
        for path in root.rglob("*")
        if path.is_file() and "locks" not in path.parts
    }


PLANS = [
    ("create", "Another", "--member", "A"),
    ("policy", "exclude", "review", "1"),
    ("policy", "standin", "review", "1-2", "--text", "in short"),
    ("verify", "--repair"),
    ("place", "review", "1-2", "other", "--reason", "why"),
    ("duplicate", "review", "1-2", "other", "--reason", "why"),
]


@pytest.mark.parametrize("command", PLANS, ids=" ".join)
def test_a_plan_writes_nothing_and_says_how_to_write_it(
    invoke: Invoke, ask: Ask, root: Path, command: tuple[str, ...]
) -> None:
    before = contents(root)
    result = invoke(*command)
    assert result.exit_code == 0
    assert "Nothing was written. To write it:" in result.stdout
    document = ask(*command)
    assert document["applied"] is False
    assert contents(root) == before
    pasted = shlex.split(document["apply_with"])
    assert pasted == ["rooms", *command, "--json", "--apply"]
    assert ask(*pasted[1:])["applied"] is True


def test_apply_goes_before_a_bare_separator(invoke: Invoke) -> None:
    assert "  rooms create --apply -- -odd-\n" in invoke("create", "--", "-odd-").stdout


def test_create_tells_the_path_and_that_a_name_is_taken(ask: Ask) -> None:
    plan = ask("create", "Review")
    assert plan["report"]["room"] == "rooms/review_2"
    assert plan["report"]["warnings"]
    done = ask("create", "Review", "--folder", "team", "--as", "B", "--reason", "why", "--apply")
    assert done["report"]["room"] == "rooms/team/review"
    assert ask("show", "team/review")["created_by"] == "B"


def test_the_life_of_a_policy(ask: Ask) -> None:
    ask("policy", "exclude", "review", "1", "3-4", "--as", "B", "--reason", "noise", "--apply")
    ask("policy", "standin", "review", "5", "--text", "short", "--after", "2", "--apply")
    shown = ask("policy", "show", "review")
    numbers = [ref.partition("@")[0] for ref in shown["excluded"]]
    assert numbers == ["1", "3-5"]
    assert shown["standins"][0]["insert_after"].startswith("2@")
    ask("policy", "include", "review", "3", "--apply")
    numbers = [ref.partition("@")[0] for ref in ask("policy", "show", "review")["excluded"]]
    assert numbers == ["1", "4-5"]
    ask("policy", "clear", "review", "--apply")
    assert ask("policy", "show", "review")["excluded"] == []
    entries = ask("log", "review")["entries"]
    assert [e["reason"] for e in entries if e["requested_by"] == "B"] == ["noise"]


def test_placing_and_duplicating(invoke: Invoke, ask: Ask) -> None:
    assert invoke("place", "review", "1-2", "other").exit_code == 2  # without a reason
    done = ask("place", "review", "1-3", "other", "--reason", "why", "--as", "B", "--apply")
    assert done["report"]["actions"][0]["status"] == "placed"
    copies = ask("read", "other")["messages"]
    assert [copy["body"] for copy in copies] == ["1", "2", "3"]
    assert copies[0]["placed_from"]["placed_by"] == "B"
    again = invoke("place", "review", "2", "other", "--reason", "why", "--apply").stdout
    assert "warning: 1 message (2) of rooms/review stand in rooms/other" in again
    ask("duplicate", "review", "2", "other", "--reason", "why", "--apply")
    assert [copy["body"] for copy in ask("read", "other")["messages"]] == ["1", "2", "3", "2"]
    entry = ask("log", "other")["entries"][0]
    assert sorted(entry["rooms"]) == ["rooms/other", "rooms/review"]


def test_policy_in_words(invoke: Invoke) -> None:
    assert invoke("policy", "show", "review").stdout == "Nothing is left out.\n"
    invoke("policy", "standin", "review", "2", "--text", "in short", "--id", "s", "--apply")
    shown = invoke("policy", "show", "review").stdout
    assert "Left out: 2@" in shown
    assert "Stand-in s for 2@" in shown


@pytest.mark.parametrize("refs", [("9",), ("0",), ("x",), ("3-1",)])
def test_messages_that_are_not_there_are_named(
    ask: Ask, root: Path, git: Git, refs: tuple[str, ...]
) -> None:
    before = git(root, "rev-parse", "main")
    error = ask("policy", "exclude", "review", *refs, "--apply")["error"]
    assert error["code"] == "invalid_input"
    assert git(root, "rev-parse", "main") == before


def test_verify_of_a_sound_ledger(invoke: Invoke, ask: Ask) -> None:
    report = ask("verify", "--full")
    assert (report["ok"], report["issues"]) == (True, [])
    assert invoke("verify").stdout.startswith("ok: 0 issues in ")


def test_apply_without_repair_is_a_usage_error(invoke: Invoke) -> None:
    assert invoke("verify", "--apply").exit_code == 2


def test_verify_names_what_is_wrong_and_repair_mends_it(
    invoke: Invoke, ask: Ask, root: Path
) -> None:
    page = next((root / "rooms/review/view").rglob("*.md"))
    good = page.read_bytes()
    page.write_text("\x1b[2Jbroken")
    result = invoke("verify")
    assert result.exit_code == 1
    assert page.name in result.stdout
    assert "rooms verify --repair" in result.stdout
    report = ask("verify")
    assert report["ok"] is False
    assert report["error_count"] == len(report["issues"]) == 1
    plan = invoke("verify", "--repair")
    assert plan.exit_code == 0
    assert "Nothing was written" in plan.stdout
    assert page.read_bytes() != good
    done = invoke("verify", "--repair", "--apply")
    assert done.exit_code == 0
    assert page.read_bytes() == good
    assert ask("verify")["ok"] is True
