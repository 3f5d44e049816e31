"""The holder of the commit lock: everybody's frames, in order, in batches, whoever moves main."""

from __future__ import annotations

import errno
from typing import TYPE_CHECKING

import pytest

from agent_chatroom_ledger import limits
from agent_chatroom_ledger.errors import Busy, Conflict, Corrupt, NotYetCommitted
from agent_chatroom_ledger.storage import (
    committer,
    failpoints,
    foreign,
    journal,
    packlist,
    packmerge,
)
from agent_chatroom_ledger.storage.state import read_state
from agent_chatroom_ledger.storage.writer import Writer
from tests.storage.processes import Silent
from tests.storage.samples import MESSAGES, bodies, git, say, write, write_room

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from agent_chatroom_ledger.storage.layout import Layout


@pytest.fixture
def quiet(layout: Layout) -> Iterator[Writer]:
    """A writer with a room, whose checkpoints are those that the test makes."""
    made = Writer(layout)
    made._background = Silent()
    write_room(made)
    made.checkpoint()
    yield made
    made.close()


@pytest.fixture
def pending(layout: Layout, quiet: Writer) -> Iterator[Writer]:
    """A writer whose frames nobody commits."""
    del quiet
    made = Writer(layout, commit="group")
    made._background = Silent()
    yield made
    made.close()


def main(layout: Layout) -> str:
    return git(layout.root, "rev-parse", "main").decode().strip()


def foreign_commit(layout: Layout, name: str = "notes", parent: str = "main") -> str:
    """Let git make a commit of a file of the user's, without touching work tree and index."""
    root = layout.root
    blob = git(root, "hash-object", "-w", "--stdin", given=name).decode().strip()
    listed = git(root, "ls-tree", parent).decode() + f"100644 blob {blob}\t{name}\n"
    tree = git(root, "mktree", given=listed).decode().strip()
    made = git(root, "commit-tree", tree, "-p", parent, "-m", name).decode().strip()
    git(root, "update-ref", "refs/heads/main", made)
    return made


def take_over(writer: Writer, layout: Layout) -> None:
    """Let work tree and index have the user's files too, as his own `git commit` would."""
    writer.checkpoint()
    git(layout.root, "checkout", "-q", "main", "--", ".")


def test_whoever_commits_commits_everybodys_frames_in_their_order(
    quiet: Writer, pending: Writer, layout: Layout
) -> None:
    """No effect is committed before its cause (invariant 10)."""
    write(pending, say("one"), say("two"))
    before = main(layout)
    write(quiet, say("three"))
    assert bodies(layout) == ["one", "two", "three"]
    subjects = git(layout.root, "log", "--reverse", "--format=%s", f"{before}..main").decode()
    assert [s.split("#")[1][0] for s in subjects.splitlines()] == ["1", "2", "3"]
    pending.commit()
    assert read_state(layout) == quiet.committer._state.read()


def test_the_hint_says_what_is_committed(quiet: Writer, pending: Writer, layout: Layout) -> None:
    write(pending, say("one"))
    last = pending._intake.last_frame
    assert not pending.committer.done(last)
    assert pending.committer.hinted() == last - 1
    quiet.commit()
    assert pending.committer.done(last)
    assert pending.committer.hinted() == last
    state = read_state(layout)
    assert state is not None
    assert (state.main, state.frame) == (main(layout), last)


def test_many_frames_are_committed_in_batches_of_one_pack_each(
    pending: Writer, layout: Layout, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "BATCH_FRAMES_MAX", 3)
    before = len(packlist.read(layout))
    write(pending, *(say(f"{n}") for n in range(8)))
    pending.commit()
    assert [pack.commits for pack in packlist.read(layout)[before:]] == [3, 3, 2]
    assert bodies(layout) == [f"{n}" for n in range(8)]


@pytest.mark.parametrize("point", ["commit.index_locked", "commit.built", "commit.stored"])
def test_a_lost_swap_builds_again_on_what_is_there(
    quiet: Writer, layout: Layout, point: str
) -> None:
    """Somebody moved main by hand while we were building; both stay."""
    made: list[str] = []
    before = set(layout.packs.glob("*.pack"))

    def meanwhile(_: str) -> None:
        failpoints.disarm()
        made.append(foreign_commit(layout))

    failpoints.arm(point, meanwhile)
    write(quiet, say("one"), say("two"))
    assert bodies(layout) == ["one", "two"]
    assert made[0] in git(layout.root, "rev-list", "main").decode().split()
    assert git(layout.root, "show", "main:notes") == b"notes"
    git(layout.root, "fsck", "--full", "--strict")
    assert set(layout.packs.glob("*.pack")) - before == {
        layout.packs / f"pack-{pack.name}.pack" for pack in packlist.read(layout)[-1:]
    }
    assert not list(layout.packs.glob("*.keep"))
    take_over(quiet, layout)


