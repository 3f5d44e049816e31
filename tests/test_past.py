"""Reading at a commit or a time: rooms that are gone or have moved, and what was unread then."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from agent_chatroom_ledger import Conflict, NotFound, restoring, versions
from agent_chatroom_ledger.differences import compare
from agent_chatroom_ledger.domain.versions import levels_shape
from agent_chatroom_ledger.storage import history

if TYPE_CHECKING:
    from agent_chatroom_ledger import Ledger, Room
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


# --- rooms that lay at one path, one after the other ---------------------------------------------

LEVELS = ("hello", *(f"short {level}" for level in range(1, 10)))


class Moved:
    """The first room, moved; the second, at its old path; and a commit before either happened."""

    def __init__(self, ledger: Ledger) -> None:
        self.ledger = ledger
        first = ledger.create_room("x", members=["Ann"])
        first.post("Ann", "hello")
        versions.set_versions(first, 1, levels_shape(LEVELS), by="Ann")
        self.before = ledger.commit_at("main")
        stone = ledger.archive_room(first)
        self.second = ledger.create_room("x")
        self.second.post("Ben", "here now")
        self.between = ledger.commit_at("main")
        self.first = ledger.restore_room(stone.id)
        assert (self.second.path, self.first.path) == ("rooms/x", "rooms/x_2")


@pytest.fixture
def moved(ledger: Ledger) -> Moved:
    return Moved(ledger)


def test_an_earlier_state_is_read_where_the_room_lay_then(moved: Moved) -> None:
    assert [m.body for m in moved.first.messages(at=moved.before)] == ["hello"]
    assert moved.first.state(moved.before).path == "rooms/x"
    assert versions.bundle_of(moved.first, 1, at=moved.before).levels == LEVELS
    assert len(moved.first.lens(at=moved.before).items) == 1
    unread = moved.ledger.consumer("Ann").unread([moved.first], at=moved.before)
    assert [(found.room.id, found.count) for found in unread] == [(moved.first.id, 1)]


def test_another_room_at_its_path_is_not_the_room(moved: Moved) -> None:
    with pytest.raises(NotFound, match=moved.first.id):
        moved.second.messages(at=moved.before)
    with pytest.raises(NotFound, match="choose another commit"):
        moved.first.messages(at=moved.between)
    assert moved.ledger.consumer("Ann").unread([moved.second], at=moved.before) == []


def test_what_a_room_was_is_put_back_from_where_it_lay(moved: Moved) -> None:
    """Versions that were the same then are not taken back because the room has moved since."""
    assert restoring.restore_from(moved.first, moved.before) == []
    assert versions.bundle_of(moved.first, 1).levels == LEVELS
    with pytest.raises(NotFound):
        versions.drafts_to_restore(moved.second, moved.before)
    assert [m.body for m in moved.second.messages()] == ["here now"]


def test_a_comparison_follows_a_room(moved: Moved) -> None:
    found = compare(moved.first, moved.before)
    assert (found.created, found.messages, found.versions) == (False, (), ())
    assert [operation.kind for operation in found.operations] == ["room.move"]
    found = compare(moved.second, moved.before)
    assert (found.created, [m.body for m in found.messages], found.versions) == (
        True,
        ["here now"],
        (),
    )


@pytest.mark.parametrize("walked", [1, 1_000])
def test_the_log_of_a_room_is_its_own_wherever_it_lay(
    moved: Moved, monkeypatch: pytest.MonkeyPatch, walked: int
) -> None:
    """Commit by commit, and from the timeline of a path as well."""
    monkeypatch.setattr(history, "_WALKED_MIN", walked)
    ledger, first = moved.ledger, moved.first
    first.post("Ann", "moved")
    ledger.archive_room(moved.second)
    stone = ledger.archive_room(first)
    third = ledger.create_room("x")
    third.post("Cy", "the third")
    second = ledger.restore_room(moved.second.id)
    assert second.path == "rooms/x_2"
    assert _kinds(ledger, ledger.room(stone.id)) == [
        "room.archive",
        "message",
        "room.restore room.move",
        "room.archive",
        "versions.set",
        "message",
        "room.create room.create",
    ]
    ledger.archive_room(third)
    first = ledger.restore_room(stone.id)
    assert first.path == "rooms/x_2_2"
    ledger.archive_room(first)
    assert _kinds(ledger, ledger.room(stone.id))[:3] == [
        "room.archive",
        "room.restore room.move",
        "room.archive",
    ]
    assert len(_kinds(ledger, ledger.room(stone.id))) == 9
    assert _kinds(ledger, second) == [
        "room.restore room.move",
        "room.archive",
        "message",
        "room.create room.create",
    ]
    assert _kinds(ledger, ledger.room(third.id)) == [
        "room.archive",
        "message",
        "room.create room.create",
    ]


def test_a_room_that_comes_back_to_its_path_has_a_log_without_gaps(ledger: Ledger) -> None:
    first = ledger.archive_room(ledger.create_room("x"))
    second = ledger.archive_room(ledger.create_room("x"))
    back = ledger.restore_room(first.id)
    assert back.path == "rooms/x"
    assert _kinds(ledger, back) == ["room.restore", "room.archive", "room.create room.create"]
    assert _kinds(ledger, ledger.room(second.id)) == ["room.archive", "room.create room.create"]


def _kinds(ledger: Ledger, room: Room) -> list[str]:
    """Return what the commits of a room did; views are committed at any moment."""
    return [" ".join(entry.kinds) for entry in ledger.log(room) if entry.kinds]
