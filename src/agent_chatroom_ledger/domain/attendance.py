"""Attendance: when a name was a member of a room, as a fold of the room's operations.

A member gets what is said while it is one. Who joins again gets nothing of what was said in
between, and who is put back on the list by a restored member list joins at that moment.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from agent_chatroom_ledger.domain.clock import from_datetime
from agent_chatroom_ledger.domain.order import order_key
from agent_chatroom_ledger.domain.rooms import (
    MEMBERS_ADD,
    MEMBERS_REMOVE,
    MEMBERS_RESTORE,
    ROOM_CREATE,
    applied,
)
from agent_chatroom_ledger.errors import Conflict, InvalidInput

if TYPE_CHECKING:
    from collections.abc import Iterable

    from agent_chatroom_ledger.domain.records import Message
    from agent_chatroom_ledger.domain.roomstate import RoomState

# The kinds of operation after which somebody may be a member who was none, or the other way round.
CHANGES_MEMBERS = frozenset({ROOM_CREATE, MEMBERS_ADD, MEMBERS_REMOVE, MEMBERS_RESTORE})


class Interval(msgspec.Struct, frozen=True, kw_only=True):
    """A time during which a name was a member; ``left_at`` is None while it is one.

    Both are in the stored form, whose order as text is its order in time.
    """

    name: str
    joined_at: str
    left_at: str | None = None

    def holds(self, at: str) -> bool:
        """Tell whether a time lies in it: past the joining and not past the leaving."""
        return self.joined_at < at and (self.left_at is None or at < self.left_at)


def attendance(operations: Iterable[Message]) -> tuple[Interval, ...]:
    """Return the intervals of all members that a room has had, by the time of joining.

    The operations, given in any order, are applied in canonical order and by the rules of
    `fold_room`; one that breaks a rule changes nothing. Without an operation that creates the room
    there are none.
    """
    state: RoomState | None = None
    open_since: dict[str, str] = {}
    found: list[Interval] = []
    for message in sorted(operations, key=order_key):
        try:
            after = applied(state, message)
        except (InvalidInput, Conflict):
            continue
        members = set(after.members)
        if state is None or members != set(state.members):
            at = from_datetime(message.at)
            for name in [name for name in open_since if name not in members]:
                joined_at = open_since.pop(name)
                found.append(Interval(name=name, joined_at=joined_at, left_at=at))
            for name in after.members:
                open_since.setdefault(name, at)
        state = after
    found += [Interval(name=name, joined_at=at) for name, at in open_since.items()]
    found.sort(key=lambda interval: (interval.joined_at, interval.name))
    return tuple(found)


def members_at(intervals: Iterable[Interval], at: str) -> tuple[str, ...]:
    """Return who was a member at a time, each once, by the time of joining."""
    return tuple(dict.fromkeys(i.name for i in intervals if i.holds(at)))
