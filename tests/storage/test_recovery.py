"""After a kill, a foreign commit and a power cut: which frames main has, and nothing is lost."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from agent_chatroom_ledger.errors import Conflict
from agent_chatroom_ledger.storage import failpoints, files, journal, packlist
from agent_chatroom_ledger.storage.objects import NO_OBJECT, Objects
from agent_chatroom_ledger.storage.recovery import descends, needed
from agent_chatroom_ledger.storage.state import State, forget_state, read_state, write_state
from agent_chatroom_ledger.storage.writer import Writer
from tests.storage.kills import Killed, kill, killed_after, leave
from tests.storage.processes import Silent
from tests.storage.samples import ROOM, bodies, git, say, write

if TYPE_CHECKING:
    from collections.abc import Callable

    from agent_chatroom_ledger.storage.layout import Layout

BODIES = ["0", "1", "2", "3"]


@pytest.fixture
def killed(layout: Layout) -> Layout:
    """A ledger whose writer was killed after four messages, two of them before a checkpoint."""
    return killed_after(layout, BODIES)


def main(layout: Layout) -> str:
    return git(layout.root, "rev-parse", "main").decode().strip()


def reboot(layout: Layout) -> None:
    """Let the hint be from before a boot: a power cut is what it asks about."""
    state = read_state(layout)
    assert state is not None
    write_state(layout, State(state.main, state.frame, "0" * len(state.boot)))


def recovered(layout: Layout) -> None:
    """Open and close; then main has everything, and git is content."""
    assert needed(layout)
    writer = Writer(layout)
    (stored,) = write(writer, say("after"))
    assert stored.record.n == len(BODIES) + 1
    writer.close()
    assert bodies(layout) == [*BODIES, "after"]
    assert git(layout.root, "status", "--porcelain") == b""
    git(layout.root, "fsck", "--full", "--strict")
    assert not needed(layout)


def test_a_killed_writer_leaves_a_checkpoint_to_make(killed: Layout) -> None:
    recovered(killed)


@pytest.mark.parametrize("point", ["commit.moved", "commit.remembered", "commit.stored"])
def test_a_kill_around_the_move_of_main_is_judged_by_building_again(
    killed: Layout, point: str
) -> None:
    """Main may have the frame that the hint does not know of; no commit is made twice."""
    writer = Writer(killed)
    writer._background = Silent()
    failpoints.arm(point, kill)
    with pytest.raises(Killed):
        write(writer, say("four"))
    failpoints.disarm()
    tip = main(killed)
    writer._release()
    again = Writer(killed)
    again.commit()
    again.close()
    assert bodies(killed) == [*BODIES, "four"]
    assert tip in git(killed.root, "rev-list", "main").decode().split()
    subjects = git(killed.root, "log", "--format=%s").decode()
    assert subjects.count("#5") == 1
    assert not (killed.private / "foreign").exists()


def test_after_a_boot_the_same_frames_give_the_same_commits(killed: Layout) -> None:
    tip = main(killed)
    reboot(killed)
    recovered(killed)
    assert tip in git(killed.root, "rev-list", "main").decode().split()


@pytest.mark.parametrize("mode", ["sync", "group"])
def test_nothing_is_written_after_a_boot_before_recovery_has_looked(
    killed: Layout, mode: str
) -> None:
    """Not every writer asks when it opens whether something is to be done."""
    reboot(killed)
    writer = Writer(killed, commit=mode)
    writer._background = Silent()
    met: list[str] = []
    for point in ("recovery.replayed", "journal.append"):
        failpoints.arm(point, met.append)
    write(writer, say("after"))
    assert met[:2] == ["recovery.replayed", "journal.append"]
    failpoints.disarm()
    writer.close()


def lose_newest_pack(layout: Layout) -> None:
    for name in [pack.name for pack in packlist.read(layout)][-2:]:
        for suffix in ("pack", "idx"):
            (layout.packs / f"pack-{name}.{suffix}").unlink()


def zero_newest_pack(layout: Layout) -> None:
    path = layout.packs / f"pack-{packlist.read(layout)[-1].name}.pack"
    path.chmod(0o644)
    path.write_bytes(b"\0" * path.stat().st_size)


def cut_newest_index(layout: Layout) -> None:
    path = layout.packs / f"pack-{packlist.read(layout)[-1].name}.idx"
    path.chmod(0o644)
    path.write_bytes(path.read_bytes()[:100])


def rewind_main(layout: Layout) -> None:
    base = git(layout.root, "rev-parse", "refs/ledger/tip").decode()
    (layout.git / "refs/heads/main").write_text(base)


def leave_main_as_it_was_long_ago(layout: Layout) -> None:
    """Let main's file hold what it did before it was written over in place."""
    before = git(layout.root, "rev-parse", "refs/ledger/tip~2").decode()
    (layout.git / "refs/heads/main").write_text(before)


