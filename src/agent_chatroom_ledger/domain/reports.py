"""Reports of administrative operations: what one would do, or has done, as JSON values.

A report has the same fields in a plan, in what a call returns, and in the ``data`` of the record
that an applied operation leaves in its room's operations log. It holds no body of a message.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

import msgspec

from agent_chatroom_ledger.domain.clock import from_datetime
from agent_chatroom_ledger.domain.drafts import check_draft

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from agent_chatroom_ledger.domain.drafts import Draft
    from agent_chatroom_ledger.domain.records import Message

REPORT: Final = "report"
NOOP: Final = "noop"
SKIPPED_DUPLICATE: Final = "skipped_duplicate"

# The last part of an operation's kind, and the word for its having been done.
_DONE: Final[dict[str, str]] = {
    "add": "added",
    "archive": "archived",
    "clear": "cleared",
    "create": "created",
    "duplicate": "duplicated",
    "exclude": "excluded",
    "include": "included",
    "place": "placed",
    "remove": "removed",
    "repair": "repaired",
    "restore": "restored",
    "set": "set",
    "standin": "added",
}


class Action(msgspec.Struct, frozen=True, kw_only=True):
    """One thing that an operation does: its type, a sentence, and further facts.

    ``status`` is for what has one whether or not it is applied, such as ``noop``; otherwise it
    follows from the type: ``would_place``, and ``placed`` when it was done.
    """

    type: str
    text: str = ""
    status: str = ""
    facts: Mapping[str, Any] = {}

    def as_dict(self, *, applied: bool) -> dict[str, Any]:
        """Return the action as JSON values."""
        verb = self.type.rpartition(".")[2]
        status = self.status or (_DONE.get(verb, "done") if applied else f"would_{verb}")
        shown: dict[str, Any] = {"type": self.type, "status": status, **self.facts}
        return {**shown, "text": self.text} if self.text else shown


def operation_report(
    operation_type: str,
    *,
    operation_id: str,
    created_at: str,
    requested_by: str,
    applied: bool,
    actions: Iterable[Action] = (),
    dry_run: bool | None = None,
    source: Mapping[str, Any] | None = None,
    target: Mapping[str, Any] | None = None,
    provenance: Mapping[str, Any] | None = None,
    compile_policy: Mapping[str, Any] | None = None,
    warnings: Sequence[str] = (),
    verification: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """Return the report of an operation.

    ``operation_id`` is the id of its record once it is applied; ``source`` and ``target`` name
    rooms (room_facts); ``created_at`` is in the stored form.
    """
    return {
        "operation_id": operation_id,
        "operation_type": operation_type,
        "dry_run": not applied if dry_run is None else dry_run,
        "applied": applied,
        "requested_by": requested_by,
        "created_at": created_at,
        "source": _object(source),
        "target": _object(target),
        "actions": [action.as_dict(applied=applied) for action in actions],
        "provenance": _object(provenance),
        "compile_policy": _object(compile_policy),
        "warnings": list(warnings),
        "verification": _object(verification),
    }


def _object(facts: Mapping[str, Any] | None) -> dict[str, Any] | None:
    return None if facts is None else dict(facts)


def room_facts(room_id: str, title: str, path: str, **further: object) -> dict[str, Any]:
    """Return how a report names a room."""
    return {"id": room_id, "title": title, "path": path, **further}


def with_report(draft: Draft, report: Mapping[str, Any]) -> Draft:
    """Return an operation's draft with its report; raises InvalidInput when it grows too large."""
    data = {**(draft.data or {}), REPORT: dict(report)}
    return check_draft(msgspec.structs.replace(draft, data=data))


_FIELDS: Final = frozenset(
    operation_report("", operation_id="", created_at="", requested_by="", applied=True)
)


def report_of(message: Message) -> dict[str, Any]:
    """Return the report that an operation's record holds.

    One that holds none, written by an older version or by hand, gets a short one from its fields.
    """
    found = (message.data or {}).get(REPORT)
    if isinstance(found, dict) and found.keys() >= _FIELDS:
        return found
    data = message.data or {}
    named = [text for f in ("id", "title", "path") if isinstance(text := data.get(f), str)]
    about = room_facts(*named) if len(named) == len(("id", "title", "path")) else None
    return operation_report(
        message.kind,
        operation_id=message.id,
        created_at=from_datetime(message.at),
        requested_by=message.author,
        applied=True,
        actions=[Action(type=message.kind, text=message.body)],
        target=about,
        provenance={"requested_by": message.author, "reason": str(data.get("reason", ""))},
    )
