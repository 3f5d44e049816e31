"""`rooms log`: the audit trail."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from agent_chatroom_ledger.cli.indexed import listed
from agent_chatroom_ledger.cli.options import ROOM, common
from agent_chatroom_ledger.cli.terminal import plain
from agent_chatroom_ledger.cli.transcript import INDENT
from agent_chatroom_ledger.domain.display import terminal_safe

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from agent_chatroom_ledger.cli.session import Session
    from agent_chatroom_ledger.cli.terminal import Paint
    from agent_chatroom_ledger.storage.history import LogEntry

COMMIT_CHARS = 10


@click.command("log")
@click.argument("room_name", metavar="[ROOM]", type=ROOM, required=False)
@click.option("--message", metavar="REF", help="Only what touched one message of ROOM (57).")
@click.option("--author", metavar="NAME", help="Only commits whose author's name holds NAME.")
@click.option("--since", metavar="WHEN", help="Only commits since an ISO time, 2h, yesterday.")
@click.option(
    "-n", "--limit", type=click.IntRange(min=1), metavar="COUNT", help="Only the newest COUNT."
)
@click.option("--patch", is_flag=True, help="Show what each commit changed.")
@common
@click.pass_obj
def command(
    session: Session,
    room_name: str | None,
    message: str | None,
    author: str | None,
    since: str | None,
    limit: int | None,
    patch: bool,
) -> None:
    """Show the audit trail of ROOM, or of the whole ledger.

    Every commit, newest first: its id, when, who, and what. `git log` on the same directory shows
    the same commits. With --message: the commit of that message, and those of every operation
    that was about it.
    """
    if message is not None and room_name is None:
        raise click.UsageError("--message goes with ROOM.")
    from agent_chatroom_ledger.cli.moments import when

    with session.read() if room_name is None else listed(session) as ledger:
        entries = ledger.log(
            room_name,
            message=message,
            author=author,
            since=None if since is None else when(since),
            limit=limit,
            patch=patch,
        )
    document = {} if not session.json else {"entries": [entry.as_dict() for entry in entries]}
    session.show(document, _lines(entries, session.paint))


def _lines(entries: Iterable[LogEntry], paint: Paint) -> Iterator[str]:
    for entry in entries:
        yield (
            f"{paint.faint(f'{entry.commit[:COMMIT_CHARS]} {entry.at:%Y-%m-%d %H:%M:%S}Z')} "
            f"{paint.strong(plain(entry.author))}: {plain(entry.subject)}"
        )
        if entry.requested_by or entry.reason:
            why = f": {plain(entry.reason)}" if entry.reason else ""
            yield f"{INDENT}requested by {plain(entry.requested_by)}{why}"
        if entry.patch:
            patch = terminal_safe(entry.patch.removesuffix("\n"), lines=True)
            yield from (INDENT + line for line in patch.split("\n"))
