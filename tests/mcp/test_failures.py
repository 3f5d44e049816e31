"""What a model is told when a tool fails: what happened, and what to do next."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from agent_chatroom_ledger.errors import (
    Busy,
    Conflict,
    Corrupt,
    Forbidden,
    InvalidInput,
    LedgerError,
    NotFound,
    NotYetCommitted,
)
from agent_chatroom_ledger.mcp.failures import sentence_of
from tests.mcp.conftest import in_memory

if TYPE_CHECKING:
    from agent_chatroom_ledger import Ledger


def test_what_only_a_person_can_mend_is_not_the_models_to_try() -> None:
    absent = NotFound("/x does not exist. `rooms init /x` makes a ledger there.", root="/x")
    assert sentence_of(absent).endswith(
        "makes a ledger there. Tell your user: without a ledger there are no rooms."
    )
    settings = InvalidInput("The settings /x cannot be understood.", code="bad_setting")
    assert "argument" not in sentence_of(settings)


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("tool", "arguments", "words"),
    [
        (
            "rooms_join",
            {"room": "reveiw"},
            ["no room 'reveiw'", "The nearest: review", "rooms_list"],
        ),
        ("rooms_join", {}, ["`room`", "The arguments are room"]),
        ("rooms_join", {"room": "review", "force": True}, ["force", "The arguments are room"]),
        ("rooms_inbox", {"wait_seconds": 101}, ["wait_seconds", "100"]),
        ("rooms_inbox", {"max": 0}, ["max"]),
        ("rooms_list", {"limit": 201}, ["limit", "200"]),
        ("rooms_dm", {"to": [], "body": "x"}, ["to"]),
        ("rooms_dm", {"to": ["ana"], "body": "x"}, ["Correct the argument"]),
        ("rooms_dm", {"to": [f"n{k}" for k in range(33)], "body": "x"}, ["32"]),
        ("rooms_post", {"room": "review", "body": "x" * 300_000}, ["262144"]),
        ("rooms_post", {"room": "old", "body": "x"}, ["archived"]),
        ("rooms_seen", {"room": "review", "through": 99}, ["rooms_read"]),
        ("rooms_read", {}, ["room, id or correlation"]),
        ("rooms_receipts", {"id": "nothing"}, ["no message", "rooms_read"]),
        ("rooms_pins", {}, ["no tool 'rooms_pins'", "rooms_who"]),
    ],
)
async def test_an_error_names_the_way_out(
    ledger: Ledger, tool: str, arguments: dict[str, Any], words: list[str]
) -> None:
    ledger.create_room("Review").post("ben", "hello")
    ledger.create_room("Old")
    ledger.archive_room("old")
    async with in_memory(ledger, "ana") as ana:
        text = await ana.fails(tool, **arguments)
    assert not [word for word in words if word not in text], text
    assert text.endswith(".")
    assert "\n" not in text


@pytest.mark.anyio
async def test_numbers_as_text_and_nulls_are_taken_as_models_write_them(ledger: Ledger) -> None:
    ledger.create_room("Review").post("ben", "hello")
    async with in_memory(ledger, "ana") as ana:
        found = await ana.call("rooms_read", room="review", limit="5", since=None, last=None)
        assert len(found["messages"]) == 1
        assert (await ana.call("rooms_seen", room="review", through=1))["through"] == "1"


@pytest.mark.parametrize(
    ("error", "advice"),
    [
        (Busy("Held."), "Call again in a few seconds."),
        (NotYetCommitted("Durable."), "do not send it again."),
        (NotFound("Gone."), "rooms_list"),
        (Conflict("Both."), "rooms_read"),
        (InvalidInput("Bad."), "Correct the argument"),
        (Forbidden("No."), "tell your user"),
        (Corrupt("Rot."), "rooms verify"),
        (LedgerError("Odd."), "Tell your user."),
        (PermissionError(13, "Permission denied"), "The system refused: Permission denied."),
        (RuntimeError("secret"), "A fault of the server (RuntimeError)."),
    ],
)
def test_every_kind_of_error_has_its_advice(error: Exception, advice: str) -> None:
    text = sentence_of(error)
    assert advice in text
    assert "secret" not in text
