"""A kill, and a full disk, anywhere in joining and leaving: operation and event, or neither."""

from __future__ import annotations

import signal
from collections import Counter
from typing import TYPE_CHECKING

import pytest

from agent_chatroom_ledger import Ledger
from agent_chatroom_ledger.errors import LedgerError, NotYetCommitted
from agent_chatroom_ledger.storage import failpoints
from tests.faults import children, workload
from tests.faults.life import full
from tests.faults.soundness import assert_sound

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.faults.workload import Mode

MODES: tuple[Mode, ...] = ("sync", "group")


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Give a ledger with a room."""
    path = tmp_path / "ledger"
    with Ledger.open(path, create=True) as ledger:
        ledger.create_room("Review", members=["Ana"]).post("Ana", "hi")
    return path


def come_and_go(root: Path, mode: Mode, name: str, at: Callable[[str], None]) -> None:
    """Join, be written to, and leave; a file beside the ledger tells how far it came."""
    workload.without_background()

    def told(word: str) -> None:
        (root.parent / f"{name}.{word}").touch()

    with Ledger.open(root, commit=mode) as ledger:
        agent = ledger.agent(name)
        failpoints.observe(at)
        try:
            agent.join("review")
            told("joined")
            ledger.room("review").post("Ana", f"welcome, {name}")
            agent.leave("review")
            told("left")
        except NotYetCommitted:
            pass
        except LedgerError:
            told("refused")
        try:
            ledger.close()
        except LedgerError:
            failpoints.disarm()


def moments(root: Path, mode: Mode) -> list[tuple[str, int]]:
    """Return when to strike: each point, at its first and second time."""
    notes = root.parent / "points"

    def record() -> None:
        reached: list[str] = []
        come_and_go(root, mode, "Nobody", reached.append)
        notes.write_text("\n".join(reached), encoding="ascii")

    assert children.run(record) == 0
    counts = Counter(notes.read_text(encoding="ascii").split("\n"))
    return [(point, time) for point in counts for time in (1, 2) if counts[point] >= time]


def struck(
    root: Path, mode: Mode, name: str, moment: tuple[str, int], strike: Callable[[str], None]
) -> int:
    """Come and go in a child and strike at a moment; return how the child ended."""
    left = moment[1]

    def at(point: str) -> None:
        nonlocal left
        if point == moment[0]:
            left -= 1
            if left == 0:
                strike(point)

    return children.run(lambda: come_and_go(root, mode, name, at))


def check(root: Path, name: str) -> int:
    """Check that events and operations tell the same; return how many there are of this name."""
    said = assert_sound(root, [])["rooms/review"]
    events = [m for m in said if m.kind == "event" and m.author == name]
    assert [m.body for m in events] == [f"{name} joined the room", f"{name} left the room"][
        : len(events)
    ]
    with Ledger.open(root) as ledger:
        room = ledger.room("review")
        operations = [m.id for m in room.reader().after(log="operations") if m.author == name]
        assert [m.cause for m in events] == operations
        assert (name in room.members) is (len(events) == 1)
        joined, left = ((root.parent / f"{name}.{word}").exists() for word in ("joined", "left"))
        assert len(events) >= joined + left, "an acknowledged event is gone"
        agent = ledger.agent(name)
        # Whatever became of it: leaving again leaves nothing behind.
        agent.leave(room)
        assert agent.inbox(peek=True) == []
        assert name not in room.members
    return len(events)


@pytest.mark.parametrize("mode", MODES)
def test_a_kill_anywhere_leaves_operation_and_event_or_neither(root: Path, mode: Mode) -> None:
    outcomes, killed = set(), 0
    for number, moment in enumerate(moments(root, mode)):
        # A later life may come by fewer moments than the first one, which had more to do.
        status = struck(root, mode, f"A{number}", moment, lambda _: children.die())
        assert status in {0, -signal.SIGKILL}
        killed += status != 0
        outcomes.add(check(root, f"A{number}"))
    assert killed > 20
    assert outcomes == {0, 1, 2}


def test_a_full_disk_anywhere_is_told_and_leaves_no_half(root: Path) -> None:
    for number, moment in enumerate(moments(root, "sync")):
        if moment[0].startswith("receipts."):
            continue  # SQLite writes there, and has words of its own for a full disk
        assert struck(root, "sync", f"A{number}", moment, full) == 0
        check(root, f"A{number}")
