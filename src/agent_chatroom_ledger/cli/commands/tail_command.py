"""`rooms tail`: the newest messages of a room, and those that follow."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from agent_chatroom_ledger.cli import output
from agent_chatroom_ledger.cli.options import ROOM, as_option, common
from agent_chatroom_ledger.cli.shapes import message_shape, room_shape
from agent_chatroom_ledger.cli.transcript import transcript, transcript_of_rooms

if TYPE_CHECKING:
    from collections.abc import Iterator
    from contextlib import AbstractContextManager

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
@as_option("With -f: who follows, and is woken by a message; without ROOM only what is for NAME.")
@common
@click.pass_obj
def command(
    session: Session, room_name: str | None, follow: bool, count: int, name: str | None
) -> None:
    """Show the newest messages of ROOM, and with -f those that follow.

    With -f and without ROOM every room is followed, from now on; with --as too, what is addressed
    to NAME or said by others in NAME's rooms. With -f and --json each message is one line of JSON,
    written as soon as there is one. It ends on Ctrl-C, with status 130, or when its reader ends,
    with status 0. Reading moves no cursor and hands nothing over: the inbox still gives it.
    """
    if room_name is None and not follow:
        raise click.UsageError("Give ROOM, or -f to follow every room.")
    if name is not None and not follow:
        raise click.UsageError("--as goes with -f.")
    with session.read() as ledger:
        room = None if room_name is None else ledger.room(room_name)
        if room is None or follow:
            from agent_chatroom_ledger.cli.pipes import end_on_terminate, end_with_reader

            end_on_terminate()
            end_with_reader()
            if room is not None and room.tombstone is not None:
                session.say(f"{room.path} is archived: nothing comes before it is restored.")
            with _known_as(ledger, name):
                _follow(session, _found(ledger, room, count, name), one=room is not None)
            return
        messages = room.messages(last=count)
        document = {}
        if session.json:
            document = {
                "room": room_shape(room),
                "messages": [message_shape(message) for message in messages],
            }
        session.show(document, transcript(messages, session.paint))


def _known_as(ledger: Ledger, name: str | None) -> AbstractContextManager[None]:
    """Let a message to a name count as waking it, as long as it is followed."""
    from contextlib import nullcontext

    if name is None:
        return nullcontext()
    from agent_chatroom_ledger.presence import waiter

    return waiter(ledger, name)


def _found(
    ledger: Ledger, room: Room | None, count: int, name: str | None
) -> Iterator[tuple[Room, Message]]:
    if room is not None:
        return _newest_and_following(ledger, room, count)
    if name is None:
        return ledger.changes()
    from agent_chatroom_ledger.following import changes_for

    return changes_for(ledger, name)


def _follow(session: Session, found: Iterator[tuple[Room, Message]], *, one: bool) -> None:
    """Show messages as they come; only an interrupt, or its reader's end, ends it."""
    if session.json:
        for place, message in found:
            output.write_json_line({"room": room_shape(place), "message": message_shape(message)})
        return
    if one:
        lines = transcript((message for _, message in found), session.paint)
    else:
        lines = transcript_of_rooms(
            ((place.path, message) for place, message in found), session.paint
        )
    output.write_lines(lines, flush=True)


def _newest_and_following(ledger: Ledger, room: Room, count: int) -> Iterator[tuple[Room, Message]]:
    # The position comes first: what is posted between the two is left to the follower, which goes
    # on from there, so that nothing is shown twice and nothing is missed.
    position = room.last_position()
    for message in room.messages(last=count):
        if message.n <= position.get(message.origin, 0):
            yield room, message
    yield from ledger.changes(room, since=position)
