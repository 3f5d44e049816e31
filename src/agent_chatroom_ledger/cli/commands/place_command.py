"""`rooms place`: copy messages into another room, with where they came from."""

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


@click.command("place")
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
    """Copy messages N to M of SOURCE into TARGET.

    A copy keeps speaker, kind, text and mentions, and says where it came from and why; all of them
    are one commit in both rooms. What stands in TARGET for the same reason already is skipped.
    Prints the plan and writes only with --apply.
    """
    from agent_chatroom_ledger import placement

    with session.write() if apply else session.read() as ledger:
        plan = placement.plan_place(
            ledger.room(source), refs, ledger.room(target), reason=reason, by=requester(name)
        )
        carry_out(session, plan, apply=apply)