def test_whoever_loses_every_race_says_so_and_the_record_is_safe(
    quiet: Writer, layout: Layout, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(committer, "_SWAPS_MAX", 2)
    count = [0]

    def meanwhile(_: str) -> None:
        count[0] += 1
        foreign_commit(layout, f"notes{count[0]}")

    failpoints.arm("commit.stored", meanwhile)
    with pytest.raises(NotYetCommitted) as caught:
        write(quiet, say("one"))
    assert isinstance(caught.value.__cause__, Busy)
    assert caught.value.__cause__.code == "lost_races"
    failpoints.disarm()
    write(quiet, say("two"))
    assert bodies(layout) == ["one", "two"]
    take_over(quiet, layout)


def test_nothing_is_built_on_a_foreign_tip_before_it_is_durable(
    quiet: Writer, layout: Layout
) -> None:
    """A replay after a power cut has to begin on it; readers of the journal are told."""
    write(quiet, say("one"))
    before = foreign.read(layout)
    tip = foreign_commit(layout)
    steps: list[str] = []
    failpoints.observe(steps.append)
    write(quiet, say("two"))
    assert steps.index("checkpoint.done") < steps.index("commit.moved")
    follower = journal.Follower.newest(layout)
    follower.new_frames()
    assert follower.header is not None
    assert follower.header.base == tip
    assert foreign.read(layout) != before
    assert bodies(layout) == ["one", "two"]
    take_over(quiet, layout)


@pytest.mark.filterwarnings("ignore:The ledger in")
@pytest.mark.parametrize(
    ("act", "code"),
    [
        (lambda r: git(r, "switch", "-q", "--detach"), "not_on_main"),
        (lambda r: git(r, "switch", "-q", "-c", "other"), "not_on_main"),
        (lambda r: git(r, "reset", "-q", "--hard", "HEAD~2"), "rewound"),
    ],
    ids=["detached", "another branch", "rewound"],
)
@pytest.mark.broken_on_purpose
def test_nothing_is_written_where_numbers_would_be_given_twice(
    quiet: Writer, layout: Layout, act: Callable[..., object], code: str
) -> None:
    write(quiet, say("one"), say("two"))
    quiet.checkpoint()
    act(layout.root)
    frames = list(journal.read_frames(layout))
    for _ in range(2):
        with pytest.raises(Conflict) as caught:
            write(quiet, say("three"))
        assert caught.value.code == code
        assert not isinstance(caught.value, NotYetCommitted)
    assert list(journal.read_frames(layout)) == frames
    git(layout.root, "switch", "-q", "main")
    git(layout.root, "merge", "-q", "--ff-only", "refs/ledger/tip")
    assert write(quiet, say("three"))[0].record.n == 3


def test_a_log_that_a_foreign_commit_changed_is_not_built_on(quiet: Writer, layout: Layout) -> None:
    write(quiet, say("one"))
    quiet.checkpoint()
    path = layout.root / MESSAGES / "00/00/00000001.jsonl"
    path.write_bytes(path.read_bytes().replace(b"one", b"two"))
    git(layout.root, "commit", "-q", "-am", "Rewrite history")
    with pytest.raises(Corrupt) as caught:
        write(quiet, say("two"))
    assert caught.value.code == "log_changed"
    git(layout.root, "reset", "-q", "--hard", "refs/ledger/tip")
    write(quiet, say("two"))
    assert bodies(layout) == ["one", "two"]


def test_a_failure_while_building_costs_one_attempt(quiet: Writer, layout: Layout) -> None:
    write(quiet, say("one"))

    def full(_: str) -> None:
        raise OSError(errno.ENOSPC, "full")

    for point in ("packs.pack_written", "packs.kept", "refs.locked", "state.write"):
        failpoints.arm(point, full)
        with pytest.raises(NotYetCommitted):
            write(quiet, say(point))
        failpoints.disarm()
    write(quiet, say("last"))
    assert len(bodies(layout)) == 6
    git(layout.root, "fsck", "--full", "--strict")


def test_a_checkpoint_comes_after_a_number_of_frames(
    quiet: Writer, layout: Layout, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "CHECKPOINT_FRAMES_MAX", 4)
    before = journal.generations(layout)[-1]
    for n in range(3):
        write(quiet, say(f"{n}"))
    assert journal.generations(layout)[-1] == before
    write(quiet, say("3"))
    assert journal.generations(layout)[-1] > before


def test_a_generation_ends_although_others_write_faster_than_their_frames_are_committed(
    quiet: Writer, pending: Writer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a generation holds is in everybody's memory: what comes meanwhile goes to the next."""
    monkeypatch.setattr(limits, "CHECKPOINT_FRAMES_MAX", 12)
    sizes: list[int] = []

    def others_write(_: str) -> None:
        write(pending, *(say("") for _ in range(6)))

    def measure(_: str) -> None:
        sizes.append(len(quiet.committer.intake.frames))

    failpoints.arm("commit.remembered", others_write)
    failpoints.arm("checkpoint.durable", measure)
    for _ in range(10):
        write(quiet, say(""))
    failpoints.disarm()
    # Twelve are due: those that were committed together, those before, and those that came since.
    assert len(sizes) > 1
    assert max(sizes) <= 24


def test_what_a_commit_does_not_depend_on_fails_alone(
    quiet: Writer, layout: Layout, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A merge of packs or a checkpoint that found no room is made another time."""

    def full(_: str) -> None:
        raise OSError(errno.ENOSPC, "full")

    monkeypatch.setattr(packmerge, "SINGLES_MAX", 2)
    failpoints.arm("packmerge.built", full)
    for n in range(3):
        write(quiet, say(f"{n}"))
    assert isinstance(quiet.committer.problem, OSError)
    failpoints.disarm()
    for n in range(3, 6):
        write(quiet, say(f"{n}"))
    assert quiet.committer.problem is None
    assert bodies(layout) == [f"{n}" for n in range(6)]
    git(layout.root, "fsck", "--full", "--strict")


def test_packs_stay_few(quiet: Writer, layout: Layout) -> None:
    for n in range(packmerge.SINGLES_MAX + 5):
        write(quiet, say(f"{n}"))
    assert len(list(layout.packs.glob("*.pack"))) <= packmerge.SINGLES_MAX
    assert len(bodies(layout)) == packmerge.SINGLES_MAX + 5
    git(layout.root, "fsck", "--full", "--strict")
