"""`rooms read`: the messages of a room."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from agent_chatroom_ledger.cli.indexed import timed
from agent_chatroom_ledger.cli.options import at_option, common, moment_of, room_argument
from agent_chatroom_ledger.cli.shapes import message_shape, room_shape
from agent_chatroom_ledger.cli.transcript import transcript

if TYPE_CHECKING:
    from agent_chatroom_ledger.cli.session import Session


@click.command("read")
@room_argument
@click.option("--since", metavar="N", help="Only messages after number N (57, or 57@origin).")
@click.option("--last", type=click.IntRange(min=1), metavar="COUNT", help="Only the newest COUNT.")
@click.option("--limit", type=click.IntRange(min=1), metavar="COUNT", help="Only the first COUNT.")
@at_option
@click.option("--kind", metavar="KIND", help="Only messages of this kind.")
@common
@click.pass_obj
def command(
    session: Session,
    room_name: str,
    since: str | None,
    last: int | None,
    limit: int | None,
    at: str | None,
    kind: str | None,
) -> None:
    """Read the messages of ROOM, oldest first.

    Reads everything that was said, whatever the policy leaves out of the compiled view; `rooms
    lens` applies the policy. Reading moves no cursor.
    """
    if last is not None and limit is not None:
        raise click.UsageError("--last and --limit exclude each other.")
    when = moment_of(at)
    with timed(session, when) as ledger:
        room = ledger.room(room_name, at=when)
        messages = room.messages(since=since or 0, limit=limit, last=last, at=when, kind=kind)
        document = (
            {}
            if not session.json
            else {
                "room": room_shape(room),
                "messages": [message_shape(message) for message in messages],
            }
        )
        session.show(document, transcript(messages, session.paint))
