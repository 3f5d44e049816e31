"""A kill, and a full disk, anywhere in a placement: both rooms have all of it, or neither any."""

from __future__ import annotations

import signal
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
COUNT = 60  # more than a segment holds


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Give a ledger of two rooms, the first with what is going to be placed in the second."""
    path = tmp_path / "ledger"
    with Ledger.open(path, create=True) as ledger:
        source = ledger.create_room("Source")
        source.post_many({"author": "A", "body": f"message {n}"} for n in range(1, COUNT + 1))
        ledger.create_room("Target").post("B", "before")
    return path


def place(root: Path, mode: Mode, reason: str, at: Callable[[str], None]) -> None:
    """Place everything, in this process; what came of it is told by a file beside the ledger."""
    workload.without_background()
    with Ledger.open(root, commit=mode) as ledger:
        source, target = ledger.room("source"), ledger.room("target")
        failpoints.observe(at)
        try:
            source.place(f"1-{COUNT}", target, reason=reason)
            word = "told"
        except NotYetCommitted:
            word = "told"
        except LedgerError:
            word = "refused"
        (root.parent / f"{reason}.{word}").touch()
        try:
            ledger.close()
        except LedgerError:
            failpoints.disarm()


def moments(root: Path, mode: Mode) -> list[int]:
    """Return when to strike: the first time that each point is reached."""
    notes = root.parent / "points"

    def record() -> None:
        reached: list[str] = []
        place(root, mode, "plain", reached.append)
        notes.write_text("\n".join(reached), encoding="ascii")

    assert children.run(record) == 0
    points = notes.read_text(encoding="ascii").split("\n")
    first = {point: event for event, point in reversed(list(enumerate(points, 1)))}
    return sorted(first.values())


def struck(root: Path, mode: Mode, event: int, strike: Callable[[str], None]) -> int:
    """Place in a child and strike at one of its events; return how the child ended."""
    left = event

    def at(point: str) -> None:
        nonlocal left
        left -= 1
        if left == 0:
            strike(point)

    return children.run(lambda: place(root, mode, f"why {event}", at))


def check(root: Path, event: int) -> bool:
    """Check that the placement is there as a whole, or not at all; tell which."""
    reason = f"why {event}"
    rooms = assert_sound(root, [])
    copies = [
        m for m in rooms["rooms/target"] if m.placed_from and m.placed_from["reason"] == reason
    ]
    assert len(copies) in {0, COUNT}
    with Ledger.open(root) as ledger:
        source, target = ledger.room("source"), ledger.room("target")
        kept = [
            sum(
                m.kind == "messages.place" and (m.data or {})["reason"] == reason
                for m in room.reader().after(log="operations")
            )
            for room in (source, target)
        ]
        assert kept == [1 if copies else 0] * 2
        told = (root.parent / f"{reason}.told").exists()
        assert copies or not told, "an acknowledged placement is gone"
        # What is there is known: placing again completes it, and doubles nothing.
        again = source.place(f"1-{COUNT}", target, reason=reason)
        assert len(again.messages) == COUNT - len(copies)
    return bool(copies)


@pytest.mark.parametrize("mode", MODES)
def test_a_kill_anywhere_leaves_it_in_both_rooms_or_in_neither(root: Path, mode: Mode) -> None:
    outcomes = set()
    chosen = moments(root, mode)
    for event in chosen:
        assert struck(root, mode, event, lambda _: children.die()) == -signal.SIGKILL
        outcomes.add(check(root, event))
    assert len(chosen) > 15
    assert outcomes == {True, False}


def test_a_full_disk_anywhere_is_told_and_leaves_no_half(root: Path) -> None:
    for event in moments(root, "sync"):
        assert struck(root, "sync", event, full) == 0
        refused = (root.parent / f"why {event}.refused").exists()
        assert check(root, event) is not refused
