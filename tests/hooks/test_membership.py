"""Coming, going and direct rooms before git's hooks, and in a merge of two clones."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import pytest

from agent_chatroom_ledger import Ledger, versions
from agent_chatroom_ledger.hookscripts import install
from tests.hooks.conftest import Pair, git, run
from tests.hooks.pushes import taken

if TYPE_CHECKING:
    from pathlib import Path

    from agent_chatroom_ledger import Room


def test_a_server_takes_coming_going_and_direct_rooms(pair: Pair) -> None:
    with Ledger.open(pair.ledger) as ledger:
        ben, ana = ledger.agent("Ben"), ledger.agent("Ana")
        ben.join("Review")
        ben.leave("Review")
        room = ana.dm(["Ben"], "1").room
        ledger.archive_room(room)
        ben.dm(["Ana"], "2")
        ana.create("review")
    pair.refresh()
    taken(pair)


def test_a_commit_by_hand_beside_them_is_let_through(pair: Pair, rooms_on_path: Path) -> None:
    install(pair.ledger, server=False, command=str(rooms_on_path / "rooms"))
    with Ledger.open(pair.ledger) as ledger:
        ledger.agent("Ben").join("Review")
        ledger.agent("Ben").dm(["Ana"], "1")
        ledger.flush()
        (pair.ledger / "notes.md").write_text("mine\n")
        git(pair.ledger, "add", "notes.md")
        git(pair.ledger, "commit", "-q", "-m", "Notes")
        assert ledger.agent("Ben").leave("Review").left


def test_two_clones_that_begin_one_conversation_have_one(pair: Pair, tmp_path: Path) -> None:
    """Each made the direct room by itself; united, it is one room with the messages of both."""
    other = tmp_path / "other"
    git(tmp_path, "clone", "-q", str(pair.bare), str(other))
    for root, name, to in ((other, "Ben", "Ana"), (pair.ledger, "Ana", "Ben")):
        with Ledger.open(root) as ledger:
            agent = ledger.agent(name)
            agent.join("Review")
            agent.dm([to], f"from {name}")
    run(pair.ledger, "pull", "-q", "--no-rebase", str(other), "main")
    conflicts = git(pair.ledger, "diff", "--name-only", "--diff-filter=U").splitlines()
    assert conflicts
    assert not [path for path in conflicts if path.endswith(".jsonl")]
    git(pair.ledger, "checkout", "-q", "--ours", "--", *conflicts)
    git(pair.ledger, "add", "-A")
    git(pair.ledger, "commit", "-q", "-m", "Merge")
    with Ledger.open(pair.ledger) as ledger:
        report = ledger.verify(repair=True)
        assert report.ok, report.issues
        assert [room.path for room in ledger.rooms()] == ["rooms/direct/ana-ben", "rooms/review"]
        for name, to in (("Ana", "Ben"), ("Ben", "Ana")):
            sent = ledger.agent(name).dm([to], f"again from {name}")
            assert sent.room.path == "rooms/direct/ana-ben"
        assert sorted(m.body for m in sent.room.messages()) == [
            "again from Ana",
            "again from Ben",
            "from Ana",
            "from Ben",
        ]
        review = ledger.room("review")
        assert set(review.members) == {"Analyst", "Reviewer", "Ana", "Ben"}
        assert ledger.agent("Ben").leave(review).left
        assert [m.body for m in review.messages()][-1] == "Ben left the room"


@pytest.mark.parametrize(("hours", "binds"), [(2, True), (48, False)])
def test_what_follows_a_merge_comes_after_it(
    pair: Pair, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, hours: int, *, binds: bool
) -> None:
    """Whoever answers another clone is not shown before what is answered.

    The clock of that clone is ahead; one that is wrong by more than a day binds nobody.
    """
    other = tmp_path / "other"
    git(tmp_path, "clone", "-q", str(pair.bare), str(other))
    now = time.time_ns
    with monkeypatch.context() as patch:
        patch.setattr(time, "time_ns", lambda: now() + hours * 3_600 * 1_000_000_000)
        with Ledger.open(other) as ledger:
            ledger.room("review").post("Ben", "from a clock that is ahead")
    git(pair.ledger, "pull", "-q", str(other), "main")
    for again in (False, True):
        with Ledger.open(pair.ledger) as ledger:
            answer = ledger.room("review").post("Ana", f"an answer, {again}")
            bodies = [m.body for m in ledger.room("review").messages(last=2)]
            assert (bodies[-1] == answer.body) is binds


def levels(room: Room, short: str) -> dict[str, dict[str, Any]]:
    texts = [room.messages(limit=1)[0].body, *[short] * 9]
    return {str(k): {"message": text, "char_count": len(text)} for k, text in enumerate(texts)}


def test_what_a_wrong_clock_wrote_stays_the_newest(
    pair: Pair, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Writer, commits, readers and verify agree, also where ours is older than what was merged."""
    other = tmp_path / "other"
    git(tmp_path, "clone", "-q", str(pair.bare), str(other))
    now = time.time_ns
    with monkeypatch.context() as patch:
        patch.setattr(time, "time_ns", lambda: now() + 48 * 3_600 * 1_000_000_000)
        with Ledger.open(other) as ledger:
            room = ledger.room("review")
            room.add_member("Zoe", by="Ben")
            room.exclude([1], by="Ben")
            versions.set_versions(room, 1, levels(room, "theirs"), by="Ben")
    git(pair.ledger, "pull", "-q", str(other), "main")
    with Ledger.open(pair.ledger, commit="group") as ledger:
        room = ledger.room("review")
        for _ in range(2):
            room.add_member("Ana", by="Ana")
            room.remove_member("Zoe", by="Ana")
            assert "Zoe" in room.members
            room.include([1], by="Ana")
            assert room.policy().excludes(room.origin, 1)
            assert room.reader().state() == room.reader().folded_state()
            versions.set_versions(room, 1, levels(room, "ours"), by="Ana")
            assert versions.bundle_of(room, 1).levels[5] == "theirs"
            ledger.flush()
            assert versions.bundle_of(room, 1).levels[5] == "theirs"
            assert "Zoe" in room.members
        assert ledger.verify().ok, ledger.verify().issues


def test_frames_that_waited_while_a_merge_came_are_folded_in_their_place(
    pair: Pair, tmp_path: Path
) -> None:
    """What was written before the merge, and is committed after it, precedes what it brought."""
    other = tmp_path / "other"
    git(tmp_path, "clone", "-q", str(pair.bare), str(other))
    with Ledger.open(pair.ledger, commit="group") as ledger:
        room = ledger.room("review")
        with ledger.writer().committer.lock:
            room.add_member("Ana", by="Ana")
            room.exclude([1], by="Ana")
            versions.set_versions(room, 1, levels(room, "ours"), by="Ana")
            with Ledger.open(other) as theirs:
                there = theirs.room("review")
                there.exclude([1], by="Ben")
                there.include([1], by="Ben")
                versions.set_versions(there, 1, levels(there, "theirs"), by="Ben")
            git(pair.ledger, "pull", "-q", str(other), "main")
            assert not room.policy().excludes(room.origin, 1)
            assert versions.bundle_of(room, 1).levels[5] == "theirs"
        ledger.flush()
        assert not room.policy().excludes(room.origin, 1)
        assert versions.bundle_of(room, 1).levels[5] == "theirs"
        assert ledger.verify().ok, ledger.verify().issues
    pair.refresh()
    taken(pair)
