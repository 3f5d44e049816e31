"""Joining and leaving: one transaction with the operation and the event that readers see.

And creating a room that others may be creating too: whoever comes second joins the first's.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from agent_chatroom_ledger.changes import operation_entry, state_of
from agent_chatroom_ledger.creation import Wanted, find_or_create
from agent_chatroom_ledger.direct import refuse_direct
from agent_chatroom_ledger.domain.direct import is_direct
from agent_chatroom_ledger.domain.events import event_draft
from agent_chatroom_ledger.domain.names import check_author
from agent_chatroom_ledger.domain.records import Message, message_of, record_of
from agent_chatroom_ledger.domain.rooms import check_reason, members_draft
from agent_chatroom_ledger.errors import Conflict, InvalidInput, LedgerError, NotYetCommitted
from agent_chatroom_ledger.room import Room
from agent_chatroom_ledger.storage.reading import MESSAGES, log_path

if TYPE_CHECKING:
    from collections.abc import Sequence

    from agent_chatroom_ledger.ledger import Ledger
    from agent_chatroom_ledger.storage.present import Present
    from agent_chatroom_ledger.storage.writer import Transaction


class Joined(msgspec.Struct, frozen=True, kw_only=True):
    """What came of joining: ``joined`` is false, and there is no event, for a member already."""

    room: Room
    joined: bool
    event: Message | None


class Left(msgspec.Struct, frozen=True, kw_only=True):
    """What came of leaving: ``left`` is false, and there is no event, for who was no member.

    ``discarded`` is how many messages of the room waited to be handed over, and will not be.
    """

    room: Room
    left: bool
    event: Message | None
    discarded: int


class Created(msgspec.Struct, frozen=True, kw_only=True):
    """What came of creating a room: whether it is new, and whether its maker is a member by this.

    ``notes`` say what did not come as asked.
    """

    room: Room
    created: bool
    joined: bool
    notes: tuple[str, ...] = ()


def join(room: Room, name: str, *, reason: str = "") -> Joined:
    """Make a name a member of a room, with an event in its messages; one commit.

    A member already changes nothing and leaves no line. Raises Conflict for a direct room and for
    an archived one, InvalidInput when the room is full.
    """
    refuse_direct(room, "join")
    event = _change(room, name, reason, add=True)
    return Joined(room=room, joined=event is not None, event=event)


def leave(room: Room, name: str, *, reason: str = "", keep_queued: bool = False) -> Left:
    """Take a name off a room's member list, with an event in its messages; one commit.

    Who is no member changes nothing and leaves no line. The room stays when its last member leaves:
    it can be read, posted to and joined. What waits of it in the name's inbox is discarded, for one
    who was no member too, unless ``keep_queued``. Raises Conflict for a direct room and an archived
    one.
    """
    refuse_direct(room, "leave")
    if not keep_queued:
        # Receipts that cannot be read are better told of before anything is written.
        room.ledger.receipts.places(name, room.id)
    try:
        event = _change(room, name, reason, add=False)
    except NotYetCommitted:
        # The operation is durable all the same, and its backlog goes with it.
        if not keep_queued:
            _discard(room, name, None)
        raise
    discarded = 0 if keep_queued else _discard(room, name, event)
    return Left(room=room, left=event is not None, event=event, discarded=discarded)


def _discard(room: Room, name: str, event: Message | None) -> int:
    from agent_chatroom_ledger.inbox import discard

    try:
        return discard(room.ledger, name, room, through=event)
    except LedgerError as error:
        if event is not None:
            path = room.path.removeprefix("rooms/")
            error.message = (
                f"{name} has left {path}, and what waited of it was not discarded; leave again for "
                f"that. {error.message}"
            )
        raise


def create_or_join(
    ledger: Ledger,
    name: str,
    title: str,
    *,
    folder: str = "",
    members: Sequence[str] = (),
    new: bool = False,
) -> Created:
    """Make a room whose members are its maker and those named; join the room of that title instead.

    Titles are the same whatever their case and spacing. Without a folder the room may lie in any,
    with one only there; several are a Conflict (code ``ambiguous``), unless one of them lies in no
    folder. Of many who create one title at once, one makes it and the others join. With ``new`` a
    further room is made.
    """
    if isinstance(members, str):
        raise InvalidInput("members is a list of names, not one text.", field="members")
    wanted = Wanted(title, folder, (name, *members), name, "")

    def same(present: Present) -> str | None:
        from agent_chatroom_ledger.storage.titles import same_titled

        rows = [
            row
            for row in same_titled(ledger.index, title)
            if not is_direct(row.id) and present.room(row.path) is not None
        ]
        here = [row for row in rows if row.folder == wanted.folder]
        rows = here if here or wanted.folder else rows
        if len(rows) > 1:
            raise _several(title, [row.path for row in rows])
        return rows[0].path if rows else None

    if not new:
        # What the index has to catch up with, it does before the lock and not under it.
        ledger.index.follow()
    room, fresh = find_or_create(ledger, wanted, (lambda _: None) if new else same)
    if fresh:
        return Created(room=room, created=True, joined=True)
    joined = join(room, name).joined
    missing = [member for member in wanted.members if member not in {name, *room.members}]
    notes = (_left_out(room, missing),) if missing else ()
    return Created(room=room, created=False, joined=joined, notes=notes)


def _left_out(room: Room, names: Sequence[str]) -> str:
    path = room.path.removeprefix("rooms/")
    return (
        f"The room was there already, and does not list {', '.join(names)}: they can join it, or "
        f"`rooms members {path} add NAME --apply` adds them."
    )


def _several(title: str, paths: Sequence[str]) -> Conflict:
    return Conflict(
        f"{len(paths)} rooms are called {title[:80]!r}: join one of them by its path, or ask for a "
        "new one.",
        code="ambiguous",
        room=title,
        candidates=[path.removeprefix("rooms/") for path in paths[:10]],
    )


def _change(room: Room, name: str, reason: str, *, add: bool) -> Message | None:
    room.require_active()
    check_author(name, "name")
    provenance = {"requested_by": name, "reason": check_reason(reason)}

    def build(present: Present) -> Sequence[Transaction]:
        from agent_chatroom_ledger.storage.writer import Entry, Transaction

        state = state_of(present, room)
        if (name in state.members) is add:
            return ()
        draft = members_draft([name], add=add, by=name, reason=reason)
        operation, _, _ = operation_entry(present, state, draft, provenance)
        event = event_draft(name, "joined" if add else "left", operation.record.id)
        log = log_path(room.path, MESSAGES, present.origin)
        at = present.next_time()
        said = record_of(event, present.next_number(log), at, present.new_id())
        entries = (operation, Entry(log, said))
        return (Transaction(entries, requested_by=name, reason=reason),)

    stored = room.ledger.transact(build)
    if not stored:
        return None
    event = stored[-1]
    origin = event.log.rpartition("/")[2]
    return message_of(event.line, origin, MESSAGES, origin == room.origin)
