"""`rooms lens`: a room as its policy shows it, computed from the logs alone."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from agent_chatroom_ledger.cli.indexed import timed
from agent_chatroom_ledger.cli.options import at_option, common, moment_of, room_argument
from agent_chatroom_ledger.cli.shapes import message_shape, policy_shape, room_shape, standin_shape
from agent_chatroom_ledger.cli.transcript import transcript
from agent_chatroom_ledger.domain.policy import StandIn

if TYPE_CHECKING:
    from agent_chatroom_ledger.cli.session import Session
    from agent_chatroom_ledger.domain.lenses import LensItem

# Those of domain.renderings, which is loaded only when one is asked for.
FORMATS = ("json", "markdown", "openai", "anthropic")


@click.command("lens")
@room_argument
@at_option
@click.option("--for", "consumer", metavar="NAME", help="Fit it into what this consumer can take.")
@click.option(
    "--budget",
    type=click.IntRange(min=0),
    metavar="CHARS",
    help="With --for: so many characters at most.  [default: 180000]",
)
@click.option("--reset", is_flag=True, help="With --for: forget what was chosen before.")
@click.option(
    "--format", "form", type=click.Choice(FORMATS), help="As text for a model, and nothing else."
)
@common
@click.pass_obj
def command(
    session: Session,
    room_name: str,
    at: str | None,
    consumer: str | None,
    budget: int | None,
    reset: bool,
    form: str | None,
) -> None:
    """Show ROOM as its policy has it.

    That is without what is left out and with the stand-ins. It is computed from the logs alone,
    works while the compiled view is missing or broken, and changes nothing.

    With --for, the oldest messages are shown in shorter versions (`rooms versions`) until the whole
    fits into the budget. The choice is kept for this consumer's next lens, beside the cursors; with
    --at nothing is kept. openai and anthropic are lists of chat messages, all of the role user,
    with the speaker named and every body between marks that it cannot forge.
    """
    when = moment_of(at)
    if consumer is None and (budget is not None or reset):
        raise click.UsageError("--budget and --reset go with --for.")
    with timed(session, when) as ledger:
        room = ledger.room(room_name, at=when)
        if consumer is not None:
            from agent_chatroom_ledger.cli.lensoutput import show_for

            show_for(session, room, consumer, budget=budget, form=form, reset=reset, at=when)
            return
        lens = room.lens(at=when)
        if form is not None and not session.json:
            from agent_chatroom_ledger.cli.lensoutput import show_as

            show_as(lens.items, form)
            return
        document: dict[str, Any] = {}
        if session.json:
            document = {
                "room": room_shape(room),
                "items": [_item(item) for item in lens.items],
                "policy": policy_shape(lens.policy),
            }
        session.show(document, transcript(lens.items, session.paint))


def _item(item: LensItem) -> dict[str, Any]:
    if isinstance(item, StandIn):
        return {"standin": standin_shape(item)}
    return {"message": message_shape(item)}
