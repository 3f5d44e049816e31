"""Reading at a commit or a time: rooms that are gone, and what was unread then."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from agent_chatroom_ledger import Conflict, NotFound

if TYPE_CHECKING:
    from agent_chatroom_ledger import Ledger
    from tests.conftest import Git


def _talk(ledger: Ledger) -> str:
    room = ledger.create_room("Here", members=["Ann"])
    room.post_many([{"author": "Ann", "body": str(n)} for n in range(4)])
    ledger.create_room("There").post("Ben", "one")
    before = ledger.commit_at("main")
    room.post_many([{"author": "Ben", "body": str(n)} for n in range(4, 6)])
    return before


def test_unread_at_counts_what_that_state_holds_past_the_cursor(ledger: Ledger) -> None:
    before = _talk(ledger)
    reader = ledger.consumer("Ann")
    assert [(i.room.path, i.count) for i in reader.unread(at=before)] == [
        ("rooms/here", 4),
        ("rooms/there", 1),
    ]
    reader.acknowledge("here", through=3)
    [here] = reader.unread(["here"], at=before)
    assert (here.count, here.last.n, dict(here.newest)) == (1, 4, {ledger.origin: 4})
    assert [m.n for m in here.messages()] == [4]
    assert [m.n for i in reader.unread(["here"]) for m in i.messages()] == [4, 5, 6]
    assert [i.room.path for i in reader.unread(members_only=True, at=before)] == ["rooms/here"]


def test_a_cursor_past_the_end_of_an_old_room_has_read_all_of_it(ledger: Ledger) -> None:
    before = _talk(ledger)
    reader = ledger.consumer("Ann")
    reader.acknowledge("here")
    assert reader.unread(["here"], at=before) == []


def test_a_room_that_was_not_there_yet_has_nothing_unread(ledger: Ledger) -> None:
    _talk(ledger)
    assert ledger.consumer("Ann").unread(["there"], at="main~7") == []


@pytest.mark.parametrize("at", ["nowhere", "feedfacefeedface", "main~999", "1999-01-01T00:00:00Z"])
def test_an_unknown_revision_is_not_found(ledger: Ledger, at: str) -> None:
    _talk(ledger)
    with pytest.raises(NotFound) as caught:
        ledger.consumer("Ann").unread(at=at)
    assert "commit" in caught.value.message


@pytest.mark.broken_on_purpose
def test_a_room_that_was_deleted_is_read_where_it_still_was(ledger: Ledger, git: Git) -> None:
    _talk(ledger)
    ledger.create_room("There", folder="again")
    ledger.flush()
    git(ledger.root, "rm", "-rq", "rooms/here", "rooms/there", "rooms/again")
    git(ledger.root, "commit", "-qm", "gone")
    ledger.flush()
    for name in ("here", "rooms/here", "Here"):
        room = ledger.room(name, at="main~1")
        assert [m.n for m in room.messages(at="main~1")] == [1, 2, 3, 4, 5, 6]
        assert room.title == "Here"
    with pytest.raises(Conflict):
        ledger.room("There", at="main~1")
    assert ledger.room("again/there", at="main~1").path == "rooms/again/there"
    with pytest.raises(NotFound):
        ledger.room("here", at="main~99")
    with pytest.raises(NotFound):
        ledger.room("nobody", at="main~1")
