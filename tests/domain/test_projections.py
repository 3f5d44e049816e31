"""Projections: exact bytes of ``room.json`` and ``policy.json``, and back."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_chatroom_ledger.domain.policy import Policy, StandIn
from agent_chatroom_ledger.domain.projections import (
    policy_json,
    refs_of,
    room_json,
    state_from_projections,
)
from agent_chatroom_ledger.domain.rooms import exclude_draft, fold_room, standin_draft
from agent_chatroom_ledger.domain.roomstate import RoomState
from agent_chatroom_ledger.errors import Corrupt
from tests.domain.samples import GOLDEN, OTHER, PRIMARY, bodies, creation, operation

STATE = fold_room(
    [
        operation(1, creation("Design “review” 😀", members=["Analyst", "שלום"])),
        operation(2, exclude_draft([(PRIMARY, 1), (PRIMARY, 2), (OTHER, 9)], by="Reviewer")),
        operation(
            3,
            standin_draft(
                standin_id="short",
                replaces=[(PRIMARY, 5), (PRIMARY, 4), (OTHER, 3)],
                body="In short:\n4 and 5 agree.",
                by="Reviewer",
            ),
        ),
    ]
)

texts = bodies.filter(bool)
pairs = st.tuples(st.sampled_from((PRIMARY, OTHER)), st.integers(1, 50))
standins = st.builds(
    StandIn,
    id=texts,
    replaces=st.sets(pairs, min_size=1).map(lambda found: tuple(sorted(found))),
    insert_after=pairs,
    speaker=texts,
    kind=texts,
    body=bodies,
    at=texts,
)
states = st.builds(
    RoomState,
    id=texts,
    title=texts,
    path=texts,
    folder=bodies,
    slug=texts,
    members=st.lists(texts).map(tuple),
    created_at=texts,
    created_by=texts,
    origin=texts,
    policy=st.builds(
        lambda found, shown: Policy(
            Policy().excluding((o, n, n) for o, n in found).excluded, tuple(shown)
        ),
        st.lists(pairs),
        st.lists(standins, max_size=3),
    ),
)


def test_the_bytes_of_the_format() -> None:
    assert room_json(STATE) == (GOLDEN / "room.json").read_bytes()
    assert policy_json(STATE) == (GOLDEN / "policy.json").read_bytes()


@given(states)
def test_a_state_comes_back(state: RoomState) -> None:
    room, policy = room_json(state), policy_json(state)
    assert state_from_projections(room, policy) == state
    assert room.endswith(b"}\n")
    assert json.loads(policy)["format"] == 1


def test_an_append_changes_nothing() -> None:
    assert not {"last", "updated_at", "last_message"} & set(json.loads(room_json(STATE)))


def test_references_are_ranges_in_order() -> None:
    assert refs_of(((PRIMARY, 3), (OTHER, 1), (PRIMARY, 2), (PRIMARY, 3))) == [
        "1@ci-9a1c",
        "2-3@mbp-3f2a",
    ]


@pytest.mark.parametrize("which", [0, 1])
@pytest.mark.parametrize(
    "damage", [b"", b"{", b"[]", b"null", b"\xff", b'{"format":"1"}', b"<<<<<<< ours\n{}"]
)
def test_damage_is_corrupt(which: int, damage: bytes) -> None:
    files = [room_json(STATE), policy_json(STATE)]
    files[which] = damage
    with pytest.raises(Corrupt) as caught:
        state_from_projections(*files)
    assert caught.value.code == "corrupt"


@pytest.mark.parametrize(
    "change",
    [
        {"excluded": ["x"]},
        {"excluded": [1]},
        {"standins": [{}]},
        {"excluded": ["9-1@a"]},
    ],
)
def test_a_policy_of_another_shape_is_corrupt(change: dict[str, Any]) -> None:
    policy = msgspec.json.encode({**json.loads(policy_json(STATE)), **change})
    with pytest.raises(Corrupt):
        state_from_projections(room_json(STATE), policy)


@pytest.mark.parametrize("which", [0, 1])
def test_a_newer_format_is_refused_by_its_own_code(which: int) -> None:
    """Also when its other fields are such that this version could not read them."""
    files = [room_json(STATE), policy_json(STATE)]
    files[which] = b'{"format":2}'
    with pytest.raises(Corrupt) as caught:
        state_from_projections(*files)
    assert caught.value.code == "newer_format"


def test_unknown_fields_are_ignored() -> None:
    room = {**json.loads(room_json(STATE)), "color": "red"}
    assert state_from_projections(json.dumps(room).encode(), policy_json(STATE)) == STATE
