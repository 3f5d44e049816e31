"""`rooms members`: who is a member of a room."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from agent_chatroom_ledger.cli.moments import moment
from agent_chatroom_ledger.cli.options import (
    apply_option,
    common,
    requester,
    requester_options,
    room_argument,
)
from agent_chatroom_ledger.cli.plans import carry_out
from agent_chatroom_ledger.cli.shapes import room_shape
from agent_chatroom_ledger.cli.terminal import plain

if TYPE_CHECKING:
    from agent_chatroom_ledger.cli.session import Session

_ACTIONS = ("add", "remove")


@click.command("members")
@room_argument
@click.argument("action", required=False, type=click.Choice(_ACTIONS), metavar="[add|remove]")
@click.argument("member", required=False, metavar="[NAME]")
@click.option("--at", metavar="WHEN", help="As of a commit or a time (an ISO time, 2h, yesterday).")
@requester_options
@apply_option
@common
@click.pass_context
def command(
    ctx: click.Context,
    room_name: str,
    action: str | None,
    member: str | None,
    at: str | None,
    name: str | None,
    reason: str,
    apply: bool,
) -> None:
    """List the members of ROOM; add one, or remove one.

    Anybody may post; `rooms unread --members-only` looks at the rooms that list the reader. add and
    remove print their plan and write only with --apply.
    """
    session: Session = ctx.obj
    if action is None:
        if apply:
            raise click.UsageError("--apply goes with add or remove.", ctx)
        with session.read() as ledger:
            room = ledger.room(room_name)
            members = room.state(at=moment(at)).members
            document: dict[str, Any] = {"room": room_shape(room), "members": list(members)}
        session.show(document, map(plain, members) if members else ("No members.",))
        return
    if member is None:
        raise click.UsageError(f"Whom? rooms members ROOM {action} NAME", ctx)
    if at is not None:
        raise click.UsageError("--at is for looking only.", ctx)
    from agent_chatroom_ledger import members as use

    plan_of = use.plan_add if action == "add" else use.plan_remove
    with session.write() if apply else session.read() as ledger:
        plan = plan_of(ledger.room(room_name), member, by=requester(name), reason=reason)
        carry_out(session, plan, apply=apply)
