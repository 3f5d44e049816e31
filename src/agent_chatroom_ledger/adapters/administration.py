"""Operations with a report, as the earlier chatroom had them: a dry run unless `apply` is set."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple, TypeAlias

from agent_chatroom_ledger import members, operationlog, operations, placement, restoring
from agent_chatroom_ledger.adapters.chatroom import chat_id
from agent_chatroom_ledger.domain.display import one_line
from agent_chatroom_ledger.domain.placements import MESSAGES_DUPLICATE, MESSAGES_PLACE
from agent_chatroom_ledger.domain.references import parse_refs
from agent_chatroom_ledger.domain.reports import operation_report
from agent_chatroom_ledger.errors import InvalidInput, NotFound
from agent_chatroom_ledger.ledger import Ledger

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from agent_chatroom_ledger.listing import RoomSummary
    from agent_chatroom_ledger.plans import Plan
    from agent_chatroom_ledger.room import Room

# Who asks for operations through an interface that names nobody.
ASKER: Final = "ChatroomService"

Mode: TypeAlias = Literal["detailed-standin", "short-standin", "no-standin"]
MODES: Final[tuple[Mode, ...]] = ("detailed-standin", "short-standin", "no-standin")
_BEGINNING_CHARS: Final = 80

# What the earlier interface called the operations.
_TYPES: Final = {
    "room.create": "create_room",
    "room.archive": "archive_room",
    "room.restore": "restore_room",
    "members.add": "add_participant",
    "members.remove": "remove_participant",
    "policy.exclude": "exclude_messages",
    "policy.include": "include_messages",
    "policy.standin": "add_standin",
    "policy.clear": "clear_compile_policy",
}
# A policy that was applied with a mode is one of these operations.
_MODAL: Final = frozenset({"policy.exclude", "policy.standin"})
_FIELDS: Final = tuple(
    operation_report("", operation_id="", created_at="", requested_by="", applied=False)
)


class _Request(NamedTuple):
    """What somebody asks to be placed."""

    source: str | Path
    refs: str
    target: str | Path
    reason: str
    by: str


class AdministrativeCalls:
    """The part of ChatroomService that plans and reports before it writes.

    Every call takes `requested_by` and `apply`, and returns a report: operation_id,
    operation_type, dry_run, applied, requested_by, created_at, source, target, actions, provenance,
    compile_policy, warnings and verification.
    """

    root: Path

    def create_room_operation(
        self,
        title: str,
        folder: str = "Parking_Lot",
        participants: Sequence[str] | None = None,
        *,
        reason: str = "",
        requested_by: str = ASKER,
        apply: bool = False,
    ) -> dict[str, Any]:
        """Make a room; a taken title gets a room `…_2`, with a warning."""
        with self._ledger(apply=apply) as ledger:
            plan = operations.plan_create(
                ledger,
                title,
                folder=folder,
                members=participants or (),
                by=requested_by,
                reason=reason,
            )
            return carried_out(plan, apply=apply)

    def archive_room_operation(
        self, ref: str | Path, *, reason: str = "", requested_by: str = ASKER, apply: bool = False
    ) -> dict[str, Any]:
        """Archive a room; it can still be listed and read."""
        with self._ledger(apply=apply) as ledger:
            room = room_of(ledger, ref)
            plan = restoring.plan_archive(ledger, room, by=requested_by, reason=reason)
            return carried_out(plan, apply=apply)

    def restore_room_operation(
        self, ref: str | Path, *, reason: str = "", requested_by: str = ASKER, apply: bool = False
    ) -> dict[str, Any]:
        """Bring an archived room back as it was."""
        with self._ledger(apply=apply) as ledger:
            room = room_of(ledger, ref)
            plan = restoring.plan_unarchive(ledger, room, by=requested_by, reason=reason)
            return carried_out(plan, apply=apply)

    def apply_compile_policy_operation(
        self,
        ref: str | Path,
        ids: Iterable[int | str],
        *,
        mode: Mode = "detailed-standin",
        standin_message: str | None = None,
        reason: str = "",
        requested_by: str = ASKER,
        apply: bool = False,
    ) -> dict[str, Any]:
        """Leave messages out, and show a text in their place unless the mode is `no-standin`.

        `standin_message` is that text. Without one, `short-standin` says how many messages are
        left out, and `detailed-standin` also who said them and how each begins. Raises ValueError
        for another mode and for ids that do not exist.
        """
        if mode not in MODES:
            raise InvalidInput(f"mode is one of {', '.join(MODES)}", field="mode")
        refs = list(ids)
        with self._ledger(apply=apply) as ledger:
            room = room_of(ledger, ref)
            if mode == "no-standin":
                plan = operations.plan_exclude(
                    room, refs, by=requested_by, reason=reason, facts={"mode": mode}
                )
            else:
                text = standin_message or _summary(room, refs, detailed=mode == MODES[0])
                plan = operations.plan_standin(
                    room, refs, text, by=requested_by, reason=reason, facts={"mode": mode}
                )
            report = carried_out(plan, apply=apply)
            if apply:
                room.compile()
        return report

    def read_operation_log(self, limit: int | None = None) -> list[dict[str, Any]]:
        """Return the reports of the operations that were applied, oldest first.

        Those of all rooms, archived ones too; `limit` keeps the newest.
        """
        with Ledger.open(self.root, read_only=True) as ledger:
            found = operationlog.operations(ledger, limit=limit)
            return [operation_shape(one.report) for one in found]

    def add_participant_operation(
        self,
        ref: str | Path,
        name: str,
        *,
        threshold_chars: int | None = None,
        reason: str = "",
        requested_by: str = ASKER,
        apply: bool = False,
    ) -> dict[str, Any]:
        """Make somebody a participant; `threshold_chars` is kept with the operation."""
        with self._ledger(apply=apply) as ledger:
            plan = members.plan_add(
                room_of(ledger, ref),
                name,
                by=requested_by,
                reason=reason,
                threshold_chars=threshold_chars,
            )
            return carried_out(plan, apply=apply)

    def remove_participant_operation(
        self,
        ref: str | Path,
        name: str,
        *,
        reason: str = "",
        requested_by: str = ASKER,
        apply: bool = False,
    ) -> dict[str, Any]:
        """Take somebody off the participants; what was said stays."""
        with self._ledger(apply=apply) as ledger:
            plan = members.plan_remove(room_of(ledger, ref), name, by=requested_by, reason=reason)
            return carried_out(plan, apply=apply)

    def participant_coverage(
        self, name: str, status: Literal["active", "archived", "all"] = "active"
    ) -> dict[str, Any]:
        """Tell which rooms of a status list a name as a participant, and which do not."""
        with Ledger.open(self.root, read_only=True) as ledger:
            found = members.coverage(ledger, name, status)
        return {
            "participant": name,
            "status": status,
            "chat_count": len(found.listed) + len(found.not_listed),
            "listed_count": len(found.listed),
            "missing_count": len(found.not_listed),
            "listed": [_summary_shape(room) for room in found.listed],
            "missing": [_summary_shape(room) for room in found.not_listed],
        }

    def place_message_operation(
        self,
        source: str | Path,
        message_id: int | str,
        target: str | Path,
        *,
        placement_reason: str,
        requested_by: str = ASKER,
        apply: bool = False,
    ) -> dict[str, Any]:
        """Copy a message into another room; the same for the same reason again is skipped.

        Raises ValueError without a reason.
        """
        plan_of = placement.plan_place
        request = _Request(source, str(message_id), target, placement_reason, requested_by)
        return self._placed(plan_of, request, apply=apply)

    def place_range_operation(
        self,
        source: str | Path,
        start: int,
        end: int,
        target: str | Path,
        *,
        placement_reason: str,
        requested_by: str = ASKER,
        apply: bool = False,
    ) -> dict[str, Any]:
        """Copy messages `start` to `end`, at most 10,000, as place_message_operation does.

        Raises ValueError without a reason.
        """
        plan_of = placement.plan_place
        request = _Request(source, f"{start}-{end}", target, placement_reason, requested_by)
        return self._placed(plan_of, request, apply=apply)

    def duplicate_message_operation(
        self,
        source: str | Path,
        message_id: int | str,
        target: str | Path,
        *,
        placement_reason: str,
        requested_by: str = ASKER,
        apply: bool = False,
    ) -> dict[str, Any]:
        """Copy a message into another room, even where it stands already.

        Raises ValueError without a reason.
        """
        plan_of = placement.plan_duplicate
        request = _Request(source, str(message_id), target, placement_reason, requested_by)
        return self._placed(plan_of, request, apply=apply)

    def duplicate_range_operation(
        self,
        source: str | Path,
        start: int,
        end: int,
        target: str | Path,
        *,
        placement_reason: str,
        requested_by: str = ASKER,
        apply: bool = False,
    ) -> dict[str, Any]:
        """Copy messages `start` to `end`, even where they stand already.

        Raises ValueError without a reason.
        """
        plan_of = placement.plan_duplicate
        request = _Request(source, f"{start}-{end}", target, placement_reason, requested_by)
        return self._placed(plan_of, request, apply=apply)

    def _placed(
        self, plan_of: Callable[..., Plan], request: _Request, *, apply: bool
    ) -> dict[str, Any]:
        with self._ledger(apply=apply) as ledger:
            plan = plan_of(
                room_of(ledger, request.source),
                request.refs,
                room_of(ledger, request.target),
                reason=request.reason,
                by=request.by,
            )
            return carried_out(plan, apply=apply)

    def _ledger(self, *, apply: bool) -> Ledger:
        return Ledger.open(self.root, read_only=not apply)


def room_of(ledger: Ledger, ref: str | Path) -> Room:
    """Find a room by id, or by a path that is absolute or begins at the ledger's root."""
    text = str(ref)
    if Path(text).is_absolute():
        try:
            text = Path(text).resolve().relative_to(ledger.root.resolve()).as_posix()
        except ValueError:
            raise NotFound(f"there is no room at {text!r}", room=text) from None
    return ledger.room(text)


