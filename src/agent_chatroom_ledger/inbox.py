"""The inbox: what waits for a name, handed over once, oldest first.

There is no folder of messages: what waits follows from the logs, from who was a member when, and
from the places that a name's doors have reached. Handing over has two steps. ``take`` gives what
waits and holds the name's lock; ``confirm``, after the door has written and flushed it, notes
receipts and places in one step. A kill in between hands over again, and never loses.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Self

import msgspec

from agent_chatroom_ledger.domain.names import check_author
from agent_chatroom_ledger.errors import InvalidInput
from agent_chatroom_ledger.limits import DELIVER_MAX
from agent_chatroom_ledger.queuewalk import Item, Taking, Walk, counted
from agent_chatroom_ledger.storage.cursors import cursor_name
from agent_chatroom_ledger.storage.files import clear_errors
from agent_chatroom_ledger.storage.locks import FileLock

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from types import TracebackType

    from agent_chatroom_ledger.domain.records import Message
    from agent_chatroom_ledger.ledger import Ledger
    from agent_chatroom_ledger.room import Room
    from agent_chatroom_ledger.storage.receipts import LowWater

__all__ = [
    "Handover",
    "Item",
    "discard",
    "is_waiting",
    "peek",
    "take",
    "waiting_count",
    "waiting_counts",
]

# How long a door waits for another door of the same name.
LOCK_SECONDS: Final = 5.0


class _Part(msgspec.Struct, kw_only=True):
    """What is given under one name, and the lock of that name."""

    taking: Taking
    walk: Walk
    lock: FileLock


class Handover:
    """What a door is about to give to a name; a context manager that lets go of the name's lock.

    ``confirm`` belongs after the door's write was flushed. Without it nothing is noted, and the
    same messages come again.
    """

    # An interrupt may come before there is anything to let go of.
    _closed = True

    def __init__(self, parts: list[_Part], *, more: bool) -> None:
        """Use ``take``."""
        self._parts = parts
        self._closed = False
        self.items = tuple(item for part in parts for item in part.walk.items)
        #: Whether further messages wait.
        self.more = more

    def __iter__(self) -> Iterator[Item]:
        return iter(self.items)

    def __len__(self) -> int:
        return len(self.items)

    def waiting(self) -> int:
        """Return how many further messages wait; those given again do not count."""
        if not self.more:
            return 0
        given = sum(not item.again for item in self.items)
        return max(0, sum(part.taking.waiting() for part in self._parts) - given)

    def confirm(self) -> None:
        """Note that the messages were handed over, all of them or none; then let go.

        What came to an old name is noted in a step of its own. Raises InvalidInput when it was let
        go of before.
        """
        if self._closed:
            raise InvalidInput("This hand-over is closed; take again.", code="closed")
        for part in self._parts:
            part.taking.confirm(part.walk)
        self.close()

    def close(self) -> None:
        """Let go without noting anything; closing twice is harmless."""
        closed, self._closed = self._closed, True
        if not closed:
            _let_go(self._parts)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def __del__(self) -> None:
        """Let go of a hand-over that was forgotten."""
        self.close()


def take(
    ledger: Ledger,
    name: str,
    *,
    max: int | None = None,  # noqa: A002 - the word of the commands and tools
    room: Room | None = None,
    again: bool = False,
    addressed_only: bool = False,
    door: str = "python",
    session: str | None = None,
    lock_seconds: float = LOCK_SECONDS,
) -> Handover:
    """Take the oldest messages that wait for a name, and hold its lock until they are confirmed.

    At most ``max``, by default as the settings say. ``room`` asks for one room, ``addressed_only``
    for messages that name the receiver; what they pass over stays. With ``again`` the newest
    messages that were handed over and never acknowledged come first, for a session that has lost
    what it was told. What the policy of its room leaves out when its turn comes is passed over
    for good. What waits for a name that an agent bore until lately comes before its own.

    Raises Busy when another door of the name holds its lock longer than ``lock_seconds``.
    """
    parts: list[_Part] = []
    left, more = _count(ledger, max), False
    try:
        for one in _names(ledger, name):
            taking = Taking(ledger, one, room, count=left, door=door, session=session)
            lock = _lock_of(ledger, one)
            try:
                with clear_errors("handing messages over"):
                    # An old name's own door comes before ours.
                    if one == name:
                        lock.acquire(seconds=lock_seconds)
                    elif not lock.try_acquire():
                        lock.close()
                        continue
            except BaseException:
                lock.close()
                raise
            nothing = Walk(items=[], places={}, low_water=None, more=False)
            parts.append(_Part(taking=taking, walk=nothing, lock=lock))
            walk = parts[-1].walk = taking.walk(again=again, addressed_only=addressed_only)
            left -= len(walk.items)
            more = more or walk.more
    except BaseException:
        _let_go(parts)
        raise
    return Handover(parts, more=more)


def peek(
    ledger: Ledger,
    name: str,
    *,
    max: int | None = None,  # noqa: A002 - the word of the commands and tools
    room: Room | None = None,
    again: bool = False,
    addressed_only: bool = False,
) -> list[Item]:
    """Return what ``take`` would give, without taking it: nothing is locked or written."""
    found: list[Item] = []
    count = _count(ledger, max)
    for one in _names(ledger, name):
        taking = Taking(ledger, one, room, count=count - len(found))
        found += taking.walk(again=again, addressed_only=addressed_only).items
    return found


def is_waiting(
    ledger: Ledger, name: str, room: Room | None = None, since: LowWater | None = None
) -> tuple[bool, LowWater | None]:
    """Tell whether something waits for a name, and a mark from which to look on if nothing does."""
    for one in _names(ledger, name):
        walk = Taking(ledger, one, room, count=1).walk(since=since if one == name else None)
        if walk.items:
            return True, since
    return False, walk.low_water


def waiting_count(ledger: Ledger, name: str, room: Room | None = None) -> int:
    """Return how many messages wait for a name, in one room or in all."""
    return sum(waiting_counts(ledger, name, room).values())


def waiting_counts(ledger: Ledger, name: str, room: Room | None = None) -> dict[str, int]:
    """Return how many messages wait for a name, by the path of their room; only where some do."""
    return counted(ledger, check_author(name, "name"), "" if room is None else room.path)


def discard(ledger: Ledger, name: str, room: Room, through: Message | None = None) -> int:
    """Let nothing of a room wait for a name any more, and return how many messages did.

    The history stays, and so do receipts and what waits in other rooms. ``through``, the newest
    message that is meant, spares what was said after it. No lock is taken, so that who is being
    handed something may leave its room; what it has taken already is still its own to confirm.
    """
    count = waiting_count(ledger, name, room)
    if count:
        places = room.last_position()
        if through is not None:
            places[through.origin] = min(through.n, places[through.origin])
        ledger.receipts.drop(name, room.id, places)
    return count


def _names(ledger: Ledger, name: str) -> tuple[str, ...]:
    """Return the names to look under: those that a live agent bore until lately, then its own."""
    from agent_chatroom_ledger.presence import former_names

    return (*former_names(ledger, check_author(name, "name")), name)


def _count(ledger: Ledger, count: int | None) -> int:
    if count is None:
        return ledger.settings.max_deliver_per_flush
    if isinstance(count, bool) or not 1 <= count <= DELIVER_MAX:
        raise InvalidInput(
            f"One call hands over 1 to {DELIVER_MAX} messages, not {count}.",
            field="max",
            limit=DELIVER_MAX,
        )
    return count


def _let_go(parts: Iterable[_Part]) -> None:
    for part in parts:
        part.lock.release()
        part.lock.close()


def _lock_of(ledger: Ledger, name: str) -> FileLock:
    with clear_errors("handing messages over"):
        ledger.layout.locks.mkdir(parents=True, exist_ok=True)
    safe = cursor_name(name).removesuffix(".json")
    return FileLock(ledger.layout.locks / f"inbox-{safe}.lock")
