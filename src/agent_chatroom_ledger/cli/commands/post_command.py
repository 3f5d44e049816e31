"""`rooms post`: say something in a room."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import click

from agent_chatroom_ledger.cli.options import as_option, common, named, room_argument
from agent_chatroom_ledger.cli.shapes import message_shape, room_shape
from agent_chatroom_ledger.cli.terminal import plain
from agent_chatroom_ledger.errors import InvalidInput, NotFound
from agent_chatroom_ledger.limits import BODY_BYTES_MAX, DATA_BYTES_MAX

if TYPE_CHECKING:
    from typing import BinaryIO

    from agent_chatroom_ledger.cli.session import Session
    from agent_chatroom_ledger.ledger import Ledger
    from agent_chatroom_ledger.room import Room


@click.command("post")
@room_argument
@click.argument("text", required=False)
@click.option(
    "--file",
    "file",
    metavar="FILE",
    help="Take the text from FILE, byte for byte; - is standard input.",
)
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
    fields: dict[str, Any] = {
        "kind": kind,
        "to": to,
        "mentions": mentions,
        "reply_to": reply_to,
        "correlation": correlation,
        "cause": cause,
        "status": status,
        "id": record_id,
        "data": _data(data),
    }
    body = _body(text, file)
    with session.write(create=create) as ledger:
        room = ledger.ensure_room(room_name, by=author) if create else _found(ledger, room_name)
        message = room.post(author, body, **fields)
        document = {"room": room_shape(room), "message": message_shape(message)}
        session.show(document, [f"{plain(room.path.removeprefix('rooms/'))} #{message.ref}"])


def _found(ledger: Ledger, name: str) -> Room:
    try:
        return ledger.room(name)
    except NotFound as error:
        near = error.fields.get("candidates", [])
        raise NotFound(f"{error.message} --create makes it.", room=name, candidates=near) from None


def _body(text: str | None, file: str | None) -> str:
    if text is not None and file is not None:
        raise click.UsageError("TEXT and --file exclude each other.")
    if text is not None:
        return text
    if file is not None and file != "-":
        with open(file, "rb") as stream:  # noqa: PTH123 - the path as typed, without pathlib
            return _decoded(stream, file)
    if sys.stdin is None:
        raise click.UsageError("Give TEXT, --file FILE, or standard input.")
    if sys.stdin.isatty():
        sys.stderr.write("The text, then Ctrl-D:\n")
    return _decoded(sys.stdin.buffer, "standard input")


def _decoded(stream: BinaryIO, source: str) -> str:
    """Read a body; a stream that is too long is not read to its end."""
    content = stream.read(BODY_BYTES_MAX + 1)
    if len(content) > BODY_BYTES_MAX:
        raise InvalidInput(
            f"{source} is longer than a message may be (BODY_BYTES_MAX, {BODY_BYTES_MAX} bytes); "
            "post it in parts, or name the file in the text.",
            field="body",
            limit=BODY_BYTES_MAX,
        )
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError as error:
        raise InvalidInput(
            f"{source} is not UTF-8: byte {content[error.start]:#04x} at offset {error.start}.",
            field="body",
            offset=error.start,
        ) from None


def _data(text: str | None) -> dict[str, Any] | None:
    if text is None:
        return None
    import msgspec

    content = text.encode("utf-8", "surrogateescape")
    if text.startswith("@"):
        with open(text[1:], "rb") as stream:  # noqa: PTH123 - as above
            content = stream.read(DATA_BYTES_MAX + 1)
    try:
        return msgspec.json.decode(content, type=dict[str, Any])
    except msgspec.MsgspecError as error:
        raise InvalidInput(f"--data is not a JSON object: {error}", field="data") from None
