"""Administrative operations: planned and reported first, then applied in one transaction each.

A plan validates against the present state without a lock and writes nothing; applying validates
again under the journal's lock, because the room may have moved on meanwhile.
"""

from __future__ import annotations

from itertools import count
from typing import TYPE_CHECKING, Any

import msgspec

from agent_chatroom_ledger.changes import (
    Change,
    Facts,
    Ranges,
    Refs,
    apply_change,
    existing,
    plan_change,
    texts,
)
from agent_chatroom_ledger.creation import Wanted, create_room
from agent_chatroom_ledger.domain.references import parse_ref, range_ref
from agent_chatroom_ledger.domain.reports import report_of, room_facts
from agent_chatroom_ledger.domain.rooms import (
    POLICY_CLEAR,
    POLICY_EXCLUDE,
    POLICY_INCLUDE,
    POLICY_STANDIN,
    clear_draft,
    exclude_draft,
    include_draft,
    standin_draft,
)
from agent_chatroom_ledger.places import Places
from agent_chatroom_ledger.plans import Plan
from agent_chatroom_ledger.storage import reading

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from agent_chatroom_ledger.domain.policy import Policy
    from agent_chatroom_ledger.domain.records import Draft, Message
    from agent_chatroom_ledger.domain.roomstate import RoomState
    from agent_chatroom_ledger.ledger import Ledger
    from agent_chatroom_ledger.room import Room


# --- creating a room ---------------------------------------------------------------------------


def plan_create(
    ledger: Ledger,
    title: str,
    *,
    folder: str = "",
    members: Sequence[str] = (),
    by: str = "Ledger",
    reason: str = "",
) -> Plan:
    """Plan to make a room."""
    wanted = Wanted(title, folder, members, by, reason)
    path = Places.as_seen(ledger).for_new(wanted.folder, wanted.slug)
    actions = [f"create the room {wanted.title!r} at {path}"]
    if wanted.members:
        actions.append(f"make members of {', '.join(wanted.members)}")
    warnings = []
    if path.rpartition("/")[2] != wanted.slug:
        warnings.append(f"the name {wanted.slug} is taken, so the room gets a number")

    def carry_out() -> dict[str, Any]:
        room = create_room(ledger, title, folder=folder, members=members, by=by, reason=reason)
        created = next(room.reader().after(log=reading.OPERATIONS))
        return {"room": room.path, "id": room.id, **report_of(created)}

    return Plan(
        operation="room.create",
        room=path,
        actions=tuple(actions),
        warnings=tuple(warnings),
        requested_by=by,
        reason=reason,
        details={"title": wanted.title, "members": list(wanted.members)},
        target=room_facts("", wanted.title, path),
        provenance={"requested_by": by, "reason": reason},
        carry_out=carry_out,
    )


# --- the policy of a room ----------------------------------------------------------------------


def exclude(room: Room, refs: Refs, *, by: str = "Ledger", reason: str = "") -> Policy:
    """Leave messages out of a room's view and lenses."""
    return _apply(room, _exclusion(refs, by, reason))


def include(room: Room, refs: Refs, *, by: str = "Ledger", reason: str = "") -> Policy:
    """Show messages again that were left out."""
    return _apply(room, _inclusion(refs, by, reason))


def add_standin(
    room: Room,
    replaces: Refs,
    body: str,
    *,
    insert_after: int | str | Message | None = None,
    speaker: str = "System",
    kind: str = "system",
    standin_id: str | None = None,
    by: str = "Ledger",
    reason: str = "",
) -> Policy:
    """Show a text in the place of messages."""
    change = _standin(
        replaces,
        body,
        insert_after=insert_after,
        speaker=speaker,
        kind=kind,
        standin_id=standin_id,
        by=by,
        reason=reason,
    )
    return _apply(room, change)


def clear_policy(room: Room, *, by: str = "Ledger", reason: str = "") -> Policy:
    """Take back every exclusion and every stand-in."""
    return _apply(room, _clearing(by, reason))


def plan_exclude(
    room: Room,
    refs: Refs,
    *,
    by: str = "Ledger",
    reason: str = "",
    facts: Mapping[str, Any] | None = None,
) -> Plan:
    """Plan to leave messages out; ``facts`` are kept in the report, with who asked and why."""
    return _plan(room, _with_facts(_exclusion(refs, by, reason), facts))


def plan_include(room: Room, refs: Refs, *, by: str = "Ledger", reason: str = "") -> Plan:
    """Plan to show messages again."""
    return _plan(room, _inclusion(refs, by, reason))


