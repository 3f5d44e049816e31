"""`rooms import`: bring in what was said elsewhere."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from agent_chatroom_ledger.cli.options import ROOM, common
from agent_chatroom_ledger.cli.shapes import room_shape
from agent_chatroom_ledger.cli.terminal import plain, progress

if TYPE_CHECKING:
    from collections.abc import Iterator

    from agent_chatroom_ledger.cli.session import Session

# A person reads a few; --json lists what the report holds.
BAD_LINES_SHOWN_MAX = 20


@click.group("import")
@common
def command() -> None:
    """Import conversations from elsewhere.

    Each message becomes a commit of its own.
    """


@command.command("irc")
@click.argument("files", metavar="FILE...", nargs=-1, required=True)
@click.option(
    "--room",
    "room_name",
    metavar="ROOM",
    type=ROOM,
    required=True,
    help="The room, which is made when it is missing.",
)
@common
@click.pass_obj
def irc(session: Session, files: tuple[str, ...], room_name: str) -> None:
    """Import IRC channel logs, each named by its day, such as 2005-02-06.log.

    Speakers become authors and the logged times are kept. Lines that are no text are stored
    escaped, with their bytes beside them, and named by file and line; nothing is lost silently.
    Importing the same files again adds nothing.
    """
    from agent_chatroom_ledger.adapters.irc import import_irc

    # In groups: everything is committed when the command returns, and no line waits for its own.
    with session.write(create=True, commit="group") as ledger:
        with progress("Importing", in_bytes=True) as show:
            report = import_irc(ledger, room_name, files, progress=show)
        room = ledger.ensure_room(room_name)
        document = {"room": room_shape(room), **report.as_dict()}
        session.show(document, _lines(document))


def _lines(document: dict[str, Any]) -> Iterator[str]:
    yield (
        f"{plain(document['room']['path'].removeprefix('rooms/'))}: "
        f"{document['messages']} messages and {document['events']} events "
        f"from {document['lines']} lines in {document['files']} files"
    )
    if document["skipped"]:
        yield f"{document['skipped']} lines were in the room already"
    if not document["bad_count"]:
        return
    yield f"{document['bad_count']} lines could not be taken as they are:"
    shown = document["bad_lines"][:BAD_LINES_SHOWN_MAX]
    for bad in shown:
        yield f"  {plain(bad['file'])}:{bad['line']}: {plain(bad['reason'])}"
    if document["bad_count"] > len(shown):
        yield f"  and {document['bad_count'] - len(shown)} more; --json lists them"
