"""Why an agent may not stop, or is woken: what the hook does with it, without the hook."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from agent_chatroom_ledger import nudges
from agent_chatroom_ledger.domain.identities import Client
from agent_chatroom_ledger.inbox import peek, take
from agent_chatroom_ledger.limits import STOP_BLOCKS_MAX
from agent_chatroom_ledger.storage import nudgefile, processes
from tests.clientlike import running

if TYPE_CHECKING:
    from pathlib import Path

    from agent_chatroom_ledger import Ledger
    from agent_chatroom_ledger.room import Room


@pytest.fixture
def room(ledger: Ledger) -> Room:
    return ledger.create_room("Room", members=["alice", "bob"], by="alice")


def held_back(ledger: Ledger, *, goes_on: bool = False) -> int:
    return nudges.held_back(ledger, "bob", "s", goes_on=goes_on)


def woken(ledger: Ledger, seconds: float = 1.5) -> int:
    return nudges.wait_to_wake(ledger, "bob", "s", client=Client(), seconds=seconds)


def test_one_block_for_each_record(ledger: Ledger, room: Room) -> None:
    room.post("alice", "one", to=["bob"])
    assert [held_back(ledger), held_back(ledger)] == [1, 0]
    room.post("alice", "two", to=["bob"])
    assert [held_back(ledger), held_back(ledger, goes_on=True)] == [2, 0]


def test_the_user_allows_three_more(ledger: Ledger, room: Room) -> None:
    for _ in range(STOP_BLOCKS_MAX):
        room.post("alice", "x", to=["bob"])
        assert held_back(ledger) > 0
    room.post("alice", "x", to=["bob"])
    assert held_back(ledger) == 0
    nudges.prompted(ledger, "bob", "s")
    assert held_back(ledger) == STOP_BLOCKS_MAX + 1


def test_a_prompt_writes_nothing_where_nothing_was_blocked(ledger: Ledger, room: Room) -> None:
    assert room.members
    nudges.prompted(ledger, "bob", "s")
    assert not (ledger.layout.private / "agenthook").exists()


def test_more_waits_than_is_looked_at(ledger: Ledger, room: Room) -> None:
    room.post_many([{"author": "alice", "body": f"message {n}"} for n in range(250)])
    room.post("alice", "for bob", to=["bob"])
    assert held_back(ledger) == 1
    # Who was told not to stop was told of everything that waited.
    assert woken(ledger) == 0
    room.post("alice", "more for bob", to=["bob"])
    assert woken(ledger) == 202
    assert woken(ledger) == 0


def test_waking_hands_nothing_over(ledger: Ledger, room: Room) -> None:
    room.post("alice", "hello")
    assert woken(ledger) == 1
    assert [item.message.body for item in peek(ledger, "bob")] == ["hello"]
    with take(ledger, "bob") as handover:
        handover.confirm()
    assert woken(ledger) == 0


def test_it_does_not_wait_for_a_client_that_has_ended(ledger: Ledger, tmp_path: Path) -> None:
    with running(tmp_path) as program:
        pass
    assert not processes.is_alive(program.id)
    client = Client(process=program.id)
    assert nudges.wait_to_wake(ledger, "bob", "s", client=client, seconds=600) == 0


def test_what_ends_leaves_no_file(ledger: Ledger, room: Room) -> None:
    room.post("alice", "hello")
    woken(ledger)
    woken(ledger, 0)
    assert not list((ledger.layout.private / "agenthook" / "watches").iterdir())
    nudgefile.claim_watch(ledger.layout, "bob", "token")
    nudges.at_work(ledger, "bob")
    assert not list((ledger.layout.private / "agenthook" / "watches").iterdir())
