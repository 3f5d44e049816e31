"""Waiting for messages: the journal is watched, which is one file, and no room.

A process that waits does next to nothing until something is appended anywhere in the ledger; then
it asks the index whether that is for the name it waits for.
"""

from __future__ import annotations

import time
from contextlib import nullcontext
from typing import TYPE_CHECKING

from agent_chatroom_ledger.errors import Busy
from agent_chatroom_ledger.inbox import is_waiting, peek, take
from agent_chatroom_ledger.storage.watching import Watch

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator
    from contextlib import AbstractContextManager

    from agent_chatroom_ledger.inbox import Item
    from agent_chatroom_ledger.ledger import Ledger
    from agent_chatroom_ledger.room import Room
    from agent_chatroom_ledger.storage.receipts import LowWater


def wait_for(
    ledger: Ledger, name: str, *, room: Room | None = None, seconds: float | None = None
) -> bool:
    """Return True as soon as something waits for a name, False after ``seconds``.

    None waits for as long as it takes. Nothing is handed over, locked or written.
    """
    until = None if seconds is None else time.monotonic() + max(seconds, 0)
    watch = watch_of(ledger)
    since: LowWater | None = None
    while True:
        # The place in the journal was taken before this look, so nothing falls between them.
        found, since = is_waiting(ledger, name, room, since)
        if found:
            return True
        if not watch.wait(until):
            return False


def inbox(
    ledger: Ledger,
    name: str,
    *,
    count: int | None = None,
    seconds: float | None = None,
    room: Room | None = None,
    peeking: bool = False,
    again: bool = False,
    door: str = "python",
    session: str | None = None,
) -> list[Item]:
    """Return what waits for a name, noted as handed over unless ``peeking``; see ``inbox.take``.

    ``seconds`` is how long to wait for the first message; meanwhile a message to the name counts
    as waking it.
    """
    until = time.monotonic() + max(seconds or 0, 0)
    with _known(ledger, name) if seconds else nullcontext():
        return _inbox(
            ledger, name, until, count=count, room=room, peeking=peeking, again=again, door=door,
            session=session,
        )  # fmt: skip


def _known(ledger: Ledger, name: str) -> AbstractContextManager[None]:
    """Let a message to a name count as waking it, where an agent may bear the name."""
    from agent_chatroom_ledger.limits import AGENT_NAME_CHARS_MAX
    from agent_chatroom_ledger.presence import waiter

    return waiter(ledger, name) if len(name) <= AGENT_NAME_CHARS_MAX else nullcontext()


def _inbox(
    ledger: Ledger,
    name: str,
    until: float,
    *,
    count: int | None,
    room: Room | None,
    peeking: bool,
    again: bool,
    door: str,
    session: str | None,
) -> list[Item]:
    while True:
        if peeking:
            items = peek(ledger, name, max=count, room=room, again=again)
        else:
            with take(
                ledger, name, max=count, room=room, again=again, door=door, session=session
            ) as handover:
                items = list(handover)
                handover.confirm()
        left = until - time.monotonic()
        if items or left <= 0 or not wait_for(ledger, name, room=room, seconds=left):
            return items


async def messages(
    ledger: Ledger,
    name: str,
    *,
    room: Room | None = None,
    door: str = "python",
    session: str | None = None,
) -> AsyncGenerator[Item, None]:
    """Yield messages for a name as they come, each noted when the caller asks for the next.

    It looks at the journal from the event loop and uses no thread; a look takes microseconds, and
    a hand-over about a millisecond. Meanwhile a message to the name counts as waking it.
    """
    # Imported here: who only waits, in a process of its own, is to start quickly.
    import asyncio

    watch = watch_of(ledger)
    with _known(ledger, name):
        while True:
            try:
                handover = take(
                    ledger, name, max=1, room=room, door=door, session=session, lock_seconds=0
                )
            except Busy:
                # Another door of this name is handing over.
                await asyncio.sleep(watch.pause_seconds)
                continue
            with handover:
                for item in handover:
                    yield item
                handover.confirm()
                if len(handover):
                    continue
            while not watch.changed():  # noqa: ASYNC110 - other processes wake no event
                await asyncio.sleep(watch.pause_seconds)


def watch_of(ledger: Ledger) -> Watch:
    """Return a watch of the ledger that looks as often as the settings say."""
    return Watch(ledger.layout, ledger.settings.poll_ms / 1000)
