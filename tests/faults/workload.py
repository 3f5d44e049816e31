"""What the processes of fault tests do: seeded lives of a ledger that use every kind of write."""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING, Literal

from agent_chatroom_ledger import Ledger
from agent_chatroom_ledger.storage import background, exchange, packmerge
from tests.faults.soundness import Notebook

if TYPE_CHECKING:
    from pathlib import Path

    from agent_chatroom_ledger.room import Room
    from agent_chatroom_ledger.storage.writer import Writer

Mode = Literal["sync", "group"]
BODIES = ("short", "two\nlines", "longer words " * 40, "día ☀ \u2028 end", "x" * 5000)


class Silent:
    """A background that does nothing, so that a run reaches the same points every time."""

    def wake(self) -> None:
        pass

    def stop(self) -> None:
        pass


def without_background() -> None:
    """Let nothing happen in this process but what is called."""

    def start(_: Writer) -> Silent:
        return Silent()

    background.start = start


def merge_early() -> None:
    """Let a handful of packs go through every stage of merging that thousands would."""
    packmerge.SINGLES_MAX = 4
    packmerge.GROWN_MAX = 3
    packmerge.JOINED_MAX = 2
    packmerge._GROWN_COMMITS = 4
    packmerge._PACKED_COMMITS = 12


def few_slots() -> None:
    """Let main's files be written over again after a few moves, as after the usual number."""
    exchange._SLOTS = 3


def keep_writing(root: Path, name: str, mode: Mode, notes: Path, seed: int) -> None:
    """Write whatever comes to mind until somebody kills this process."""
    merge_early()
    random, notebook = Random(seed), Notebook(notes)
    while True:
        with Ledger.open(root, commit=mode) as ledger:
            for step in range(random.randrange(5, 200)):
                rooms = ledger.rooms()
                room = ledger.room(random.choice(rooms).path)
                chance = random.random()
                if chance < 0.8:
                    body = f"{name} {seed} {step} {random.choice(BODIES)}"
                    notebook.note(room.path, room.post(name, body))
                elif chance < 0.88:
                    drafts = [
                        {"author": name, "body": f"{name} {seed} {step}.{part}"}
                        for part in range(random.randrange(2, 60))
                    ]
                    notebook.note(room.path, *room.post_many(drafts))
                elif chance < 0.9 and len(rooms) < 6:
                    ledger.create_room(f"Room of {name}", by=name)
                elif chance < 0.94:
                    _change_policy(room, random, name)
                elif chance < 0.96:
                    _talk(ledger, room, random, name, notebook)
                elif chance < 0.98:
                    room.compile()
                else:
                    ledger.flush()


def _talk(ledger: Ledger, room: Room, random: Random, name: str, notebook: Notebook) -> None:
    """Join or leave, or write to somebody."""
    agent = ledger.agent(name)
    if room.folder == "direct" or random.random() < 0.5:
        sent = agent.dm([random.choice(("Reader", "Listener"))], f"{name} {random.random()}")
        notebook.note(sent.room.path, sent.message)
        return
    event = agent.leave(room).event if name in room.members else agent.join(room).event
    if event is not None:
        notebook.note(room.path, event)


def _change_policy(room: Room, random: Random, name: str) -> None:
    newest = sum(room.last_position().values())
    if newest:
        number = str(random.randint(1, newest))
        random.choice((room.exclude, room.include))(number, by=name, reason="noise")
