"""When an agent may not stop yet, and when an idle one is woken.

A record that is addressed to an agent by name and still waits blocks its stop, once; a record of
any sort wakes it, once. Neither says more than how many wait.
"""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from agent_chatroom_ledger.domain.records import is_history
from agent_chatroom_ledger.inbox import peek
from agent_chatroom_ledger.limits import DELIVER_MAX, STOP_BLOCKS_MAX
from agent_chatroom_ledger.room import Room
from agent_chatroom_ledger.storage import involvement, nudgefile, processes

if TYPE_CHECKING:
    from collections.abc import Sequence

    from agent_chatroom_ledger.domain.identities import Client, ProcessId
    from agent_chatroom_ledger.ledger import Ledger
    from agent_chatroom_ledger.storage.nudgefile import Nudges

# What says how things stand asks nobody to do something about it.
STATUS = "status"
# How often one who waits looks whether it still should.
_LOOK_SECONDS = 1.0
# A stop that is blocked by another hook of the same client is no idleness.
_SETTLING_SECONDS = 1.0


class Place(NamedTuple):
    """A record: its room's id, its origin and its number."""

    room: str
    origin: str
    n: int


def is_involved(ledger: Ledger, name: str) -> bool:
    """Tell whether a name is or was a member of a room, or was ever written to by name."""
    return involvement.is_involved(ledger.index, name)


def prompted(ledger: Ledger, name: str, session: str | None) -> None:
    """Note that the user has said something: stops may be blocked again."""
    if nudgefile.load(ledger.layout, _key(name, session)).blocks:
        nudgefile.change(
            ledger.layout,
            _key(name, session),
            lambda known: msgspec.structs.replace(known, blocks=0),
        )


def at_work(ledger: Ledger, name: str) -> None:
    """Note that the agent works, so that nothing needs to wake it."""
    nudgefile.end_watch(ledger.layout, name)


def held_back(ledger: Ledger, name: str, session: str | None, *, goes_on: bool) -> int:
    """Return how many messages keep an agent from stopping; 0 when it may stop.

    They are those that wait and name it, of a kind other than ``status``. Each keeps it once, and
    at most three stops are blocked between two prompts; one that follows a blocked stop
    (``goes_on``) counts one block at least, whoever blocked. What is returned has been noted
    before, so that a client which is killed is not blocked again. Raises Busy or Forbidden when
    that cannot be noted: then it may stop.
    """
    items = _naming(ledger, name)
    if not items:
        return 0

    def edit(known: Nudges) -> Nudges | None:
        blocks = max(known.blocks, 1 if goes_on else 0)
        if blocks >= STOP_BLOCKS_MAX or not _fresh(known, items):
            return None
        return _told(known, items, blocks + 1)

    after = nudgefile.change(ledger.layout, _key(name, session), edit)
    return 0 if after is None else len(items)


def wait_to_wake(
    ledger: Ledger, name: str, session: str | None, *, client: Client, seconds: float
) -> int:
    """Wait until something comes for an idle agent, and return how many messages wait for it.

    Meanwhile it is known as somebody who waits. Returns 0 after ``seconds``, when its client's
    process has ended, when the agent works again and when a newer call waits in this one's place.
    Handing over is left to the agent's inbox.
    """
    from agent_chatroom_ledger.presence import waiter

    token = f"{os.getpid()}-{time.monotonic_ns()}"
    # Before anybody can know of it, so that work which begins then ends it.
    nudgefile.claim_watch(ledger.layout, name, token)
    try:
        with waiter(ledger, name, client):
            return _watched(
                ledger, name, session, token=token, client=client.process, seconds=seconds
            )
    finally:
        nudgefile.end_watch(ledger.layout, name, token)


def _watched(
    ledger: Ledger,
    name: str,
    session: str | None,
    *,
    token: str,
    client: ProcessId | None,
    seconds: float,
) -> int:
    from agent_chatroom_ledger.waiting import watch_of

    until = time.monotonic() + seconds
    time.sleep(min(seconds, _SETTLING_SECONDS))
    watch = watch_of(ledger)
    looked = False
    while nudgefile.holds_watch(ledger.layout, name, token):
        if client is not None and not processes.is_alive(client):
            break
        if not looked:
            looked = True
            if count := _woken(ledger, name, session):
                # What was noted is said: a newer call would not say it again.
                return count
        now = time.monotonic()
        if now >= until:
            break
        looked = not watch.wait(min(until, now + _LOOK_SECONDS))
    return 0


def _woken(ledger: Ledger, name: str, session: str | None) -> int:
    items = list(
        dict.fromkeys(
            [
                *_naming(ledger, name),
                *(
                    Place(item.room.id, item.message.origin, item.message.n)
                    for item in peek(ledger, name, max=DELIVER_MAX)
                    if item.message.kind != STATUS
                ),
            ]
        )
    )
    known = nudgefile.load(ledger.layout, _key(name, session))
    if not _fresh(known, items):
        return 0
    after = nudgefile.change(
        ledger.layout,
        _key(name, session),
        lambda known: _told(known, items, known.blocks) if _fresh(known, items) else None,
    )
    return 0 if after is None else len(items)


def _naming(ledger: Ledger, name: str) -> list[Place]:
    """Return what waits, names the agent and is no ``status``; of very much the oldest.

    Asked for itself, since rooms may hold any number of messages that name nobody.
    """
    receipts = ledger.receipts
    low = receipts.low_water(name)
    rows = involvement.addressed_to(
        ledger.index, name, low=low.at if low else 0, mark=low.mark if low else "-"
    )
    if not rows:
        return []
    places, beyond = receipts.places(name), receipts.beyond(name)
    found: list[Place] = []
    for row in rows:
        place = Place(row.room, row.origin, row.n)
        if row.n <= places.get((row.room, row.origin), 0) or place in beyond:
            continue
        room = Room(ledger, row.path)
        message = room.reader().find(row.origin, row.n)
        if message is None or message.kind == STATUS or is_history(message.kind):
            continue
        if name in message.to and not room.policy().excludes(row.origin, row.n):
            found.append(place)
            if len(found) == DELIVER_MAX:
                break
    return found


def _fresh(known: Nudges, items: Sequence[Place]) -> bool:
    return any(not known.knows(*place) for place in items)


def _told(known: Nudges, items: Sequence[Place], blocks: int) -> Nudges:
    through = {room: dict(origins) for room, origins in known.through.items()}
    for room, origin, n in items:
        origins = through.setdefault(room, {})
        origins[origin] = max(n, origins.get(origin, 0))
    return msgspec.structs.replace(known, blocks=blocks, through=through)


def _key(name: str, session: str | None) -> str:
    return session or name
