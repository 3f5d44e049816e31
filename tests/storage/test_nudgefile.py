"""What a session was told of, and who may wake a name, as files."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

import msgspec
import pytest

from agent_chatroom_ledger.errors import Busy
from agent_chatroom_ledger.limits import NUDGE_FILES_MAX, STOP_BLOCKS_MAX
from agent_chatroom_ledger.storage import nudgefile
from agent_chatroom_ledger.storage.locks import FileLock
from agent_chatroom_ledger.storage.nudgefile import Nudges

if TYPE_CHECKING:
    from agent_chatroom_ledger import Ledger


def one_more(known: Nudges) -> Nudges:
    return msgspec.structs.replace(known, blocks=known.blocks + 1)


def test_a_session_that_was_told_of_nothing(ledger: Ledger) -> None:
    assert nudgefile.load(ledger.layout, "s") == Nudges(session="s")
    assert not (ledger.layout.private / "agenthook").exists()


def test_what_is_changed_is_there_for_the_next(ledger: Ledger) -> None:
    after = nudgefile.change(ledger.layout, "s", one_more)
    assert after == nudgefile.load(ledger.layout, "s") == Nudges(session="s", blocks=1)
    assert nudgefile.load(ledger.layout, "other").blocks == 0


def test_nothing_is_written_when_nothing_changes(ledger: Ledger) -> None:
    assert nudgefile.change(ledger.layout, "s", lambda _: None) is None
    assert not (ledger.layout.private / "agenthook").exists()


def test_through_which_number_a_session_knows(ledger: Ledger) -> None:
    known = Nudges(through={"room": {"here": 3}})
    asked = [("room", "here", 3), ("room", "here", 4), ("room", "there", 1), ("else", "here", 1)]
    assert [known.knows(*place) for place in asked] == [True, False, False, False]
    nudgefile.change(ledger.layout, "s", lambda _: msgspec.structs.replace(known, session="s"))
    assert nudgefile.load(ledger.layout, "s").through == known.through


@pytest.mark.parametrize("content", [b"", b"{", b"\xff", b"[]", b'{"format":2,"session":"s"}'])
def test_a_damaged_file_says_that_it_was_often_enough(ledger: Ledger, content: bytes) -> None:
    nudgefile.change(ledger.layout, "s", one_more)
    nudgefile._path(ledger.layout, "s").write_bytes(content)
    assert nudgefile.load(ledger.layout, "s").blocks == STOP_BLOCKS_MAX


def test_many_at_once_lose_no_change(ledger: Ledger) -> None:
    def several() -> None:
        for _ in range(5):
            nudgefile.change(ledger.layout, "s", one_more)

    threads = [threading.Thread(target=several) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert nudgefile.load(ledger.layout, "s").blocks == 20


def test_who_holds_the_lock_is_waited_for_a_second(ledger: Ledger) -> None:
    nudgefile.change(ledger.layout, "s", one_more)
    with FileLock(ledger.layout.locks / "agenthook.lock"), pytest.raises(Busy):
        nudgefile.change(ledger.layout, "s", one_more)
    assert nudgefile.load(ledger.layout, "s").blocks == 1


@pytest.mark.parametrize("session", ["../../up", "a/b", "\n", "é" * 500, ".", "CON", "x\x00y"])
def test_no_session_leaves_the_folder(ledger: Ledger, session: str) -> None:
    nudgefile.change(ledger.layout, session, one_more)
    (path,) = (ledger.layout.private / "agenthook" / "stops").iterdir()
    assert path.is_file()
    assert nudgefile.load(ledger.layout, session).blocks == 1


def test_the_files_of_old_sessions_go(ledger: Ledger) -> None:
    for number in range(NUDGE_FILES_MAX + 5):
        nudgefile.change(ledger.layout, f"session-{number}", one_more)
    folder = ledger.layout.private / "agenthook" / "stops"
    assert len(list(folder.iterdir())) == NUDGE_FILES_MAX
    assert nudgefile.load(ledger.layout, f"session-{NUDGE_FILES_MAX + 4}").blocks == 1


def test_only_the_newest_may_wake(ledger: Ledger) -> None:
    nudgefile.claim_watch(ledger.layout, "bob", "1")
    assert nudgefile.holds_watch(ledger.layout, "bob", "1")
    assert not nudgefile.holds_watch(ledger.layout, "alice", "1")
    nudgefile.claim_watch(ledger.layout, "bob", "2")
    assert not nudgefile.holds_watch(ledger.layout, "bob", "1")
    nudgefile.end_watch(ledger.layout, "bob", "1")
    assert nudgefile.holds_watch(ledger.layout, "bob", "2")
    nudgefile.end_watch(ledger.layout, "bob")
    assert not nudgefile.holds_watch(ledger.layout, "bob", "2")
    nudgefile.end_watch(ledger.layout, "bob")
