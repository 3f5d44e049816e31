"""Posting: drafts become transactions under the journal's lock, one message and one commit each."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from agent_chatroom_ledger.domain.records import Draft, Record, record_of, same_content
from agent_chatroom_ledger.domain.references import full_ref, parse_ref
from agent_chatroom_ledger.errors import Conflict, InvalidInput
from agent_chatroom_ledger.storage.reading import MESSAGES, log_path

if TYPE_CHECKING:
    from agent_chatroom_ledger.storage.present import Present
    from agent_chatroom_ledger.storage.writer import Transaction


def transactions(
    present: Present, room: str, drafts: list[Draft], told: list[Record], fresh: list[int]
) -> list[Transaction]:
    """Give numbers to what is new, and find what was said before; under the journal's lock.

    ``told`` gets the record of every draft, and ``fresh`` the places there of those that are new.
    """
    from agent_chatroom_ledger.storage.writer import Entry, Transaction

    state = present.required(room)
    log = log_path(room, MESSAGES, present.origin)
    mine: dict[str, Record] = {}
    found: list[Transaction] = []
    present.look_up(room, [draft.id for draft in drafts if draft.id is not None])
    for given in drafts:
        draft = _with_full_reply(given, state.origin, room, present)
        _require_artifacts(draft, present)
        if draft.id is not None:
            before = mine.get(draft.id) or _said_before(present, room, draft.id)
            if before is not None:
                again = record_of(draft, before.n, before.at, before.id)
                if not same_content(before, again):
                    raise Conflict(
                        f"The id {draft.id!r} stands for another message in {room}: "
                        f"number {before.n}. Post under a new id.",
                        code="id_taken",
                        room=room,
                        id=draft.id,
                        n=before.n,
                    )
                told.append(before)
                continue
        at = present.next_time()
        record = record_of(draft, present.next_number(log), at, draft.id or present.new_id())
        if draft.id is not None:
            mine[draft.id] = record
        fresh.append(len(told))
        told.append(record)
        found.append(Transaction((Entry(log, record),)))
    return found


def _said_before(present: Present, room: str, record_id: str) -> Record | None:
    found = present.find_id(room, record_id)
    if found is None:
        return None
    log, record = found
    if f"/{MESSAGES}/" not in log:
        raise Conflict(
            f"The id {record_id!r} stands for an operation of {room}.",
            code="id_taken",
            room=room,
            id=record_id,
        )
    return record


def _with_full_reply(draft: Draft, primary: str, room: str, present: Present) -> Draft:
    """Return the draft with its reply_to as the full reference of a message that exists."""
    if draft.reply_to is None:
        return draft
    origin, n = parse_ref(draft.reply_to, primary)
    if n > present.last_number(log_path(room, MESSAGES, origin)):
        raise InvalidInput(
            f"There is no message {full_ref(origin, n)} in {room} to reply to.",
            field="reply_to",
            room=room,
            missing=[full_ref(origin, n)],
        )
    return msgspec.structs.replace(draft, reply_to=full_ref(origin, n))


def _require_artifacts(draft: Draft, present: Present) -> None:
    """Refuse a record that names an attachment which the ledger does not hold."""
    missing = [name for name in draft.artifacts if not present.has_artifact(name)]
    if missing:
        raise InvalidInput(
            f"The ledger holds no artifact {missing[0]}.", field="artifacts", missing=missing
        )
