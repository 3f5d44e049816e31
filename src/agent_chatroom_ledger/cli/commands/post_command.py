"""`rooms post`: say something in a room."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from agent_chatroom_ledger.cli.bodies import body_of, file_option
from agent_chatroom_ledger.cli.options import as_option, common, named, room_argument
from agent_chatroom_ledger.cli.speaking import show_sent, speaker
from agent_chatroom_ledger.errors import InvalidInput, NotFound
from agent_chatroom_ledger.limits import DATA_BYTES_MAX

if TYPE_CHECKING:
    from agent_chatroom_ledger.cli.session import Session
    from agent_chatroom_ledger.ledger import Ledger
    from agent_chatroom_ledger.room import Room


@click.command("post")
@room_argument
@click.argument("text", required=False)
@file_option
@as_option("Who speaks.")
@click.option(
    "--kind",
    default="message",
    show_default=True,
    metavar="KIND",
    help="message, proposal, review, decision, status, system, event, or your own word.",
)
@click.option(
    "--to", multiple=True, metavar="NAME", help="A recipient; repeat it for more; * is all."
)
@click.option(
    "--mention", "mentions", multiple=True, metavar="NAME", help="A name that is mentioned."
)
@click.option("--reply-to", metavar="REF", help="The message that this one replies to.")
@click.option("--correlation", metavar="ID", help="What ties several messages together.")
@click.option("--cause", metavar="ID", help="The id of the record that this one answers.")
@click.option("--status", metavar="TEXT", help="A status that goes with the message.")
@click.option(
    "--id",
    "record_id",
    metavar="ID",
    help="An id of your own: posting the same again is no second message.",
)
@click.option("--data", metavar="JSON", help="A JSON object, or @FILE with one.")
@click.option("--create", is_flag=True, help="Make the room when it is missing.")
@common
@click.pass_obj
def command(
    session: Session,
    room_name: str,
    text: str | None,
    file: str | None,
    name: str | None,
    kind: str,
    to: tuple[str, ...],
    mentions: tuple[str, ...],
    reply_to: str | None,
    correlation: str | None,
    cause: str | None,
    status: str | None,
    record_id: str | None,
    data: str | None,
    create: bool,
) -> None:
    """Post TEXT, or FILE, or standard input, to ROOM.

    The text is stored as it comes: nothing is trimmed, and a line end at its end stays. When the
    command returns, the message is on stable storage and committed. With --create a missing room
    is made, `folder/title`, and without any ledger your own one begins.
    """
    author = named(name)
    body = body_of(text, file)
    fields = _data(data)
    with session.write(create=create) as ledger:
        room = ledger.ensure_room(room_name, by=author) if create else _found(ledger, room_name)
        sent = speaker(ledger, author).post(
            room,
            body,
            kind=kind,
            to=to,
            mentions=mentions,
            reply_to=reply_to,
            correlation=correlation,
            cause=cause,
            status=status,
            key=record_id,
            data=fields,
        )
        show_sent(session, sent, recipients=False)


def _found(ledger: Ledger, name: str) -> Room:
    try:
        return ledger.room(name)
    except NotFound as error:
        near = error.fields.get("candidates", [])
        raise NotFound(f"{error.message} --create makes it.", room=name, candidates=near) from None


def _data(text: str | None) -> dict[str, Any] | None:
    if text is None:
        return None
    import msgspec

    content = text.encode("utf-8", "surrogateescape")
    if text.startswith("@"):
        from pathlib import Path

        with Path(text[1:]).open("rb") as stream:
            content = stream.read(DATA_BYTES_MAX + 1)
    try:
        return msgspec.json.decode(content, type=dict[str, Any])
    except msgspec.MsgspecError as error:
        raise InvalidInput(f"--data is not a JSON object: {error}", field="data") from None
