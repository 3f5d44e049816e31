"""Putting a room back: an archived one as a whole, or what a room was as of an earlier commit."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

from agent_chatroom_ledger import versions
from agent_chatroom_ledger.changes import Change, apply_changes, policy_facts
from agent_chatroom_ledger.domain.names import check_author
from agent_chatroom_ledger.domain.reports import NOOP, Action, room_facts
from agent_chatroom_ledger.domain.rooms import (
    MEMBERS_RESTORE,
    POLICY_RESTORE,
    check_reason,
    members_restore_draft,
    policy_restore_drafts,
)
from agent_chatroom_ledger.domain.tombstones import ROOM_ARCHIVE, ROOM_RESTORE
from agent_chatroom_ledger.errors import Conflict, InvalidInput, NotFound
from agent_chatroom_ledger.places import Places
from agent_chatroom_ledger.plans import NOTHING, Plan
from agent_chatroom_ledger.storage import reading
from agent_chatroom_ledger.storage.roomreader import RoomReader

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from datetime import datetime

    from agent_chatroom_ledger.changes import Facts
    from agent_chatroom_ledger.domain.drafts import Draft
    from agent_chatroom_ledger.domain.roomstate import RoomState
    from agent_chatroom_ledger.ledger import Ledger
    from agent_chatroom_ledger.room import Room

Part: TypeAlias = Literal["policy", "members", "versions"]
PARTS: Final[tuple[Part, ...]] = ("policy", "members", "versions")

_RESTORE: Final = "room.restore_from"


# --- an archived room --------------------------------------------------------------------------


def plan_archive(ledger: Ledger, room: Room, *, by: str = "Ledger", reason: str = "") -> Plan:
    """Plan to archive a room; it can still be found, listed and read."""
    room.require_active()
    check_author(by, "by")
    check_reason(reason)
    state = room.state()

    def carry_out() -> dict[str, Any]:
        stone = ledger.archive_room(room, by=by, reason=reason)
        return {"id": stone.id, "commit": stone.commit, **_newest(ledger, ROOM_ARCHIVE, state.id)}

    return Plan(
        operation=ROOM_ARCHIVE,
        room=room.path,
        actions=(f"archive {room.path}: its directory goes, its history stays",),
        requested_by=by,
        reason=reason,
        source=room_facts(state.id, state.title, state.path),
        target=room_facts(state.id, state.title, state.path, status="archived"),
        provenance={"requested_by": by, "reason": reason},
        carry_out=carry_out,
    )


def plan_unarchive(ledger: Ledger, room: Room, *, by: str = "Ledger", reason: str = "") -> Plan:
    """Plan to put an archived room back as it was; Conflict when it is not archived."""
    stone = room.tombstone
    if stone is None:
        raise Conflict(f"{room.path} is not archived.", code="not_archived", room=room.path)
    check_author(by, "by")
    check_reason(reason)
    path = Places.as_seen(ledger).for_old(stone.path)
    warnings: tuple[str, ...] = ()
    if path != stone.path:
        warnings = (f"{stone.path} is taken meanwhile, so the room comes back at {path}",)

    def carry_out() -> dict[str, Any]:
        back = ledger.restore_room(room, by=by, reason=reason)
        return {"room": back.path, "id": back.id, **_newest(ledger, ROOM_RESTORE, stone.id)}

    return Plan(
        operation=ROOM_RESTORE,
        room=stone.path,
        actions=(f"put back {stone.path} as it was in {stone.commit[:12]}",),
        warnings=warnings,
        requested_by=by,
        reason=reason,
        source=room_facts(stone.id, stone.title, stone.path, commit=stone.commit),
        target=room_facts(stone.id, stone.title, path, status="active"),
        provenance={"requested_by": by, "reason": reason},
        carry_out=carry_out,
    )


def plan_bring_back(
    ledger: Ledger,
    name: str,
    source: str | datetime | None = None,
    *,
    only: Iterable[Part] = PARTS,
    by: str = "Ledger",
    reason: str = "",
) -> Plan | None:
    """Plan to put back a room whose directory a commit that is not the ledger's removed.

    The room is named by its path or the last part of it. With ``source`` its policy, members and
    versions then become what they were at that commit or time. None when no such room is missing.
    """
    # A revision such as HEAD~2 names another commit once the room is back.
    commit = None if source is None else ledger.commit_at(source)
    plain = name.removeprefix(f"{reading.ROOMS}/").strip("/")
    report = ledger.verify()
    missing = tuple(
        issue
        for issue in report.issues
        if issue.code == "room_missing"
        and plain in {issue.path.removeprefix(f"{reading.ROOMS}/"), issue.path.rpartition("/")[2]}
    )
    if len(missing) != 1:
        return None
    path = missing[0].path

    def carry_out() -> dict[str, Any]:
        done = ledger.mend(dataclasses.replace(report, issues=missing))
        room = ledger.room(path)
        if commit is not None:
            plan = plan_restore_from(room, commit, only=only, by=by, reason=reason)
            plan.apply()
            done += list(plan.actions)
        state = room.state()
        return {"done": done, "target": room_facts(state.id, state.title, state.path)}

    then = () if commit is None else (f"then put back what it was at {commit[:12]}",)
    return Plan(
        operation="ledger.repair",
        room=path,
        actions=(f"put back {path}, which a commit that is not the ledger's removed", *then),
        target={"path": path},
        carry_out=carry_out,
    )


def _newest(ledger: Ledger, kind: str, room_id: str) -> dict[str, Any]:
    """Return id and time of the newest operation of a kind on a room, from the ledger's own log."""
    source, overlay = ledger.look()
    own = RoomReader(source, overlay, "", primary="")
    for message in own.descending(log=reading.OPERATIONS):
        if message.kind == kind and (message.data or {}).get("id") == room_id:
            return {
                "operation_id": message.id,
                "verification": {"ok": True, "record": message.full_ref},
            }
    raise NotFound(f"the operation {kind} on {room_id} left no record", id=room_id)


