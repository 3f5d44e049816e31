"""`rooms versions`: the shorter versions of messages that a consumer lens can show."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeVar

import click

from agent_chatroom_ledger.cli.indexed import timed
from agent_chatroom_ledger.cli.options import (
    ROOM,
    apply_option,
    as_option,
    at_option,
    common,
    moment_of,
    named,
    requester,
    requester_options,
    room_argument,
)
from agent_chatroom_ledger.cli.plans import carry_out
from agent_chatroom_ledger.cli.shapes import room_shape
from agent_chatroom_ledger.cli.terminal import plain

if TYPE_CHECKING:
    from collections.abc import Callable

    from agent_chatroom_ledger.cli.session import Session

F = TypeVar("F", bound="Callable[..., Any]")
_LAST_LEVEL = 9


def _reference(function: F) -> F:
    return click.argument("ref", metavar="REF")(function)


def _level(function: F) -> F:
    return click.option(
        "--level", type=click.IntRange(0, _LAST_LEVEL), metavar="N", help="Only level N, whole."
    )(function)


@click.group("versions")
@common
def command() -> None:
    """Show or change the versions of messages.

    Level 0 is the message itself, 1 to 9 are ever shorter renditions of it, which `rooms lens
    --for` shows where the whole room does not fit. REF is a message: 57, or 57@origin. set and
    restore print their plan and write only with --apply.
    """


@command.command("show")
@room_argument
@_reference
@_level
@at_option
@common
@click.pass_obj
def show(session: Session, room_name: str, ref: str, level: int | None, at: str | None) -> None:
    """Show the ten levels of message REF of ROOM.

    A message that nobody has prepared has ten equal ones.
    """
    from agent_chatroom_ledger import versions
    from agent_chatroom_ledger.cli.versiontext import bundle_lines
    from agent_chatroom_ledger.domain.display import terminal_safe

    when = moment_of(at)
    with timed(session, when) as ledger:
        room = ledger.room(room_name, at=when)
        found = versions.bundle_of(room, ref, when)
        document = {"room": room_shape(room), "ref": ref, "versions": found.as_dict()}
        if level is None:
            lines = bundle_lines(ref, found, session.paint)
        else:
            lines = iter(terminal_safe(found.levels[level], lines=True).split("\n"))
        session.show(document, lines)


@command.command("set")
@room_argument
@_reference
@click.argument("file", type=click.Path(allow_dash=True))
@click.option(
    "--structural", is_flag=True, help="They were made by rule, not prepared for their meaning."
)
@requester_options
@apply_option
@common
@click.pass_obj
def set_(
    session: Session,
    room_name: str,
    ref: str,
    file: str,
    structural: bool,
    name: str | None,
    reason: str,
    apply: bool,
) -> None:
    """Set the ten levels of message REF of ROOM from a JSON FILE, `-` for standard input.

    It holds the levels "0" to "9", each {"message": text, "char_count": number}; level 0 must be
    the message itself. Prints the plan and writes only with --apply.
    """
    from agent_chatroom_ledger import versions

    levels = _levels_in(file)
    with session.write() if apply else session.read() as ledger:
        plan = versions.plan_set(
            ledger.room(room_name),
            ref,
            levels,
            by=requester(name),
            semantic=not structural,
            reason=reason,
        )
        carry_out(session, plan, apply=apply)


def _levels_in(file: str) -> Any:  # noqa: ANN401 - whatever stands there; it is checked with the rest
    import msgspec

    from agent_chatroom_ledger.errors import InvalidInput, NotFound

    try:
        data = sys.stdin.buffer.read() if file == "-" else Path(file).read_bytes()
        found = msgspec.json.decode(data)
    except OSError as error:
        raise NotFound(f"{file} cannot be read: {error}.", path=file) from error
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise InvalidInput(
            f"{file} is not JSON: {error}.", code="version_invalid", path=file
        ) from error
    return found.get("versions", found) if isinstance(found, dict) else found


@command.command("audit")
@click.argument("room_name", metavar="[ROOM]", type=ROOM, required=False)
@click.option(
    "--semantic", is_flag=True, help="A message needs work until it is prepared for its meaning."
)
@click.option(
    "--status",
    type=click.Choice(["active", "archived", "all"]),
    default="active",
    show_default=True,
    help="Without ROOM: which rooms.",
)
@common
@click.pass_obj
def audit(
    session: Session,
    room_name: str | None,
    semantic: bool,
    status: Literal["active", "archived", "all"],
) -> None:
    """Tell which messages' versions need work, in ROOM or in all rooms.

    They do when they were made from another text than the message's.
    """
    from agent_chatroom_ledger import versions
    from agent_chatroom_ledger.cli.versiontext import audit_lines, audit_shape

    with session.read() as ledger:
        if room_name is None:
            rooms = [
                ledger.room(found.id if found.status == "archived" else found.path)
                for found in ledger.rooms(status=status)
            ]
        else:
            rooms = [ledger.room(room_name)]
        items = list(versions.audit(rooms, semantic=semantic))
        document: dict[str, Any] = {}
        if session.json:
            document = {
                "semantic": semantic,
                "needs_work_count": sum(item.needs_work for item in items),
                "messages": [audit_shape(item) for item in items],
            }
        session.show(document, audit_lines(items))


@command.command("prep")
@room_argument
@_reference
@as_option("Whose version cursor.")
@click.option(
    "--mode",
    type=click.Choice(["semantic", "structural"]),
    default="semantic",
    show_default=True,
    help="What was prepared, or looked at and found right.",
)
@click.option("--cursor", metavar="FILE", help="The version cursor's file; default: the ledger's.")
@common
@click.pass_obj
def prep(
    session: Session,
    room_name: str,
    ref: str,
    name: str | None,
    mode: str,
    cursor: str | None,
) -> None:
    """Note that one is done with the versions of message REF of ROOM.

    Refused while they need work. Writes the version cursor's file and nothing else.
    """
    from agent_chatroom_ledger.preparations import mark_prepared, preparations_path

    agent = named(name)
    with session.read() as ledger:
        room = ledger.room(room_name)
        found = mark_prepared(room, ref, agent=agent, mode=mode, path=cursor)
        document = {
            "agent": agent,
            "room": room_shape(room),
            "ref": ref,
            "mode": mode,
            "completed": found["completed"],
            "cursor": str(preparations_path(ledger, agent, cursor)),
        }
        place = plain(room.path.removeprefix("rooms/"))
        said = f"{plain(agent)} is done with {place} #{plain(ref)} ({mode})"
        session.show(document, (said,))


@command.command("log")
@room_argument
@_reference
@common
@click.pass_obj
def log(session: Session, room_name: str, ref: str) -> None:
    """Show every operation on the versions of message REF of ROOM, oldest first."""
    from agent_chatroom_ledger import versions
    from agent_chatroom_ledger.cli.versiontext import entry_lines, entry_shape

    with session.read() as ledger:
        room = ledger.room(room_name)
        entries = versions.history(room, ref)
        document = {
            "room": room_shape(room),
            "ref": ref,
            "entries": [entry_shape(entry) for entry in entries],
        }
        lines = entry_lines(entries, session.paint) if entries else ("Nobody has set any.",)
        session.show(document, lines)


@command.command("diff")
@room_argument
@_reference
@click.argument("before", metavar="[REV1]", required=False)
@click.argument("after", metavar="[REV2]", required=False)
@_level
@common
@click.pass_obj
def diff(
    session: Session,
    room_name: str,
    ref: str,
    before: str | None,
    after: str | None,
    level: int | None,
) -> None:
    """Show how the versions of message REF of ROOM differ between two commits, word by word.

    REV1 and REV2 are commits or times. Without REV2 it is the present, and without REV1 the
    versions before the newest.
    """
    from agent_chatroom_ledger import versions
    from agent_chatroom_ledger.cli.versiontext import diff_lines, diff_shape

    start, end = moment_of(before), moment_of(after)
    with timed(session, start) as ledger:
        room = ledger.room(room_name)
        found = versions.compare(room, ref, start, end)
        chosen = [one for one in found if level in (None, one.level)]
        document = {
            "room": room_shape(room),
            "ref": ref,
            "levels": [diff_shape(one) for one in chosen],
        }
        session.show(document, diff_lines(chosen, session.paint))


@command.command("restore")
@room_argument
@_reference
@click.option("--from", "source", required=True, metavar="WHEN", help="A commit or a time.")
@requester_options
@apply_option
@common
@click.pass_obj
def restore(
    session: Session,
    room_name: str,
    ref: str,
    source: str,
    name: str | None,
    reason: str,
    apply: bool,
) -> None:
    """Give message REF of ROOM the versions again that it had at a commit or time.

    Where it had none then, they are taken back. Prints the plan and writes only with --apply.
    """
    from agent_chatroom_ledger import versions

    with session.write() if apply else session.read() as ledger:
        plan = versions.plan_restore(
            ledger.room(room_name),
            ref,
            moment_of(source) or source,
            by=requester(name),
            reason=reason,
        )
        carry_out(session, plan, apply=apply)
