"""Delivery: which records are for whom, and what is said of one that has waited long."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

from agent_chatroom_ledger.domain.clock import from_datetime
from agent_chatroom_ledger.domain.records import is_history

if TYPE_CHECKING:
    from collections.abc import Iterable
    from datetime import datetime

    from agent_chatroom_ledger.domain.attendance import Interval
    from agent_chatroom_ledger.domain.records import Message

_UNITS = ((86_400, "d"), (3_600, "h"), (60, "min"))


def is_for(message: Message, me: str, intervals: Iterable[Interval]) -> bool:
    """Tell whether a record is for a name.

    It is when it is addressed to the name, or was said in a room while the name was a member of
    it; the name's own records and history are for nobody. ``intervals`` are those of the room;
    those of other names do not matter.
    """
    if is_history(message.kind) or message.author == me:
        return False
    if me in message.to:
        return True
    at = from_datetime(message.at)
    return any(interval.name == me and interval.holds(at) for interval in intervals)


def recipients(message: Message, intervals: Iterable[Interval]) -> tuple[str, ...]:
    """Return the names that a record is for: those addressed, then the members of its time.

    Nobody is named twice, the author never, and a broadcast (``*``) is no name. History has none.
    """
    if is_history(message.kind):
        return ()
    at = from_datetime(message.at)
    names = [name for name in message.to if name != "*"]
    names += [interval.name for interval in intervals if interval.holds(at)]
    return tuple(name for name in dict.fromkeys(names) if name != message.author)


def age_seconds(message: Message, now: datetime) -> int:
    """Return how long ago a record was written; 0 for one of a clock that is ahead."""
    return max(0, (now - message.at) // timedelta(seconds=1))


def age_prefix(seconds: int, stale_seconds: int) -> str:
    """Return what is put before the text of a record older than a bound: ``[2 h old] ``.

    Empty for a younger one. The age is rounded down to days, hours or minutes.
    """
    if seconds <= stale_seconds:
        return ""
    for size, unit in _UNITS:
        if seconds >= size:
            return f"[{seconds // size} {unit} old] "
    return f"[{seconds} s old] "
