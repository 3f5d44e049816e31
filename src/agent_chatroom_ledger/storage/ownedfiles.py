"""Files of one reader outside version control: replaced whole and durably, under a lock.

Two processes of one reader never undo each other's steps. A file that cannot be read is an error
that names it and the way out, never taken for a first run.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import msgspec

from agent_chatroom_ledger.errors import Corrupt, Forbidden, InvalidInput
from agent_chatroom_ledger.storage import files
from agent_chatroom_ledger.storage.cursors import cursor_name
from agent_chatroom_ledger.storage.locks import holding

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractContextManager
    from pathlib import Path

    from agent_chatroom_ledger.storage.layout import Layout

FORMAT = 1
LENSES = "agent-chatroom-ledger/consumer"
PREPARATIONS = "agent-chatroom-ledger/preparations"
_WHAT = {LENSES: "consumer's state", PREPARATIONS: "version cursor"}


class OwnedFile:
    """One reader's JSON document of one schema; what it does not know of it is kept.

    Raises InvalidInput for a file of another owner, schema or newer format, and Corrupt (code
    ``consumer_state_invalid``) for one that cannot be read; all leave the file as it is.
    """

    def __init__(
        self, layout: Layout, owner: str, *, schema: str, section: str, path: Path | None = None
    ) -> None:
        """``section`` is the object that the file is about; ``path`` is where the caller wants it.

        Without a path it lies in the ledger's own directory for its schema.
        """
        self._layout = layout
        self._owner = owner
        self._schema = schema
        self._section = section
        own = layout.consumers if schema == LENSES else layout.preparations
        self.path = own / cursor_name(owner) if path is None else path.resolve()

    def load(self) -> dict[str, Any]:
        """Return the document; a missing file is a reader about whom nothing is known."""
        try:
            content = files.read_bytes(self.path)
        except OSError as error:
            raise Forbidden(
                f"The file {self.path} cannot be read: {error}.", path=str(self.path)
            ) from error
        if content is None:
            return {
                "format": FORMAT,
                "schema": self._schema,
                "consumer": self._owner,
                "updated_at": None,
                self._section: {},
            }
        return self._checked(content)

    def change(self, edit: Callable[[dict[str, Any]], dict[str, Any] | None]) -> dict[str, Any]:
        """Read, edit and replace the file in one step; None from ``edit`` leaves it as it is."""
        with files.clear_errors(f"writing a {_WHAT[self._schema]}"), self._locked():
            before = self.load()
            after = edit(before)
            if after is None:
                return before
            content = msgspec.json.format(msgspec.json.encode(after), indent=1) + b"\n"
            files.replace_beside(self.path, content)
            return after

    def _checked(self, content: bytes) -> dict[str, Any]:
        what = _WHAT[self._schema]
        try:
            found = msgspec.json.decode(content)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise self._damaged(str(error)) from None
        if not isinstance(found, dict):
            raise self._damaged("it is not a JSON object")
        if found.get("schema") != self._schema:
            raise InvalidInput(
                f"{self.path} is no {what} of a ledger (its schema is "
                f"{str(found.get('schema'))[:80]!r}); name another file.",
                code="consumer_state_schema",
                path=str(self.path),
            )
        if found.get("format") != FORMAT:
            raise InvalidInput(
                f"{self.path} has format {str(found.get('format'))[:20]}; this version knows "
                f"{FORMAT}: use the newer version.",
                code="consumer_state_format",
                path=str(self.path),
            )
        if found.get("consumer") != self._owner:
            raise InvalidInput(
                f"{self.path} belongs to {str(found.get('consumer'))[:80]!r}, not to "
                f"{self._owner!r}; name another file.",
                code="consumer_state_owner",
                path=str(self.path),
            )
        section = found.get(self._section)
        if not isinstance(section, dict) or not all(isinstance(v, dict) for v in section.values()):
            raise self._damaged(f"it holds no object {self._section!r}")
        return found

    def _damaged(self, why: str) -> Corrupt:
        return Corrupt(
            f"The {_WHAT[self._schema]} {self.path} is damaged: {why}. Put back a copy of it, or "
            "move it away to begin again.",
            code="consumer_state_invalid",
            path=str(self.path),
        )

    def _locked(self) -> AbstractContextManager[None]:
        from hashlib import sha256

        layout = self._layout
        if self.path.parent in (layout.consumers, layout.preparations):
            self.path.parent.mkdir(parents=True, exist_ok=True)
        digest = sha256(os.fsencode(self.path)).hexdigest()[:16]
        return holding(layout.locks / f"owned-{digest}.lock")
