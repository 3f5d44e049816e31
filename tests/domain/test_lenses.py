"""Lenses: what a policy leaves, with stand-ins in their places."""

from __future__ import annotations

from agent_chatroom_ledger.domain.lenses import lens
from agent_chatroom_ledger.domain.policy import Policy, StandIn
from agent_chatroom_ledger.domain.records import Message
from tests.domain.samples import OTHER, PRIMARY, message


def standin(name: str, replaces: int, after: int) -> StandIn:
    return StandIn(
        id=name,
        replaces=((PRIMARY, replaces),),
        insert_after=(PRIMARY, after),
        speaker="System",
        kind="system",
        body="in short",
        at="2026-11-29T21:27:42.123456Z",
    )


def shown(messages: list[Message], policy: Policy) -> list[str]:
    return [
        f"#{item.ref}" if isinstance(item, Message) else item.id for item in lens(messages, policy)
    ]


def test_without_a_policy_everything_is_shown() -> None:
    messages = [message(1), message(1, origin=OTHER), message(2)]
    assert shown(messages, Policy()) == ["#1", "#1@ci-9a1c", "#2"]
    assert lens([], Policy()) == []


def test_what_is_left_out_of_one_origin_stays_in_the_other() -> None:
    messages = [message(1), message(1, origin=OTHER), message(2)]
    policy = Policy().excluding([(PRIMARY, 1, 1), (OTHER, 2, 9)])
    assert shown(messages, policy) == ["#1@ci-9a1c", "#2"]


def test_standins_follow_their_message_in_the_order_they_were_added() -> None:
    policy = Policy().standing_in(standin("b", 1, 3)).standing_in(standin("a", 3, 3))
    messages = [message(n) for n in range(1, 5)]
    assert shown(messages, policy) == ["#2", "b", "a", "#4"]


def test_a_part_of_a_room_shows_the_standins_of_that_part() -> None:
    policy = Policy().standing_in(standin("early", 1, 1)).standing_in(standin("late", 2, 9))
    assert shown([message(n) for n in (8, 9)], policy) == ["#8", "#9", "late"]
