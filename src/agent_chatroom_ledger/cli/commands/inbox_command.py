"""`rooms inbox`: what waits for a name, handed over."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import click

from agent_chatroom_ledger.cli import output
from agent_chatroom_ledger.cli.handing import item_lines, item_shape
from agent_chatroom_ledger.cli.indexed import indexed
from agent_chatroom_ledger.cli.options import ROOM, as_option, common, named
from agent_chatroom_ledger.cli.terminal import plain
from agent_chatroom_ledger.limits import DELIVER_MAX

if TYPE_CHECKING:
    from agent_chatroom_ledger.cli.session import Session
    from agent_chatroom_ledger.inbox import Item
    from agent_chatroom_ledger.ledger import Ledger
    from agent_chatroom_ledger.room import Room


@click.command("inbox")
@as_option("Whose inbox.")
@click.option(
    "--max",
    "count",
    type=click.IntRange(1, DELIVER_MAX),
    metavar="N",
    help="At most N messages; default: the setting max_deliver_per_flush, which is 5 unless set.",
)
@click.option("--peek", is_flag=True, help="Only look; they are not handed over, and stay.")
@click.option(
    "--wait",
    "seconds",
    type=click.FloatRange(min=0),
    metavar="SECONDS",
    help="Wait so long for the first message.",
)
@click.option("--room", "room_name", type=ROOM, metavar="ROOM", help="Only messages of ROOM.")
@click.option(
    "--again", is_flag=True, help="First those handed over before that `seen` never passed."
)
@common
@click.pass_obj
def command(
    session: Session,
    name: str | None,
    count: int | None,
    peek: bool,
    seconds: float | None,
    room_name: str | None,
    again: bool,
) -> None:
    """Hand over the messages that wait for you, oldest first.

    They are those addressed to you, wherever, and those said in your rooms while you were a member:
    not your own, and each only once. What is older than 15 minutes says so. A receipt is written
    when they have been shown; `rooms seen` says that you have dealt with them, and is yours to say.
    """
    me = named(name)
    with indexed(session) as ledger:
        room = None if room_name is None else ledger.room(room_name)
        if seconds:
            _await(ledger, me, room, seconds)
        if peek:
            from agent_chatroom_ledger import inbox

            items = inbox.peek(ledger, me, max=count, room=room, again=again)
            _show(session, me, items, max(0, inbox.waiting_count(ledger, me, room) - len(items)))
            return
        from agent_chatroom_ledger.inbox import take

        with take(ledger, me, max=count, room=room, again=again, door="cli") as handover:
            _show(session, me, list(handover), handover.waiting())
            # Only what has left this process counts as handed over.
            output.deliver()
            handover.confirm()


def _await(ledger: Ledger, me: str, room: Room | None, seconds: float) -> None:
    from agent_chatroom_ledger.cli.pipes import end_on_terminate, end_with_reader
    from agent_chatroom_ledger.presence import waiter
    from agent_chatroom_ledger.waiting import wait_for

    until = time.monotonic() + seconds
    end_on_terminate()
    end_with_reader()
    with waiter(ledger, me):
        wait_for(ledger, me, room=room, seconds=until - time.monotonic())


def _show(session: Session, me: str, items: list[Item], waiting: int) -> None:
    document: dict[str, Any] = {}
    if session.json:
        document = {
            "name": me,
            "messages": [item_shape(item) for item in items],
            "waiting": waiting,
        }
    elif waiting:
        session.say(f"{waiting} more wait{'s' if waiting == 1 else ''}.")
    lines = item_lines(items, session.paint) if items else [f"Nothing waits for {plain(me)}."]
    session.show(document, lines)
