"""`rooms list`: the rooms of the ledger."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import click

from agent_chatroom_ledger.cli.indexed import indexed, timed
from agent_chatroom_ledger.cli.options import at_option, common, moment_of
from agent_chatroom_ledger.cli.shapes import time_text
from agent_chatroom_ledger.cli.terminal import table

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from agent_chatroom_ledger.cli.session import Session
    from agent_chatroom_ledger.listing import RoomSummary


@click.command("list")
@click.option("--folder", metavar="PATH", help="Only rooms in this folder and below it.")
@click.option("--member", metavar="NAME", help="Only rooms that list this member.")
@click.option(
    "--status",
    type=click.Choice(["active", "archived", "all"]),
    default="active",
    help="Which rooms; archived ones are left out unless asked for.",
)
@at_option
@common
@click.pass_obj
def command(
    session: Session,
    folder: str | None,
    member: str | None,
    status: Literal["active", "archived", "all"],
    at: str | None,
) -> None:
    """List the rooms.

    Shows each room's path and title, how many records it holds, and the time of the newest.
    """
    when = moment_of(at)
    with indexed(session) if when is None else timed(session, when) as ledger:
        rooms = [
            room
            for room in ledger.rooms(at=when, status=status)
            if (folder is None or _is_below(room.folder, folder.strip("/")))
            and (member is None or member in room.members)
        ]
    session.show({"rooms": [_shape(room) for room in rooms]}, _lines(rooms))


def _is_below(folder: str, wanted: str) -> bool:
    return not wanted or folder == wanted or folder.startswith(wanted + "/")


def _shape(room: RoomSummary) -> dict[str, Any]:
    return {
        "id": room.id,
        "title": room.title,
        "path": room.path,
        "status": room.status,
        "folder": room.folder,
        "members": list(room.members),
        "origin": room.origin,
        "created_at": time_text(room.created_at),
        "created_by": room.created_by,
        "newest": room.positions,
        "last_at": None if room.last_at is None else time_text(room.last_at),
    }


def _lines(rooms: Iterable[RoomSummary]) -> Iterator[str]:
    rows = [
        (
            room.path.removeprefix("rooms/"),
            room.title if room.status == "active" else f"{room.title} ({room.status})",
            sum(room.positions.values()),
            "" if room.last_at is None else f"{room.last_at:%Y-%m-%d %H:%M:%SZ}",
        )
        for room in rooms
    ]
    if rows:
        yield from table(("room", "title", "records", "newest"), rows)
    else:
        yield "No rooms."
