"""Upkeep: counts and sizes, packs merged, and a commit-graph that git takes for its own."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

import pytest

from agent_chatroom_ledger import Busy, Forbidden, Ledger
from agent_chatroom_ledger.storage import commitgraph, failpoints, refs
from agent_chatroom_ledger.storage.commitgraph import graph_bytes, write_commit_graph
from agent_chatroom_ledger.upkeep import collect, stats

if TYPE_CHECKING:
    from pathlib import Path

    from tests.conftest import Git


def _talk(ledger: Ledger) -> None:
    for name in ("Here", "There"):
        room = ledger.create_room(name)
        for number in range(20):
            room.post('A "name" \\', f'"author":"Eve" {number}')
    room.post("Ben", "é")
    room.exclude("1", by="Ben")
    ledger.flush()


@pytest.fixture
def without_git(git: Git, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let there be no git binary for the product; the tests have found theirs before."""
    del git
    monkeypatch.setattr(shutil, "which", lambda *_args, **_options: None)


def test_stats_count_what_is_there(ledger: Ledger) -> None:
    empty = stats(ledger)
    assert (empty.rooms, empty.messages, empty.bytes_per_message) == (0, 0, 0.0)
    _talk(ledger)
    found = stats(ledger)
    assert (found.rooms, found.archived, found.messages) == (2, 0, 41)
    assert found.authors == {'A "name" \\': 40, "Ben": 1}
    lines = sum(
        len(message.line) + 1
        for name in ("here", "there")
        for message in ledger.room(name).messages()
    )
    assert found.record_bytes == lines
    # A record of each room in its own log and in the ledger's, and one of the policy.
    assert found.operations == 5
    assert found.bytes_per_message * 41 == pytest.approx(found.space.pack_bytes, rel=0.01)
    assert found.space.packs > 1
    assert found.space.generations
    ledger.archive_room("there")
    after = stats(ledger)
    assert (after.rooms, after.archived, after.messages) == (1, 1, 20)


def test_packs_are_merged_and_nothing_changes(ledger: Ledger, git: Git) -> None:
    _talk(ledger)
    main = refs.read_main(ledger.layout)
    done = collect(ledger)
    assert done.commit_graph == "git"
    assert done.after.packs < done.before.packs
    assert done.after.packs <= 2
    assert refs.read_main(ledger.layout) == main
    assert git(ledger.root, "fsck", "--full", "--strict") == ""
    assert git(ledger.root, "commit-graph", "verify") == ""
    assert "BDAT" in _chunks(ledger)
    assert [m.n for m in ledger.room("here").messages(last=2, at="main~3")] == [19, 20]
    ledger.room("here").post("Ben", "and on")
    again = collect(ledger)
    assert again.after.packs <= 2
    assert ledger.verify(full=True).ok


@pytest.mark.usefixtures("without_git")
def test_without_git_we_write_the_commit_graph(ledger: Ledger, git: Git) -> None:
    _talk(ledger)
    ledger.room("here").post("Dawn", "x")
    assert collect(ledger).commit_graph == "ledger"
    assert _chunks(ledger) == ["OIDF", "OIDL", "CDAT"]
    assert git(ledger.root, "commit-graph", "verify") == ""
    assert "Dawn\n" in git(ledger.root, "log", "--format=%an", "-2")


def _chunks(ledger: Ledger) -> list[str]:
    data = (ledger.layout.git / "objects" / "info" / "commit-graph").read_bytes()
    return [data[8 + 12 * k : 12 + 12 * k].decode() for k in range(data[6])]


