"""`rooms reply-all`: answer a message, to all whom it concerns."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from agent_chatroom_ledger.cli.bodies import body_of, file_option
from agent_chatroom_ledger.cli.options import as_option, common, named
from agent_chatroom_ledger.cli.speaking import show_sent, speaker

if TYPE_CHECKING:
    from agent_chatroom_ledger.cli.session import Session


@click.command("reply-all")
@click.argument("record_id", metavar="ID")
@click.argument("text", required=False)
@file_option
@as_option("Who answers.")
@click.option(
    "--id",
    "key",
    metavar="ID",
    help="An id of your own: answering the same again is no second message.",
)
@common
@click.pass_obj
def command(
    session: Session,
    record_id: str,
    text: str | None,
    file: str | None,
    name: str | None,
    key: str | None,
) -> None:
    """Answer the message ID with TEXT, or FILE, or standard input.

    The answer to a direct message goes to its sender and the others it went to; to one from a room,
    into that room. ID is a record's id, or ROOM#N.
    """
    author = named(name)
    body = body_of(text, file)
    with session.write() as ledger:
        sent = speaker(ledger, author).reply_all(record_id, body, key=key)
        show_sent(session, sent, recipients=True)
