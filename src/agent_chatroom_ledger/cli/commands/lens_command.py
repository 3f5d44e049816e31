"""`rooms lens`: a room as its policy shows it, computed from the logs alone."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from agent_chatroom_ledger.cli.indexed import timed
from agent_chatroom_ledger.cli.options import at_option, common, moment_of, room_argument
from agent_chatroom_ledger.cli.shapes import message_shape, policy_shape, room_shape, standin_shape
from agent_chatroom_ledger.cli.transcript import transcript
from agent_chatroom_ledger.domain.policy import StandIn

if TYPE_CHECKING:
    from agent_chatroom_ledger.cli.session import Session
    from agent_chatroom_ledger.domain.lenses import LensItem


@click.command("lens")
@room_argument
@at_option
@common
@click.pass_obj
def command(session: Session, room_name: str, at: str | None) -> None:
    """Show ROOM as its policy has it.

    That is without what is left out and with the stand-ins. It is computed from the logs alone,
    works while the compiled view is missing or broken, and changes nothing.
    """
    when = moment_of(at)
    with timed(session, when) as ledger:
        room = ledger.room(room_name, at=when)
        lens = room.lens(at=when)
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
