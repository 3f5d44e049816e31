"""Placing messages of one room in another: one transaction across both rooms, all of it or none."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from agent_chatroom_ledger.changes import WithoutLock, existing, texts
from agent_chatroom_ledger.domain.drafts import check_draft
from agent_chatroom_ledger.domain.names import check_author
from agent_chatroom_ledger.domain.order import order_key
from agent_chatroom_ledger.domain.placements import (
    MESSAGES_DUPLICATE,
    MESSAGES_PLACE,
    copy_draft,
    copy_id,
    placement_draft,
    require_reason,
    with_provenance,
)
from agent_chatroom_ledger.domain.records import Message, message_of, record_of
from agent_chatroom_ledger.domain.references import full_ref, range_ref
from agent_chatroom_ledger.domain.reports import (
    SKIPPED_DUPLICATE,
    Action,
    operation_report,
    room_facts,
    with_report,
)
from agent_chatroom_ledger.errors import InvalidInput
from agent_chatroom_ledger.plans import NOTHING, Plan
from agent_chatroom_ledger.storage.reading import MESSAGES, OPERATIONS, log_path

if TYPE_CHECKING:
    from collections.abc import Sequence

    from agent_chatroom_ledger.changes import Refs
    from agent_chatroom_ledger.room import Room
    from agent_chatroom_ledger.storage.present import Present
    from agent_chatroom_ledger.storage.writer import Entry, Stored, Transaction


class Placed(msgspec.Struct, frozen=True, kw_only=True):
    """What came of a placement: the copies, the messages that were skipped, and the report.

    The report is empty when every message was skipped; nothing was written then.
    """

    messages: tuple[Message, ...]
    skipped: tuple[Message, ...]
    report: dict[str, Any]


def place(source: Room, refs: Refs, target: Room, *, reason: str, by: str = "Ledger") -> Placed:
    """Copy messages into another room, each with where it came from and why.

    A copy keeps speaker, kind, text, mentions, data and attachments, and when it was said. All of
    it is one commit in both rooms. What was placed in that room for the same reason before is
    skipped. At most 10,000 messages, of 32 MiB together.
    """
    return _Placement(MESSAGES_PLACE, source, refs, target, reason=reason, by=by).apply()


def duplicate(source: Room, refs: Refs, target: Room, *, reason: str, by: str = "Ledger") -> Placed:
    """Copy messages into another room as ``place`` does, those too that are there already."""
    return _Placement(MESSAGES_DUPLICATE, source, refs, target, reason=reason, by=by).apply()


def plan_place(source: Room, refs: Refs, target: Room, *, reason: str, by: str = "Ledger") -> Plan:
    """Plan to place messages in another room."""
    return _Placement(MESSAGES_PLACE, source, refs, target, reason=reason, by=by).plan()


def plan_duplicate(
    source: Room, refs: Refs, target: Room, *, reason: str, by: str = "Ledger"
) -> Plan:
    """Plan to place messages in another room, those too that are there already."""
    return _Placement(MESSAGES_DUPLICATE, source, refs, target, reason=reason, by=by).plan()


class _Placement:
    """A placement with every part checked, and its messages read: they never change any more."""

    def __init__(
        self, kind: str, source: Room, refs: Refs, target: Room, *, reason: str, by: str
    ) -> None:
        self.kind = kind
        self.source = source
        self.target = target
        self.reason = require_reason(reason)
        self.by = check_author(by, "by")
        source.require_active()
        target.require_active()
        self.from_state, self.to_state = source.state(), target.state()
        if source.ledger.root != target.ledger.root:
            raise InvalidInput("both rooms must be of one ledger", field="target")
        if self.from_state.id == self.to_state.id:
            raise InvalidInput(
                f"{source.path} cannot be placed in itself; name another room",
                field="target",
                room=target.path,
            )
        self.refs = texts(refs)
        self.messages = self._read()
        self.drafts = [check_draft(copy_draft(message)) for message in self.messages]
        self.ids = [copy_id(self.from_state.id, m, self.reason) for m in self.messages]

    def _read(self) -> tuple[Message, ...]:
        ranges = existing(WithoutLock(self.source), self.from_state, self.refs)
        reader = self.source.reader()
        found = {m.full_ref: m for one in ranges for m in reader.run(*one)}
        missing = [
            full_ref(origin, n)
            for origin, first, last in ranges
            for n in range(first, last + 1)
            if full_ref(origin, n) not in found
        ]
        if missing:
            raise InvalidInput(
                f"{self.source.path} has no readable {', '.join(missing[:10])}.",
                field="refs",
                room=self.source.path,
                missing=missing[:10],
            )
        self.ranges = [range_ref(*one) for one in ranges]
        return tuple(sorted(found.values(), key=order_key))

    # --- the plan --------------------------------------------------------------------------------

    def plan(self) -> Plan:
        there: set[str] = set()
        if self.kind == MESSAGES_PLACE:
            wanted = set(self.ids)
            there = {m.id for m in self.target.reader().after() if m.id in wanted}
        skipped = [m for m, i in zip(self.messages, self.ids, strict=True) if i in there]
        steps = self._steps(len(self.messages) - len(skipped), len(skipped))
        return Plan(
            operation=self.kind,
            room=self.target.path,
            actions=tuple(step.text for step in steps),
            steps=steps,
            warnings=self._warnings(skipped),
            requested_by=self.by,
            reason=self.reason,
            source=self._source(),
            target=self._target(),
            provenance=self._provenance(),
            details={"messages": self.ranges},
            carry_out=self._carry_out,
        )

    def _carry_out(self) -> dict[str, Any]:
        done = self.apply()
        if not done.report:
            return {"applied": False, "warnings": list(self._warnings(done.skipped))}
        return {**done.report, "dry_run": False}

    def _steps(self, count: int, skipped: int, placed: str = "") -> tuple[Action, ...]:
        where = f"of {self.source.path} in {self.target.path}"
        verb = self.kind.rpartition(".")[2]
        steps = []
        if count:
            facts: dict[str, Any] = {"count": count, "placed": placed} if placed else {}
            facts["count"] = count
            text = f"{verb} {_many(count)} {where}"
            steps.append(Action(type=self.kind, text=text, facts=facts))
        if skipped:
            text = f"{NOTHING if not count else 'skip'}: {_many(skipped)} {where} already"
            steps.append(
                Action(
                    type=self.kind,
                    status=SKIPPED_DUPLICATE,
                    text=text,
                    facts={"count": skipped},
                )
            )
        return tuple(steps)

    def _warnings(self, skipped: Sequence[Message]) -> tuple[str, ...]:
        if not skipped:
            return ()
        shown = ", ".join(message.ref for message in skipped[:10])
        more = ", …" if len(skipped) > 10 else ""
        sentence = (
            f"{_many(len(skipped))} ({shown}{more}) of {self.source.path} stand in "
            f"{self.target.path} for the same reason already: skipped; `rooms duplicate` copies "
            "them again"
        )
        return (sentence,)

    def _source(self) -> dict[str, Any]:
        state = self.from_state
        return room_facts(state.id, state.title, state.path)

    def _target(self) -> dict[str, Any]:
        state = self.to_state
        return room_facts(state.id, state.title, state.path)

    def _provenance(self, operation_id: str = "", at: str = "") -> dict[str, Any]:
        found = {
            "room": self.from_state.id,
            "path": self.from_state.path,
            "reason": self.reason,
            "placed_by": self.by,
        }
        return {**found, "placed_at": at, "operation_id": operation_id} if at else found

    # --- doing it --------------------------------------------------------------------------------

    def apply(self) -> Placed:
        skipped: list[Message] = []
        reports: list[dict[str, Any]] = []

        def build(present: Present) -> Sequence[Transaction]:
            skipped.clear()
            reports.clear()
            return self._build(present, skipped, reports)

        # What the index has to catch up with, it does before the lock and not under it.
        self.target.ledger.index.follow()
        stored = self.target.ledger.transact(build)
        return Placed(
            messages=tuple(self._copies(stored)),
            skipped=tuple(skipped),
            report=reports[0] if reports else {},
        )

    def _copies(self, stored: Sequence[Stored]) -> list[Message]:
        primary = self.to_state.origin
        return [
            message_of(item.line, origin, MESSAGES, origin == primary)
            for item in stored
            if f"/{MESSAGES}/" in item.log
            for origin in (item.log.rpartition("/")[2],)
        ]

    def _build(
        self, present: Present, skipped: list[Message], reports: list[dict[str, Any]]
    ) -> Sequence[Transaction]:
        from agent_chatroom_ledger.storage.writer import Entry, Transaction

        for room in (self.source, self.target):
            room.require_same(present.required(room.path))
        at, operation_id = present.next_time(), present.new_id()
        provenance = self._provenance(operation_id, at)
        copies = self._entries(present, provenance, skipped)
        if not copies:
            return ()
        origin = present.origin
        placed = range_ref(origin, copies[0].record.n, copies[-1].record.n)
        logs = [log_path(r.path, OPERATIONS, origin) for r in (self.target, self.source)]
        n = present.next_number(logs[0])
        report = operation_report(
            self.kind,
            operation_id=operation_id,
            created_at=at,
            requested_by=self.by,
            applied=True,
            actions=self._steps(len(copies), len(skipped), placed),
            source={**self._source(), "messages": self.ranges},
            target={**self._target(), "messages": [placed]},
            provenance=provenance,
            warnings=self._warnings(skipped),
            verification={"ok": True, "record": full_ref(origin, n), "placed": len(copies)},
        )
        reports.append(report)
        draft = placement_draft(
            self.kind,
            source=self._source(),
            target=self._target(),
            messages=self.ranges,
            count=len(copies),
            placed=placed,
            by=self.by,
            reason=self.reason,
        )
        first = record_of(with_report(draft, report), n, at, operation_id)
        # The source's record is the same but for what the two rooms need to tell them apart.
        also = msgspec.structs.replace(with_report(draft, report), cause=operation_id)
        last = record_of(also, present.next_number(logs[1]), present.next_time(), present.new_id())
        entries = (Entry(logs[0], first), *copies, Entry(logs[1], last))
        return (Transaction(entries, requested_by=self.by, reason=self.reason),)

    def _entries(
        self, present: Present, provenance: dict[str, Any], skipped: list[Message]
    ) -> list[Entry]:
        from agent_chatroom_ledger.storage.writer import Entry

        log = log_path(self.target.path, MESSAGES, present.origin)
        taken = present.ids_in_use(self.target.path, self.ids)
        entries = []
        for message, draft, copied in zip(self.messages, self.drafts, self.ids, strict=True):
            if copied in taken and self.kind == MESSAGES_PLACE:
                skipped.append(message)
                continue
            at = present.next_time()
            record_id = present.new_id() if copied in taken else copied
            said = with_provenance(draft, provenance)
            entries.append(Entry(log, record_of(said, present.next_number(log), at, record_id)))
        return entries


def _many(count: int) -> str:
    return f"{count} messages" if count > 1 else "1 message"
