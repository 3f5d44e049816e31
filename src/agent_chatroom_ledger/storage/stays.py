"""Where a room lay: which of the commits that name a path are about it, and not about another.

Paths are handed on. When a room is archived another may be made at its path, and the first then
comes back at a new one. The records that archive and restore say whose turn it was.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from agent_chatroom_ledger.domain.records import decode_record
from agent_chatroom_ledger.domain.references import parse_ref
from agent_chatroom_ledger.domain.tombstones import ROOM_ARCHIVE, ROOM_RESTORE
from agent_chatroom_ledger.errors import Corrupt, InvalidInput
from agent_chatroom_ledger.storage import reading
from agent_chatroom_ledger.storage.reading import OPERATIONS, log_path

if TYPE_CHECKING:
    from agent_chatroom_ledger.storage.objects import CommitInfo
    from agent_chatroom_ledger.storage.overlay import Overlay
    from agent_chatroom_ledger.storage.source import Source


class Stays:
    """One room on its way back through history; ``path`` is where it lay so far back.

    It is asked about every commit that names ``path``, newest first.
    """

    def __init__(
        self, source: Source, overlay: Overlay, room_id: str, path: str, *, here: bool
    ) -> None:
        """Begin at the present, where the room lies at the path, or is archived and lies nowhere.

        ``source`` and ``overlay`` are the present, whose log tells what each operation was.
        """
        self._source = source
        self._overlay = overlay
        self._id = room_id
        self._here = here
        self.path = path

    def holds(self, commit: CommitInfo) -> bool:
        """Tell whether a commit is about the room."""
        message = commit.message
        if f"\nRoom: {self.path}\n" not in message:
            return False
        if f"\nKind: {ROOM_ARCHIVE}\n" in message or f"\nKind: {ROOM_RESTORE}\n" in message:
            return self._turned(message)
        return self._here

    def _turned(self, message: str) -> bool:
        """Tell whether a commit that archives or restores is about the room, and go back past it.

        Whoever comes to lie at a path finds it free. So what is older than a restore, or than the
        creation, is an archive's, and that says who lay there before.
        """
        room = operation = ""
        mine = False
        for line in message.split("\n"):
            key, _, value = line.partition(": ")
            if key == "Room":
                room = value
            elif key == "Operation":
                operation = value
            elif key == "Kind" and room == self.path:
                data = self._data(operation) if value in {ROOM_ARCHIVE, ROOM_RESTORE} else {}
                if value == ROOM_ARCHIVE:
                    self._here = data.get("id") == self._id
                mine = mine or self._here
                before = data.get("from")
                if value == ROOM_RESTORE and self._here and before and before != self.path:
                    self.path, self._here = str(before), False
        return mine

    def _data(self, operation: str) -> dict[str, Any]:
        """Return what an operation of the ledger's own log says; nothing when it is unreadable."""
        try:
            origin, n = parse_ref(operation, "")
            log = log_path("", OPERATIONS, origin)
            line = reading.record(self._source, log, n, self._overlay)
            return {} if line is None else decode_record(line).data or {}
        except (Corrupt, InvalidInput):
            return {}
