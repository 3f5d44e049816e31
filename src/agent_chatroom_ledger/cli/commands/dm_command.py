"""`rooms dm`: write to somebody."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from agent_chatroom_ledger.cli.bodies import body_of, file_option
from agent_chatroom_ledger.cli.options import as_option, common, named
from agent_chatroom_ledger.cli.speaking import show_sent, speaker

if TYPE_CHECKING:
    from agent_chatroom_ledger.cli.session import Session


@click.command("dm")
@click.argument("names", metavar="NAME[,NAME…]")
@click.argument("text", required=False)
@file_option
@as_option("Who writes.")
@click.option("--exact", is_flag=True, help="NAME is one name, commas and all.")
@click.option("--correlation", metavar="ID", help="What ties several messages together.")
@click.option("--cause", metavar="ID", help="The id of the record that this one answers.")
@click.option(
    "--id",
    "record_id",
    metavar="ID",
    help="An id of your own: writing the same again is no second message.",
)
@common
@click.pass_obj
def command(
    session: Session,
    names: str,
    text: str | None,
    file: str | None,
    name: str | None,
    exact: bool,
    correlation: str | None,
    cause: str | None,
    record_id: str | None,
) -> None:
    """Write TEXT, or FILE, or standard input, to NAME and nobody else.

    Several names, at most 32, have one conversation together. It is a room of its own in the
    folder `direct`, with history and audit like any other: a direct message is no secret. It
    reaches a name whether or not anybody runs under it. Shows how soon each receiver will read it.
    """
    author = named(name)
    body = body_of(text, file)
    receivers = [names] if exact else [part.strip() for part in names.split(",") if part.strip()]
    with session.write() as ledger:
        sent = speaker(ledger, author).dm(
            receivers, body, correlation=correlation, cause=cause, key=record_id
        )
        show_sent(session, sent, recipients=True)
