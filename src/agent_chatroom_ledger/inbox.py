"""The inbox: what waits for a name, handed over once, oldest first.

There is no folder of messages: what waits follows from the logs, from who was a member when, and
from the places that a name's doors have reached. Handing over has two steps. ``take`` gives what
waits and holds the name's lock; ``confirm``, after the door has written and flushed it, notes
receipts and places in one step. A kill in between hands over again, and never loses.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final, Self

import msgspec

from agent_chatroom_ledger.domain.clock import from_datetime
from agent_chatroom_ledger.domain.delivery import age_prefix, age_seconds
from agent_chatroom_ledger.domain.names import check_author
from agent_chatroom_ledger.domain.order import order_key
from agent_chatroom_ledger.domain.records import Message
from agent_chatroom_ledger.errors import InvalidInput
from agent_chatroom_ledger.limits import DELIVER_MAX
from agent_chatroom_ledger.room import Room
from agent_chatroom_ledger.storage.locks import FileLock
from agent_chatroom_ledger.storage.queue import LogKey, counts, queued, records_since
from agent_chatroom_ledger.storage.receipts import Given, LowWater

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import TracebackType

    from agent_chatroom_ledger.ledger import Ledger
    from agent_chatroom_ledger.storage.queue import Queue, Waiting

# How long a door waits for another door of the same name.
LOCK_SECONDS: Final = 5.0
# Rows of the index beyond those asked for, since some may have been handed over already.
_SPARE: Final = 16
# Records that the next call would look at again, past which an empty one moves the low-water mark.
_RESCANNED_MAX: Final = 500


class Item(msgspec.Struct, frozen=True, kw_only=True):
    """A message that is handed over.

    ``addressed`` says that it names its receiver. ``prefix`` is to stand before its text: the age
    of one that has waited long, ``[2 h old] ``, else nothing. ``again`` marks one that was handed
    over before and not acknowledged.
    """

    room: Room
    message: Message
    addressed: bool
    age_seconds: int
    prefix: str
    again: bool = False


class _Walk(msgspec.Struct, kw_only=True):
    """What a walk over the queue has found: what to give, and how far it then is done with."""

    items: list[Item]
    places: dict[LogKey, int]
    low_water: LowWater | None
    more: bool


class Handover:
    """What a door is about to give to a name; a context manager that lets go of the name's lock.

    ``confirm`` belongs after the door's write was flushed. Without it nothing is noted, and the
    same messages come again.
    """

    def __init__(self, taking: _Taking, walk: _Walk, lock: FileLock) -> None:
        """Use ``take``."""
        self._taking = taking
        self._walk = walk
        self._lock: FileLock | None = lock
        self.items = tuple(walk.items)

    def __iter__(self) -> Iterator[Item]:
        return iter(self.items)

    def __len__(self) -> int:
        return len(self.items)

    @property
    def more(self) -> bool:
        """Whether further messages wait."""
        return self._walk.more

    def waiting(self) -> int:
        """Return how many further messages wait; those given again do not count."""
        if not self._walk.more:
            return 0
        given = sum(not item.again for item in self.items)
        taking = self._taking
        path = taking.room.path if taking.room is not None else ""
        return max(0, sum(_counted(taking.ledger, taking.name, path).values()) - given)

    def confirm(self) -> None:
        """Note that the messages were handed over, all of them or none; then let go.

        Raises InvalidInput when it was let go of before.
        """
        if self._lock is None:
            raise InvalidInput("This hand-over is closed; take again.", code="closed")
        self._taking.confirm(self._walk)
        self.close()

    def close(self) -> None:
        """Let go without noting anything; closing twice is harmless."""
        lock, self._lock = self._lock, None
        if lock is not None:
            lock.release()
            lock.close()

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
    for good.

    Raises Busy when another door of the name holds its lock longer than ``lock_seconds``.
    """
    taking = _Taking(ledger, name, room, count=max, door=door, session=session or "")
    lock = _lock_of(ledger, name)
    try:
        lock.acquire(seconds=lock_seconds)
    except BaseException:
        lock.close()
        raise
    try:
        walk = taking.walk(again=again, addressed_only=addressed_only)
        return Handover(taking, walk, lock)
    except BaseException:
        lock.release()
        lock.close()
        raise


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
    taking = _Taking(ledger, name, room, count=max)
    return taking.walk(again=again, addressed_only=addressed_only).items


