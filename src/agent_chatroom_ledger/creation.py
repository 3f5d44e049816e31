"""Making a room: which path it gets, and the one transaction that records it twice."""

from __future__ import annotations

from itertools import count
from typing import TYPE_CHECKING, Any

import msgspec

from agent_chatroom_ledger.domain.names import (
    check_author,
    check_folder,
    check_title,
    crowd_directory,
    fold_name,
    numbered_slug,
    room_directory,
    slug_of,
)
from agent_chatroom_ledger.domain.records import record_of
from agent_chatroom_ledger.domain.references import full_ref
from agent_chatroom_ledger.domain.reports import Action, operation_report, room_facts, with_report
from agent_chatroom_ledger.domain.rooms import check_members, check_reason, create_draft
from agent_chatroom_ledger.errors import Conflict, InvalidInput
from agent_chatroom_ledger.limits import FOLDER_ROOMS_MAX
from agent_chatroom_ledger.room import Room
from agent_chatroom_ledger.storage.reading import OPERATIONS, ROOMS, log_path

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
    made: list[str] = []

    def build(present: Present) -> Sequence[Transaction]:
        from agent_chatroom_ledger.storage.writer import Entry, Transaction

        made.clear()
        if room_id is not None and (there := _room_with_id(ledger, room_id)) is not None:
            wanted.must_be(there)
            made.append(there.path)
            return ()
        same = next(filter(present.room, wanted.paths()), None) if if_missing else None
        if same is not None:
            made.append(same)
            return ()
        path = placed(present.names, lambda p: present.room(p) is not None, wanted)
        at = present.next_time()
        draft = create_draft(
            room_id=room_id or present.new_id(),
            title=wanted.title,
            path=path,
            members=wanted.members,
            by=by,
            reason=reason,
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
        made.append(path)
        return (
            Transaction((Entry(log, first), Entry(ledgers, also)), requested_by=by, reason=reason),
        )

    ledger.transact(build)
    return Room(ledger, made[0])


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
        check_author(by, "by")
        check_reason(reason)

    def paths(self) -> tuple[str, str]:
        """Return where a room of this name lies, in a folder that is not crowded or is."""
        return (
            room_directory(self.folder, self.slug, crowded=False),
            room_directory(self.folder, self.slug, crowded=True),
        )

    def must_be(self, there: RoomState) -> None:
        """Raise Conflict unless this is the room that is there already under its id."""
        if (there.title, there.folder) != (self.title, self.folder):
            raise Conflict(
                f"The id {there.id!r} stands for the room {there.path}; use another.",
                code="id_taken",
                id=there.id,
                room=there.path,
            )


def placed(
    names: Callable[[str], list[str]], is_room: Callable[[str], bool], wanted: Wanted
) -> str:
    """Return the path for a new room: free under case folding, in ``~xx`` in a crowded folder."""
    place = ROOMS
    for part in wanted.folder.split("/") if wanted.folder else ():
        there = {fold_name(name.rstrip("/")): name.rstrip("/") for name in names(place)}
        spelled = there.get(fold_name(part), part)
        if spelled != part:
            raise Conflict(
                f"{place} holds {spelled!r} already, which some file systems take for {part!r}; "
                "write it like that.",
                code="folder_spelling",
                folder=wanted.folder,
            )
        place = f"{place}/{part}"
        if is_room(place):
            raise Conflict(
                f"{place} is a room, and a room holds no other rooms; choose another folder.",
                code="folder_is_room",
                folder=wanted.folder,
            )
    there_now = names(place)
    taken = {fold_name(name.rstrip("/")) for name in there_now}
    sharded = any(name.startswith("~") for name in there_now)
    rooms = sum(name.endswith("/") and not name.startswith("~") for name in there_now)
    for k in count(1):
        slug = wanted.slug if k == 1 else numbered_slug(wanted.slug, k)
        if fold_name(slug) in taken:
            continue
        if sharded:
            crowd = names(f"{place}/{crowd_directory(slug)}")
            if fold_name(slug) in {fold_name(name.rstrip("/")) for name in crowd}:
                continue
        return room_directory(wanted.folder, slug, crowded=rooms >= FOLDER_ROOMS_MAX)
    raise AssertionError("count() ends")


def _room_with_id(ledger: Ledger, room_id: str) -> RoomState | None:
    row = ledger.index.room_by_id(room_id)
    return None if row is None else Room(ledger, row.path).state()


def _members(names: Sequence[str]) -> str:
    return "1 member" if len(names) == 1 else f"{len(names)} members"
