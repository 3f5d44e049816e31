"""Policies in the form of operations: what is put back is what was, and nonsense is refused."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_chatroom_ledger.domain.policy import Policy, StandIn
from agent_chatroom_ledger.domain.policyforms import parts_of, restored
from agent_chatroom_ledger.errors import LedgerError

AT = "2026-11-29T21:27:42.123456Z"
STANDIN = {
    "id": "s",
    "replaces": ["1@a"],
    "insert_after": "1@a",
    "speaker": "System",
    "kind": "system",
    "body": "short",
    "at": AT,
}


def back(policy: Policy) -> tuple[Policy, int]:
    found, count = Policy({"z": ((1, 9),)}), 0
    for part in parts_of(policy):
        found, count = restored(found, part, "a"), count + 1
    return found, count


@given(
    ranges=st.lists(st.tuples(st.sampled_from("ab"), st.integers(1, 900), st.integers(0, 9))),
    bodies=st.lists(st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"))),
)
def test_a_policy_comes_back_as_it_was(
    ranges: list[tuple[str, int, int]], bodies: list[str]
) -> None:
    policy = Policy().excluding((o, n, n + more) for o, n, more in ranges)
    standins = tuple(
        StandIn(
            id=str(k),
            replaces=(("a", k + 1),),
            insert_after=("b", 3),
            speaker="Ana",
            kind="system",
            body=body,
            at=AT,
        )
        for k, body in enumerate(bodies)
    )
    policy = Policy(policy.excluded, standins)
    assert back(policy)[0] == policy


def test_a_large_one_takes_several_operations() -> None:
    policy = Policy().excluding(("a", n, n) for n in range(1, 20_000, 2))
    found, count = back(policy)
    assert found == policy
    assert count > 1


def test_a_range_may_be_as_long_as_a_log() -> None:
    policy = Policy().excluding([("a", 1, 5_000_000)])
    assert back(policy) == (policy, 1)


@pytest.mark.parametrize(
    "form",
    [
        None,
        [],
        {},
        {"excluded": "1@a", "standins": []},
        {"excluded": [1], "standins": []},
        {"excluded": ["x"], "standins": []},
        {"excluded": []},
        {"excluded": [], "standins": 3},
        {"excluded": [], "standins": [1]},
        {"excluded": [], "standins": [{**STANDIN, "at": "yesterday"}]},
        {"excluded": [], "standins": [{**STANDIN, "replaces": []}]},
        {"excluded": [], "standins": [{**STANDIN, "kind": "No Kind"}]},
        {"excluded": [], "standins": [STANDIN, STANDIN]},
    ],
)
def test_nonsense_is_refused_and_so_skipped_by_the_fold(form: Any) -> None:
    with pytest.raises(LedgerError):
        restored(Policy(), {"policy": form}, "a")
