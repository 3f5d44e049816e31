"""`rooms receipts`: what became of one message."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from agent_chatroom_ledger.cli.indexed import indexed
from agent_chatroom_ledger.cli.options import as_option, common, named
from agent_chatroom_ledger.cli.shapes import message_shape, room_shape, time_text
from agent_chatroom_ledger.cli.terminal import plain, table
from agent_chatroom_ledger.cli.transcript import message_lines

if TYPE_CHECKING:
    from collections.abc import Iterator

    from agent_chatroom_ledger.cli.session import Session
    from agent_chatroom_ledger.receipts import Receipt, Receipts

_HEADINGS = ("name", "handed over", "by", "seen", "answered")


@click.command("receipts")
@click.argument("record_id", metavar="ID")
@as_option("Who asks; where several rooms hold ID, the one that concerns you is meant.")
@common
@click.pass_obj
def command(session: Session, record_id: str, name: str | None) -> None:
    """Show to whom a message was handed over, who has seen it, and who has answered it.

    ID is a record's id (`rooms read ROOM --json` shows it), or a place such as `review#12`. Handed
    over: a door of this machine gave it. Seen: the receiver moved its cursor past it with `rooms
    seen`. Answered: a record names it as its cause. None of the three follows from another.
    """
    from agent_chatroom_ledger.receipts import receipts_of

    me = named(name)
    with indexed(session) as ledger:
        found = receipts_of(ledger, record_id, me)
        document: dict[str, Any] = {}
        if session.json:
            document = {
                "room": room_shape(found.room),
                "message": message_shape(found.message),
                "receipts": [_shape(receipt) for receipt in found.receipts],
            }
        session.show(document, _lines(session, found))


def _shape(receipt: Receipt) -> dict[str, Any]:
    return {
        "name": receipt.name,
        "addressed": receipt.addressed,
        "handed_at": receipt.handed_at,
        "last_handed_at": receipt.last_handed_at,
        "times": receipt.times,
        "door": receipt.door,
        "session": receipt.session,
        "seen": receipt.seen,
        "seen_at": receipt.seen_at,
        "answers": [
            {
                "room": room_shape(answer.room),
                "id": answer.message.id,
                "ref": answer.message.ref,
                "at": time_text(answer.message.at),
            }
            for answer in receipt.answers
        ],
    }


def _lines(session: Session, found: Receipts) -> Iterator[str]:
    yield from message_lines(found.message, session.paint, found.room.path.removeprefix("rooms/"))
    if found.receipts:
        yield from table(_HEADINGS, (_row(receipt, found) for receipt in found.receipts))
    else:
        yield "It went to nobody."


def _row(receipt: Receipt, found: Receipts) -> tuple[str, ...]:
    handed = _short(receipt.handed_at)
    if receipt.times > 1:
        handed += f", {receipt.times} times"
    seen = (_short(receipt.seen_at) if receipt.seen_at else "yes") if receipt.seen else ""
    answers = []
    for answer in receipt.answers:
        elsewhere = answer.room != found.room
        place = answer.room.path.removeprefix("rooms/") if elsewhere else ""
        answers.append(plain(f"{place}#{answer.message.ref}"))
    return receipt.name, handed, receipt.door, seen, ", ".join(answers)


def _short(at: str | None) -> str:
    return "" if at is None else f"{at[:10]} {at[11:19]}Z"
