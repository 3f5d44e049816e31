"""`rooms create`: make a room."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from agent_chatroom_ledger.cli.options import apply_option, common, requester, requester_options
from agent_chatroom_ledger.cli.plans import carry_out

if TYPE_CHECKING:
    from agent_chatroom_ledger.cli.session import Session


@click.command("create")
@click.argument("title")
@click.option("--folder", default="", metavar="PATH", help="Where to place it, such as team/ops.")
@click.option("--member", "members", multiple=True, metavar="NAME", help="A member; repeat it.")
@requester_options
@apply_option
@common
@click.pass_obj
def command(
    session: Session,
    title: str,
    folder: str,
    members: tuple[str, ...],
    name: str | None,
    reason: str,
    apply: bool,
) -> None:
    """Make a room called TITLE.

    Its path comes from the title; when the folder holds that name already the new room gets a
    number. Prints the plan and writes only with --apply.
    """
    from agent_chatroom_ledger import operations

    with session.write() if apply else session.read() as ledger:
        plan = operations.plan_create(
            ledger, title, folder=folder, members=members, by=requester(name), reason=reason
        )
        carry_out(session, plan, apply=apply)
