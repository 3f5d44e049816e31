"""The face of one who talks: what it is called, and the rooms that it sees."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from agent_chatroom_ledger import Forbidden, InvalidInput, Ledger
from agent_chatroom_ledger.limits import LIST_ROOMS_MAX
from agent_chatroom_ledger.presence import waiter
from tests.commits import record_commits

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize("name", ["", " Ana", "a\nb", "*", "x" * 65, "\u202eanA"], ids=ascii)
def test_a_name_is_one_that_an_author_may_have(ledger: Ledger, name: str) -> None:
    with pytest.raises(InvalidInput):
        ledger.agent(name)


def test_an_agent_says_who_it_is(ledger: Ledger) -> None:
    agent = ledger.agent("Ana")
    assert (agent.name, agent.ledger, repr(agent)) == ("Ana", ledger, "<Agent Ana>")


def test_making_one_reads_and_writes_nothing(ledger: Ledger) -> None:
    before = len(record_commits(ledger))
    ledger.agent("Ana", session="s", door="mcp")
    assert len(record_commits(ledger)) == before


def test_rooms_are_listed_in_pages_of_their_paths(ledger: Ledger) -> None:
    for title in ("Beta", "Alpha", "Gamma"):
        ledger.create_room(title, members=["Ana"] if title != "Beta" else [])
    ledger.archive_room(ledger.create_room("Old", members=["Ana"]))
    ana = ledger.agent("Ana")
    assert [room.path for room in ana.rooms()] == ["rooms/alpha", "rooms/beta", "rooms/gamma"]
    assert [room.path for room in ana.rooms(limit=2)] == ["rooms/alpha", "rooms/beta"]
    assert [room.path for room in ana.rooms(after="beta")] == ["rooms/gamma"]
    assert [room.path for room in ana.rooms(after="rooms/alpha", mine=True)] == ["rooms/gamma"]
    assert [room.path for room in ana.rooms(archived=True)] == ["rooms/old"]
    assert ledger.agent("Ben").rooms(mine=True) == []


@pytest.mark.parametrize("limit", [0, -1, LIST_ROOMS_MAX + 1])
def test_a_page_has_a_limit(ledger: Ledger, limit: int) -> None:
    with pytest.raises(InvalidInput):
        ledger.agent("Ana").rooms(limit=limit)


def test_who_is_here(ledger: Ledger) -> None:
    assert ledger.agent("Ana").who() == []
    with waiter(ledger, "Ben"):
        assert [one.name for one in ledger.agent("Ana").who()] == ["Ben"]


def test_two_agents_talk_and_everything_is_kept(ledger: Ledger) -> None:
    """The first screen of the README, in Python."""
    ana, ben = ledger.agent("Ana"), ledger.agent("Ben")
    room = ana.create("Design review", members=["Ben"]).room
    asked = ana.post(room, "who reviews?").message
    (item,) = ben.inbox()
    assert (item.message, item.addressed) == (asked, False)
    answer = ben.reply_all(asked.id, "I do").message
    (item,) = ana.inbox()
    assert item.message.id == answer.id
    assert ben.seen(room, asked) == {asked.origin: asked.n}
    (receipt,) = ana.receipts(asked.id).receipts
    assert receipt.name == "Ben"
    assert receipt.handed_at is not None
    assert receipt.seen
    assert [one.message.id for one in receipt.answers] == [answer.id]
    ben.leave(room)
    assert ben.inbox() == []


def test_a_ledger_that_is_only_read_takes_nothing(ledger: Ledger, tmp_path: Path) -> None:
    room = ledger.create_room("Review", members=["Ana"])
    ledger.flush()
    with Ledger.open(tmp_path / "ledger", read_only=True) as reader:
        ana = reader.agent("Ana")
        for act in (
            lambda: ana.post(room.path, "x"),
            lambda: ana.dm(["Ben"], "x"),
            lambda: ana.create("New"),
            lambda: ana.leave(room.path),
        ):
            with pytest.raises(Forbidden):
                act()
        assert [one.path for one in ana.rooms(mine=True)] == [room.path]
