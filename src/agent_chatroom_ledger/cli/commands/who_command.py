"""`rooms who`: who is here, and how soon a message reaches them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from agent_chatroom_ledger.cli.options import common, identity_here
from agent_chatroom_ledger.cli.output import path_text
from agent_chatroom_ledger.cli.shapes import time_text
from agent_chatroom_ledger.cli.terminal import plain, table
from agent_chatroom_ledger.errors import Corrupt

if TYPE_CHECKING:
    from collections.abc import Iterator

    from agent_chatroom_ledger.cli.session import Session
    from agent_chatroom_ledger.presence import Presence

_HEADINGS = (
    *("", "name", "reach", "waiting", "client", "process", "directory", "pane", "model", "since"),
)


@click.command("who")
@click.option("--all", "everybody", is_flag=True, help="Also members of rooms who are not here.")
@common
@click.pass_obj
def command(session: Session, everybody: bool) -> None:
    """Show your own name and who is here.

    The line of `*` is yours. A message wakes its reader, is read at the client's next turn, or is
    queued until somebody looks; what waits for each is counted. Nobody is listed whose process has
    ended. Where the receipts of this ledger are damaged, nothing can be counted, and it says so.
    """
    me = identity_here()
    from agent_chatroom_ledger import inbox, presence

    with session.read() as ledger:
        found = presence.everybody(ledger) if everybody else presence.who(ledger)
        warnings = list(me.warnings)
        waiting: dict[str, int | None]
        try:
            waiting = {one.name: inbox.waiting_count(ledger, one.name) for one in found}
        except Corrupt as error:
            if error.code != "receipts_damaged":
                raise
            # Who is here does not depend on what was handed over.
            waiting = dict.fromkeys(one.name for one in found)
            warnings.append(f"What waits is not known. {error}")
    document = {
        "name": me.name,
        "source": me.source,
        "warnings": warnings,
        "agents": [{**_shape(one, me.name), "waiting": waiting[one.name]} for one in found],
    }
    if not session.json:
        for warning in warnings:
            session.say(plain(warning))
    session.show(document, _lines(me.name, found, waiting))


def _shape(one: Presence, me: str) -> dict[str, Any]:
    return {
        "name": one.name,
        "self": one.name == me,
        "live": one.live,
        "reach": one.reach,
        "client": one.client,
        "process": one.process,
        "directory": path_text(one.directory),
        "pane": one.pane,
        "model": one.model,
        "since": None if one.since is None else time_text(one.since),
    }


def _lines(me: str, found: list[Presence], waiting: dict[str, int | None]) -> Iterator[str]:
    if all(one.name != me for one in found):
        yield f"You are {plain(me)}."
    if not found:
        yield "Nobody is here."
        return
    yield from table(_HEADINGS, (_row(one, me, waiting[one.name]) for one in found))


def _row(one: Presence, me: str, waiting: int | None) -> tuple[str, ...]:
    return (
        "*" if one.name == me else "",
        one.name,
        one.reach,
        "?" if waiting is None else str(waiting or ""),
        one.client,
        str(one.process or ""),
        path_text(one.directory),
        one.pane or "",
        one.model or "",
        "" if one.since is None else f"{one.since:%Y-%m-%d %H:%M}Z",
    )