def is_waiting(
    ledger: Ledger, name: str, room: Room | None = None, since: LowWater | None = None
) -> tuple[bool, LowWater | None]:
    """Tell whether something waits for a name, and a mark from which to look on if nothing does."""
    taking = _Taking(ledger, name, room, count=1)
    walk = taking.walk(since=since)
    return bool(walk.items), walk.low_water


def waiting_count(ledger: Ledger, name: str, room: Room | None = None) -> int:
    """Return how many messages wait for a name, in one room or in all."""
    return sum(waiting_counts(ledger, name, room).values())


def waiting_counts(ledger: Ledger, name: str, room: Room | None = None) -> dict[str, int]:
    """Return how many messages wait for a name, by the path of their room; only where some do."""
    return _counted(ledger, check_author(name, "name"), "" if room is None else room.path)


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


class _Taking:
    """One call: for whom, where, and by which door."""

    def __init__(
        self,
        ledger: Ledger,
        name: str,
        room: Room | None = None,
        *,
        count: int | None,
        door: str = "",
        session: str = "",
    ) -> None:
        self.ledger = ledger
        self.name = check_author(name, "name")
        self.room = room
        self.door = door
        self.session = session
        self.settings = ledger.settings
        self.count = self.settings.max_deliver_per_flush if count is None else _checked(count)
        self._now = datetime.now(UTC)

    def walk(
        self,
        *,
        again: bool = False,
        addressed_only: bool = False,
        since: LowWater | None = None,
    ) -> _Walk:
        """Find what to give, oldest first."""
        repeated = self._unseen() if again else []
        receipts = self.ledger.receipts
        low = since or receipts.low_water(self.name) or LowWater(mark="-", at=0)
        wanted = self.count - len(repeated)
        beyond = receipts.beyond(self.name)
        path = "" if self.room is None else self.room.path
        places: dict[LogKey, int] = {}
        limit = max(wanted, 1) + _SPARE
        if not low.at:
            places = receipts.places(self.name)
        while True:
            found = queued(
                self.ledger.index,
                self.name,
                low=low.at,
                mark=low.mark,
                places=places,
                limit=limit,
                room=path,
            )
            if low.mark != found.mark and not places:
                places = receipts.places(self.name)
            walk = self._sorted_out(found, wanted, beyond, places, addressed_only=addressed_only)
            if found.whole or walk.more:
                break
            # Much of what was found is done with already: the next look leaves it out.
            places = receipts.places(self.name)
            limit *= 8
        if since is None and low.mark == found.mark and low.at and walk.low_water is not None:
            walk.low_water = max(walk.low_water, low, key=lambda mark: mark.at)
        walk.items[:0] = repeated
        return walk

    def confirm(self, walk: _Walk) -> None:
        """Note what was given; an empty walk notes only how far there is nothing."""
        receipts = self.ledger.receipts
        if not walk.items:
            low = walk.low_water
            known = receipts.low_water(self.name)
            since = known.at if known and low and known.mark == low.mark else 0
            index = self.ledger.index
            if low is None or records_since(index, since, low.at) <= _RESCANNED_MAX:
                return
        receipts.confirm(
            self.name,
            [
                Given(
                    room=item.room.id,
                    origin=item.message.origin,
                    n=item.message.n,
                    record=item.message.id,
                )
                for item in walk.items
            ],
            walk.places,
            walk.low_water,
            at=from_datetime(datetime.now(UTC)),
            door=self.door,
            session=self.session,
        )

    def _sorted_out(
        self,
        found: Queue,
        wanted: int,
        beyond: set[tuple[str, str, int]],
        known: dict[LogKey, int],
        *,
        addressed_only: bool,
    ) -> _Walk:
        """Go through the rows of a queue until enough is found to give."""
        walk = _Walk(items=[], places={}, low_water=None, more=False)
        rooms: dict[str, Room] = {}
        places = dict(known)
        left: set[LogKey] = set()
        reached, first_left = 0, 0
        for row in found.rows:
            log = row.room, row.origin
            if log not in places:
                places.update({log: 0, **self.ledger.receipts.places(self.name, row.room)})
            if row.n <= places[log]:
                reached = row.at
                continue
            done = (*log, row.n) in beyond
            if not done:
                room = rooms.setdefault(row.path, Room(self.ledger, row.path))
                message = _message(room, row)
                if message is not None and addressed_only and self.name not in message.to:
                    message, done = None, False
                elif message is not None and len(walk.items) >= wanted:
                    walk.more = True
                    break
                else:
                    done = True
                if message is not None:
                    walk.items.append(self._item(room, message))
            if done:
                if log not in left:
                    walk.places[log] = row.n
                reached = row.at
            else:
                left.add(log)
                first_left = first_left or row.at
        if self.room is None:
            end = found.newest if found.whole and not walk.more else reached - 1
            at = min(end, first_left - 1) if first_left else end
            walk.low_water = LowWater(mark=found.mark, at=at) if at > 0 else None
        return walk

    def _unseen(self) -> list[Item]:
        """Return the newest messages that were handed over and not acknowledged, oldest first."""
        from agent_chatroom_ledger.consumers import Consumer

        seen = Consumer(self.ledger, self.name).cursor().positions()
        found: list[Item] = []
        for receipt in self.ledger.receipts.of_name(self.name, seen, self.count):
            row = self.ledger.index.room_by_id(receipt.room)
            if row is None or (self.room is not None and row.path != self.room.path):
                continue
            room = Room(self.ledger, row.path, row)
            message = room.reader().find(receipt.origin, receipt.n)
            if message is None or message.id != receipt.record:
                continue
            if not room.policy().excludes(message.origin, message.n):
                found.append(self._item(room, message, again=True))
        found.sort(key=lambda item: order_key(item.message))
        return found

    def _item(self, room: Room, message: Message, *, again: bool = False) -> Item:
        age = age_seconds(message, self._now)
        return Item(
            room=room,
            message=message,
            addressed=self.name in message.to,
            age_seconds=age,
            prefix=age_prefix(age, self.settings.stale_after_seconds),
            again=again,
        )


