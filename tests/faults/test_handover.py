"""kill -9 of those who hand messages over: none lost, none marked that was not given (invariant 6).

A door writes what it was given, flushes it, and confirms. Here it writes to a file, one line for
each message, which stands for what a client has really seen.
"""

from __future__ import annotations

import json
import os
import signal
import time
from collections import Counter
from functools import partial
from random import Random
from typing import TYPE_CHECKING, Any

import pytest

from agent_chatroom_ledger import Ledger
from agent_chatroom_ledger.agents import Agent
from agent_chatroom_ledger.domain.attendance import attendance
from agent_chatroom_ledger.domain.delivery import is_for
from agent_chatroom_ledger.errors import Busy
from agent_chatroom_ledger.inbox import take
from agent_chatroom_ledger.storage import failpoints
from agent_chatroom_ledger.storage.reading import OPERATIONS
from tests.faults import children
from tests.faults.soundness import assert_sound

if TYPE_CHECKING:
    from pathlib import Path

    from agent_chatroom_ledger.inbox import Handover

SEED = 20261130
POINTS = ("receipts.made", "receipts.named", "receipts.written", "receipts.committed")


class Door:
    """Gives messages to a client, and knows what the client has seen."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def give(self, handover: Handover) -> None:
        """Write what is handed over, every line of it, before anything is confirmed."""
        lines = [
            json.dumps([item.room.id, item.message.origin, item.message.n, item.message.id])
            for item in handover
        ]
        with self.path.open("a", encoding="ascii") as file:
            # The line end comes first: who was killed here before has left a torn line.
            file.write("".join(f"\n{line}\n" for line in lines))

    def given(self) -> Counter[tuple[Any, ...]]:
        """Return every message that was given, and how often; a torn last line was not."""
        if not self.path.exists():
            return Counter()
        lines = self.path.read_text(encoding="ascii").split("\n")
        return Counter(tuple(json.loads(line)) for line in lines if line.endswith("]"))


def meant_for(ledger: Ledger, name: str) -> list[tuple[Any, ...]]:
    """Return what is for a name, from all messages and all operations."""
    found = []
    for summary in ledger.rooms():
        room = ledger.room(summary.path)
        reader = room.reader()
        intervals = attendance(reader.after(log=OPERATIONS))
        found += [
            (room.id, message.origin, message.n, message.id)
            for message in reader.after()
            if is_for(message, name, intervals)
        ]
    return found


def marked(ledger: Ledger, name: str) -> set[tuple[Any, ...]]:
    """Return what the receipts say that a name was given."""
    found = ledger.receipts.of_name(name, {}, 1_000_000)
    return {(receipt.room, receipt.origin, receipt.n, receipt.record) for receipt in found}


def check(ledger: Ledger, name: str, door: Door) -> None:
    """Nothing is marked that was not given, and no place or cursor is past what was not given."""
    given = door.given()
    assert marked(ledger, name) <= set(given), f"{name} was marked with what it never got"
    places = ledger.receipts.places(name)
    cursor = ledger.consumer(name).cursor().positions()
    for room, origin, n, record in meant_for(ledger, name):
        reached = max(places.get((room, origin), 0), cursor.get(room, {}).get(origin, 0))
        assert n > reached or (room, origin, n, record) in given, f"{name}: {n} was skipped"


def drain(ledger: Ledger, name: str, door: Door) -> None:
    while True:
        with take(ledger, name) as handover:
            door.give(handover)
            handover.confirm()
            if not handover.more:
                return


@pytest.mark.parametrize("point", POINTS)
@pytest.mark.parametrize("first", [True, False])
def test_a_kill_between_two_steps_hands_over_again_and_loses_nothing(
    tmp_path: Path, point: str, *, first: bool
) -> None:
    root, door = tmp_path / "ledger", Door(tmp_path / "given")
    with Ledger.open(root, create=True) as ledger:
        room = ledger.create_room("Review", members=["Ana", "Ben"])
        room.post_many([{"author": "Ana", "body": str(n)} for n in range(12)])
        if not first:
            with take(ledger, "Ben", max=2) as handover:
                door.give(handover)
                handover.confirm()

    def live() -> None:
        failpoints.arm(point, lambda _: children.die())
        with Ledger.open(root) as mine, take(mine, "Ben") as handover:
            door.give(handover)
            handover.confirm()

    status = children.run(live)
    assert status == (0 if not first and point in POINTS[:2] else -signal.SIGKILL)
    with Ledger.open(root) as ledger:
        check(ledger, "Ben", door)
        drain(ledger, "Ben", door)
        check(ledger, "Ben", door)
        assert set(door.given()) == set(meant_for(ledger, "Ben")) == marked(ledger, "Ben")
        # What was not noted came again, and only that.
        again = sum(count - 1 for count in door.given().values())
        assert again == (5 if status and point != "receipts.committed" else 0)


def test_a_kill_while_a_door_writes_marks_nothing(tmp_path: Path) -> None:
    root = tmp_path / "ledger"
    with Ledger.open(root, create=True) as ledger:
        room = ledger.create_room("Review", members=["Ben"])
        room.post("Ana", "hello")

    def die_in_the_middle() -> None:
        with Ledger.open(root) as mine, take(mine, "Ben"):
            children.die()

    assert children.run(die_in_the_middle) == -signal.SIGKILL
    with Ledger.open(root) as ledger:
        assert marked(ledger, "Ben") == set()
        # The lock ended with its holder.
        with take(ledger, "Ben", lock_seconds=0) as handover:
            assert len(handover) == 1


def keep_talking(root: Path, name: str, names: list[str], door: Door, seed: int) -> None:
    """Talk, take and acknowledge as an agent does, until killed."""
    random = Random(seed)
    with Ledger.open(root, commit=random.choice(["sync", "group"])) as ledger:
        agent = Agent(ledger, name, session=f"{name}-{seed}")
        while True:
            choice = random.random()
            if choice < 0.3:
                agent.post(f"Room {random.randrange(3)}", f"{name} {random.random()}")
            elif choice < 0.45:
                others = [other for other in names if other != name]
                count = random.randint(1, min(3, len(others)))
                agent.dm(random.sample(others, count), "a word")
            elif choice < 0.5:
                room = f"Room {random.randrange(3)}"
                random.choice([agent.join, partial(agent.leave, keep_queued=True)])(room)
            else:
                try:
                    handover = agent.take(
                        random.randint(1, 8), addressed_only=random.random() < 0.3
                    )
                except Busy:
                    continue
                with handover:
                    door.give(handover)
                    if random.random() < 0.9:
                        handover.confirm()
                    items = list(handover)
                if items and random.random() < 0.3:
                    acknowledge(ledger, agent, items[-1].room.path, door)


def acknowledge(ledger: Ledger, agent: Agent, path: str, door: Door) -> None:
    """Move the cursor in a room as far as everything for the agent was given."""
    room = ledger.room(path)
    given, reader = door.given(), room.reader()
    intervals = attendance(reader.after(log=OPERATIONS))
    through = None
    for message in reader.after():
        key = (room.id, message.origin, message.n, message.id)
        if is_for(message, agent.name, intervals) and key not in given:
            break
        through = message
    if through is not None:
        agent.seen(room, through)


@pytest.mark.parametrize(("agents", "share"), [(2, 3), (10, 2)])
def test_agents_that_are_killed_at_any_moment_miss_nothing(
    tmp_path: Path, kills: int, agents: int, share: int
) -> None:
    """Two, then ten of them on one ledger; each comes back under its name."""
    random, root = Random(SEED + agents), tmp_path / "ledger"
    names = [f"Agent {number}" for number in range(agents)]
    doors = {name: Door(tmp_path / f"{name}.given") for name in names}
    with Ledger.open(root, create=True) as ledger:
        for number in range(3):
            ledger.create_room(f"Room {number}", members=names[number % 2 :: 2])
    running: dict[str, int] = {}

    def start(name: str) -> None:
        seed = random.randrange(1 << 30)
        talk = partial(keep_talking, root, name, names, doors[name], seed)
        running[name] = children.fork(talk)

    for name in names:
        start(name)
    rounds = max(10, kills // (7 * share))
    for _ in range(rounds):
        time.sleep(random.uniform(0.05, 0.35))
        name = random.choice(names)
        os.kill(running[name], signal.SIGKILL)
        assert children.end_of(running[name]) == -signal.SIGKILL, "it failed before it was killed"
        start(name)
    for name, child in running.items():
        os.kill(child, signal.SIGKILL)
        assert children.end_of(child) == -signal.SIGKILL, f"{name} failed before it was killed"
    children.wait_for_committers(root)
    with Ledger.open(root) as ledger:
        for name, door in doors.items():
            check(ledger, name, door)
            drain(ledger, name, door)
            check(ledger, name, door)
            assert set(door.given()) == set(meant_for(ledger, name))
            assert marked(ledger, name) == set(door.given())
        assert sum(sum(door.given().values()) for door in doors.values()) > rounds
    assert_sound(root, {})


def test_doors_of_one_name_at_once_hand_nothing_over_twice(tmp_path: Path) -> None:
    """Four processes take for one name while another one posts; nobody is killed."""
    root = tmp_path / "ledger"
    with Ledger.open(root, create=True) as ledger:
        ledger.create_room("Review", members=["Ana", "Ben"])
    total = 120

    def post() -> None:
        with Ledger.open(root, commit="group") as mine:
            room = mine.room("review")
            for number in range(total):
                room.post("Ana", str(number))

    def serve(path: Path) -> None:
        door = Door(path)
        with Ledger.open(root) as mine:
            while not (tmp_path / "enough").exists():
                with take(mine, "Ben", max=3) as handover:
                    door.give(handover)
                    handover.confirm()

    paths = [tmp_path / f"{number}.given" for number in range(4)]
    serving = [children.fork(partial(serve, path)) for path in paths]
    assert children.run(post) == 0
    with Ledger.open(root, read_only=True) as reader:
        deadline = time.monotonic() + 120
        while len(marked(reader, "Ben")) < total:
            assert time.monotonic() < deadline
            time.sleep(0.05)
    (tmp_path / "enough").touch()
    assert [children.end_of(child) for child in serving] == [0] * 4
    given: Counter[tuple[Any, ...]] = Counter()
    for path in paths:
        given += Door(path).given()
    assert len(given) == total
    assert set(given.values()) == {1}
