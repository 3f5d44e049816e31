"""What was done to rooms, read back in order from every operations log."""

from __future__ import annotations

import heapq
from itertools import islice
from typing import TYPE_CHECKING, Any

import msgspec

from agent_chatroom_ledger.archives import tombstones
from agent_chatroom_ledger.domain.records import Message
from agent_chatroom_ledger.domain.reports import report_of
from agent_chatroom_ledger.domain.rooms import ROOM_CREATE
from agent_chatroom_ledger.errors import InvalidInput
from agent_chatroom_ledger.room import Room
from agent_chatroom_ledger.storage.reading import OPERATIONS
from agent_chatroom_ledger.storage.roomreader import RoomReader

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from agent_chatroom_ledger.ledger import Ledger


class LoggedOperation(msgspec.Struct, frozen=True, kw_only=True):
    """One applied operation: its record, the room whose log holds it, and its report.

    ``room`` is empty for the ledger's own log, where rooms are archived and restored.
    """

    room: str
    record: Message
    report: dict[str, Any]


def operations(
    ledger: Ledger, room: str | Room | None = None, *, limit: int | None = None
) -> list[LoggedOperation]:
    """Return the applied operations of all rooms, or of one, oldest first.

    Archived rooms are among them. An operation that touched two rooms is given once. ``limit``
    keeps the newest ones, and then reads no further back than it has to.
    """
    if limit is not None and limit < 0:
        raise InvalidInput("limit must not be negative.", field="limit")
    newest: Iterable[tuple[str, Message]]
    if room is None:
        newest = _distinct(heapq.merge(*_logs(ledger), key=_order, reverse=True))
    else:
        newest = _log_of(ledger.room(room))
    found = [
        LoggedOperation(room=path, record=message, report=report_of(message))
        for path, message in islice(newest, limit)
    ]
    found.reverse()
    return found


def _logs(ledger: Ledger) -> Iterator[Iterable[tuple[str, Message]]]:
    """Yield the log of each room, and the ledger's own, each newest first."""
    source, overlay = ledger.look()
    own = RoomReader(source, overlay, "", primary="")
    # A room's creation stands in its own log, with its report.
    yield (("", m) for m in own.descending(log=OPERATIONS) if m.kind != ROOM_CREATE)
    for row in ledger.index.rooms():
        yield _log_of(Room(ledger, row.path))
    for stone in tombstones(source):
        yield _log_of(Room(ledger, stone.path, tombstone=stone))


def _log_of(room: Room) -> Iterable[tuple[str, Message]]:
    return ((room.path, message) for message in room.reader().descending(log=OPERATIONS))


def _order(entry: tuple[str, Message]) -> tuple[Any, ...]:
    path, message = entry
    return (message.at, message.origin, path, message.n)


def _distinct(entries: Iterable[tuple[str, Message]]) -> Iterator[tuple[str, Message]]:
    """Leave out the second record of an operation: the one that names the first as its cause."""
    for path, message in entries:
        report = report_of(message)
        if report["operation_id"] == message.id:
            yield path, message
