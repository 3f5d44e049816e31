"""How administrative commands plan, report and apply."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from agent_chatroom_ledger.cli.terminal import plain

if TYPE_CHECKING:
    from collections.abc import Iterator

    from agent_chatroom_ledger.cli.session import Session
    from agent_chatroom_ledger.plans import Plan


def carry_out(session: Session, plan: Plan, *, apply: bool) -> dict[str, Any]:
    """Show what an operation would do, or do it and show what came of it; returns the report.

    Without `apply` nothing is written, and the same command with `--apply` is shown.
    """
    report = plan.apply() if apply else plan.report
    document: dict[str, Any] = {"applied": apply, "report": report}
    if not apply:
        document["apply_with"] = session.applied_command()
    session.show(document, _lines(document))
    return report


def _lines(document: dict[str, Any]) -> Iterator[str]:
    report = document["report"]
    place = report["room"].removeprefix("rooms/")
    yield f"{report['operation']}: {plain(place)}" if place else report["operation"]
    # What is planned is said in the words of the record that would be written.
    head = "" if document["applied"] else "would record: "
    for action in report["actions"]:
        yield f"  {head}{plain(action['text'])}"
    for warning in report["warnings"]:
        yield f"  warning: {plain(warning)}"
    for done in report.get("done", ()):
        yield f"  done: {plain(done)}"
    for issue in report.get("left", ()):
        yield f"  left: {plain(issue['code'])}: {plain(issue['message'])}"
    if document["applied"]:
        yield "Written."
    else:
        yield "Nothing was written. To write it:"
        yield f"  {plain(document['apply_with'])}"
