"""`rooms operations`: what was done to rooms, by whom and why."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from agent_chatroom_ledger.cli.options import ROOM, common
from agent_chatroom_ledger.cli.shapes import time_text
from agent_chatroom_ledger.cli.terminal import plain

if TYPE_CHECKING:
    from collections.abc import Iterator

    from agent_chatroom_ledger.cli.session import Session
    from agent_chatroom_ledger.operationlog import LoggedOperation


@click.command("operations")
@click.argument("room_name", metavar="[ROOM]", type=ROOM, required=False)
@click.option(
    "--limit",
    type=click.IntRange(min=1),
    metavar="COUNT",
    help="Only the newest COUNT.",
)
@common
@click.pass_obj
def command(session: Session, room_name: str | None, limit: int | None) -> None:
    """Show the applied operations of all rooms, or of ROOM, oldest first.

    Creating and archiving rooms, policy, members, placements, versions: each with who asked for it,
    why, and its report.
    """
    from agent_chatroom_ledger.operationlog import operations

    with session.read() as ledger:
        found = operations(ledger, room_name, limit=limit)
    session.show({"operations": [_shape(one) for one in found]}, _lines(found))


def _shape(operation: LoggedOperation) -> dict[str, Any]:
    record = operation.record
    return {
        "room": operation.room,
        "operation": record.full_ref,
        "kind": record.kind,
        "at": time_text(record.at),
        "by": record.author,
        "body": record.body,
        "reason": str((record.data or {}).get("reason", "")),
        "report": operation.report,
    }


def _lines(found: list[LoggedOperation]) -> Iterator[str]:
    for operation in found:
        record = operation.record
        place = operation.room.removeprefix("rooms/")
        reason = (record.data or {}).get("reason")
        yield (
            f"{record.at:%Y-%m-%d %H:%M:%SZ}  {plain(place) + ': ' if place else ''}"
            f"{plain(record.body)} ({plain(record.author)})"
            + (f": {plain(str(reason))}" if reason else "")
        )
    if not found:
        yield "No operations."
