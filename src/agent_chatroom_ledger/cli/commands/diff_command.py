"""`rooms diff`: what became of a room between two commits."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from agent_chatroom_ledger.cli.indexed import timed
from agent_chatroom_ledger.cli.options import common, moment_of, room_argument
from agent_chatroom_ledger.cli.shapes import message_shape, room_shape, standin_shape, time_text
from agent_chatroom_ledger.cli.terminal import plain
from agent_chatroom_ledger.cli.transcript import INDENT, standin_lines, transcript

if TYPE_CHECKING:
    from collections.abc import Iterator

    from agent_chatroom_ledger.cli.session import Session
    from agent_chatroom_ledger.cli.terminal import Paint
    from agent_chatroom_ledger.differences import RoomDiff
    from agent_chatroom_ledger.domain.records import Message
    from agent_chatroom_ledger.room import Room

COMMIT_CHARS = 10


@click.command("diff")
@room_argument
@click.argument("before", metavar="REV1")
@click.argument("after", metavar="[REV2]", required=False)
@common
@click.pass_obj
def command(session: Session, room_name: str, before: str, after: str | None) -> None:
    """Show what became of ROOM between two commits.

    REV1 and REV2 are commits or times (an ISO time, 2h, yesterday); without REV2 it is what main
    holds now. Shown are the messages added, what the policy leaves out and shows instead, members,
    and versions.
    """
    from agent_chatroom_ledger.differences import compare

    start, end = moment_of(before) or before, moment_of(after) or "main"
    with timed(session, start) as ledger:
        room = ledger.room(room_name, at=start)
        found = compare(room, start, end)
        document = _shape(room, found) if session.json else {}
        session.show(document, _lines(found, session.paint))


def _shape(room: Room, found: RoomDiff) -> dict[str, Any]:
    return {
        "room": room_shape(room),
        "before": found.before,
        "after": found.after,
        "created": found.created,
        "gone": found.gone,
        "messages": {
            "added": [message_shape(message) for message in found.messages],
            "missing": list(found.missing),
        },
        "policy": {
            "excluded": list(found.excluded),
            "included": list(found.included),
            "standins_added": [standin_shape(standin) for standin in found.standins_added],
            "standins_removed": [standin_shape(standin) for standin in found.standins_removed],
        },
        "members": {"added": list(found.members_added), "removed": list(found.members_removed)},
        "versions": [{"message": v.message, "change": v.change} for v in found.versions],
        "operations": [
            {
                "ref": operation.full_ref,
                "at": time_text(operation.at),
                "by": operation.author,
                "kind": operation.kind,
                "text": operation.body,
            }
            for operation in found.operations
        ],
    }


def _lines(found: RoomDiff, paint: Paint) -> Iterator[str]:
    name = plain(found.room.removeprefix("rooms/"))
    ends = f"{found.before[:COMMIT_CHARS]}..{found.after[:COMMIT_CHARS]}"
    yield f"{paint.strong(name)} {paint.faint(ends)}"
    if found.created:
        yield "the room was made"
    if found.gone:
        yield "the room is gone"
    if found.titles:
        yield f"the title was {plain(found.titles[0])!r} and is {plain(found.titles[1])!r}"
    if found.messages:
        yield f"{_count(len(found.messages), 'message')} added"
        yield from (INDENT + line for line in transcript(found.messages, paint))
    if found.missing:
        yield f"messages that only the first has: {_refs(found.missing, found.origin)}"
    yield from _policy_lines(found, paint)
    for names, what in ((found.members_added, "new"), (found.members_removed, "former")):
        if names:
            yield f"{what} members: {plain(', '.join(names))}"
    for change in found.versions:
        yield f"versions of {_refs((change.message,), found.origin)} {change.change}"
    if found.operations:
        yield f"{_count(len(found.operations), 'operation')}"
        yield from (INDENT + _operation(operation) for operation in found.operations)
    if found.same:
        yield "nothing changed"


def _policy_lines(found: RoomDiff, paint: Paint) -> Iterator[str]:
    if found.excluded:
        yield f"left out now: {_refs(found.excluded, found.origin)}"
    if found.included:
        yield f"shown again: {_refs(found.included, found.origin)}"
    for standins, what in ((found.standins_added, "new"), (found.standins_removed, "former")):
        for standin in standins:
            yield f"{what} stand-in {plain(standin.id)}"
            yield from (INDENT + line for line in standin_lines(standin, paint))


def _operation(operation: Message) -> str:
    return f"{operation.at:%Y-%m-%d %H:%M:%S}Z {plain(operation.author)}: {plain(operation.body)}"


def _refs(refs: tuple[str, ...], origin: str) -> str:
    return plain(", ".join(f"#{ref.removesuffix(f'@{origin}')}" for ref in refs))


def _count(number: int, what: str) -> str:
    return f"{number} {what}{'s' if number != 1 else ''}"
