"""Who is a member of a room: adding and removing, and where a name is listed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import msgspec

from agent_chatroom_ledger.changes import Change, apply_change, plan_change
from agent_chatroom_ledger.domain.names import check_author
from agent_chatroom_ledger.domain.rooms import MEMBERS_ADD, MEMBERS_REMOVE, members_draft
from agent_chatroom_ledger.errors import InvalidInput
from agent_chatroom_ledger.listing import RoomSummary

if TYPE_CHECKING:
    from agent_chatroom_ledger.changes import Facts
    from agent_chatroom_ledger.domain.drafts import Draft
    from agent_chatroom_ledger.domain.roomstate import RoomState
    from agent_chatroom_ledger.ledger import Ledger
    from agent_chatroom_ledger.plans import Plan
    from agent_chatroom_ledger.room import Room


class Coverage(msgspec.Struct, frozen=True, kw_only=True):
    """Which rooms list a name as a member, and which do not; both by path."""

    name: str
    listed: tuple[RoomSummary, ...]
    not_listed: tuple[RoomSummary, ...]


def add_member(
    room: Room,
    name: str,
    *,
    by: str = "Ledger",
    reason: str = "",
    threshold_chars: int | None = None,
) -> tuple[str, ...]:
    """Make somebody a member, and return the members; a member already changes nothing."""
    apply_change(room, _joining(name, by, reason, threshold_chars))
    return room.members


def remove_member(
    room: Room, name: str, *, by: str = "Ledger", reason: str = ""
) -> tuple[str, ...]:
    """Take somebody off the member list, and return the members; no member changes nothing."""
    apply_change(room, _leaving(name, by, reason))
    return room.members


def plan_add(
    room: Room,
    name: str,
    *,
    by: str = "Ledger",
    reason: str = "",
    threshold_chars: int | None = None,
) -> Plan:
    """Plan to make somebody a member.

    ``threshold_chars`` is kept with the operation: how many characters of the room the member
    wishes to be shown at most.
    """
    change = _joining(name, by, reason, threshold_chars)
    return plan_change(
        room,
        change,
        nothing=f"{name} is a member of {room.path} already",
        outcome=lambda: {"members": list(room.members)},
    )


def plan_remove(room: Room, name: str, *, by: str = "Ledger", reason: str = "") -> Plan:
    """Plan to take somebody off the member list."""
    return plan_change(
        room,
        _leaving(name, by, reason),
        nothing=f"{name} is no member of {room.path}",
        outcome=lambda: {"members": list(room.members)},
    )


def coverage(
    ledger: Ledger, name: str, status: Literal["active", "archived", "all"] = "active"
) -> Coverage:
    """Tell which rooms of a status list a name as a member, and which do not."""
    check_author(name, "name")
    rooms = ledger.rooms(status=status)
    return Coverage(
        name=name,
        listed=tuple(room for room in rooms if name in room.members),
        not_listed=tuple(room for room in rooms if name not in room.members),
    )


def _joining(name: str, by: str, reason: str, threshold_chars: int | None) -> Change:
    check_author(name, "name")
    if threshold_chars is not None and threshold_chars <= 0:
        raise InvalidInput("threshold_chars is a number of characters, 1 or more", field="budget")
    facts = {} if threshold_chars is None else {"threshold_chars": threshold_chars}

    def make(_: Facts, state: RoomState) -> Draft | None:
        if name in state.members:
            return None
        draft = members_draft([name], add=True, by=by, reason=reason)
        return msgspec.structs.replace(draft, data={**(draft.data or {}), **facts})

    return Change(kind=MEMBERS_ADD, make=make, by=by, reason=reason, facts=facts)


def _leaving(name: str, by: str, reason: str) -> Change:
    check_author(name, "name")

    def make(_: Facts, state: RoomState) -> Draft | None:
        if name not in state.members:
            return None
        return members_draft([name], add=False, by=by, reason=reason)

    return Change(kind=MEMBERS_REMOVE, make=make, by=by, reason=reason)
