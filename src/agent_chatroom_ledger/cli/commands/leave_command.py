"""`rooms leave`: stop being a member of a room."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from agent_chatroom_ledger.cli.options import as_option, common, named, room_argument
from agent_chatroom_ledger.cli.shapes import message_shape, room_shape
from agent_chatroom_ledger.cli.speaking import speaker
from agent_chatroom_ledger.cli.terminal import plain

if TYPE_CHECKING:
    from agent_chatroom_ledger.cli.session import Session


@click.command("leave")
@room_argument
@click.option(
    "--keep-queued", is_flag=True, help="Still hand over what waits in the inbox from this room."
)
@as_option("Who leaves.")
@common
@click.pass_obj
def command(session: Session, room_name: str, keep_queued: bool, name: str | None) -> None:
    """Stop being a member of ROOM: nothing more comes to your inbox from it.

    The room's messages keep a line that says so, and nothing that was said is lost. What waits in
    your inbox from this room is discarded, and counted, without --keep-queued. The room stays when
    its last member leaves.
    """
    member = named(name)
    with session.write() as ledger:
        done = speaker(ledger, member).leave(room_name, keep_queued=keep_queued)
        document = {
            "room": room_shape(done.room),
            "member": member,
            "left": done.left,
            "event": None if done.event is None else message_shape(done.event),
            "discarded": done.discarded,
        }
        path = done.room.path.removeprefix("rooms/")
        line = f"{member} left {path}" if done.left else f"{member} is no member of {path}"
        if done.discarded:
            what = "1 message" if done.discarded == 1 else f"{done.discarded} messages"
            line += f"; {what} that waited in the inbox will not be handed over"
        session.show(document, [plain(line)])
