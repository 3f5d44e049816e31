"""Delivery: for whom a record is, and how its age is told."""

from __future__ import annotations

from datetime import timedelta

import msgspec
import pytest

from agent_chatroom_ledger.domain.attendance import Interval
from agent_chatroom_ledger.domain.clock import from_datetime
from agent_chatroom_ledger.domain.delivery import age_prefix, age_seconds, is_for, recipients
from agent_chatroom_ledger.domain.records import Draft, Message
from tests.domain.samples import message

SAID = message(1, draft=Draft(author="Ana", body="hello"))
BEFORE, AT, AFTER = (from_datetime(SAID.at + timedelta(seconds=seconds)) for seconds in (-1, 0, 1))
MEMBER = Interval(name="Ben", joined_at=BEFORE)


def said(**fields: object) -> Message:
    return msgspec.structs.replace(SAID, **fields)


def test_a_member_of_its_time_gets_what_is_said() -> None:
    assert is_for(SAID, "Ben", [MEMBER])
    assert not is_for(SAID, "Cleo", [MEMBER])


@pytest.mark.parametrize("change", [{"joined_at": AT}, {"joined_at": AFTER}, {"left_at": AT}])
def test_who_came_later_or_had_left_gets_nothing(change: dict[str, str]) -> None:
    assert not is_for(SAID, "Ben", [msgspec.structs.replace(MEMBER, **change)])


def test_who_is_addressed_gets_it_without_being_a_member() -> None:
    assert is_for(said(to=("Cleo",)), "Cleo", [])
    assert is_for(said(to=("Cleo",)), "Ben", [MEMBER])
    assert not is_for(said(to=("*",)), "Cleo", [MEMBER])
    assert is_for(said(to=("*",)), "Ben", [MEMBER])


@pytest.mark.parametrize("kind", ["event", "room.note"])
def test_history_is_for_nobody(kind: str) -> None:
    record = said(kind=kind, to=("Ben",))
    assert not is_for(record, "Ben", [MEMBER])
    assert recipients(record, [MEMBER]) == ()


def test_ones_own_records_are_not_for_oneself() -> None:
    own = said(author="Ben", to=("Ben", "Cleo"))
    assert not is_for(own, "Ben", [MEMBER])
    assert recipients(own, [MEMBER]) == ("Cleo",)


def test_recipients_are_the_addressed_then_the_members_each_once() -> None:
    intervals = [
        MEMBER,
        Interval(name="Ana", joined_at=BEFORE),
        Interval(name="Dan", joined_at=AFTER),
        Interval(name="Eve", joined_at=BEFORE),
    ]
    assert recipients(said(to=("Cleo", "Eve", "*")), intervals) == ("Cleo", "Eve", "Ben")


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [
        (0, ""),
        (900, ""),
        (901, "[15 min old] "),
        (3_599, "[59 min old] "),
        (7_300, "[2 h old] "),
        (86_400, "[1 d old] "),
        (40 * 86_400, "[40 d old] "),
    ],
)
def test_the_age_of_what_has_waited_past_a_quarter_of_an_hour(seconds: int, shown: str) -> None:
    assert age_prefix(seconds, 900) == shown


def test_a_short_bound_tells_seconds_and_a_clock_ahead_tells_nothing() -> None:
    assert age_prefix(30, 10) == "[30 s old] "
    assert age_seconds(SAID, SAID.at + timedelta(seconds=5, milliseconds=900)) == 5
    assert age_seconds(SAID, SAID.at - timedelta(days=1)) == 0
