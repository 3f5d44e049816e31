"""Version cursors: which messages' versions an agent has prepared, or looked at and found right.

They lie outside version control, one file per agent, and are no truth about the versions: that is
what an audit says. An entry keeps the hashes of what was there, so that it is known to be out of
date when the versions have changed since.
"""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from agent_chatroom_ledger.domain.clock import from_datetime
from agent_chatroom_ledger.domain.names import check_author
from agent_chatroom_ledger.errors import InvalidInput
from agent_chatroom_ledger.versions import audit

if TYPE_CHECKING:
    from agent_chatroom_ledger.ledger import Ledger
    from agent_chatroom_ledger.room import Room
    from agent_chatroom_ledger.storage.ownedfiles import OwnedFile
    from agent_chatroom_ledger.versions import Ref

MODES: Final = ("semantic", "structural")
COMPLETED: Final = "completed"


def entry_name(room: Room, ref: str, mode: str) -> str:
    """Return the key of an entry: ``chat_<32 hex of the room's id>:<message>:<mode>``."""
    return f"chat_{room.id.replace('-', '')}:{ref}:{mode}"


def preparations(ledger: Ledger, agent: str, path: str | Path | None = None) -> dict[str, Any]:
    """Return an agent's version cursor; one who has completed nothing has an empty one.

    Raises InvalidInput for a file of another agent or schema, and Corrupt for a damaged one.
    """
    return _file(ledger, agent, path).load()


def preparations_path(ledger: Ledger, agent: str, path: str | Path | None = None) -> Path:
    """Return the file that holds an agent's version cursor."""
    return _file(ledger, agent, path).path


def mark_prepared(
    room: Room,
    ref: Ref,
    *,
    agent: str,
    mode: str = "semantic",
    path: str | Path | None = None,
) -> dict[str, Any]:
    """Note that an agent is done with the versions of a message, and return its version cursor.

    Only that file is written. Raises InvalidInput (code ``versions_need_work``) for a message
    whose versions need work in this mode: ``structural`` asks that they are of the message's own
    text, ``semantic`` that they were prepared for their meaning too.
    """
    if mode not in MODES:
        raise InvalidInput(f"mode is {' or '.join(MODES)}, not {mode[:40]!r}.", field="mode")
    file = _file(room.ledger, agent, path)
    (item,) = audit([room], semantic=mode == "semantic", ref=ref)
    if item.needs_work:
        raise InvalidInput(
            f"The versions of {item.message.full_ref} in {room.path} still need work "
            f"({', '.join(item.reasons)}): set them first.",
            code="versions_need_work",
            room=room.path,
            ref=item.message.full_ref,
            reasons=list(item.reasons),
        )
    now = from_datetime(datetime.now(UTC))
    message, bundle = item.message, item.bundle
    entry = {
        "chat_id": entry_name(room, "", "").partition(":")[0],
        "chat_title": room.title,
        "message_id": message.n if message.primary else message.full_ref,
        "mode": mode,
        "source_hash": bundle.source_hash,
        "bundle_hash": bundle.bundle_hash,
        "completed_at": now,
    }

    def edit(document: dict[str, Any]) -> dict[str, Any]:
        name = entry_name(room, message.ref, mode)
        completed = {**document[COMPLETED], name: entry}
        return {**document, "updated_at": now, COMPLETED: completed}

    return file.change(edit)


def _file(ledger: Ledger, agent: str, path: str | Path | None) -> OwnedFile:
    from agent_chatroom_ledger.storage.ownedfiles import PREPARATIONS, OwnedFile

    check_author(agent, "agent")
    place = None if path is None else Path(path)
    return OwnedFile(ledger.layout, agent, schema=PREPARATIONS, section=COMPLETED, path=place)