def plan_standin(
    room: Room,
    replaces: Refs,
    body: str,
    *,
    insert_after: int | str | Message | None = None,
    speaker: str = "System",
    kind: str = "system",
    standin_id: str | None = None,
    by: str = "Ledger",
    reason: str = "",
    facts: Mapping[str, Any] | None = None,
) -> Plan:
    """Plan to show a text in the place of messages; ``facts`` are kept in the report."""
    change = _standin(
        replaces,
        body,
        insert_after=insert_after,
        speaker=speaker,
        kind=kind,
        standin_id=standin_id,
        by=by,
        reason=reason,
    )
    return _plan(room, _with_facts(change, facts))


def plan_clear(room: Room, *, by: str = "Ledger", reason: str = "") -> Plan:
    """Plan to take back every exclusion and every stand-in."""
    return _plan(room, _clearing(by, reason))


def _exclusion(refs: Refs, by: str, reason: str) -> Change:
    def make(facts: Facts, state: RoomState) -> Draft | None:
        ranges = existing(facts, state, refs)
        if state.policy.excluding(ranges) == state.policy:
            return None
        return exclude_draft(_each(ranges), by=by, reason=reason)

    return Change(kind=POLICY_EXCLUDE, make=make, by=by, reason=reason)


def _inclusion(refs: Refs, by: str, reason: str) -> Change:
    def make(facts: Facts, state: RoomState) -> Draft | None:
        ranges = existing(facts, state, refs)
        if state.policy.including(ranges) == state.policy:
            return None
        return include_draft(_each(ranges), by=by, reason=reason)

    return Change(kind=POLICY_INCLUDE, make=make, by=by, reason=reason)


def _clearing(by: str, reason: str) -> Change:
    def make(_: Facts, state: RoomState) -> Draft | None:
        if not state.policy.excluded and not state.policy.standins:
            return None
        return clear_draft(by=by, reason=reason)

    return Change(kind=POLICY_CLEAR, make=make, by=by, reason=reason)


def _standin(
    replaces: Refs,
    body: str,
    *,
    insert_after: int | str | Message | None,
    speaker: str,
    kind: str,
    standin_id: str | None,
    by: str,
    reason: str,
) -> Change:
    def make(facts: Facts, state: RoomState) -> Draft | None:
        replaced = _each(existing(facts, state, replaces))
        if insert_after is None:
            after = max(replaced, key=lambda place: (facts.at(*place), place))
        else:
            existing(facts, state, insert_after)
            after = parse_ref(texts(insert_after)[0], state.origin)
        return standin_draft(
            standin_id=standin_id or _next_standin_id(state),
            replaces=replaced,
            body=body,
            insert_after=after,
            speaker=speaker,
            kind=kind,
            by=by,
            reason=reason,
        )

    return Change(kind=POLICY_STANDIN, make=make, by=by, reason=reason)


def _with_facts(change: Change, facts: Mapping[str, Any] | None) -> Change:
    return msgspec.structs.replace(change, facts=dict(facts)) if facts else change


def _next_standin_id(state: RoomState) -> str:
    """Return the first number that no stand-in bears; operations of one room are serial."""
    taken = {standin.id for standin in state.policy.standins}
    return next(str(k) for k in count(len(taken) + 1) if str(k) not in taken)


def _apply(room: Room, change: Change) -> Policy:
    apply_change(room, change)
    return room.policy()


def _plan(room: Room, change: Change) -> Plan:
    def outcome() -> dict[str, Any]:
        policy = room.policy()
        excluded = [
            range_ref(origin, first, last)
            for origin, ranges in sorted(policy.excluded.items())
            for first, last in ranges
        ]
        return {"excluded": excluded, "standins": [standin.id for standin in policy.standins]}

    return plan_change(room, change, outcome=outcome)


def _each(ranges: Ranges) -> list[tuple[str, int]]:
    return [(origin, n) for origin, first, last in ranges for n in range(first, last + 1)]


# --- the ledger as a whole ---------------------------------------------------------------------


def plan_repair(ledger: Ledger, *, full: bool = False) -> Plan:
    """Plan to mend what ``verify`` finds; foreign bytes go to quarantine, none are lost."""
    report = ledger.verify(full=full)
    actions = tuple(f"{issue.code}: {issue.message}" for issue in report.issues)

    def carry_out() -> dict[str, Any]:
        done = ledger.mend(report)
        after = ledger.verify(full=full)
        return {"ok": after.ok, "done": done, "left": [i.as_dict() for i in after.issues]}

    return Plan(
        operation="ledger.repair",
        room="",
        actions=actions or ("nothing: the ledger is sound",),
        details={"ok": report.ok, "issues": [issue.as_dict() for issue in report.issues]},
        carry_out=carry_out,
    )