DAMAGES = [
    lose_newest_pack,
    zero_newest_pack,
    cut_newest_index,
    rewind_main,
    lambda layout: (layout.git / "refs/heads/main").write_bytes(b"\0" * 41),
    lambda layout: (layout.git / "refs/heads/main").write_bytes(b""),
    lambda layout: (layout.git / "refs/heads/main").unlink(),
    lambda layout: (layout.git / "refs/heads/main").write_text("12" * 20 + "\n"),
    lambda layout: layout.own_packs.write_bytes(b"\0" * 300),
    lambda layout: layout.state.write_bytes(b"\0" * 100),
    lambda layout: [lose_newest_pack(layout), rewind_main(layout)],
    leave_main_as_it_was_long_ago,
    lambda layout: [lose_newest_pack(layout), leave_main_as_it_was_long_ago(layout)],
]


@pytest.mark.parametrize("damage", DAMAGES, ids=range(len(DAMAGES)))
def test_what_a_power_cut_takes_is_made_again_from_the_journal(
    killed: Layout, damage: Callable[[Layout], object]
) -> None:
    """Between checkpoints packs and main need not be durable (docs/design.md 4)."""
    tip = main(killed)
    damage(killed)
    reboot(killed) if read_state(killed) else None
    recovered(killed)
    assert tip in git(killed.root, "rev-list", "main").decode().split()


def test_a_foreign_commit_on_top_survives_the_cut(killed: Layout) -> None:
    (killed.git / "index.lock").unlink()  # the user took it away to commit
    root = killed.root
    (root / "notes").write_text("x")
    git(root, "read-tree", "HEAD")
    git(root, "add", "notes")
    git(root, "commit", "-q", "-m", "Mine")
    tip = main(killed)
    lose_newest_pack(killed)
    reboot(killed)
    writer = Writer(killed)
    write(writer, say("after"))
    writer.close()
    assert bodies(killed) == [*BODIES, "after"]
    assert tip in git(root, "rev-list", "main").decode().split()
    assert (root / "notes").exists()
    git(root, "fsck", "--full", "--strict")


def test_a_foreign_commit_that_the_cut_took_is_given_up_and_named(killed: Layout) -> None:
    """git does not sync its own objects: only our records are promised."""
    tree = git(killed.root, "rev-parse", "main^{tree}").decode().strip()
    lost = git(killed.root, "commit-tree", tree, "-p", "main", "-m", "Mine").decode().strip()
    git(killed.root, "update-ref", "refs/heads/main", lost)
    (killed.git / "objects" / lost[:2] / lost[2:]).unlink()
    reboot(killed)
    recovered(killed)
    kept = [path.read_text() for path in killed.quarantine.iterdir() if "lost-main" in path.name]
    assert lost in kept[0]


@pytest.mark.filterwarnings("ignore:The ledger in")
@pytest.mark.broken_on_purpose
def test_a_main_that_is_another_history_is_refused_after_a_boot_too(killed: Layout) -> None:
    tree = git(killed.root, "rev-parse", "main^{tree}").decode().strip()
    other = git(killed.root, "commit-tree", tree, "-m", "Root").decode().strip()
    git(killed.root, "update-ref", "refs/heads/main", other)
    reboot(killed)
    writer = Writer(killed)
    with pytest.raises(Conflict) as caught:
        write(writer, say("after"))
    assert caught.value.code == "rewound"
    git(killed.root, "update-ref", "refs/heads/main", "refs/ledger/tip")
    writer.close()


def test_main_may_be_from_before_a_generation_without_frames(killed: Layout) -> None:
    Writer(killed).close()
    tip = main(killed)
    leave_main_as_it_was_long_ago(killed)
    reboot(killed)
    writer = Writer(killed)
    writer.commit()
    assert main(killed) == tip
    writer.close()
    assert git(killed.root, "status", "--porcelain") == b""
    assert not killed.quarantine.exists() or not list(killed.quarantine.iterdir())


