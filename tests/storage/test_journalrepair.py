"""A damaged journal is left without losing or hiding a frame, however often it is tried."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

import pytest

from agent_chatroom_ledger.errors import Busy, Corrupt
from agent_chatroom_ledger.storage import failpoints, journal
from agent_chatroom_ledger.storage.journalrepair import mend_journal
from agent_chatroom_ledger.storage.recovery import needed
from agent_chatroom_ledger.storage.repair import repair
from agent_chatroom_ledger.storage.state import forget_state
from agent_chatroom_ledger.storage.verify import verify
from agent_chatroom_ledger.storage.writer import Writer
from tests.storage.kills import Killed, kill, killed_after, leave
from tests.storage.processes import Silent
from tests.storage.samples import MESSAGES, bodies, git, say, write

if TYPE_CHECKING:
    from pathlib import Path

    from agent_chatroom_ledger.storage.layout import Layout

BODIES = ["0", "1", "2", "3", "4", "5"]
SEGMENT = f"{MESSAGES}/00/00/00000001.jsonl"
_MOMENT_SECONDS = 1.0


@pytest.fixture
def killed(layout: Layout) -> Layout:
    """A ledger whose writer was killed after six messages, two of them before a checkpoint."""
    return killed_after(layout, BODIES)


def newest(layout: Layout) -> Path:
    return journal.generation_path(layout, journal.generations(layout)[-1])


def rot(layout: Layout, line: int = 2) -> None:
    """Damage a line of the newest generation; 0 is its header."""
    lines = newest(layout).read_bytes().split(b"\n")
    lines[line] = lines[line][:9] + b"\0" + lines[line][10:]
    newest(layout).write_bytes(b"\n".join(lines))


def put_between(layout: Layout) -> None:
    """Damage the file between two frames: both can be read still."""
    lines = newest(layout).read_bytes().split(b"\n")
    newest(layout).write_bytes(b"\n".join([*lines[:2], bytes(20), *lines[2:]]))


def mended(layout: Layout) -> list[str]:
    done: list[str] = []
    mend_journal(layout, done)
    return done


def test_a_frame_that_was_lost_is_shown_from_main_by_who_opens_next(killed: Layout) -> None:
    """A kill right after leaves the rest of the repair undone: no checkpoint looks below main."""
    rot(killed)
    assert len(mended(killed)) == 1
    assert (killed.root / SEGMENT).read_bytes() == git(killed.root, "show", f"main:{SEGMENT}")
    assert git(killed.root, "status", "--porcelain") == b""
    writer = Writer(killed)
    write(writer, say("after"))
    writer.close()
    assert bodies(killed) == [*BODIES, "after"]
    assert verify(killed, full=True).ok
    assert not needed(killed)
    git(killed.root, "fsck", "--full", "--strict")


def test_what_it_stands_on_is_durable_before_the_generation_begins(killed: Layout) -> None:
    """Killed before it began, it is done again; the damaged one is still the newest."""
    rot(killed)
    damaged = newest(killed).read_bytes()
    failpoints.arm("journal.rotate", kill)
    with pytest.raises(Killed):
        mended(killed)
    failpoints.disarm()
    assert newest(killed).read_bytes() == damaged
    assert git(killed.root, "rev-parse", "refs/ledger/tip") == git(killed.root, "rev-parse", "main")
    assert (killed.root / SEGMENT).read_bytes() == git(killed.root, "show", f"main:{SEGMENT}")
    assert len(mended(killed)) == 1


@pytest.mark.parametrize("hint", ["kept", "lost"])
def test_where_every_frame_can_be_read_the_base_stays(killed: Layout, hint: str) -> None:
    """Then all is made again from it, whatever has become of main."""
    before = git(killed.root, "rev-parse", "main")
    (killed.git / "refs/heads/main").write_bytes(git(killed.root, "rev-parse", "refs/ledger/tip"))
    put_between(killed)
    if hint == "lost":
        forget_state(killed)
    mended(killed)
    data = newest(killed).read_bytes()
    scan = journal.scan(data, 0, None)
    assert scan.header is not None
    assert scan.header.base == git(killed.root, "rev-parse", "refs/ledger/tip").decode().strip()
    assert len(scan.frames) == 4
    repair(killed, verify(killed))
    assert before.strip() in git(killed.root, "rev-list", "main").split()
    assert bodies(killed) == BODIES
    assert verify(killed, full=True).ok


def test_a_damaged_header_is_left_too(killed: Layout) -> None:
    rot(killed, 0)
    mended(killed)
    Writer(killed).close()
    assert bodies(killed) == BODIES


def test_two_repairs_at_once_lose_nothing(killed: Layout) -> None:
    """What is written to the generation that the first has begun must not be replaced."""
    rot(killed)
    errors: list[BaseException] = []

    def second() -> None:
        try:
            mend_journal(killed, [])
            writer = Writer(killed, commit="group")
            writer._background = Silent()
            write(writer, say("acknowledged"))
            leave(writer)
        except BaseException as error:  # noqa: BLE001 - the test's own thread looks at it
            errors.append(error)

    other = threading.Thread(target=second)

    def meanwhile(_: str) -> None:
        # The first has looked at what is there, and has not begun its generation yet.
        failpoints.disarm()
        other.start()
        other.join(_MOMENT_SECONDS)  # it waits for a lock, and would not otherwise

    failpoints.arm("files.write", meanwhile)
    mend_journal(killed, [])
    other.join()
    assert not errors
    Writer(killed).close()
    assert bodies(killed) == [*BODIES, "acknowledged"]


def test_one_that_a_killed_repair_left_behind_is_left_as_well(killed: Layout) -> None:
    rot(killed)
    damaged = newest(killed)
    data = damaged.read_bytes()
    mended(killed)
    damaged.write_bytes(data)
    assert "journal_rot" in {issue.code for issue in verify(killed).issues}
    assert len(mended(killed)) == 1
    assert not damaged.exists()
    assert mended(killed) == []
    Writer(killed).close()
    assert bodies(killed) == BODIES


@pytest.mark.filterwarnings("ignore:The ledger in")
@pytest.mark.broken_on_purpose
def test_frames_that_nobody_has_are_named_and_nothing_is_changed(killed: Layout) -> None:
    (killed.git / "refs/heads/main").write_bytes(git(killed.root, "rev-parse", "refs/ledger/tip"))
    rot(killed)
    damaged = newest(killed).read_bytes()
    with pytest.raises(Corrupt, match="main lacks frames") as caught:
        mended(killed)
    assert caught.value.code == "journal_rot"
    assert newest(killed).read_bytes() == damaged


@pytest.mark.broken_on_purpose
def test_while_somebody_holds_the_lock_of_gits_index_nothing_is_changed(killed: Layout) -> None:
    lock = killed.git / "index.lock"
    lock.unlink()
    lock.write_bytes(b"an editor is open")
    rot(killed)
    damaged = newest(killed).read_bytes()
    with pytest.raises(Busy):
        mended(killed)
    assert newest(killed).read_bytes() == damaged
    lock.unlink()
    assert len(mended(killed)) == 1


def test_a_journal_that_is_whole_or_not_there_is_left_alone(killed: Layout) -> None:
    data = newest(killed).read_bytes()
    newest(killed).write_bytes(data + b"torn")
    assert mended(killed) == []
    assert newest(killed).read_bytes() == data + b"torn"
    kept = killed.journal.rename(killed.private / "kept")
    assert mended(killed) == []
    kept.rename(killed.journal)
