"""Archiving a room and bringing it back: one commit each, and no message is copied."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from agent_chatroom_ledger.changes import state_of
from agent_chatroom_ledger.domain.names import check_author
from agent_chatroom_ledger.domain.records import decode_record, record_of
from agent_chatroom_ledger.domain.rooms import check_reason
from agent_chatroom_ledger.domain.tombstones import (
    ROOM_RESTORE,
    Tombstone,
    archive_draft,
    decode_tombstone,
    move_draft,
    restore_draft,
    tombstone_path,
)
from agent_chatroom_ledger.errors import Conflict, Corrupt, NotFound
from agent_chatroom_ledger.places import Places
from agent_chatroom_ledger.room import Room
from agent_chatroom_ledger.storage import reading
from agent_chatroom_ledger.storage.reading import OPERATIONS, ROOMS, log_path
from agent_chatroom_ledger.storage.roomreader import RoomReader

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from agent_chatroom_ledger.domain.records import Draft
    from agent_chatroom_ledger.ledger import Ledger
    from agent_chatroom_ledger.storage.present import Present
    from agent_chatroom_ledger.storage.source import Source
    from agent_chatroom_ledger.storage.writer import Entry, Stored, Transaction


def tombstones(source: Source) -> Iterator[Tombstone]:
    """Give the tombstones in a tree; one that cannot be read is skipped, and named by verify."""
    for part in sorted(source.names("archive")):
        directory = f"archive/{part.rstrip('/')}"
        for name in sorted(source.names(directory)):
            data = source.read(f"{directory}/{name}")
            if data is not None:
                with suppress(Corrupt):
                    yield decode_tombstone(data)


def archived_under(ledger: Ledger, name: str) -> list[Tombstone]:
    """Return the archived rooms that a name can mean: by id, path, slug or title."""
    plain = name.removeprefix(f"{ROOMS}/").strip("/")
    found = list(tombstones(ledger.look()[0]))
    chat = plain.removeprefix("chat_")
    for fits in (
        [t for t in found if t.id == plain or t.id.replace("-", "") == chat],
        [t for t in found if t.path == f"{ROOMS}/{plain}"],
        [t for t in found if t.path.rpartition("/")[2] == plain or t.title == plain],
    ):
        if fits:
            return fits
    return []


def archive_room(ledger: Ledger, room: Room, *, by: str = "Ledger", reason: str = "") -> Tombstone:
    """Take a room out of the present: a tombstone and a removed directory, one commit.

    It can still be listed, read and verified. Raises Conflict (code `archived`) when it is archived
    already, and Corrupt when its own file gives it another path. The tombstone is the one that this
    call left, though somebody restore the room before it returns.
    """
    check_author(by, "by")
    check_reason(reason)

    def build(present: Present) -> Sequence[Transaction]:
        state = state_of(present, room)
        draft = archive_draft(
            room_id=state.id, title=state.title, path=room.path, by=by, reason=reason
        )
        return (_transaction(present, draft, (), by, reason),)

    (stored,) = ledger.transact(build)
    # Readers look at the work tree: it shows the room as archived before this call returns.
    ledger.writer().checkpoint()
    return _left_by(ledger, stored)


def _left_by(ledger: Ledger, stored: Stored) -> Tombstone:
    """Return the tombstone that an operation left, though the room be back by now."""
    operation = stored.record
    named = operation.data or {}
    room_id, path = str(named["id"]), str(named["path"])
    source, overlay = ledger.look()
    data = source.read(tombstone_path(room_id))
    if data is not None:
        found = decode_tombstone(data)
        if found.archived_at == operation.at:
            return found
    # Somebody was quick to bring it back: what he did names the commit that the tombstone named.
    for _, line in reading.records(source, stored.log, operation.n, overlay=overlay):
        later = decode_record(line)
        if later.kind == ROOM_RESTORE and (later.data or {}).get("id") == room_id:
            commit = str((later.data or {})["commit"])
            reader = RoomReader(ledger.source_at(commit), None, path)
            return Tombstone(
                id=room_id,
                title=str(named["title"]),
                path=path,
                members=reader.state().members,
                messages=reader.positions(),
                operations=reader.positions(OPERATIONS),
                commit=commit,
                archived_at=operation.at,
                archived_by=operation.author,
                reason=str(named.get("reason", "")),
            )
    raise NotFound(f"{path} left no tombstone; run `rooms verify`", room=path)


def restore_room(
    ledger: Ledger, tombstone: Tombstone, *, by: str = "Ledger", reason: str = ""
) -> Room:
    """Put an archived room back as it was, the very same tree; return it.

    Where its path is taken meanwhile it gets the next free number, a folder that is a room now gets
    one too, and an operation in its log says so.
    """
    check_author(by, "by")
    check_reason(reason)
    put: list[str] = []

    def build(present: Present) -> Sequence[Transaction]:
        put.clear()
        present.require_settled()
        there = present.tombstone(tombstone.id)
        if there is None:
            raise Conflict(
                f"{tombstone.title!r} is not archived any more",
                code="not_archived",
                id=tombstone.id,
            )
        path = Places.under_lock(present).for_old(there.path)
        put.append(path)
        draft = restore_draft(
            room_id=there.id,
            title=there.title,
            path=path,
            source=there.path,
            commit=there.commit,
            by=by,
            reason=reason,
        )
        moved: tuple[Entry, ...] = ()
        if path != there.path:
            moved = (_moved(present, there, path, by),)
        return (_transaction(present, draft, moved, by, reason),)

    ledger.transact(build)
    ledger.writer().checkpoint()
    return Room(ledger, put[0], room_id=tombstone.id)


def _moved(present: Present, there: Tombstone, path: str, by: str) -> Entry:
    from agent_chatroom_ledger.storage.writer import Entry

    log = log_path(path, OPERATIONS, present.origin)
    # The log comes back with the tree, so its numbers go on from where the tombstone says.
    n = there.operations.get(present.origin, 0) + 1
    record = record_of(move_draft(path=path, by=by), n, present.next_time(), present.new_id())
    return Entry(log, record)


def _transaction(
    present: Present, draft: Draft, more: tuple[Entry, ...], by: str, reason: str
) -> Transaction:
    from agent_chatroom_ledger.storage.writer import Entry, Transaction

    log = log_path("", OPERATIONS, present.origin)
    record = record_of(draft, present.next_number(log), present.next_time(), present.new_id())
    return Transaction((Entry(log, record), *more), requested_by=by, reason=reason)
