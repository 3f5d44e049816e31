"""`rooms init`: make a ledger."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import click

from agent_chatroom_ledger.cli.options import common
from agent_chatroom_ledger.cli.output import path_text
from agent_chatroom_ledger.cli.root import ROOT_VARIABLE
from agent_chatroom_ledger.cli.terminal import plain
from agent_chatroom_ledger.roots import named_root

if TYPE_CHECKING:
    from agent_chatroom_ledger.cli.session import Session


@click.command("init")
@click.argument("directory", metavar="[DIR]", required=False, type=click.Path(file_okay=False))
@common
@click.pass_obj
def command(session: Session, directory: str | None) -> None:
    """Make a ledger in DIR.

    DIR is a new or existing directory; without it the one of --root, else of ROOMS_ROOT, else the
    current one. A ledger that is there already is left as it is, and the exit status is 0 all the
    same.
    """
    from agent_chatroom_ledger.ledger import Ledger

    named = directory or session.root_option or os.environ.get(ROOT_VARIABLE) or "."
    path = named_root(named)
    before = Ledger.find(path) == path
    with Ledger.open(path, create=True) as ledger:
        shown = path_text(ledger.root)
        document = {"root": shown, "origin": ledger.origin, "created": not before}
    done = "is a ledger already" if before else "is a ledger now"
    session.show(document, [f"{plain(shown)} {done} (origin {plain(document['origin'])})"])