@pytest.mark.broken_on_purpose  # merged commits add the same records again
@pytest.mark.usefixtures("without_git")
def test_merges_of_many_parents_are_in_the_graph(ledger: Ledger, git: Git) -> None:
    _talk(ledger)
    root = ledger.root
    tree = git(root, "rev-parse", "main^{tree}").strip()
    sides = [
        git(root, "commit-tree", tree, "-p", f"main~{n}", "-m", f"side {n}").strip()
        for n in range(4)
    ]
    parents = [part for side in ["main", *sides] for part in ("-p", side)]
    tip = git(root, "commit-tree", tree, *parents, "-m", "all").strip()
    tip = git(root, "commit-tree", tree, "-p", tip, "-p", sides[0], "-m", "two").strip()
    git(root, "update-ref", "refs/heads/main", tip)
    ledger.objects.forget()
    assert write_commit_graph(ledger.layout, ledger.objects) == "ledger"
    assert "EDGE" in _chunks(ledger)
    assert git(root, "commit-graph", "verify") == ""
    assert git(root, "-c", "core.commitGraph=false", "rev-list", "main") == git(
        root, "rev-list", "main"
    )


def test_our_graph_says_what_git_says(ledger: Ledger, git: Git) -> None:
    _talk(ledger)
    git(ledger.root, "-c", "commitGraph.generationVersion=1", "commit-graph", "write")
    place = ledger.layout.git / "objects" / "info" / "commit-graph"
    git_made = place.read_bytes()
    ours = graph_bytes(ledger.objects, refs.read_main(ledger.layout))
    assert ours == git_made


@pytest.mark.usefixtures("without_git")
def test_what_the_format_cannot_hold_is_left_to_git(
    ledger: Ledger, git: Git, tmp_path: Path
) -> None:
    _talk(ledger)
    assert graph_bytes(ledger.objects, "0" * 40) is None
    root = tmp_path / "shallow"
    git(tmp_path, "clone", "-q", "--depth", "3", f"file://{ledger.root}", str(root))
    with Ledger.open(root) as clone:
        assert write_commit_graph(clone.layout, clone.objects) == "none"


def test_a_lock_of_another_program_is_respected(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    _talk(ledger)
    info = ledger.layout.git / "objects" / "info"
    info.mkdir(exist_ok=True)
    lock = info / "commit-graph.lock"
    lock.write_text("")
    monkeypatch.setattr(commitgraph, "_LOCK_WAIT_SECONDS_MAX", 0.01)
    with pytest.raises(Busy) as caught:
        write_commit_graph(ledger.layout, ledger.objects)
    assert caught.value.fields["path"] == str(lock)
    monkeypatch.setattr(shutil, "which", lambda *_args, **_options: None)
    with pytest.raises(Busy):
        write_commit_graph(ledger.layout, ledger.objects)
    lock.unlink()


@pytest.mark.usefixtures("without_git")
def test_a_killed_writer_of_the_graph_blocks_nobody(ledger: Ledger, git: Git) -> None:
    _talk(ledger)
    lock = ledger.layout.git / "objects" / "info" / "commit-graph.lock"
    lock.parent.mkdir(exist_ok=True)
    lock.hardlink_to(ledger.layout.own_mark)
    assert write_commit_graph(ledger.layout, ledger.objects) == "ledger"
    assert not lock.exists()
    assert git(ledger.root, "commit-graph", "verify") == ""


def test_a_stop_in_the_middle_loses_nothing(ledger: Ledger) -> None:
    class Stop(Exception):
        pass

    def stop(_: str) -> None:
        raise Stop

    _talk(ledger)
    for point in ("packmerge.built", "packmerge.stored", "packmerge.done"):
        failpoints.arm(point, stop)
        with pytest.raises(Stop):
            collect(ledger)
        failpoints.disarm()
        assert ledger.verify(full=True).ok
        ledger.room("here").post("Ben", point)
    # One that a stopped merge still protects may be beside them until the next recovery.
    assert collect(ledger).after.packs <= 3


def test_a_reader_may_not_tidy_up(ledger: Ledger) -> None:
    with Ledger.open(ledger.root, read_only=True) as reader, pytest.raises(Forbidden):
        collect(reader)
