"""A change of one room's state: one operation, with its report, in one transaction.

What it depends on is looked at twice: for the plan without a lock, and again under the journal's
lock when it is applied, because the room may have moved on meanwhile.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

import msgspec

from agent_chatroom_ledger.domain.names import check_author
from agent_chatroom_ledger.domain.records import Message, encode_record, message_of, record_of
from agent_chatroom_ledger.domain.references import full_ref, parse_ranges, range_ref
from agent_chatroom_ledger.domain.reports import Action, operation_report, room_facts, with_report
from agent_chatroom_ledger.domain.rooms import applied, check_reason
from agent_chatroom_ledger.errors import Corrupt, InvalidInput
from agent_chatroom_ledger.plans import NOTHING, Plan
from agent_chatroom_ledger.storage.reading import MESSAGES, OPERATIONS, log_path

if TYPE_CHECKING:
    from collections.abc import Sequence

    from agent_chatroom_ledger.domain.drafts import Draft
    from agent_chatroom_ledger.domain.policy import Policy
    from agent_chatroom_ledger.domain.roomstate import RoomState
    from agent_chatroom_ledger.room import Room
    from agent_chatroom_ledger.storage.present import Present
    from agent_chatroom_ledger.storage.writer import Entry, Transaction


class Facts(Protocol):
    """What a change has to know of its room, under the lock or without."""

    def last(self, origin: str) -> int:
        """Return the number of an origin's newest message."""
        ...

    def at(self, origin: str, n: int) -> str:
        """Return the time of a message."""
        ...


# Messages as a caller names them: numbers, references, messages, or text such as "3,5-9".
Refs: TypeAlias = int | str | Message | Iterable[int | str | Message]
Ranges: TypeAlias = list[tuple[str, int, int]]
# Returns the operation, or None when it would change nothing.
Make: TypeAlias = Callable[[Facts, "RoomState"], "Draft | None"]


class Change(msgspec.Struct, frozen=True, kw_only=True):
    """A change that somebody asks for: which kind of operation, and how it is made.

    ``facts`` go into the provenance of its report.
    """

    kind: str
    make: Make
    by: str
    reason: str = ""
    facts: Mapping[str, Any] = {}

    def provenance(self) -> dict[str, Any]:
        """Return who asked, why, and what else there is to say of where it came from."""
        return {"requested_by": self.by, "reason": self.reason, **self.facts}


def apply_change(room: Room, change: Change) -> dict[str, Any]:
    """Make the change, if there is anything to change, and return its report; else nothing."""
    reports = apply_changes(room, [change], by=change.by, reason=change.reason)
    return reports[0] if reports else {}


def apply_changes(
    room: Room, changes: Sequence[Change], *, by: str, reason: str = ""
) -> list[dict[str, Any]]:
    """Make several changes in one transaction, each on top of those before it.

    Returns the reports of those that changed anything; nothing is written when none did.
    """
    room.require_active()
    check_author(by, "by")
    check_reason(reason)
    reports: list[dict[str, Any]] = []

    def build(present: Present) -> Sequence[Transaction]:
        from agent_chatroom_ledger.storage.writer import Transaction

        reports.clear()
        state = state_of(present, room)
        facts = _UnderLock(present, room.path)
        entries = []
        for change in changes:
            draft = change.make(facts, state)
            if draft is not None:
                entry, report, state = operation_entry(present, state, draft, change.provenance())
                entries.append(entry)
                reports.append(report)
        if not entries:
            return ()
        return (Transaction(tuple(entries), requested_by=by, reason=reason),)

    room.ledger.transact(build)
    return reports


def plan_change(
    room: Room,
    change: Change,
    *,
    nothing: str = "it is so already",
    outcome: Callable[[], dict[str, Any]] | None = None,
) -> Plan:
    """Plan the change; ``outcome`` is asked for further fields of the report when it is done."""
    room.require_active()
    check_author(change.by, "by")
    check_reason(change.reason)
    state = room.state()
    draft = change.make(WithoutLock(room), state)
    details: dict[str, Any] = dict(draft.data or {}) if draft else {}
    details.pop("reason", None)

    def carry_out() -> dict[str, Any]:
        return {**apply_change(room, change), **(outcome() if outcome else {})}

    return Plan(
        operation=change.kind,
        room=room.path,
        actions=(f"{draft.body} in {room.path}" if draft else f"{NOTHING}: {nothing}",),
        requested_by=change.by,
        reason=change.reason,
        details=details,
        target=room_facts(state.id, state.title, state.path),
        provenance=change.provenance(),
        compile_policy=policy_facts(state.policy) if change.kind.startswith("policy.") else None,
        carry_out=carry_out,
    )


def state_of(present: Present, room: Room) -> RoomState:
    """Return the state of a room that may be changed.

    NotFound when there is none, and Conflict when it is archived or another room has its path by
    now. Corrupt when the room's own file gives it another path: whoever believed that would change
    the room that lies there.
    """
    state = room.require_same(present.required(room.path))
    if state.path != room.path:
        raise Corrupt(
            f"The file room.json of {room.path} says that it lies at {state.path}; run "
            "`rooms verify`, and `rooms verify --repair --apply` makes it right.",
            code="room_misplaced",
            room=room.path,
        )
    return state


def existing(facts: Facts, state: RoomState, refs: Refs) -> Ranges:
    """Return the messages that some references name; InvalidInput naming those that are not."""
    ranges = parse_ranges(texts(refs), state.origin)
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


def texts(refs: Refs) -> list[str]:
    """Return the references that somebody gave, each as text."""
    if isinstance(refs, Message):
        return [refs.full_ref]
    if isinstance(refs, str):
        return [part for part in refs.split(",") if part.strip()]
    if isinstance(refs, int):
        return [str(refs)]
    return [text for ref in refs for text in texts(ref)]


def policy_facts(policy: Policy) -> dict[str, Any]:
    """Return how much a policy leaves out, and how many stand-ins it shows."""
    ranges = [pair for found in policy.excluded.values() for pair in found]
    return {
        "excluded_count": sum(last - first + 1 for first, last in ranges),
        "standin_count": len(policy.standins),
    }


def operation_entry(
    present: Present, state: RoomState, draft: Draft, provenance: Mapping[str, Any]
) -> tuple[Entry, dict[str, Any], RoomState]:
    """Return an operation's entry with its report in it, the report, and the state after it.

    Under the journal's lock. Raises InvalidInput or Conflict for one that breaks a rule.
    """
    from agent_chatroom_ledger.storage.writer import Entry

    log = log_path(state.path, OPERATIONS, present.origin)
    n, at = present.next_number(log), present.next_time()
    record = record_of(draft, n, at, present.new_id())
    # What the fold would skip must not be written: ask it before, under the lock.
    after = applied(
        state, message_of(encode_record(record), present.origin, OPERATIONS, primary=True)
    )
    report = operation_report(
        draft.kind,
        operation_id=record.id,
        created_at=at,
        requested_by=draft.author,
        applied=True,
        actions=[Action(type=draft.kind, text=f"{draft.body} in {state.path}")],
        target=room_facts(state.id, state.title, state.path),
        provenance=provenance,
        compile_policy=policy_facts(after.policy) if draft.kind.startswith("policy.") else None,
        verification={"ok": True, "record": full_ref(present.origin, n)},
    )
    return Entry(log, record_of(with_report(draft, report), n, at, record.id)), report, after


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


class WithoutLock:
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