@pytest.mark.filterwarnings("ignore:The ledger in")
@pytest.mark.broken_on_purpose
@pytest.mark.parametrize("how", ["--mixed", "--hard"])
def test_what_somebody_rewound_is_not_taken_for_a_power_cut(killed: Layout, how: str) -> None:
    """git's index went back with main: a cut cannot do that, and files would be out of date."""
    Writer(killed).close()
    tip = main(killed)
    git(killed.root, "reset", "-q", how, "HEAD~2")
    reboot(killed)
    writer = Writer(killed)
    with pytest.raises(Conflict) as caught:
        write(writer, say("after"))
    assert caught.value.code == "rewound"
    git(killed.root, "reset", "-q", "--hard", tip)
    writer.close()


def removed_with_frames_pending(layout: Layout) -> Writer:
    """Let git remove the room while a message of it is in the journal only."""
    Writer(layout).close()
    pending = Writer(layout, commit="group")
    pending._background = Silent()
    write(pending, say("4"))
    git(layout.root, "rm", "-rq", ROOM)
    git(layout.root, "commit", "-q", "-m", "Remove the room")
    return pending


def test_a_room_that_somebody_removed_while_it_had_frames_pending_is_taken_back(
    killed: Layout,
) -> None:
    """The commit names the one whose bytes it puts back, so that verify knows them."""
    pending = removed_with_frames_pending(killed)
    pending.flush()
    pending.close()
    assert bodies(killed) == [*BODIES, "4"]
    assert git(killed.root, "status", "--porcelain") == b""


@pytest.mark.parametrize("lost", [False, True])
def test_taking_a_room_back_is_replayed_like_any_commit(killed: Layout, *, lost: bool) -> None:
    pending = removed_with_frames_pending(killed)
    pending.commit()
    write(pending, say("5"))
    pending.commit()
    tip = main(killed)
    leave(pending)
    if lost:
        lose_newest_pack(killed)
    reboot(killed)
    again = Writer(killed)
    again.commit()
    assert main(killed) == tip
    again.close()
    assert bodies(killed) == [*BODIES, "4", "5"]


def test_an_open_knows_cheaply_whether_there_is_something_to_do(
    killed: Layout, monkeypatch: pytest.MonkeyPatch
) -> None:
    Writer(killed).close()
    monkeypatch.setattr(Objects, "_get", lambda *_: pytest.fail("asked for an object"))
    assert not needed(killed)
    state = read_state(killed)
    assert state is not None
    for wrong in (
        State(state.main, state.frame - 1, state.boot),
        State("12" * 20, state.frame, state.boot),
        State(state.main, state.frame, "another-boot"),
    ):
        write_state(killed, wrong)
        # A frame number alone is no reason when the journal has nothing newer.
        assert needed(killed) == (wrong.frame == state.frame)
    write_state(killed, state)
    os.link(killed.own_mark, killed.git / "index.lock")
    assert needed(killed)
    (killed.git / "index.lock").unlink()
    assert not needed(killed)
    forget_state(killed)
    assert needed(killed)
    write_state(killed, state)
    assert not needed(type(killed)(killed.root, writable=False))


def test_an_ancestor_is_told_from_a_stranger(killed: Layout) -> None:
    objects = Objects(killed)
    tree = git(killed.root, "rev-parse", "main^{tree}").decode().strip()
    tip, first = main(killed), git(killed.root, "rev-list", "main").decode().split()[-1]
    other = git(killed.root, "commit-tree", tree, "-m", "Root").decode().strip()
    merge = (
        git(killed.root, "commit-tree", tree, "-p", other, "-p", tip, "-m", "Merge")
        .decode()
        .strip()
    )
    assert descends(objects, tip, tip)
    assert descends(objects, tip, first)
    assert descends(objects, merge, first)
    assert descends(objects, merge, other)
    assert descends(objects, other, NO_OBJECT)
    assert not descends(objects, tip, other)
    assert not descends(objects, first, tip)
    objects.close()


def test_recovery_that_is_cut_itself_begins_again(killed: Layout) -> None:
    for point in ("recovery.replayed", "packs.placed", "checkpoint.files", "checkpoint.rotated"):
        reboot(killed)
        writer = Writer(killed)
        writer._background = Silent()
        failpoints.arm(point, kill)
        with pytest.raises(Killed):
            writer.checkpoint()
        failpoints.disarm()
        writer._release()
        writer._closed = True
    reboot(killed)
    assert files.boot_id()
    assert journal.generations(killed)
    recovered(killed)
