"""`rooms archive`: take a room out of the present; history keeps it."""

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

if TYPE_CHECKING:
    from agent_chatroom_ledger.cli.session import Session


@click.command("archive")
@room_argument
@requester_options
@apply_option
@common
@click.pass_obj
def command(
    session: Session,
    room_name: str,
    name: str | None,
    reason: str,
    apply: bool,
) -> None:
    """Archive ROOM: its directory goes, in one commit, and its history stays.

    It can still be found, listed, read and verified; nobody can write to it until `rooms restore`
    brings it back. Prints the plan and writes only with --apply.
    """
    from agent_chatroom_ledger.restoring import plan_archive

    with session.write() if apply else session.read() as ledger:
        plan = plan_archive(ledger, ledger.room(room_name), by=requester(name), reason=reason)
        carry_out(session, plan, apply=apply)
