"""The JSON documents of administrative commands: plans, reports, members."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec

from agent_chatroom_ledger.cli.schemabase import RoomRef, Shape, Time


class ActionShape(msgspec.Struct, kw_only=True):
    """One thing that is done; some types add what they are about.

    The status is would_… in a plan, then a word such as placed or excluded; noop and
    skipped_duplicate in both.
    """

    type: str
    status: str
    text: str | None = None


class OperationReport(msgspec.Struct, kw_only=True):
    """The report of an operation; the record of an applied one keeps it."""

    operation_id: Annotated[str, msgspec.Meta(description="of its record, once it is applied")]
    operation_type: str
    dry_run: bool
    applied: bool
    requested_by: str
    created_at: Time
    source: dict[str, Any] | None
    target: dict[str, Any] | None
    actions: list[ActionShape]
    provenance: dict[str, Any] | None
    compile_policy: dict[str, Any] | None
    warnings: list[str]
    verification: dict[str, Any] | None


class PlanReport(OperationReport, kw_only=True):
    """What an operation would do, or has done; each operation adds what it is about."""

    operation: str
    room: Annotated[str, msgspec.Meta(description="its path; empty for the whole ledger")]
    reason: str


class PlanDocument(Shape):
    """A plan, or what came of it; `apply_with` is the command that writes it."""

    applied: bool
    report: PlanReport
    apply_with: str | None = None


class MembersDocument(Shape):
    """The members of a room; a plan with add and remove."""

    room: RoomRef
    members: list[str]


class CoveredRoom(Shape):
    """A room, active or archived."""

    id: str
    title: str
    path: str
    status: str


class CoverageDocument(Shape):
    """The rooms of a status that list a name as a member, and those that do not."""

    name: str
    status: str
    listed: list[CoveredRoom]
    not_listed: list[CoveredRoom]


class OperationItem(Shape):
    """An applied operation: its record in a room's log, or the ledger's own, and its report."""

    room: Annotated[str, msgspec.Meta(description="its path; empty for the ledger's own log")]
    operation: Annotated[str, msgspec.Meta(description="7@origin, in that log")]
    kind: str
    at: Time
    by: str
    body: str
    reason: str
    report: OperationReport


class OperationsDocument(Shape):
    """The applied operations, oldest first."""

    operations: list[OperationItem]
