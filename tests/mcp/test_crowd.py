"""Agents who talk through MCP on one ledger and are killed at any moment.

Every message is handed over at least once, none is marked that was not, and no cursor skips one.
"""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import threading
import time
from typing import TYPE_CHECKING, Any

from agent_chatroom_ledger import Ledger
from tests.mcp.conftest import SECONDS_MAX, SOURCES, Piped, environment

if TYPE_CHECKING:
    from pathlib import Path

ROOM = "review"


class Mate(threading.Thread):
    """An agent whose server is killed under it: what it read from the pipe, it was given."""

    def __init__(self, root: Path, ledger: Ledger, names: list[str], me: int, count: int) -> None:
        super().__init__(name=names[me])
        self._root = root
        self._ledger = ledger
        self._others = [name for name in names if name != names[me]]
        self._random = random.Random(me)
        self._count = count
        self._said = 0
        self.server: Piped | None = None
        self.given: dict[str, dict[str, Any]] = {}
        self.deaths = 0
        self.quiet = threading.Event()
        self.all_said = threading.Event()
        self.trouble: BaseException | None = None

    def run(self) -> None:
        try:
            while not self._lives():
                self.deaths += 1
                self.check()
        except BaseException as error:  # noqa: BLE001 - the test raises it
            self.trouble = error
        finally:
            self.all_said.set()

    def _lives(self) -> bool:
        """Talk through one server; False when it died."""
        with Piped(self._root, self.name, of_its_own=True) as server:
            self.server = server
            try:
                server.shake()
                while True:
                    if self._said < self._count:
                        self._say(server)
                        continue
                    self.all_said.set()
                    if not self._take(server) and self.quiet.is_set():
                        return True
            except (EOFError, BrokenPipeError):
                return False

    def _say(self, server: Piped) -> None:
        what = {"body": f"{self.name} says {self._said}", "key": f"{self.name}-{self._said}"}
        if self._random.random() < 0.5:
            server.call("rooms_post", room=ROOM, **what)
        else:
            server.call("rooms_dm", to=[self._others[self._said % len(self._others)]], **what)
        self._said += 1
        self._take(server)

    def _take(self, server: Piped) -> bool:
        taken = server.call("rooms_inbox", wait_seconds=self._random.choice([0, 0.1, 0.3]))
        for message in taken["messages"]:
            self.given[message["id"]] = message
        for message in taken["messages"][-1:]:
            server.call("rooms_seen", room=message["room"], through=message["ref"])
        return bool(taken["messages"])

    def check(self) -> None:
        """Compare what the ledger says of us with what we were given, to the last whole line."""
        marked = {one.record for one in self._ledger.receipts.of_name(self.name, {}, 10_000)}
        assert not marked - self.given.keys(), "marked as handed over, and it was not"
        position = self._ledger.consumer(self.name).position(ROOM)
        for message in self._ledger.room(ROOM).messages():
            if message.n <= position.get(message.origin, 0) and message.author != self.name:
                assert message.id in self.given, "the cursor has skipped it"


def expected(ledger: Ledger, name: str) -> set[str]:
    """Return the ids of all that a name was to be given."""
    found = set()
    for summary in ledger.rooms():
        for message in ledger.room(summary.id).messages():
            member = name in summary.members or name in message.to
            if member and message.author != name and message.kind == "message":
                found.add(message.id)
    return found


def test_ten_agents_whose_servers_are_killed_miss_nothing(root: Path) -> None:
    names = [f"agent-{k}" for k in range(10)]
    dice = random.Random(10)
    with Ledger.open(root) as ledger:
        ledger.create_room("Review", members=names)
        mates = [Mate(root, ledger, names, me, count=6) for me in range(len(names))]
        for mate in mates:
            mate.start()
        kills = 0
        end = time.monotonic() + SECONDS_MAX
        while kills < 20 and time.monotonic() < end:
            time.sleep(dice.uniform(0.1, 1.0))
            server = dice.choice(mates).server
            if server is not None and server.process.poll() is None:
                server.kill()
                kills += 1
        for mate in mates:
            mate.all_said.wait()
        for mate in mates:
            mate.quiet.set()
        for mate in mates:
            mate.join()
            if mate.trouble is not None:
                raise mate.trouble
        assert sum(mate.deaths for mate in mates) > 0
        for mate in mates:
            mate.check()
            assert set(mate.given) == expected(ledger, mate.name)
        said = {f"{name}-{k}" for name in names for k in range(6)}
        assert set.union(*(expected(ledger, name) for name in names)) == said


def test_two_agents_who_are_killed_themselves_miss_nothing(root: Path, tmp_path: Path) -> None:
    names, count = ["ana", "ben"], 8
    stop = tmp_path / "stop"
    logs = {name: tmp_path / f"{name}.log" for name in names}
    dice = random.Random(2)
    where = os.pathsep.join([str(SOURCES), str(SOURCES.parent)])

    def start(name: str, other: str) -> subprocess.Popen[bytes]:
        words = [str(root), name, other, str(count), str(logs[name]), str(stop)]
        return subprocess.Popen(
            [sys.executable, "-m", "tests.mcp.mate", *words],
            env=environment(root, PYTHONPATH=where),
            stderr=subprocess.DEVNULL,
        )

    def given(name: str) -> set[str]:
        lines = logs[name].read_text().splitlines() if logs[name].exists() else []
        return {json.loads(line) for line in lines}

    with Ledger.open(root) as ledger:
        ledger.create_room("Review", members=names)
        running = {name: start(name, names[1 - k]) for k, name in enumerate(names)}
        for _ in range(5):
            time.sleep(dice.uniform(2.0, 5.0))
            victim = dice.choice(names)
            running[victim].kill()
            running[victim].wait()
            running[victim] = start(victim, names[1 - names.index(victim)])
        stop.touch()
        assert [process.wait(2 * SECONDS_MAX) for process in running.values()] == [0, 0]
        for name in names:
            # What left the server for a client that died before it had read it: handed over and
            # not seen, which is what a new session of the client is offered again.
            again = ledger.agent(name).inbox(200, again=True, peek=True)
            offered = {item.message.id for item in again}
            assert given(name) | offered == expected(ledger, name)
            for summary in ledger.rooms():
                room = ledger.room(summary.id)
                position = ledger.consumer(name).position(room)
                reached = [m for m in room.messages() if m.n <= position.get(m.origin, 0)]
                assert {m.id for m in reached if m.author != name} <= given(name) | offered
