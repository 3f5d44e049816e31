"""`rooms duplicate`: copy messages into another room, those too that are there already."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from agent_chatroom_ledger.cli.options import (
    ROOM,
    apply_option,
    as_option,
    common,
    requester,
)
from agent_chatroom_ledger.cli.plans import carry_out

if TYPE_CHECKING:
    from agent_chatroom_ledger.cli.session import Session


@click.command("duplicate")
@click.argument("source", metavar="SOURCE", type=ROOM)
@click.argument("refs", metavar="N[-M]")
@click.argument("target", metavar="TARGET", type=ROOM)
@click.option("--reason", required=True, metavar="TEXT", help="Why; kept with every copy.")
@as_option("Who asks for it.")
@apply_option
@common
@click.pass_obj
def command(
    session: Session,
    source: str,
    refs: str,
    target: str,
    reason: str,
    name: str | None,
    apply: bool,
) -> None:
    """Copy messages N to M of SOURCE into TARGET, even where they stand already.

    Otherwise as `rooms place`. Prints the plan and writes only with --apply.
    """
    from agent_chatroom_ledger import placement

    with session.write() if apply else session.read() as ledger:
        plan = placement.plan_duplicate(
            ledger.room(source), refs, ledger.room(target), reason=reason, by=requester(name)
        )
        carry_out(session, plan, apply=apply)
