"""`rooms root`: which ledger a command would work on."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from agent_chatroom_ledger.cli.options import common
from agent_chatroom_ledger.cli.output import path_text
from agent_chatroom_ledger.cli.terminal import plain

if TYPE_CHECKING:
    from agent_chatroom_ledger.cli.session import Session

SOURCES = {
    "option": "named by --root",
    "environment": "named by ROOMS_ROOT",
    "directory": "the nearest directory upwards",
    "default": "your own",
}


@click.command("root")
@common
@click.pass_obj
def command(session: Session) -> None:
    """Print the ledger's directory.

    It is the one of --root, else of ROOMS_ROOT, else the nearest directory upwards that holds a
    ledger, else the one in your data directory. Why it was chosen, and whether a ledger is there
    yet, is said on stderr.
    """
    root = session.root()
    path = path_text(root.path)
    session.show({"root": path, "source": root.source, "exists": root.exists}, [plain(path)])
    if not session.json:
        session.say(SOURCES[root.source] + ("" if root.exists else "; no ledger there yet"))
