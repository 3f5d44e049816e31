"""`rooms verify`: is the ledger sound, and making it so."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from agent_chatroom_ledger.cli.failures import FAILURE
from agent_chatroom_ledger.cli.options import apply_option, common
from agent_chatroom_ledger.cli.plans import carry_out
from agent_chatroom_ledger.cli.session import Session
from agent_chatroom_ledger.cli.terminal import plain, progress
from agent_chatroom_ledger.cli.verdict import verdict
from agent_chatroom_ledger.errors import Busy, Conflict, Corrupt, Forbidden

if TYPE_CHECKING:
    from collections.abc import Iterator

    from agent_chatroom_ledger.cli.terminal import Paint
    from agent_chatroom_ledger.ledger import Ledger
    from agent_chatroom_ledger.storage.verify import Report


@click.command("verify")
@click.option(
    "--full", is_flag=True, help="Check every git object, not only those since last time."
)
@click.option("--repair", is_flag=True, help="Plan to mend what is wrong; --apply does it.")
@apply_option
@common
@click.pass_context
def command(ctx: click.Context, full: bool, repair: bool, apply: bool) -> None:
    """Check the whole ledger, or repair it.

    Looks at logs, numbers, projections, commits, git objects and cursors, and exits with 1 when
    something is wrong. With --repair it prints what would be mended and exits with 0; --repair
    --apply mends it, keeps foreign bytes in quarantine, and exits with 1 only when something is
    left.
    """
    session = ctx.ensure_object(Session)
    if apply and not repair:
        raise click.UsageError("--apply goes with --repair.")
    if not repair:
        with _opened(session) as ledger, progress("Verifying"):
            report = ledger.verify(full=full)
        session.show(report.as_dict(), _lines(report, session.paint))
        if not report.ok:
            ctx.exit(FAILURE)
        return
    from agent_chatroom_ledger import operations

    with session.write() if apply else session.read() as ledger:
        with progress("Verifying"):
            plan = operations.plan_repair(ledger, full=full)
        done = carry_out(session, plan, apply=apply)
    if apply and not done["ok"]:
        ctx.exit(FAILURE)


def _opened(session: Session) -> Ledger:
    """Open the ledger so that what was verified is remembered, or else for reading only.

    A ledger that is too damaged to be written, or busy, is just what somebody wants verified.
    """
    try:
        return session.write()
    except (Busy, Conflict, Corrupt, Forbidden):
        return session.read()


def _lines(report: Report, paint: Paint) -> Iterator[str]:
    for issue in report.issues:
        severity = paint.bad(plain(issue.severity)) if issue.severity == "error" else issue.severity
        where = f" ({plain(issue.path)})" if issue.path else ""
        yield f"{severity}: {plain(issue.code)}: {plain(issue.message)}{where}"
    yield verdict(report, paint)
    if not report.ok:
        yield "What can be mended: rooms verify --repair"
