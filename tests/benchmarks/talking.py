"""Agents: writing to somebody, and many who create one room at once."""

from __future__ import annotations

import json
import os
import time
import uuid
from typing import TYPE_CHECKING

from tests.benchmarks import ledgers
from tests.benchmarks.measure import BODY, Row, Scale, each, interleaved, row
from tests.racing import race

if TYPE_CHECKING:
    from pathlib import Path

ROUNDS = 5
TITLE = "Where we meet"


class Folders:
    """The scheme of earlier rooms: a JSON file for each message and recipient, moved into place.

    With ``sync`` file and directory are on stable storage when the call returns, as ours are.
    """

    def __init__(self, root: Path, queued: int, *, sync: bool) -> None:
        self._inbox = root / "inbox" / "Ben"
        self._inbox.mkdir(parents=True)
        self._sync = False
        each(queued, self.send)
        self._sync = sync

    def send(self) -> None:
        name = str(uuid.uuid4())
        message = {"id": name, "from": "Ana", "to": "Ben", "body": BODY, "queuedAt": time.time()}
        temporary = self._inbox / f".{name}"
        with temporary.open("w", encoding="utf-8") as file:
            json.dump(message, file)
            if self._sync:
                file.flush()
                os.fsync(file.fileno())
        temporary.rename(self._inbox / f"{name}.json")
        if self._sync:
            directory = os.open(self._inbox, os.O_RDONLY)
            os.fsync(directory)
            os.close(directory)


def dm(scale: Scale) -> list[Row]:
    """`dm` beside a JSON file per message and recipient, with few and with many queued."""
    rows = []
    count = scale.size(200, 50)
    for queued in (10, scale.size(1_000, 100)):
        synced = Folders(scale.fresh("synced"), queued, sync=True)
        plain = Folders(scale.fresh("plain"), queued, sync=False)
        with ledgers.opened(scale.fresh("dm")) as ledger:
            ana = ledger.agent("Ana")
            room = ana.dm(["Ben"], BODY).room
            room.post_many([{"author": "Ana", "to": ["Ben"], "body": BODY}] * (queued - 1))
            ledger.flush()
            figures = interleaved(
                ROUNDS,
                {
                    "dm": lambda ana=ana: each(count, lambda: ana.dm(["Ben"], BODY)),
                    "a file each, synced": lambda synced=synced: each(count, synced.send),
                    "a file each": lambda plain=plain: each(count, plain.send),
                },
            )
        rows += [
            row(
                "dm", f"dm, durable and committed, {queued:,} queued", figures,
                ours="dm", peer=peer, better="less", must=None,
            )
            for peer in ("a file each, synced", "a file each")
        ]  # fmt: skip
    return rows


def meeting(scale: Scale) -> list[Row]:
    """Processes that all create one title at once, beside as many that make one directory."""
    racers = scale.size(50, 10)
    figures = interleaved(
        ROUNDS,
        {
            "create": lambda: _created(scale.fresh("meeting"), racers),
            "mkdir": lambda: _directories(scale.fresh("directories"), racers),
        },
    )
    return [
        row(
            "meeting", f"{racers} processes create one title: one makes it, all are members",
            figures, ours="create", peer="mkdir", better="less", must=None,
        )
    ]  # fmt: skip


def _created(root: Path, racers: int) -> float:
    """Return the seconds until all racers are members of one room."""
    from agent_chatroom_ledger import Ledger

    Ledger.open(root, create=True).close()

    def create(number: int) -> bool:
        with Ledger.open(root) as ledger:
            return ledger.agent(f"A{number}").create(TITLE).created

    begin = time.perf_counter()
    made = race(racers, create)
    spent = time.perf_counter() - begin
    assert made.count(True) == 1
    with Ledger.open(root) as ledger:
        (room,) = ledger.rooms()
        assert len(room.members) == racers
    return spent


def _directories(root: Path, racers: int) -> float:
    """Return the seconds until all racers have a room's directory, and one line each in its log."""
    root.mkdir()

    def create(number: int) -> bool:
        room = root / TITLE
        made = True
        try:
            room.mkdir()
        except FileExistsError:
            made = False
        with (room / "log.jsonl").open("a", encoding="utf-8") as log:
            log.write(json.dumps({"kind": "event", "author": f"A{number}"}) + "\n")
        return made

    begin = time.perf_counter()
    assert race(racers, create).count(True) == 1
    return time.perf_counter() - begin


GROUPS = {"dm": dm, "meeting": meeting}
