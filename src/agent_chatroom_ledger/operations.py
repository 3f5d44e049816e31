"""Administrative operations: planned and reported first, then applied in one transaction each.

A plan validates against the present state without a lock and writes nothing; applying validates
again under the journal's lock, because the room may have moved on meanwhile.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from itertools import count
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

from agent_chatroom_ledger.creation import Wanted, create_room, placed
from agent_chatroom_ledger.domain.names import check_author
from agent_chatroom_ledger.domain.records import Message, encode_record, message_of, record_of
from agent_chatroom_ledger.domain.references import parse_ranges, parse_ref, range_ref
from agent_chatroom_ledger.domain.rooms import (
    applied,
    check_reason,
    clear_draft,
    exclude_draft,
    include_draft,
    standin_draft,
)
from agent_chatroom_ledger.errors import InvalidInput, NotFound
from agent_chatroom_ledger.storage import reading
from agent_chatroom_ledger.storage.reading import MESSAGES, OPERATIONS, log_path

if TYPE_CHECKING:
    from agent_chatroom_ledger.domain.policy import Policy
    from agent_chatroom_ledger.domain.records import Draft
    from agent_chatroom_ledger.domain.roomstate import RoomState
    from agent_chatroom_ledger.ledger import Ledger
    from agent_chatroom_ledger.room import Room
    from agent_chatroom_ledger.storage.present import Present
    from agent_chatroom_ledger.storage.writer import Transaction

Refs: TypeAlias = int | str | Message | Iterable[int | str | Message]
Ranges: TypeAlias = list[tuple[str, int, int]]


@dataclass(frozen=True, kw_only=True)
class Plan:
    """What an operation would do: ``actions`` and ``warnings`` are sentences for a person.

    ``report`` says the same as JSON values. ``apply`` does it and returns the report of what was
    done; it may raise where the ledger has changed since the plan was made.
    """

    operation: str
    room: str
    actions: tuple[str, ...]
    warnings: tuple[str, ...] = ()
    requested_by: str = ""
    reason: str = ""
    details: dict[str, Any] = field(default_factory=dict)
    carry_out: Callable[[], dict[str, Any]] = field(repr=False, compare=False)

    @property
    def report(self) -> dict[str, Any]:
        """The plan as JSON values."""
        return {
            "operation": self.operation,
            "room": self.room,
            "requested_by": self.requested_by,
            "reason": self.reason,
            "actions": list(self.actions),
            "warnings": list(self.warnings),
            **self.details,
        }

    def apply(self) -> dict[str, Any]:
        """Do it, and return the report with what came of it."""
        return {**self.report, **self.carry_out()}


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
    source, overlay = ledger.look()

    def names(directory: str) -> list[str]:
        start = directory + "/"
        inside = {
            room[len(start) :].partition("/")[0] + "/"
            for room in overlay.rooms()
            if room.startswith(start)
        }
        return sorted({*source.names(directory), *inside})

    path = placed(names, lambda p: reading.is_room(source, p, overlay), wanted)
    actions = [f"create the room {wanted.title!r} at {path}"]
    if wanted.members:
        actions.append(f"make members of {', '.join(wanted.members)}")
    warnings = []
    if path.rpartition("/")[2] != wanted.slug:
        warnings.append(f"the name {wanted.slug} is taken, so the room gets a number")

    def carry_out() -> dict[str, Any]:
        room = create_room(ledger, title, folder=folder, members=members, by=by, reason=reason)
        return {"room": room.path, "id": room.id}

    return Plan(
        operation="room.create",
        room=path,
        actions=tuple(actions),
        warnings=tuple(warnings),
        requested_by=by,
        reason=reason,
        details={"title": wanted.title, "members": list(wanted.members)},
        carry_out=carry_out,
    )


# --- the policy of a room ----------------------------------------------------------------------


class _Facts(Protocol):
    """What a change of policy has to know of its room, under the lock or without."""

    def last(self, origin: str) -> int:
        """Return the number of an origin's newest message."""
        ...

    def at(self, origin: str, n: int) -> str:
        """Return the time of a message."""
        ...


# Returns the operation, or None when it would change nothing.
_Make: TypeAlias = Callable[["_Facts", "RoomState"], "Draft | None"]


def exclude(room: Room, refs: Refs, *, by: str = "Ledger", reason: str = "") -> Policy:
    """Leave messages out of a room's view and lenses."""
    return _apply(room, _exclusion(refs, by, reason), by, reason)


def include(room: Room, refs: Refs, *, by: str = "Ledger", reason: str = "") -> Policy:
    """Show messages again that were left out."""
    return _apply(room, _inclusion(refs, by, reason), by, reason)


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
    make = _standin(
        replaces,
        body,
        insert_after=insert_after,
        speaker=speaker,
        kind=kind,
        standin_id=standin_id,
        by=by,
        reason=reason,
    )
    return _apply(room, make, by, reason)


def clear_policy(room: Room, *, by: str = "Ledger", reason: str = "") -> Policy:
    """Take back every exclusion and every stand-in."""
    return _apply(room, _clearing(by, reason), by, reason)


def plan_exclude(room: Room, refs: Refs, *, by: str = "Ledger", reason: str = "") -> Plan:
    """Plan to leave messages out."""
    return _plan(room, "policy.exclude", _exclusion(refs, by, reason), by, reason)


def plan_include(room: Room, refs: Refs, *, by: str = "Ledger", reason: str = "") -> Plan:
    """Plan to show messages again."""
    return _plan(room, "policy.include", _inclusion(refs, by, reason), by, reason)


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
) -> Plan:
    """Plan to show a text in the place of messages."""
    make = _standin(
        replaces,
        body,
        insert_after=insert_after,
        speaker=speaker,
        kind=kind,
        standin_id=standin_id,
        by=by,
        reason=reason,
    )
    return _plan(room, "policy.standin", make, by, reason)


