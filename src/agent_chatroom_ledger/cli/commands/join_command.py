"""`rooms join`: become a member of a room."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from agent_chatroom_ledger.cli.options import as_option, common, named, room_argument
from agent_chatroom_ledger.cli.shapes import message_shape, room_shape
from agent_chatroom_ledger.cli.speaking import speaker
from agent_chatroom_ledger.cli.terminal import plain

if TYPE_CHECKING:
    from agent_chatroom_ledger.cli.session import Session


@click.command("join")
@room_argument
@as_option("Who joins.")
@common
@click.pass_obj
def command(session: Session, room_name: str, name: str | None) -> None:
    """Become a member of ROOM: its messages come to your inbox from now on.

    The room's messages keep a line that says so. What was said before can be read, and is not
    handed over. A member already changes nothing.
    """
    member = named(name)
    with session.write() as ledger:
        done = speaker(ledger, member).join(room_name)
        document = {
            "room": room_shape(done.room),
            "member": member,
            "joined": done.joined,
            "event": None if done.event is None else message_shape(done.event),
        }
        path = done.room.path.removeprefix("rooms/")
        line = f"{member} joined {path}" if done.joined else f"{member} is a member of {path}"
        session.show(document, [plain(line)])
