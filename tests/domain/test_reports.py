"""Reports of operations: the same fields in a plan, in what a call returns and in a record."""

from __future__ import annotations

import pytest

from agent_chatroom_ledger.domain.drafts import Draft
from agent_chatroom_ledger.domain.records import encode_record, message_of, record_of
from agent_chatroom_ledger.domain.reports import (
    NOOP,
    Action,
    operation_report,
    report_of,
    room_facts,
    with_report,
)
from agent_chatroom_ledger.errors import InvalidInput
from agent_chatroom_ledger.limits import DATA_BYTES_MAX

AT = "2026-11-29T21:27:42.123456Z"
FIELDS = [
    "operation_id",
    "operation_type",
    "dry_run",
    "applied",
    "requested_by",
    "created_at",
    "source",
    "target",
    "actions",
    "provenance",
    "compile_policy",
    "warnings",
    "verification",
]


def report(*actions: Action, applied: bool = True) -> dict[str, object]:
    return operation_report(
        "messages.place",
        operation_id="one",
        created_at=AT,
        requested_by="Ana",
        applied=applied,
        actions=actions,
        target=room_facts("room", "Review", "rooms/review"),
    )


def test_a_report_has_the_fields_of_the_interface_in_their_order() -> None:
    found = report()
    assert list(found) == FIELDS
    assert (found["dry_run"], found["applied"]) == (False, True)
    assert found["target"] == {"id": "room", "title": "Review", "path": "rooms/review"}
    assert found["source"] is None


@pytest.mark.parametrize(
    ("action", "planned", "done"),
    [
        (Action(type="messages.place"), "would_place", "placed"),
        (Action(type="policy.standin"), "would_standin", "added"),
        (Action(type="thing.unheard"), "would_unheard", "done"),
        (Action(type="members.add", status=NOOP), "noop", "noop"),
    ],
)
def test_an_action_says_what_would_be_and_what_was_done(
    action: Action, planned: str, done: str
) -> None:
    assert action.as_dict(applied=False)["status"] == planned
    assert action.as_dict(applied=True)["status"] == done


def test_facts_stand_between_status_and_text() -> None:
    shown = Action(type="x.place", text="in words", facts={"count": 3}).as_dict(applied=True)
    assert list(shown) == ["type", "status", "count", "text"]


def test_a_record_gives_its_report_back() -> None:
    draft = with_report(Draft(author="Ana", kind="members.add", data={"members": ["B"]}), report())
    line = encode_record(record_of(draft, 1, AT, "one"))
    message = message_of(line, "mbp", "operations", primary=True)
    assert report_of(message) == report()
    assert (message.data or {})["members"] == ["B"]


def test_a_record_without_a_report_gets_one_of_its_fields() -> None:
    draft = Draft(author="Ana", kind="policy.clear", body="Cleared the policy", data={"report": 1})
    line = encode_record(record_of(draft, 1, AT, "one"))
    found = report_of(message_of(line, "mbp", "operations", primary=True))
    assert list(found) == FIELDS
    assert (found["operation_id"], found["created_at"]) == ("one", AT)
    assert found["actions"] == [
        {"type": "policy.clear", "status": "cleared", "text": "Cleared the policy"}
    ]


def test_a_report_that_does_not_fit_is_refused() -> None:
    draft = Draft(author="Ana", kind="policy.clear")
    with pytest.raises(InvalidInput) as refused:
        with_report(draft, report(Action(type="x.place", text="x" * DATA_BYTES_MAX)))
    assert refused.value.fields["limit"] == DATA_BYTES_MAX
