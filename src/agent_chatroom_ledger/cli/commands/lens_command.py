"""`rooms lens`: a room as its policy shows it, computed from the logs alone."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from agent_chatroom_ledger.cli.options import common, room_argument
from agent_chatroom_ledger.cli.shapes import message_shape, policy_shape, room_shape, standin_shape
from agent_chatroom_ledger.cli.transcript import transcript
from agent_chatroom_ledger.domain.policy import StandIn

if TYPE_CHECKING:
    from agent_chatroom_ledger.cli.session import Session
    from agent_chatroom_ledger.domain.lenses import LensItem


@click.command("lens")
@room_argument
@click.option("--at", metavar="WHEN", help="As of a commit or a time (an ISO time, 2h, yesterday).")
@common
@click.pass_obj
def command(session: Session, room_name: str, at: str | None) -> None:
    """Show ROOM as its policy has it.

    That is without what is left out and with the stand-ins. It is computed from the logs alone,
    works while the compiled view is missing or broken, and changes nothing.
    """
    from agent_chatroom_ledger.cli.moments import moment

    with session.read() as ledger:
        room = ledger.room(room_name)
        lens = room.lens(at=moment(at))
        document: dict[str, Any] = {}
        if session.json:
            document = {
                "room": room_shape(room),
                "items": [_item(item) for item in lens.items],
                "policy": policy_shape(lens.policy),
            }
        session.show(document, transcript(lens.items, session.paint))


def _item(item: LensItem) -> dict[str, Any]:
    if isinstance(item, StandIn):
        return {"standin": standin_shape(item)}
    return {"message": message_shape(item)}
