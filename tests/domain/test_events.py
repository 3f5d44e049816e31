"""Events: coming and going in words, which nobody can put into another's mouth."""

from __future__ import annotations

from typing import Any

import pytest

from agent_chatroom_ledger.domain.events import event_draft, event_of
from agent_chatroom_ledger.domain.records import Message, encode_record, message_of, record_of

AT = "2026-11-29T21:27:42.123456Z"


def event(**changed: Any) -> Message:
    record = record_of(event_draft("Ana", "left", "op-1"), 1, AT, "e-1")
    fields = {name: getattr(record, name) for name in record.__struct_fields__} | changed
    return message_of(encode_record(type(record)(**fields)), "mbp-3f2a", "messages", primary=True)


def test_an_event_says_who_did_what_and_which_operation_it_tells_of() -> None:
    message = event()
    assert event_of(message) == "Ana left the room"
    assert (message.kind, message.author, message.to) == ("event", "Ana", ())
    assert message.cause == "op-1"
    assert message.data == {"event": "left", "member": "Ana"}


@pytest.mark.parametrize(
    "changed",
    [
        {"author": "Eve"},
        {"kind": "message"},
        {"body": "Ben left the room"},
        {"body": "Ana left the room, and says hello"},
        {"data": None},
        {"data": {"event": "left"}},
        {"data": {"event": "left", "member": "Ben"}},
        {"data": {"event": "exploded", "member": "Ana"}, "body": "Ana exploded the room"},
        {"data": {"event": ["left"], "member": "Ana"}},
        {"data": {"event": {}, "member": "Ana"}},
    ],
    ids=str,
)
def test_what_is_posted_by_hand_is_no_event_of_membership(changed: dict[str, Any]) -> None:
    assert event_of(event(**changed)) == ""
