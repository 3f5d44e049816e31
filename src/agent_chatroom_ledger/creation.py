"""Making a room: which path it gets, and the one transaction that records it twice."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from agent_chatroom_ledger.domain.direct import direct_id, is_direct
from agent_chatroom_ledger.domain.names import (
    check_author,
    check_folder,
    check_title,
    room_directory,
    slug_of,
)
from agent_chatroom_ledger.domain.records import record_of
from agent_chatroom_ledger.domain.references import full_ref
from agent_chatroom_ledger.domain.reports import Action, operation_report, room_facts, with_report
from agent_chatroom_ledger.domain.rooms import check_members, check_reason, create_draft
from agent_chatroom_ledger.errors import Conflict, InvalidInput
from agent_chatroom_ledger.places import Places
from agent_chatroom_ledger.room import Room
from agent_chatroom_ledger.storage.reading import OPERATIONS, log_path

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from agent_chatroom_ledger.domain.drafts import Draft
    from agent_chatroom_ledger.domain.roomstate import RoomState
    from agent_chatroom_ledger.ledger import Ledger
    from agent_chatroom_ledger.storage.present import Present
    from agent_chatroom_ledger.storage.writer import Transaction


def create_room(
    ledger: Ledger,
    title: str,
    *,
    folder: str = "",
    members: Sequence[str] = (),
    by: str = "Ledger",
    reason: str = "",
    room_id: str | None = None,
    if_missing: bool = False,
) -> Room:
    """Make a room: one transaction with a record in its own log and one in the ledger's.

    With ``if_missing`` a room that bears the name already is returned instead of a numbered one;
    this is decided under the journal's lock, so that of several who ask only one makes it.
    """
    wanted = Wanted(title, folder, members, by, reason)
    check_room_id(room_id, wanted)

    def find(present: Present) -> str | None:
        if room_id is not None and (there := _room_with_id(ledger, room_id)) is not None:
            wanted.must_be(there)
            return there.path
        return next(filter(present.room, wanted.paths()), None) if if_missing else None

    return find_or_create(ledger, wanted, find, room_id=room_id)[0]


def find_or_create(
    ledger: Ledger,
    wanted: Wanted,
    find: Callable[[Present], str | None],
    *,
    room_id: str | None = None,
    place: Callable[[Present], str] | None = None,
) -> tuple[Room, bool]:
    """Return the room whose path ``find`` returns, else a new one; and whether it is new.

    Both under one lock, so that of several who ask only one makes it. ``place`` chooses the path
    of a new room; by default it follows from folder and title.
    """
    made: list[tuple[Room, bool]] = []

    def build(present: Present) -> Sequence[Transaction]:
        made.clear()
        there = find(present)
        if there is not None:
            made.append((Room(ledger, there, present.room(there)), False))
            return ()
        path = place(present) if place else wanted.free_path(present)
        its_id = room_id or present.new_id()
        made.append((Room(ledger, path, room_id=its_id), True))
        return (_creation(present, wanted, path, its_id),)

    ledger.transact(build)
    return made[0]


def _creation(present: Present, wanted: Wanted, path: str, room_id: str) -> Transaction:
    from agent_chatroom_ledger.storage.writer import Entry, Transaction

    at = present.next_time()
    draft = create_draft(
        room_id=room_id,
        title=wanted.title,
        path=path,
        members=wanted.members,
        by=wanted.by,
        reason=wanted.reason,
    )
    log = log_path(path, OPERATIONS, present.origin)
    n, first_id = present.next_number(log), present.new_id()
    report = creation_report(draft, first_id, at, full_ref(present.origin, n))
    first = record_of(with_report(draft, report), n, at, first_id)
    ledgers = log_path("", OPERATIONS, present.origin)
    also = record_of(
        msgspec.structs.replace(draft, cause=first.id),
        present.next_number(ledgers),
        present.next_time(),
        present.new_id(),
    )
    entries = (Entry(log, first), Entry(ledgers, also))
    return Transaction(entries, requested_by=wanted.by, reason=wanted.reason)


def check_room_id(room_id: str | None, wanted: Wanted) -> None:
    """Raise InvalidInput for the id of a direct room, unless the room is the one it stands for."""
    if room_id is not None and is_direct(room_id) and room_id != direct_id(wanted.members):
        raise InvalidInput(
            f"The id {room_id[:80]!r} is that of a direct room, which `rooms dm` makes; use "
            "another.",
            field="id",
        )


def creation_report(draft: Draft, record_id: str, at: str, ref: str) -> dict[str, Any]:
    """Return the report of a room's creation, as its record keeps it."""
    data = draft.data or {}
    actions = [Action(type=draft.kind, text=f"{draft.body} at {data['path']}")]
    if data["members"]:
        actions.append(Action(type="members.add", text=f"Added {_members(data['members'])}"))
    return operation_report(
        draft.kind,
        operation_id=record_id,
        created_at=at,
        requested_by=draft.author,
        applied=True,
        actions=actions,
        target=room_facts(data["id"], data["title"], data["path"]),
        provenance={"requested_by": draft.author, "reason": data.get("reason", "")},
        verification={"ok": True, "record": ref},
    )


class Wanted:
    """A room to be made, with every part checked."""

    def __init__(
        self, title: str, folder: str, members: Sequence[str], by: str, reason: str
    ) -> None:
        self.title = check_title(title)
        self.folder = check_folder(folder)
        if isinstance(members, str):
            raise InvalidInput("members is a list of names, not one text.", field="members")
        self.members = check_members(members)
        self.slug = slug_of(title)
        self.by = check_author(by, "by")
        self.reason = check_reason(reason)

    def paths(self) -> tuple[str, str]:
        """Return where a room of this name lies, in a folder that is not crowded or is."""
        return (
            room_directory(self.folder, self.slug, crowded=False),
            room_directory(self.folder, self.slug, crowded=True),
        )

    def free_path(self, present: Present) -> str:
        """Return the path for a new room of this name, under the journal's lock."""
        return Places.under_lock(present).for_new(self.folder, self.slug)

    def must_be(self, there: RoomState) -> None:
        """Raise Conflict unless this is the room that is there already under its id."""
        if (there.title, there.folder) != (self.title, self.folder):
            raise Conflict(
                f"The id {there.id!r} stands for the room {there.path}; use another.",
                code="id_taken",
                id=there.id,
                room=there.path,
            )


def _room_with_id(ledger: Ledger, room_id: str) -> RoomState | None:
    row = ledger.index.room_by_id(room_id)
    return None if row is None else Room(ledger, row.path).state()


def _members(names: Sequence[str]) -> str:
    return "1 member" if len(names) == 1 else f"{len(names)} members"
