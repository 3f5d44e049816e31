"""`rooms members` and `rooms coverage`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
import pytest

from agent_chatroom_ledger import Ledger
from agent_chatroom_ledger.cli.planschemas import PlanDocument

if TYPE_CHECKING:
    from pathlib import Path

    from tests.cli.conftest import Ask, Invoke


@pytest.fixture(autouse=True)
def room(root: Path) -> None:
    with Ledger.open(root) as ledger:
        ledger.create_room("Review", members=["Ana"])
        ledger.create_room("Other")


def test_members_are_listed_added_and_removed(invoke: Invoke, ask: Ask) -> None:
    assert invoke("members", "review").stdout == "Ana\n"
    plan = invoke("members", "review", "add", "Ben", "--as", "Ana", "--reason", "helps")
    assert "Nothing was written. To write it:" in plan.stdout
    assert ask("members", "review")["members"] == ["Ana"]
    result = invoke("members", "review", "add", "Ben", "--apply", "--json")
    done = msgspec.json.decode(result.stdout_bytes)
    msgspec.convert(done, PlanDocument)
    assert done["report"]["actions"][0]["status"] == "added"
    assert ask("members", "review")["members"] == ["Ana", "Ben"]
    assert invoke("members", "review", "remove", "Ana", "--apply").exit_code == 0
    assert ask("members", "review")["members"] == ["Ben"]
    assert ask("members", "review", "--at", "main~1")["members"] == ["Ana", "Ben"]
    assert invoke("members", "other").stdout == "No members.\n"


@pytest.mark.parametrize(
    "words",
    [
        ("review", "add"),
        ("review", "--apply"),
        ("review", "promote", "Ben"),
        ("review", "add", "B", "--at", "1h"),
    ],
    ids=" ".join,
)
def test_what_makes_no_sense_is_a_usage_error(invoke: Invoke, words: tuple[str, ...]) -> None:
    assert invoke("members", *words).exit_code == 2


def test_coverage(invoke: Invoke, ask: Ask) -> None:
    found = ask("coverage", "Ana")
    assert [room["path"] for room in found["listed"]] == ["rooms/review"]
    assert [room["path"] for room in found["not_listed"]] == ["rooms/other"]
    assert invoke("coverage", "Ana").stdout == (
        "Member of 1:\n  review\nNot a member of 1:\n  other\n"
    )
