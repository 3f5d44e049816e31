"""`rooms coverage`: which rooms list a name as a member."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import click

from agent_chatroom_ledger.cli.options import common
from agent_chatroom_ledger.cli.terminal import plain

if TYPE_CHECKING:
    from collections.abc import Iterator

    from agent_chatroom_ledger.cli.session import Session
    from agent_chatroom_ledger.listing import RoomSummary


@click.command("coverage")
@click.argument("member", metavar="NAME")
@click.option(
    "--status",
    type=click.Choice(["active", "archived", "all"]),
    default="active",
    show_default=True,
    help="Which rooms to look at.",
)
@common
@click.pass_obj
def command(session: Session, member: str, status: Literal["active", "archived", "all"]) -> None:
    """Tell which rooms list NAME as a member, and which do not."""
    from agent_chatroom_ledger.members import coverage

    with session.read() as ledger:
        found = coverage(ledger, member, status)
    document = {
        "name": found.name,
        "status": status,
        "listed": [_shape(room) for room in found.listed],
        "not_listed": [_shape(room) for room in found.not_listed],
    }
    session.show(document, _lines(document))


def _shape(room: RoomSummary) -> dict[str, Any]:
    return {"id": room.id, "title": room.title, "path": room.path, "status": room.status}


def _lines(document: dict[str, Any]) -> Iterator[str]:
    for key, words in (("listed", "Member of"), ("not_listed", "Not a member of")):
        yield f"{words} {len(document[key])}:"
        for room in document[key]:
            mark = " (archived)" if room["status"] == "archived" else ""
            yield f"  {plain(room['path'].removeprefix('rooms/'))}{mark}"