# --- what a room was ---------------------------------------------------------------------------


def restore_from(
    room: Room,
    source: str | datetime,
    *,
    only: Iterable[Part] = PARTS,
    by: str = "Ledger",
    reason: str = "",
) -> list[dict[str, Any]]:
    """Put back a room's policy, members and versions as they stood at a commit or time.

    ``only`` names what is put back. Messages are never dropped, whenever they were posted. All is
    one commit; its reports are returned, none when nothing differs. Raises NotFound when there was
    no such room then.
    """
    return _Restoring(room, source, only, by, reason).apply()


def plan_restore_from(
    room: Room,
    source: str | datetime,
    *,
    only: Iterable[Part] = PARTS,
    by: str = "Ledger",
    reason: str = "",
) -> Plan:
    """Plan to put back a room's policy, members and versions as they stood."""
    return _Restoring(room, source, only, by, reason).plan()


class _Restoring:
    """What a room was at a commit, and the operations that bring it back."""

    def __init__(
        self, room: Room, source: str | datetime, only: Iterable[Part], by: str, reason: str
    ) -> None:
        self.room = room
        self.by = check_author(by, "by")
        self.reason = check_reason(reason)
        self.only = tuple(dict.fromkeys(only))
        if unknown := [part for part in self.only if part not in PARTS]:
            raise InvalidInput(
                f"only {', '.join(PARTS)} can be put back, not {str(unknown[0])[:40]!r}",
                field="only",
            )
        room.require_active()
        self.now = room.state()
        self.commit = room.ledger.commit_at(source)
        self.then = room.state(self.commit)
        self.artifacts: list[bytes] = []

    def changes(self) -> list[Change]:
        found: list[Change] = []
        if "policy" in self.only:
            drafts = policy_restore_drafts(
                self.then.policy, self.commit, by=self.by, reason=self.reason
            )
            found += self._each(POLICY_RESTORE, drafts, lambda s: s.policy == self.then.policy)
        if "members" in self.only:
            draft = members_restore_draft(
                self.then.members, self.commit, by=self.by, reason=self.reason
            )
            found += self._each(MEMBERS_RESTORE, [draft], lambda s: s.members == self.then.members)
        if "versions" in self.only:
            self.artifacts.clear()
            for draft, artifact in versions.drafts_to_restore(
                self.room, self.commit, by=self.by, reason=self.reason
            ):
                if artifact is not None:
                    self.artifacts.append(artifact)
                found += self._each(draft.kind, [draft], lambda _: False)
        return found

    def _each(
        self, kind: str, drafts: list[Draft], is_so: Callable[[RoomState], bool]
    ) -> list[Change]:
        """Return a change for each of some operations, which are all needed or none of them."""
        needed: list[bool] = []

        def make(draft: Draft, state: RoomState) -> Draft | None:
            if draft is drafts[0]:
                needed[:] = [not is_so(state)]
            return draft if needed[0] else None

        def maker(draft: Draft) -> Callable[[Facts, RoomState], Draft | None]:
            return lambda _, state: make(draft, state)

        facts = {"from": self.commit}
        return [
            Change(kind=kind, make=maker(draft), by=self.by, reason=self.reason, facts=facts)
            for draft in drafts
        ]

    def plan(self) -> Plan:
        steps = self._steps()
        return Plan(
            operation=_RESTORE,
            room=self.room.path,
            actions=tuple(step.text for step in steps),
            steps=steps,
            requested_by=self.by,
            reason=self.reason,
            source=room_facts(self.then.id, self.then.title, self.then.path, commit=self.commit),
            target=room_facts(self.now.id, self.now.title, self.now.path),
            provenance={"requested_by": self.by, "reason": self.reason, "from": self.commit},
            compile_policy=policy_facts(self.then.policy) if "policy" in self.only else None,
            details={"commit": self.commit, "only": list(self.only)},
            carry_out=self._carry_out,
        )

    def _steps(self) -> tuple[Action, ...]:
        as_of = f"as of {self.commit[:12]}"
        found = []
        if "policy" in self.only and self.now.policy != self.then.policy:
            found.append(Action(type=POLICY_RESTORE, text=f"restore the policy {as_of}"))
        if "members" in self.only and self.now.members != self.then.members:
            names = ", ".join(self.then.members) or "nobody"
            found.append(Action(type=MEMBERS_RESTORE, text=f"restore the members {as_of}: {names}"))
        if "versions" in self.only:
            count = len(versions.drafts_to_restore(self.room, self.commit, by=self.by))
            if count:
                text = f"restore the versions of {count} messages {as_of}"
                found.append(Action(type="versions.restore", text=text, facts={"count": count}))
        if not found:
            found.append(Action(type=_RESTORE, text=f"{NOTHING}: all is {as_of}", status=NOOP))
        return tuple(found)

    def _carry_out(self) -> dict[str, Any]:
        reports = self.apply()
        if not reports:
            return {"applied": False}
        ids = [report["operation_id"] for report in reports]
        return {"operation_id": ids[0], "operations": ids, "verification": {"ok": True}}

    def apply(self) -> list[dict[str, Any]]:
        changes = self.changes()
        for artifact in self.artifacts:
            versions.store(self.room.ledger, artifact)
        return apply_changes(self.room, changes, by=self.by, reason=self.reason)
