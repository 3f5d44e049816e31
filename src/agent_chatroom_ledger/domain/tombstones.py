"""Tombstones: what stays in the tree of a room that was archived (DESIGN section 6).

Archiving removes the room's directory; history keeps it, and the tombstone names the last commit
that has it. Restoring puts back that very tree.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

import msgspec

from agent_chatroom_ledger.domain.digests import sha256_hex
from agent_chatroom_ledger.domain.drafts import Draft
from agent_chatroom_ledger.domain.names import is_reserved
from agent_chatroom_ledger.errors import Corrupt

if TYPE_CHECKING:
    from agent_chatroom_ledger.domain.frames import Frame

FORMAT: Final = 1
ROOM_ARCHIVE: Final = "room.archive"
ROOM_RESTORE: Final = "room.restore"
ROOM_MOVE: Final = "room.move"


class Tombstone(msgspec.Struct, frozen=True, kw_only=True):
    """An archived room: who it was, how far its logs went, and the last commit that has it."""

    format: int = FORMAT
    id: str
    title: str
    path: str
    members: tuple[str, ...] = ()
    messages: dict[str, int] = {}
    operations: dict[str, int] = {}
    commit: str
    archived_at: str
    archived_by: str = ""
    reason: str = ""


_DECODER: Final = msgspec.json.Decoder(Tombstone)
# Capitals are left out: on some systems they are no others than small letters.
_NAME: Final = re.compile(r"[a-z0-9][a-z0-9_-]{0,79}")
_OWN_LOG: Final = "operations/"
_RESTORE: Final = f'"kind":"{ROOM_RESTORE}"'.encode()


def restores_room(frame: Frame) -> bool:
    """Tell whether a frame puts a room back: what else is in it lies in logs that come with it.

    They are there when the work tree has been brought up, and not before.
    """
    first = frame.records[0] if frame.records else None
    return first is not None and first.log.startswith(_OWN_LOG) and _RESTORE in bytes(first.record)


def tombstone_path(room_id: str) -> str:
    """Return where a room's tombstone lies; ids of one time begin alike, so their end spreads.

    An id that is no name of a file on every system lies under its hash: callers give rooms ids of
    their own, and other writers' files may hold any text.
    """
    if _NAME.fullmatch(room_id) is None or is_reserved(room_id):
        # No id that stands for itself holds a dot.
        room_id = f"id.{sha256_hex(room_id.encode('utf-8', 'surrogatepass'))}"
    return f"archive/{room_id[-2:]}/{room_id}.json"


def encode_tombstone(tombstone: Tombstone) -> bytes:
    """Return the file of a tombstone."""
    return msgspec.json.format(msgspec.json.encode(tombstone), indent=2) + b"\n"


def decode_tombstone(data: bytes) -> Tombstone:
    """Return a tombstone; Corrupt when the file is none, or (`newer_format`) of a newer version."""
    try:
        found = _DECODER.decode(data)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise Corrupt(f"not a tombstone: {error}", code="bad_tombstone") from None
    if found.format > FORMAT:
        raise Corrupt(
            f"a tombstone has format {found.format}, and this version reads up to {FORMAT}",
            code="newer_format",
            format=found.format,
        )
    return found


def archive_draft(*, room_id: str, title: str, path: str, by: str, reason: str = "") -> Draft:
    """Return the record of the ledger's own log that archives a room."""
    data = {"id": room_id, "title": title, "path": path}
    if reason:
        data["reason"] = reason
    return Draft(author=by, kind=ROOM_ARCHIVE, body=f"Archived the room {title}", data=data)


def restore_draft(
    *, room_id: str, title: str, path: str, source: str, commit: str, by: str, reason: str = ""
) -> Draft:
    """Return the record that puts the tree at `source` in `commit` back to `path`."""
    data = {"id": room_id, "title": title, "path": path, "from": source, "commit": commit}
    if reason:
        data["reason"] = reason
    return Draft(author=by, kind=ROOM_RESTORE, body=f"Restored the room {title}", data=data)


def move_draft(*, path: str, by: str) -> Draft:
    """Return the room's own record of a new place, when its old one was taken meanwhile."""
    return Draft(author=by, kind=ROOM_MOVE, body=f"Now at {path}", data={"path": path})
