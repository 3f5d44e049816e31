"""`rooms tail`: the newest messages of a room, and those that follow."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from agent_chatroom_ledger.cli import output
from agent_chatroom_ledger.cli.options import ROOM, common
from agent_chatroom_ledger.cli.shapes import message_shape, room_shape
from agent_chatroom_ledger.cli.transcript import transcript, transcript_of_rooms

if TYPE_CHECKING:
    from collections.abc import Iterator

    from agent_chatroom_ledger.cli.session import Session
    from agent_chatroom_ledger.domain.records import Message
    from agent_chatroom_ledger.ledger import Ledger
    from agent_chatroom_ledger.room import Room


@click.command("tail")
@click.argument("room_name", metavar="[ROOM]", type=ROOM, required=False)
@click.option("-f", "--follow", is_flag=True, help="Go on with what is posted, until interrupted.")
@click.option(
    "-n",
    "--last",
    "count",
    type=click.IntRange(min=0),
    default=10,
    show_default=True,
    metavar="COUNT",
    help="Begin with the newest COUNT messages of ROOM.",
)
@common
@click.pass_obj
def command(session: Session, room_name: str | None, follow: bool, count: int) -> None:
    """Show the newest messages of ROOM, and with -f those that follow.

    With -f and without ROOM every room is followed, from now on. With -f and --json each message
    is one line of JSON, written as soon as there is one. It ends on Ctrl-C, with status 130, or
    when its reader ends, with status 0. Reading moves no cursor.
    """
    if room_name is None and not follow:
        raise click.UsageError("Give ROOM, or -f to follow every room.")
    with session.read() as ledger:
        room = None if room_name is None else ledger.room(room_name)
        if room is None or follow:
            _follow(session, ledger, room, count)
            return
        messages = room.messages(last=count)
        document = {}
        if session.json:
            document = {
                "room": room_shape(room),
                "messages": [message_shape(message) for message in messages],
            }
        session.show(document, transcript(messages, session.paint))


def _follow(session: Session, ledger: Ledger, room: Room | None, count: int) -> None:
    """Show the newest messages and then every one that follows; only an interrupt ends it."""
    from agent_chatroom_ledger.cli.pipes import end_with_reader

    end_with_reader()
    found = ledger.changes() if room is None else _newest_and_following(ledger, room, count)
    if session.json:
        for place, message in found:
            output.write_json_line({"room": room_shape(place), "message": message_shape(message)})
        return
    if room is None:
        lines = transcript_of_rooms(
            ((place.path, message) for place, message in found), session.paint
        )
    else:
        lines = transcript((message for _, message in found), session.paint)
    output.write_lines(lines, flush=True)


def _newest_and_following(ledger: Ledger, room: Room, count: int) -> Iterator[tuple[Room, Message]]:
    # The position comes first: what is posted between the two is left to the follower, which goes
    # on from there, so that nothing is shown twice and nothing is missed.
    position = room.last_position()
    for message in room.messages(last=count):
        if message.n <= position.get(message.origin, 0):
            yield room, message
    yield from ledger.changes(room, since=position)