def plan_clear(room: Room, *, by: str = "Ledger", reason: str = "") -> Plan:
    """Plan to take back every exclusion and every stand-in."""
    return _plan(room, "policy.clear", _clearing(by, reason), by, reason)


def _exclusion(refs: Refs, by: str, reason: str) -> _Make:
    def make(facts: _Facts, state: RoomState) -> Draft | None:
        ranges = _existing(facts, state, refs)
        if state.policy.excluding(ranges) == state.policy:
            return None
        return exclude_draft(_each(ranges), by=by, reason=reason)

    return make


def _inclusion(refs: Refs, by: str, reason: str) -> _Make:
    def make(facts: _Facts, state: RoomState) -> Draft | None:
        ranges = _existing(facts, state, refs)
        if state.policy.including(ranges) == state.policy:
            return None
        return include_draft(_each(ranges), by=by, reason=reason)

    return make


def _clearing(by: str, reason: str) -> _Make:
    def make(_: _Facts, state: RoomState) -> Draft | None:
        if not state.policy.excluded and not state.policy.standins:
            return None
        return clear_draft(by=by, reason=reason)

    return make


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
) -> _Make:
    def make(facts: _Facts, state: RoomState) -> Draft | None:
        replaced = _each(_existing(facts, state, replaces))
        if insert_after is None:
            after = max(replaced, key=lambda place: (facts.at(*place), place))
        else:
            _existing(facts, state, insert_after)
            after = parse_ref(_texts(insert_after)[0], state.origin)
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

    return make


def _next_standin_id(state: RoomState) -> str:
    """Return the first number that no stand-in bears; operations of one room are serial."""
    taken = {standin.id for standin in state.policy.standins}
    return next(str(k) for k in count(len(taken) + 1) if str(k) not in taken)


def _apply(room: Room, make: _Make, by: str, reason: str) -> Policy:
    def build(present: Present) -> Sequence[Transaction]:
        from agent_chatroom_ledger.storage.writer import Entry, Transaction

        state = present.room(room.path)
        if state is None:
            raise NotFound(f"There is no room at {room.path}.", room=room.path)
        draft = make(_UnderLock(present, room.path), state)
        if draft is None:
            return ()
        log = log_path(room.path, OPERATIONS, present.origin)
        at = present.next_time()
        record = record_of(draft, present.next_number(log), at, present.new_id())
        # What the fold would skip must not be written: ask it before, under the lock.
        applied(state, message_of(encode_record(record), present.origin, OPERATIONS, True))  # noqa: FBT003 - the fourth of four
        return (Transaction((Entry(log, record),), requested_by=by, reason=reason),)

    check_author(by, "by")
    check_reason(reason)
    room.ledger.transact(build)
    return room.policy()


def _plan(room: Room, operation: str, make: _Make, by: str, reason: str) -> Plan:
    check_author(by, "by")
    check_reason(reason)
    state = room.state()
    draft = make(_WithoutLock(room), state)
    actions = (f"{draft.body} in {room.path}",) if draft else ("nothing: it is so already",)
    details: dict[str, Any] = dict(draft.data or {}) if draft else {}
    details.pop("reason", None)

    def carry_out() -> dict[str, Any]:
        policy = _apply(room, make, by, reason)
        excluded = [
            range_ref(origin, first, last)
            for origin, ranges in sorted(policy.excluded.items())
            for first, last in ranges
        ]
        return {"excluded": excluded, "standins": [standin.id for standin in policy.standins]}

    return Plan(
        operation=operation,
        room=room.path,
        actions=actions,
        requested_by=by,
        reason=reason,
        details=details,
        carry_out=carry_out,
    )


class _UnderLock:
    """Facts of a room as the writer sees it."""

    def __init__(self, present: Present, room: str) -> None:
        self._present = present
        self._room = room

    def last(self, origin: str) -> int:
        """Return the number of an origin's newest message."""
        return self._present.last_number(log_path(self._room, MESSAGES, origin))

    def at(self, origin: str, n: int) -> str:
        """Return the time of a message."""
        record = self._present.record(log_path(self._room, MESSAGES, origin), n)
        return "" if record is None else record.at


class _WithoutLock:
    """Facts of a room as a reader sees it."""

    def __init__(self, room: Room) -> None:
        self._reader = room.reader()
        self._positions = self._reader.positions()

    def last(self, origin: str) -> int:
        """Return the number of an origin's newest message."""
        return self._positions.get(origin, 0)

    def at(self, origin: str, n: int) -> str:
        """Return the time of a message."""
        found = self._reader.find(origin, n)
        return "" if found is None else found.at.isoformat()


def _existing(facts: _Facts, state: RoomState, refs: Refs) -> Ranges:
    """Return the messages that some references name; InvalidInput naming those that are not."""
    ranges = parse_ranges(_texts(refs), state.origin)
    if not ranges:
        raise InvalidInput("Name at least one message.", field="refs", room=state.path)
    missing = []
    for origin, first, last in ranges:
        newest = facts.last(origin)
        if last > newest:
            missing.append(range_ref(origin, max(first, newest + 1), last))
    if missing:
        raise InvalidInput(
            f"{state.path} has no {', '.join(missing)}; nothing was written.",
            field="refs",
            room=state.path,
            missing=missing,
        )
    return ranges


def _texts(refs: Refs) -> list[str]:
    if isinstance(refs, Message):
        return [refs.full_ref]
    if isinstance(refs, str):
        return [part for part in refs.split(",") if part.strip()]
    if isinstance(refs, int):
        return [str(refs)]
    return [text for ref in refs for text in _texts(ref)]


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
