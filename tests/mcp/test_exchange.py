"""One request and the way of its answer: receipts are written when it is out, and not before."""

from __future__ import annotations

import sys
import threading
from typing import TYPE_CHECKING, Any

import pytest

from agent_chatroom_ledger.errors import Busy
from agent_chatroom_ledger.mcp.exchange import Answers, Exchange
from agent_chatroom_ledger.mcp.speakers import House, NamedSpeaker

if TYPE_CHECKING:
    from agent_chatroom_ledger import Ledger
    from agent_chatroom_ledger.inbox import Handover


@pytest.fixture
def speaker(ledger: Ledger) -> NamedSpeaker:
    ledger.create_room("Review", members=["ana"]).post("ben", "hello")
    return NamedSpeaker(House(lambda: ledger), "ana")


def taken(ledger: Ledger) -> Handover:
    return ledger.agent("ana").take()


def bodies(ledger: Ledger) -> list[str]:
    return [item.message.body for item in ledger.agent("ana").inbox(peek=True)]


def test_what_was_written_is_noted(ledger: Ledger, speaker: NamedSpeaker) -> None:
    exchange = Exchange(speaker)
    exchange.hold(taken(ledger))
    assert bodies(ledger) == ["hello"]
    exchange.settle(written=True)
    assert bodies(ledger) == []


def test_what_was_not_written_comes_again(ledger: Ledger, speaker: NamedSpeaker) -> None:
    exchange = Exchange(speaker)
    exchange.hold(taken(ledger))
    exchange.settle(written=False)
    exchange.settle(written=True)
    assert bodies(ledger) == ["hello"]
    assert exchange.is_given_up
    assert len(taken(ledger)) == 1


def test_giving_up_can_be_said_amid_itself(speaker: NamedSpeaker) -> None:
    """As a signal's handler does, which runs between any two lines of the thread it stops."""
    exchange = Exchange(speaker)
    said = []

    def between_lines(_frame: object, event: str, _: object) -> Any:
        if event == "line":
            sys.settrace(None)
            exchange.give_up()
            said.append(event)
            sys.settrace(between_lines)
        return between_lines

    def give_up() -> None:
        sys.settrace(between_lines)
        exchange.give_up()
        sys.settrace(None)

    thread = threading.Thread(target=give_up, daemon=True)
    thread.start()
    thread.join(10)
    assert not thread.is_alive()
    assert said
    assert exchange.is_given_up


def test_nobody_else_hands_over_meanwhile(ledger: Ledger, speaker: NamedSpeaker) -> None:
    from agent_chatroom_ledger.inbox import take

    exchange = Exchange(speaker)
    exchange.hold(taken(ledger))
    with pytest.raises(Busy):
        take(ledger, "ana", lock_seconds=0.05)
    exchange.settle(written=True)
    assert len(take(ledger, "ana", lock_seconds=0.05)) == 0


def test_what_comes_too_late_is_let_go_of(ledger: Ledger, speaker: NamedSpeaker) -> None:
    exchange = Exchange(speaker)
    exchange.settle(written=False)
    exchange.hold(taken(ledger))
    assert bodies(ledger) == ["hello"]
    assert len(taken(ledger)) == 1


def test_a_receipt_that_cannot_be_written_loses_nothing(
    ledger: Ledger, speaker: NamedSpeaker, caplog: pytest.LogCaptureFixture
) -> None:
    exchange = Exchange(speaker)
    handover = taken(ledger)
    handover.close()
    exchange.hold(handover)
    exchange.leaving()
    exchange.settle(written=True)
    assert "will come again" in caplog.text
    assert bodies(ledger) == ["hello"]
    speaker.answers.wait()


def test_the_next_call_waits_until_the_answer_before_it_is_noted(speaker: NamedSpeaker) -> None:
    answers = Answers()
    exchange = Exchange(speaker)
    answers.start(exchange)
    order: list[str] = []

    def call() -> None:
        answers.wait()
        order.append("called")

    thread = threading.Thread(target=call)
    thread.start()
    order.append("noted")
    answers.end(exchange)
    thread.join()
    assert order == ["noted", "called"]
