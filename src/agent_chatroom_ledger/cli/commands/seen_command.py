"""`rooms seen`: acknowledge what was read."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from agent_chatroom_ledger.cli.options import as_option, common, named, room_argument
from agent_chatroom_ledger.cli.output import path_text
from agent_chatroom_ledger.cli.shapes import room_shape
from agent_chatroom_ledger.cli.terminal import plain
from agent_chatroom_ledger.cli.transcript import position_text

if TYPE_CHECKING:
    from agent_chatroom_ledger.cli.session import Session
    from agent_chatroom_ledger.ledger import Ledger


@click.command("seen")
@room_argument
@as_option("Who has read.")
@click.option("--through", metavar="N", help="Through this message; default: all there are now.")
@click.option("--rewind", is_flag=True, help="Let the cursor move back; N may be 0.")
@click.option("--cursor", metavar="FILE", help="The cursor's file, when it is kept elsewhere.")
@common
@click.pass_obj
def command(
    session: Session,
    room_name: str,
    name: str | None,
    through: str | None,
    rewind: bool,
    cursor: str | None,
) -> None:
    """Move a consumer's cursor in ROOM past what was read.

    A cursor only moves forward: an older number leaves it where it is, unless --rewind says
    otherwise. A number past the end is an error.
    """
    who = named(name)
    with _opened(session) as ledger:
        room = ledger.room(room_name)
        consumer = ledger.consumer(who, cursor=cursor)
        before = consumer.position(room)
        after = consumer.acknowledge(room, through, rewind=rewind)
        document = {
            "consumer": consumer.name,
            "room": room_shape(room),
            "position": after,
            "moved": after != before,
            "cursor": path_text(consumer.cursor_path),
        }
        done = "has seen" if after != before else "had seen"
        path = plain(room.path.removeprefix("rooms/"))
        reached = position_text(after, room.origin)
        session.show(document, [f"{plain(consumer.name)} {done} {path} through {reached}"])


def _opened(session: Session) -> Ledger:
    """Open the ledger for reading, which starts faster: only a file beside it is written.

    A fresh clone has no place for that file yet; opening it for writing makes one.
    """
    ledger = session.read()
    if ledger.layout.cursors.is_dir():
        return ledger
    ledger.close()
    return session.write()
