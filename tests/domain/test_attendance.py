"""Attendance: when a name was a member, from the operations alone and in any order of theirs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from agent_chatroom_ledger.domain.attendance import Interval, attendance, members_at
from agent_chatroom_ledger.domain.clock import from_datetime
from agent_chatroom_ledger.domain.records import Draft, Message
from agent_chatroom_ledger.domain.rooms import (
    exclude_draft,
    fold_room,
    members_draft,
    members_restore_draft,
)
from tests.domain.samples import PRIMARY, creation, operation

if TYPE_CHECKING:
    from random import Random

CREATED = operation(1, creation(members=["Ana", "Ben"]))


def at(message: Message) -> str:
    return from_datetime(message.at)


def spans(*operations: Message) -> list[tuple[str, str, str | None]]:
    return [(i.name, i.joined_at, i.left_at) for i in attendance(operations)]


def add(n: int, *names: str) -> Message:
    return operation(n, members_draft(names, add=True, by="Owner"))


def remove(n: int, *names: str) -> Message:
    return operation(n, members_draft(names, add=False, by="Owner"))


def test_who_is_named_at_the_creation_is_a_member_from_then_on() -> None:
    assert spans(CREATED) == [("Ana", at(CREATED), None), ("Ben", at(CREATED), None)]


def test_joining_and_leaving_bound_the_time() -> None:
    joined, left, back = add(2, "Cleo"), remove(3, "Ben", "Cleo"), add(4, "Ben")
    assert spans(CREATED, joined, left, back) == [
        ("Ana", at(CREATED), None),
        ("Ben", at(CREATED), at(left)),
        ("Cleo", at(joined), at(left)),
        ("Ben", at(back), None),
    ]


def test_what_changes_nothing_ends_nothing() -> None:
    again, other = add(2, "Ana"), operation(3, exclude_draft([(PRIMARY, 1)], by="Owner"))
    assert spans(CREATED, again, other) == spans(CREATED)


def test_a_restored_list_joins_and_leaves_at_its_own_time() -> None:
    restored = operation(2, members_restore_draft(["Ben", "Dan"], "0" * 40, by="Owner"))
    assert spans(CREATED, restored) == [
        ("Ana", at(CREATED), at(restored)),
        ("Ben", at(CREATED), None),
        ("Dan", at(restored), None),
    ]


def test_operations_that_break_a_rule_and_rooms_that_none_creates() -> None:
    broken = msgspec.structs.replace(add(2, "Cleo"), data={"members": "Cleo"})
    second = operation(3, creation(members=["Eve"]))
    assert spans(CREATED, broken, second) == spans(CREATED)
    assert spans(add(2, "Cleo")) == []


def test_the_moment_itself_is_outside() -> None:
    interval = Interval(name="A", joined_at="2026-01-01T00:00:00.000000Z", left_at=None)
    assert not interval.holds(interval.joined_at)
    assert interval.holds("2026-01-01T00:00:00.000001Z")
    ended = msgspec.structs.replace(interval, left_at="2026-01-01T00:00:01.000000Z")
    assert ended.holds("2026-01-01T00:00:00.999999Z")
    assert not ended.holds("2026-01-01T00:00:01.000000Z")


names = st.sampled_from(["Ana", "Ben", "Cleo"])
changes = st.lists(st.tuples(st.booleans(), st.lists(names, min_size=1, unique=True)), max_size=8)


@given(changes=changes, random=st.randoms())
def test_it_agrees_with_the_fold_at_every_moment(
    changes: list[tuple[bool, list[str]]], random: Random
) -> None:
    made = [CREATED]
    for n, (adding, who) in enumerate(changes, 2):
        made.append((add if adding else remove)(n, *who))
    shuffled = list(made)
    random.shuffle(shuffled)
    found = attendance(shuffled)
    for place, message in enumerate(made):
        later = msgspec.structs.replace(message, at=message.at.replace(microsecond=1))
        assert set(members_at(found, at(later))) == set(fold_room(made[: place + 1]).members)


def test_a_draft_of_another_kind_is_passed_over() -> None:
    unknown = operation(2, Draft(author="Owner", kind="room.colour", data={"colour": "blue"}))
    assert spans(CREATED, unknown) == spans(CREATED)
