"""`rooms restore`: bring an archived room back, or put back what a room was."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from agent_chatroom_ledger.cli.options import (
    apply_option,
    common,
    requester,
    requester_options,
    room_argument,
)
from agent_chatroom_ledger.cli.plans import carry_out
from agent_chatroom_ledger.errors import NotFound

if TYPE_CHECKING:
    from agent_chatroom_ledger.cli.session import Session
    from agent_chatroom_ledger.ledger import Ledger
    from agent_chatroom_ledger.plans import Plan
    from agent_chatroom_ledger.restoring import Part


@click.command("restore")
@room_argument
@click.option(
    "--from",
    "source",
    metavar="WHEN",
    help="Put back what ROOM was at a commit or a time (an ISO time, 2h, yesterday).",
)
@click.option(
    "--only",
    type=click.Choice(["policy", "members", "versions"]),
    multiple=True,
    help="With --from: put back only this; repeat it.",
)
@requester_options
@apply_option
@common
@click.pass_context
def command(
    ctx: click.Context,
    room_name: str,
    source: str | None,
    only: tuple[Part, ...],
    name: str | None,
    reason: str,
    apply: bool,
) -> None:
    """Bring ROOM back from the archive, or put back what it was.

    Without --from: the room as it was when it was archived, or when its directory was deleted with
    plain git. With --from: policy, members and versions of messages as they stood then; no message
    is ever dropped. Prints the plan and writes only with --apply.
    """
    session: Session = ctx.obj
    if only and source is None:
        raise click.UsageError("--only goes with --from.", ctx)
    with session.write() if apply else session.read() as ledger:
        plan = _plan(ledger, room_name, source, only, requester(name), reason)
        carry_out(session, plan, apply=apply)


def _plan(
    ledger: Ledger, name: str, source: str | None, only: tuple[Part, ...], by: str, reason: str
) -> Plan:
    from agent_chatroom_ledger import restoring
    from agent_chatroom_ledger.cli.moments import moment

    try:
        room = ledger.room(name)
    except NotFound:
        parts = only or restoring.PARTS
        found = restoring.plan_bring_back(
            ledger, name, moment(source), only=parts, by=by, reason=reason
        )
        if found is None:
            raise
        return found
    when = moment(source)
    if when is None:
        return restoring.plan_unarchive(ledger, room, by=by, reason=reason)
    return restoring.plan_restore_from(
        room, when, only=only or restoring.PARTS, by=by, reason=reason
    )