def _message(room: Room, row: Waiting) -> Message | None:
    """Return the message of a row; None for one that its room's policy or fold leaves out."""
    reader = room.reader()
    message = reader.find(row.origin, row.n)
    if message is None or (row.excludes and room.policy().excludes(row.origin, row.n)):
        return None
    if len(reader.origins()) > 1:
        # Of one id from two origins only the earlier in canonical order counts.
        for path, origin, n in room.ledger.index.bearers_of(message.id):
            if path == row.path and (origin, n) != (row.origin, row.n):
                other = reader.find(origin, n)
                if other and other.id == message.id and order_key(other) < order_key(message):
                    return None
    return message


def _counted(ledger: Ledger, name: str, path: str) -> dict[str, int]:
    receipts = ledger.receipts
    low = receipts.low_water(name) or LowWater(mark="-", at=0)
    places = receipts.places(name)
    beyond = receipts.beyond(name)
    found: dict[str, int] = {}
    for row in counts(
        ledger.index, name, low=low.at, mark=low.mark, places=places, beyond=beyond, room=path
    ):
        count = row.count
        if row.excludes:
            room = Room(ledger, row.path)
            count = sum(
                not room.policy().excludes(row.origin, n)
                for n in row.numbers
                if (row.room, row.origin, n) not in beyond
            )
        if count:
            found[row.path] = found.get(row.path, 0) + count
    return found


def _checked(count: int) -> int:
    if isinstance(count, bool) or not 1 <= count <= DELIVER_MAX:
        raise InvalidInput(
            f"One call hands over 1 to {DELIVER_MAX} messages, not {count}.",
            field="max",
            limit=DELIVER_MAX,
        )
    return count


def _lock_of(ledger: Ledger, name: str) -> FileLock:
    from hashlib import sha256

    ledger.layout.locks.mkdir(parents=True, exist_ok=True)
    digest = sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:16]
    return FileLock(ledger.layout.locks / f"inbox-{digest}.lock")