def _summary(room: Room, refs: Sequence[int | str], *, detailed: bool) -> str:
    """Return the text of a stand-in for which nobody has written one."""
    places = list(dict.fromkeys(parse_refs(",".join(map(str, refs)), room.origin)))
    first = f"{len(places)} messages are left out."
    if len(places) == 1:
        first = "1 message is left out."
    if not detailed:
        return first
    reader = room.reader()
    said = [message for place in places if (message := reader.find(*place)) is not None]
    lines = [f"#{m.ref} {m.author}: {one_line(m.body, _BEGINNING_CHARS)}" for m in said]
    return "\n".join((first, *lines))


def operation_shape(report: Mapping[str, Any]) -> dict[str, Any]:
    """Return a report as the earlier interface has it: exactly its fields, and its own names."""
    shape: dict[str, Any] = {field: report.get(field) for field in _FIELDS}
    shape["operation_type"] = _type_of(report["operation_type"], report)
    if "mode" in (report["provenance"] or {}) and report["operation_type"] in _MODAL:
        shape["operation_type"] = "apply_compile_policy"
    shape["source"] = _side(report["source"])
    shape["target"] = _side(report["target"])
    shape["actions"] = [
        {**action, "type": _type_of(action["type"], report)} for action in report["actions"]
    ]
    return shape


def _type_of(kind: str, report: Mapping[str, Any]) -> str:
    if kind in {MESSAGES_PLACE, MESSAGES_DUPLICATE}:
        many = sum(action.get("count", 0) for action in report["actions"]) > 1
        return f"{kind.rpartition('.')[2]}_{'range' if many else 'message'}"
    return _TYPES.get(kind, kind)


def _side(facts: Mapping[str, Any] | None) -> dict[str, Any] | None:
    if facts is None:
        return None
    known = {"id", "title"}
    named = {"chat_id": chat_id(facts["id"]) if facts["id"] else None, "chat_title": facts["title"]}
    return {**named, **{key: value for key, value in facts.items() if key not in known}}


def carried_out(plan: Plan, *, apply: bool) -> dict[str, Any]:
    """Return the report of a plan, or of what came of it when it is applied."""
    return operation_shape(plan.apply() if apply else plan.report)


def _summary_shape(room: RoomSummary) -> dict[str, Any]:
    return {
        "chat_id": chat_id(room.id),
        "chat_title": room.title,
        "status": room.status,
        "path": room.path,
    }
