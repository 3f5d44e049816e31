"""Walking the queue of a name: what is to be given of what waits, and how far it is done then."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

import msgspec

from agent_chatroom_ledger.domain.clock import from_datetime
from agent_chatroom_ledger.domain.delivery import age_prefix, age_seconds
from agent_chatroom_ledger.domain.names import check_author
from agent_chatroom_ledger.domain.order import order_key
from agent_chatroom_ledger.domain.records import Message
from agent_chatroom_ledger.errors import NotFound
from agent_chatroom_ledger.room import Room
from agent_chatroom_ledger.storage.queue import LogKey, counts, queued, records_since
from agent_chatroom_ledger.storage.receipts import Given, LowWater

if TYPE_CHECKING:
    from agent_chatroom_ledger.ledger import Ledger
    from agent_chatroom_ledger.storage.queue import Queue, Waiting

# Rows of the index beyond those asked for, since some may have been handed over already.
_SPARE: Final = 16
# Records that the next call would look at again, past which an empty one moves the low-water mark.
_RESCANNED_MAX: Final = 500


class Item(msgspec.Struct, frozen=True, kw_only=True):
    """A message that is handed over.

    ``addressed`` says that it names its receiver. ``prefix`` is to stand before its text: the age
    of one that has waited long, ``[2 h old] ``, else nothing. ``again`` marks one that was handed
    over before and not acknowledged. ``name`` is whom it came to: the receiver, or a name that it
    bore until lately.
    """

    name: str
    room: Room
    message: Message
    addressed: bool
    age_seconds: int
    prefix: str
    again: bool = False


class Walk(msgspec.Struct, kw_only=True):
    """What a walk over the queue has found: what to give, and how far it then is done with."""

    items: list[Item]
    places: dict[LogKey, int]
    low_water: LowWater | None
    more: bool


class Taking:
    """One call: for whom, where, and by which door."""

    def __init__(
        self,
        ledger: Ledger,
        name: str,
        room: Room | None = None,
        *,
        count: int,
        door: str = "",
        session: str | None = None,
    ) -> None:
        """``count`` is how many messages to give at most, 0 to find only whether some wait."""
        self.ledger = ledger
        self.name = check_author(name, "name")
        self.room = room
        self.door = door
        self.session = session or ""
        self.count = count
        self._now = datetime.now(UTC)
        self._stale_seconds = ledger.settings.stale_after_seconds

    def walk(
        self,
        *,
        again: bool = False,
        addressed_only: bool = False,
        since: LowWater | None = None,
    ) -> Walk:
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
                mine=self.ledger.origin,
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

    def confirm(self, walk: Walk) -> None:
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

    def waiting(self) -> int:
        """Return how many messages wait, whatever was found to give."""
        path = "" if self.room is None else self.room.path
        return sum(counted(self.ledger, self.name, path).values())

    def _sorted_out(
        self,
        found: Queue,
        wanted: int,
        beyond: set[tuple[str, str, int]],
        known: dict[LogKey, int],
        *,
        addressed_only: bool,
    ) -> Walk:
        """Go through the rows of a queue until enough is found to give."""
        walk = Walk(items=[], places={}, low_water=None, more=False)
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
                message, settled = _found(room, row)
                if message is not None and addressed_only and self.name not in message.to:
                    message, done = None, False
                elif message is not None and len(walk.items) >= wanted:
                    walk.more = True
                    break
                else:
                    # What waits in a room that was just archived waits until it is back.
                    done = settled
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
            # What comes is later than the newest of our own, whatever foreign clocks say.
            at = min(end, found.newest, first_left - 1 if first_left else end)
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
            name=self.name,
            room=room,
            message=message,
            addressed=self.name in message.to,
            age_seconds=age,
            prefix=age_prefix(age, self._stale_seconds),
            again=again,
        )


def _found(room: Room, row: Waiting) -> tuple[Message | None, bool]:
    """Return the message of a row if it is one to give, and whether its turn has come.

    It has not for one that cannot be read now: of a room that is being archived, or of a log that
    is damaged. It is given when it can be read again.
    """
    try:
        # From here on the room knows its id, whatever becomes of it before the receipt is written.
        if room.id != row.room:
            return None, False
        message = room.reader().find(row.origin, row.n)
        if message is None:
            return None, False
        return (None if _is_left_out(room, row, message) else message), True
    except NotFound:
        return None, False


def _is_left_out(room: Room, row: Waiting, message: Message) -> bool:
    """Tell whether a message is left out by its room's policy, or folded away."""
    if row.excludes and room.policy().excludes(row.origin, row.n):
        return True
    reader = room.reader()
    if len(reader.origins()) > 1:
        # Of one id from two origins only the earlier in canonical order counts.
        for path, origin, n in room.ledger.index.bearers_of(message.id):
            if path == row.path and (origin, n) != (row.origin, row.n):
                other = reader.find(origin, n)
                if other and other.id == message.id and order_key(other) < order_key(message):
                    return True
    return False


def counted(ledger: Ledger, name: str, path: str) -> dict[str, int]:
    """Return how many messages wait for a name, by room; ``path`` asks for one room."""
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
