"""The command that copies messages into another room; `rooms place` and `rooms duplicate`."""

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


def placing_command(verb: str, text: str, *, again: bool) -> click.Command:
    """Return the command `verb` with its help; `again` copies what stands there already, too."""

    @click.command(verb, help=text)
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
        from agent_chatroom_ledger import placement

        plan_of = placement.plan_duplicate if again else placement.plan_place
        with session.write() if apply else session.read() as ledger:
            plan = plan_of(
                ledger.room(source), refs, ledger.room(target), reason=reason, by=requester(name)
            )
            carry_out(session, plan, apply=apply)

    return command
