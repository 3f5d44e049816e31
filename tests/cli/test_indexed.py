"""Many rooms: the derived index is kept where it saves the next reader, and only there."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from agent_chatroom_ledger import Ledger
from agent_chatroom_ledger.cli.indexed import BEHIND_BYTES_FEW, ROOMS_FEW

if TYPE_CHECKING:
    from pathlib import Path

    from tests.cli.conftest import Ask
    from tests.conftest import Git


def fill(root: Path, rooms: int) -> Path:
    with Ledger.open(root, commit="group") as ledger:
        for number in range(rooms):
            ledger.create_room(f"Room {number}").post("A", "hello")
    return root / ".git" / "ledger" / "index.sqlite3"


def test_a_small_ledger_is_read_without_writing(root: Path, ask: Ask) -> None:
    index = fill(root, 2)
    assert ask("unread", "--as", "B")["total"] == 2
    assert len(ask("list")["rooms"]) == 2
    assert not index.exists()


def test_with_many_rooms_the_index_is_kept(root: Path, ask: Ask) -> None:
    index = fill(root, ROOMS_FEW + 1)
    assert not index.exists()
    assert ask("unread", "--as", "B")["total"] == ROOMS_FEW + 1
    assert index.exists()
    index.write_bytes(b"damaged")
    assert ask("unread", "--as", "B")["total"] == ROOMS_FEW + 1
    index.unlink()
    assert len(ask("list")["rooms"]) == ROOMS_FEW + 1


def test_an_index_that_lags_behind_a_writer_is_kept_up(root: Path, ask: Ask) -> None:
    """One reader brings it up to date, and those after it need not."""
    fill(root, ROOMS_FEW + 1)
    ask("unread", "--as", "B")
    with Ledger.open(root, commit="group") as ledger:
        room = ledger.room("room-1")
        room.post_many([{"author": "A", "body": "x" * 1_000}] * 10)
        ask("unread", "--as", "B")
        behind = ledger.index.behind_bytes()
        assert behind is not None
        assert 10_000 < behind < BEHIND_BYTES_FEW
        room.post_many([{"author": "A", "body": "x" * 1_000}] * 60)
        assert ask("unread", "--as", "B")["total"] == ROOMS_FEW + 71
        assert ledger.index.behind_bytes() == 0


@pytest.mark.parametrize("words", [("read", "Room 1"), ("unread", "--as", "B")], ids=" ".join)
def test_an_index_of_before_a_foreign_commit_is_kept_up(
    root: Path, ask: Ask, git: Git, words: tuple[str, ...]
) -> None:
    """Main moved without frames: all rooms are compared, by one reader and not by each."""
    fill(root, ROOMS_FEW + 1)
    ask("unread", "--as", "B")
    (root / "notes.txt").write_text("mine")
    git(root, "add", "notes.txt")
    git(root, "commit", "-qm", "mine")
    with Ledger.open(root) as ledger:
        ledger.room("room-1").post("A", "again")
        ledger.flush()
        assert (ledger.index.behind_bytes() or 0) > BEHIND_BYTES_FEW
    ask(*words)
    with Ledger.open(root, read_only=True) as ledger:
        assert ledger.index.behind_bytes() == 0


def test_reading_alone_writes_nothing(root: Path) -> None:
    """What the command line may do, a ledger open for reading does not."""
    index = fill(root, 3)
    with Ledger.open(root) as ledger:
        ledger.index.follow()
        ledger.archive_room("room-2")
    before = index.read_bytes()
    with Ledger.open(root, read_only=True) as ledger:
        assert len(ledger.rooms()) == 2
        assert ledger.room("Room 1").title == "Room 1"
    assert index.read_bytes() == before
