"""`rooms unread`: what a consumer has not read yet."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from agent_chatroom_ledger.cli.indexed import indexed, timed
from agent_chatroom_ledger.cli.options import (
    ROOM,
    as_option,
    at_option,
    common,
    moment_of,
    named,
)
from agent_chatroom_ledger.cli.shapes import message_shape, room_shape
from agent_chatroom_ledger.cli.terminal import plain
from agent_chatroom_ledger.cli.transcript import INDENT, position_text, transcript

if TYPE_CHECKING:
    from collections.abc import Iterator

    from agent_chatroom_ledger.cli.session import Session
    from agent_chatroom_ledger.cli.terminal import Paint
    from agent_chatroom_ledger.consumers import UnreadRoom


@click.command("unread")
@click.argument("room_names", metavar="[ROOM]...", type=ROOM, nargs=-1)
@as_option("Who reads.")
@click.option("--cursor", metavar="FILE", help="The cursor's file, when it is kept elsewhere.")
@click.option("--members-only", is_flag=True, help="Only rooms that list the reader as a member.")
@click.option("--messages", "with_messages", is_flag=True, help="Show the messages as well.")
@click.option(
    "--limit",
    type=click.IntRange(min=1),
    metavar="COUNT",
    help="With --messages: at most COUNT of each room.",
)
@at_option
@common
@click.pass_obj
def command(
    session: Session,
    room_names: tuple[str, ...],
    name: str | None,
    cursor: str | None,
    members_only: bool,
    with_messages: bool,
    limit: int | None,
    at: str | None,
) -> None:
    """List the rooms that hold messages past a consumer's cursor.

    One's own messages count too: a cursor is a position, not an opinion. Nothing is moved; `rooms
    seen` moves the cursor. Direct rooms of others count only when they are named. With --at: what
    of the rooms as they were then is past the cursor.
    """
    consumer_name = named(name)
    if limit is not None and not with_messages:
        raise click.UsageError("--limit goes with --messages.")
    when = moment_of(at)
    with indexed(session) if when is None else timed(session, when) as ledger:
        consumer = ledger.consumer(consumer_name, cursor=cursor)
        rooms = [ledger.room(room_name, at=when) for room_name in room_names] or None
        found = consumer.unread(rooms=rooms, members_only=members_only, at=when)
        messages = [item.messages(limit=limit) for item in found] if with_messages else None
        document: dict[str, Any] = {}
        if session.json:
            items = [_item(item) for item in found]
            for item, said in zip(items, messages or (), strict=False):
                item["messages"] = [message_shape(message) for message in said]
            document = {
                "consumer": consumer.name,
                "total": sum(item.count for item in found),
                "rooms": items,
            }
        session.show(document, _lines(found, messages, session.paint))


def _item(item: UnreadRoom) -> dict[str, Any]:
    return {
        "room": room_shape(item.room),
        "count": item.count,
        "position": dict(item.position),
        "newest": dict(item.newest),
    }


def _lines(found: list[UnreadRoom], messages: list[Any] | None, paint: Paint) -> Iterator[str]:
    for index, item in enumerate(found):
        path = plain(item.room.path.removeprefix("rooms/"))
        newest = position_text(item.newest, item.room.origin)
        yield f"{paint.strong(str(item.count))} unread in {path}, which goes to {newest}"
        if messages is not None:
            yield from (INDENT + line for line in transcript(messages[index], paint))
    if not found:
        yield "Nothing unread."
