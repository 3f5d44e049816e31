"""`rooms policy`: what a room's compiled view leaves out, and what it shows instead."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

import click

from agent_chatroom_ledger.cli.indexed import timed
from agent_chatroom_ledger.cli.options import (
    apply_option,
    at_option,
    common,
    moment_of,
    requester,
    requester_options,
    room_argument,
)
from agent_chatroom_ledger.cli.plans import carry_out
from agent_chatroom_ledger.cli.shapes import policy_shape, room_shape
from agent_chatroom_ledger.cli.terminal import plain

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from agent_chatroom_ledger.cli.session import Session

F = TypeVar("F", bound="Callable[..., Any]")


@click.group("policy")
@common
def command() -> None:
    """Show or change what a room's view leaves out.

    The messages themselves stay. show only reads; exclude, include, standin and clear print their
    plan and write only with --apply.
    """


@command.command("show")
@room_argument
@at_option
@common
@click.pass_obj
def show(session: Session, room_name: str, at: str | None) -> None:
    """Show what is left out of ROOM, and which stand-ins are shown."""
    when = moment_of(at)
    with timed(session, when) as ledger:
        room = ledger.room(room_name, at=when)
        policy = room.policy(at=when)
        document = {"room": room_shape(room), **policy_shape(policy)}
        session.show(document, _lines(document))


def _lines(document: dict[str, Any]) -> Iterator[str]:
    if document["excluded"]:
        yield f"Left out: {plain(', '.join(document['excluded']))}"
    for standin in document["standins"]:
        yield (
            f"Stand-in {plain(standin['id'])} for {plain(', '.join(standin['replaces']))}, "
            f"after {plain(standin['insert_after'])}: "
            f"{plain(standin['speaker'])} [{plain(standin['kind'])}]: {plain(standin['body'])}"
        )
    if not document["excluded"] and not document["standins"]:
        yield "Nothing is left out."


def _references(function: F) -> F:
    """Add the messages that a command is about."""
    return click.argument("refs", metavar="REFS...", nargs=-1, required=True)(function)


@command.command("exclude")
@room_argument
@_references
@requester_options
@apply_option
@common
@click.pass_obj
def exclude(
    session: Session,
    room_name: str,
    refs: tuple[str, ...],
    name: str | None,
    reason: str,
    apply: bool,
) -> None:
    """Leave messages out of the view of ROOM, and of its lens.

    REFS are numbers, ranges and references: 3 5-9 57@ci-9a1c. The messages themselves stay.
    Prints the plan and writes only with --apply.
    """
    from agent_chatroom_ledger import operations

    with session.write() if apply else session.read() as ledger:
        room = ledger.room(room_name)
        plan = operations.plan_exclude(room, refs, by=requester(name), reason=reason)
        carry_out(session, plan, apply=apply)


@command.command("include")
@room_argument
@_references
@requester_options
@apply_option
@common
@click.pass_obj
def include(
    session: Session,
    room_name: str,
    refs: tuple[str, ...],
    name: str | None,
    reason: str,
    apply: bool,
) -> None:
    """Show messages of ROOM again that were left out.

    A stand-in goes when none of what it replaces is left out any more. Prints the plan and writes
    only with --apply.
    """
    from agent_chatroom_ledger import operations

    with session.write() if apply else session.read() as ledger:
        room = ledger.room(room_name)
        plan = operations.plan_include(room, refs, by=requester(name), reason=reason)
        carry_out(session, plan, apply=apply)


@command.command("standin")
@room_argument
@_references
@click.option("--text", required=True, metavar="TEXT", help="What is shown instead.")
@click.option("--after", metavar="REF", help="Where; default: after the last that it replaces.")
@click.option(
    "--speaker",
    default="System",
    show_default=True,
    metavar="NAME",
    help="Under whose name it is shown.",
)
@click.option("--kind", default="system", show_default=True, metavar="KIND", help="Its kind.")
@click.option("--id", "standin_id", metavar="ID", help="An id of your own; default: a number.")
@requester_options
@apply_option
@common
@click.pass_obj
def standin(
    session: Session,
    room_name: str,
    refs: tuple[str, ...],
    text: str,
    after: str | None,
    speaker: str,
    kind: str,
    standin_id: str | None,
    name: str | None,
    reason: str,
    apply: bool,
) -> None:
    """Show a text in the place of messages of ROOM.

    The messages are left out of the view, and stay. Prints the plan and writes only with --apply.
    """
    from agent_chatroom_ledger import operations

    with session.write() if apply else session.read() as ledger:
        plan = operations.plan_standin(
            ledger.room(room_name),
            refs,
            text,
            insert_after=after,
            speaker=speaker,
            kind=kind,
            standin_id=standin_id,
            by=requester(name),
            reason=reason,
        )
        carry_out(session, plan, apply=apply)


@command.command("clear")
@room_argument
@requester_options
@apply_option
@common
@click.pass_obj
def clear(
    session: Session,
    room_name: str,
    name: str | None,
    reason: str,
    apply: bool,
) -> None:
    """Show everything in ROOM again.

    Takes back all that is left out, and every stand-in. Prints the plan and writes only with
    --apply.
    """
    from agent_chatroom_ledger import operations

    with session.write() if apply else session.read() as ledger:
        room = ledger.room(room_name)
        plan = operations.plan_clear(room, by=requester(name), reason=reason)
        carry_out(session, plan, apply=apply)
