"""`rooms wait`: return when something waits for a name."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from agent_chatroom_ledger.cli import TIMED_OUT, output
from agent_chatroom_ledger.cli.indexed import indexed
from agent_chatroom_ledger.cli.options import ROOM, as_option, common, named
from agent_chatroom_ledger.cli.terminal import plain

if TYPE_CHECKING:
    from agent_chatroom_ledger.cli.session import Session


@click.command("wait")
@as_option("For whose messages.")
@click.option("--room", "room_name", type=ROOM, metavar="ROOM", help="Only for messages of ROOM.")
@click.option(
    "--timeout",
    "seconds",
    type=click.FloatRange(min=0),
    metavar="SECONDS",
    help="Give up after so long, with status 124; default: never.",
)
@common
@click.pass_context
def command(
    ctx: click.Context, name: str | None, room_name: str | None, seconds: float | None
) -> None:
    """Wait until there is a message for you, and end.

    It hands nothing over: `rooms inbox` does. It ends at once when something waits already, within
    a tenth of a second of a message that is posted on this machine, and with status 124 when the
    time is up. Meanwhile a message to you counts as waking you.
    """
    session: Session = ctx.obj
    me = named(name)
    with indexed(session) as ledger:
        from agent_chatroom_ledger.cli.pipes import end_on_terminate, end_with_reader
        from agent_chatroom_ledger.inbox import waiting_count
        from agent_chatroom_ledger.presence import waiter
        from agent_chatroom_ledger.waiting import wait_for

        room = None if room_name is None else ledger.room(room_name)
        end_on_terminate()
        end_with_reader()
        with waiter(ledger, me):
            found = wait_for(ledger, me, room=room, seconds=seconds)
        count = waiting_count(ledger, me, room) if found else 0
        text = f"{count} wait{'s' if count == 1 else ''} for {plain(me)}."
        session.show(
            {"name": me, "waiting": count, "timed_out": not found},
            [text if found else f"Nothing came for {plain(me)}."],
        )
        output.flush()
    if not found:
        ctx.exit(TIMED_OUT)
