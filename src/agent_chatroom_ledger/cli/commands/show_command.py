"""`rooms show`: what a room is."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from agent_chatroom_ledger.cli.indexed import timed
from agent_chatroom_ledger.cli.options import at_option, common, moment_of, room_argument
from agent_chatroom_ledger.cli.output import path_text
from agent_chatroom_ledger.cli.shapes import policy_shape
from agent_chatroom_ledger.cli.terminal import plain
from agent_chatroom_ledger.cli.transcript import position_text

if TYPE_CHECKING:
    from collections.abc import Iterator

    from agent_chatroom_ledger.cli.session import Session


@click.command("show")
@room_argument
@at_option
@common
@click.pass_obj
def command(session: Session, room_name: str, at: str | None) -> None:
    """Show what ROOM is.

    Its members, who made it, how far it has come, its policy, and where its view is.
    """
    when = moment_of(at)
    with timed(session, when) as ledger:
        room = ledger.room(room_name, at=when)
        state = room.state(when)
        visible = room.visible_path
        document = {
            "id": state.id,
            "title": state.title,
            "path": state.path,
            "folder": state.folder,
            "slug": state.slug,
            "members": list(state.members),
            "origin": state.origin,
            "created_at": state.created_at,
            "created_by": state.created_by,
            "newest": room.reader(when).positions(),
            "policy": policy_shape(state.policy),
            "visible_path": None if visible is None else path_text(visible),
        }
    session.show(document, _lines(document))


def _lines(room: dict[str, Any]) -> Iterator[str]:
    policy = room["policy"]
    rows = {
        "title": room["title"],
        "path": room["path"],
        "id": room["id"],
        "members": ", ".join(room["members"]) or "none",
        "created": f"{room['created_at']} by {room['created_by']}, origin {room['origin']}",
        "newest": position_text(room["newest"], room["origin"]),
        "left out": ", ".join(policy["excluded"]) or "nothing",
        "stand-ins": str(len(policy["standins"]) or "none"),
        "view": room["visible_path"] or "not compiled yet",
    }
    width = max(map(len, rows))
    for name, value in rows.items():
        yield f"{name.ljust(width)}  {plain(value)}"
