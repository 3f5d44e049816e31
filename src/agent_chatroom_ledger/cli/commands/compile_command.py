"""`rooms compile`: bring a room's compiled view up to date."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from agent_chatroom_ledger.cli.options import common, room_argument
from agent_chatroom_ledger.cli.output import path_text
from agent_chatroom_ledger.cli.shapes import room_shape
from agent_chatroom_ledger.cli.terminal import plain

if TYPE_CHECKING:
    from agent_chatroom_ledger.cli.session import Session


@click.command("compile")
@room_argument
@common
@click.pass_obj
def command(session: Session, room_name: str) -> None:
    """Rebuild the compiled view of ROOM: Markdown pages, one for each day.

    Pages that are right already are left alone; missing, broken and outdated ones are written
    again, in a commit of their own.
    """
    with session.write() as ledger:
        room = ledger.room(room_name)
        pages = [path_text(page) for page in room.compile()]
        visible = room.visible_path
        newest = None if visible is None else path_text(visible)
    document = {"room": room_shape(room), "pages": pages, "visible_path": newest}
    lines = [plain(page) for page in pages] or ["The view is up to date."]
    session.show(document, lines)
