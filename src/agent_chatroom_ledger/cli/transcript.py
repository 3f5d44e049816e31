"""Messages as lines of text: a transcript in which no body can pass for another's line."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agent_chatroom_ledger.cli.terminal import plain
from agent_chatroom_ledger.domain.display import terminal_safe
from agent_chatroom_ledger.domain.events import event_of
from agent_chatroom_ledger.domain.policy import StandIn

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from agent_chatroom_ledger.cli.terminal import Paint
    from agent_chatroom_ledger.domain.lenses import LensItem
    from agent_chatroom_ledger.domain.records import Message

INDENT = "    "


def transcript(items: Iterable[LensItem], paint: Paint) -> Iterator[str]:
    """Show messages, and stand-ins between them, under a line for each day (UTC)."""
    day = ""
    for item in items:
        if isinstance(item, StandIn):
            yield from standin_lines(item, paint)
            continue
        said = f"{item.said_at or item.at:%Y-%m-%d}"
        if said != day:
            day = said
            yield paint.faint(f"-- {day} --")
        yield from message_lines(item, paint)


def transcript_of_rooms(items: Iterable[tuple[str, Message]], paint: Paint) -> Iterator[str]:
    """Show messages of several rooms, each behind its room's path, under a line for each day."""
    day = ""
    for path, message in items:
        said = f"{message.said_at or message.at:%Y-%m-%d}"
        if said != day:
            day = said
            yield paint.faint(f"-- {day} --")
        yield from message_lines(message, paint, path.removeprefix("rooms/"))


def message_lines(message: Message, paint: Paint, place: str = "") -> list[str]:
    """Show one message: a header, and the body after it or, when it has lines, indented below.

    Controls are escaped and every line that does not begin with our own header is indented, so
    that a body cannot look like another message. That a member came or went is a sentence without
    a header's colon. `place` names the room where several are shown together.
    """
    said = message.said_at or message.at
    where = f"{paint.faint(plain(place))} " if place else ""
    number = paint.faint(f"#{message.ref} {said:%H:%M:%S}Z")
    if happened := event_of(message):
        return [f"{where}{number} {paint.faint(f'· {plain(happened)}')}"]
    notes = "" if message.kind == "message" else f" [{plain(message.kind)}]"
    if message.to:
        notes += f" -> {plain(', '.join(message.to))}"
    if message.reply_to:
        notes += f" re {plain(message.reply_to)}"
    head = f"{where}{number} {paint.strong(plain(message.author))}{paint.faint(notes)}:"
    return _with_body(head, message.body)


def standin_lines(standin: StandIn, paint: Paint) -> list[str]:
    """Show a stand-in, and how many messages it stands for."""
    count = len(standin.replaces)
    stands = f"for {count} message{'s' if count != 1 else ''}"
    head = (
        f"{paint.faint(f'[{stands}]')} "
        f"{paint.strong(plain(standin.speaker))}{paint.faint(f' [{plain(standin.kind)}]')}:"
    )
    return _with_body(head, standin.body)


def _with_body(head: str, text: str) -> list[str]:
    body = terminal_safe(text.removesuffix("\n"), lines=True)
    if "\n" not in body:
        return [f"{head} {body}" if body else head]
    return [head, *(INDENT + line for line in body.split("\n"))]


def position_text(position: Mapping[str, int], origin: str) -> str:
    """Show a position: a bare number for the room's own origin, as references are written."""
    shown = [
        f"#{n}" if where == origin else f"#{n}@{plain(where)}"
        for where, n in sorted(position.items())
        if n
    ]
    return ", ".join(shown) or "nothing"
