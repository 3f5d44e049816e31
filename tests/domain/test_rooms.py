"""Rooms: the fold of their operations, which skips what breaks a rule, in any order alike."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_chatroom_ledger.domain import rooms as rooms_module
from agent_chatroom_ledger.domain.policy import Policy
from agent_chatroom_ledger.domain.records import Draft, Message
from agent_chatroom_ledger.domain.rooms import (
    RoomState,
    applied,
    apply_operation,
    check_members,
    clear_draft,
    create_draft,
    exclude_draft,
    fold_room,
    include_draft,
    members_draft,
    standin_draft,
)
from agent_chatroom_ledger.errors import Conflict, InvalidInput, NotFound
from tests.domain.samples import HOSTILE, OTHER, PRIMARY, creation, operation

if TYPE_CHECKING:
    from collections.abc import Callable

CREATED = operation(1, creation(members=["Analyst"]))
STATE = fold_room([CREATED])
BY = "Reviewer"


def after(*drafts: Draft) -> RoomState:
    return fold_room([CREATED, *(operation(n, draft) for n, draft in enumerate(drafts, 2))])


def raw(kind: str, data: object, n: int = 2) -> Message:
    """Return an operation as another program may have written it."""
    made = operation(n, Draft(author=BY, kind=kind))
    return msgspec.structs.replace(made, data=data)


def test_a_room_is_what_its_creation_says() -> None:
    assert (
        RoomState(
            id="0193a1b2-0000-7000-8000-000000000001",
            title="Design review",
            path="rooms/design-review",
            folder="",
            slug="design-review",
            members=("Analyst",),
            created_at="2026-11-29T21:27:43.000000Z",
            created_by="Analyst",
            origin=PRIMARY,
        )
        == STATE
    )


def test_members_come_and_go() -> None:
    state = after(
        members_draft(["Reviewer", "Ops"], add=True, by=BY),
        members_draft(["Reviewer"], add=True, by=BY),
        members_draft(["Analyst", "Nobody"], add=False, by=BY),
    )
    assert state.members == ("Reviewer", "Ops")


def test_policies_follow_their_operations() -> None:
    state = after(
        exclude_draft([(PRIMARY, 1), (PRIMARY, 2), (OTHER, 9)], by=BY),
        include_draft([(PRIMARY, 2)], by=BY),
        standin_draft(standin_id="s", replaces=[(PRIMARY, 5), (PRIMARY, 4)], body="x", by=BY),
    )
    assert state.policy.excluded == {PRIMARY: ((1, 1), (4, 5)), OTHER: ((9, 9),)}
    (standin,) = state.policy.standins
    assert standin.replaces == ((PRIMARY, 4), (PRIMARY, 5))
    assert standin.insert_after == (PRIMARY, 5)
    assert standin.at == "2026-11-29T21:27:46.000000Z"
    assert after(exclude_draft([(PRIMARY, 1)], by=BY), clear_draft(by=BY)).policy == Policy()


@given(st.permutations(range(4)))
def test_the_order_in_which_operations_are_given_is_no_matter(order: list[int]) -> None:
    operations = [
        CREATED,
        operation(2, exclude_draft([(PRIMARY, 1)], by=BY)),
        operation(3, include_draft([(PRIMARY, 1)], by=BY)),
        operation(1, exclude_draft([(PRIMARY, 2)], by=BY), origin=OTHER),
    ]
    assert fold_room(operations[k] for k in order) == fold_room(operations)


def test_an_operation_says_in_words_and_for_machines_what_it_does() -> None:
    draft = exclude_draft([(PRIMARY, 3), (PRIMARY, 1), (PRIMARY, 2)], by=BY, reason="noise")
    assert (draft.author, draft.kind, draft.body) == (BY, "policy.exclude", "Excluded 1-3@mbp-3f2a")
    assert draft.data == {"messages": ["1-3@mbp-3f2a"], "reason": "noise"}
    assert creation().body == "Created the room Design review"
    assert members_draft(["A"], add=False, by=BY).body == "Removed A"


@pytest.mark.parametrize(
    ("kind", "data"),
    [
        ("policy.exclude", None),
        ("policy.exclude", {}),
        ("policy.exclude", {"messages": "1"}),
        ("policy.exclude", {"messages": [1]}),
        ("policy.exclude", {"messages": ["x"]}),
        ("policy.exclude", {"messages": ["1-99999999@mbp-3f2a"]}),
        ("policy.include", {"messages": {"a": 1}}),
        ("policy.standin", {}),
        ("policy.standin", {"standin": []}),
        ("policy.standin", {"standin": {"id": "s"}}),
        ("members.add", {"members": [""]}),
        ("members.add", {"members": ["a\nb"]}),
        ("members.remove", {"members": None}),
        ("room.create", creation("Other").data),
    ],
)
def test_an_operation_that_breaks_a_rule_is_skipped_and_a_writer_is_told(
    kind: str, data: object
) -> None:
    bad = raw(kind, data)
    with pytest.raises((InvalidInput, Conflict)):
        applied(STATE, bad)
    assert apply_operation(STATE, bad) == STATE
    assert fold_room([CREATED, bad]) == STATE


@pytest.mark.parametrize("field", ["id", "insert_after", "speaker", "kind", "body", "replaces"])
@pytest.mark.parametrize("value", [None, 1, "", "a\nb\0", [], ["x"]])
def test_a_standin_of_another_shape_is_skipped(field: str, value: object) -> None:
    good: dict[str, Any] = {
        "id": "s",
        "replaces": ["1@mbp-3f2a"],
        "insert_after": "1@mbp-3f2a",
        "speaker": "System",
        "kind": "system",
        "body": "x",
    }
    assert applied(STATE, raw("policy.standin", {"standin": good})).policy.standins
    bad = {**good, field: value}
    if (field, value) != ("body", ""):
        assert apply_operation(STATE, raw("policy.standin", {"standin": bad})) == STATE


def test_a_kind_that_this_version_does_not_know_changes_nothing() -> None:
    assert applied(STATE, raw("room.archive", {"anything": 1})) == STATE


@pytest.mark.parametrize("path", [*HOSTILE, "rooms/../x", "rooms", "design"])
def test_no_creation_names_a_path_outside(path: str) -> None:
    data = {**(creation().data or {}), "path": path}
    with pytest.raises(NotFound):
        fold_room([raw("room.create", data, 1)])
    with pytest.raises(InvalidInput):
        create_draft(room_id="r", title="x", path=path, by=BY)


@pytest.mark.parametrize("field", ["id", "title", "path", "members"])
@pytest.mark.parametrize("value", [None, 1, "", ["a\nb"], "a\nb"])
def test_a_creation_of_another_shape_creates_nothing(field: str, value: object) -> None:
    bad = raw("room.create", {**(creation().data or {}), field: value}, 1)
    with pytest.raises(NotFound):
        apply_operation(None, bad)
    later = operation(2, creation("Later"))
    assert fold_room([bad, later]).title == "Later"


def test_there_is_no_room_without_a_creation() -> None:
    with pytest.raises(NotFound):
        fold_room([])
    early = operation(1, exclude_draft([(PRIMARY, 1)], by=BY))
    with pytest.raises(NotFound):
        apply_operation(None, early)
    assert fold_room([early, operation(2, creation())]).policy == Policy()


def test_the_first_of_two_creations_in_canonical_order_counts() -> None:
    other = operation(1, creation("Other"), origin=OTHER)
    assert fold_room([CREATED, other]).title == "Other", "the same time, the smaller origin"
    assert fold_room([CREATED, other]).origin == OTHER


def test_members_have_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rooms_module, "MEMBERS_MAX", 2)
    assert check_members(["a", "b", "a"]) == ("a", "b")
    with pytest.raises(InvalidInput, match="at most 2"):
        check_members(["a", "b", "c"])
    state = after(members_draft(["b", "c"], add=True, by=BY))
    assert state.members == ("Analyst",), "an operation beyond the limit is skipped"


def test_empty_requests_are_refused() -> None:
    requests: list[Callable[[], Draft]] = [
        lambda: exclude_draft([], by=BY),
        lambda: include_draft([], by=BY),
        lambda: members_draft([], add=True, by=BY),
        lambda: standin_draft(standin_id="s", replaces=[], body="x", by=BY),
        lambda: clear_draft(by=""),
        lambda: clear_draft(by=BY, reason="a\nb"),
        lambda: clear_draft(by=BY, reason="x" * 1001),
        lambda: standin_draft(standin_id="a\nb", replaces=[(PRIMARY, 1)], body="x", by=BY),
        lambda: standin_draft(standin_id="a", replaces=[(PRIMARY, 1)], body="\0", by=BY),
    ]
    for ask in requests:
        with pytest.raises(InvalidInput):
            ask()
