"""Receipts of one message: to whom it was handed over, who has seen it, and who has answered.

Three facts with three words. *Handed over*: a door gave it and noted that, on this machine. *Seen*:
the receiver moved its cursor past it. *Answered*: a record names it as its ``cause``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from agent_chatroom_ledger.domain.attendance import attendance
from agent_chatroom_ledger.domain.delivery import recipients
from agent_chatroom_ledger.domain.order import order_key
from agent_chatroom_ledger.domain.records import Message
from agent_chatroom_ledger.lookup import find_message
from agent_chatroom_ledger.room import Room
from agent_chatroom_ledger.storage.cursors import CursorFile
from agent_chatroom_ledger.storage.reading import MESSAGES, OPERATIONS

if TYPE_CHECKING:
    from agent_chatroom_ledger.ledger import Ledger
    from agent_chatroom_ledger.storage.receipts import Handed


class Answer(msgspec.Struct, frozen=True, kw_only=True):
    """A record that answers: its room and itself."""

    room: Room
    message: Message


class Receipt(msgspec.Struct, frozen=True, kw_only=True):
    """What became of one message at one name.

    Times are in the stored form. ``handed_at`` is the first time that a door of this machine gave
    it, None for never; ``last_handed_at``, ``times``, ``door`` and ``session`` tell of the last.
    ``seen_at`` is known only while the cursor stands exactly on the message. ``answers`` are the
    name's own, oldest first. ``addressed`` says that the message names it.
    """

    name: str
    addressed: bool
    handed_at: str | None = None
    last_handed_at: str | None = None
    times: int = 0
    door: str = ""
    session: str = ""
    seen: bool = False
    seen_at: str | None = None
    answers: tuple[Answer, ...] = ()


class Receipts(msgspec.Struct, frozen=True, kw_only=True):
    """The receipts of a message, by recipient.

    Recipients are the names it is addressed to and the members of its room when it was said, its
    author left out. Others that it was handed over to, or that answered, come after them.
    """

    room: Room
    message: Message
    receipts: tuple[Receipt, ...]


def receipts_of(ledger: Ledger, record_id: str, me: str = "") -> Receipts:
    """Return the receipts of a message, named by its id or by its place, ``review#12``.

    Where several rooms hold the id, the one that concerns ``me`` is meant. Raises NotFound when
    there is none, Conflict (code ``ambiguous``) when several remain.
    """
    room, message = find_message(ledger, record_id, me)
    handed = {
        receipt.name: receipt
        for receipt in ledger.receipts.of_record(message.id)
        if (receipt.room, receipt.origin, receipt.n) == (room.id, message.origin, message.n)
    }
    answers: dict[str, list[Answer]] = {}
    for path, kind, origin, n in ledger.index.caused_by(message.id):
        if kind == MESSAGES:
            place = Room(ledger, path)
            answer = place.reader().find(origin, n)
            if answer is not None and answer.cause == message.id and answer.id != message.id:
                answers.setdefault(answer.author, []).append(Answer(room=place, message=answer))
    for said in answers.values():
        said.sort(key=lambda answer: order_key(answer.message))
    intervals = attendance(room.reader().after(log=OPERATIONS))
    names = dict.fromkeys((*recipients(message, intervals), *sorted(handed), *sorted(answers)))
    names.pop(message.author, None)
    return Receipts(
        room=room,
        message=message,
        receipts=tuple(
            _receipt(room, message, name, handed.get(name), tuple(answers.get(name, ())))
            for name in names
        ),
    )


def _receipt(
    room: Room,
    message: Message,
    name: str,
    handed: Handed | None,
    answers: tuple[Answer, ...],
) -> Receipt:
    cursor = CursorFile(room.ledger.layout, name).load()
    mark = cursor.marks(room.id).get(message.origin)
    seen = mark is not None and mark.n >= message.n
    return Receipt(
        name=name,
        addressed=name in message.to,
        handed_at=handed.at if handed else None,
        last_handed_at=handed.last_at if handed else None,
        times=handed.times if handed else 0,
        door=handed.door if handed else "",
        session=handed.session if handed else "",
        seen=seen,
        seen_at=cursor.moved_at(room.id) if mark is not None and mark.n == message.n else None,
        answers=answers,
    )
