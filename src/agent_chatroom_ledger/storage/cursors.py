"""Cursor files: how far one consumer has acknowledged, in every room, outside version control.

A file is replaced whole and durably, under a lock of the operating system, so that two processes
of one consumer never undo each other's steps. One that cannot be read is an error, never taken
for a first run: that would hand everything out again.
"""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING, Annotated, Any

import msgspec

from agent_chatroom_ledger.domain.digests import sha256_hex
from agent_chatroom_ledger.errors import Corrupt, Forbidden, InvalidInput
from agent_chatroom_ledger.storage import files
from agent_chatroom_ledger.storage.locks import holding

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from contextlib import AbstractContextManager
    from pathlib import Path

    from agent_chatroom_ledger.storage.layout import Layout

FORMAT = 1
SCHEMA = "agent-chatroom-ledger/cursor"
_UNSAFE = re.compile(r"[^a-z0-9_-]+")
_READABLE_CHARS = 40
_PLAIN = re.compile(rf"[A-Za-z0-9_-]{{1,{_READABLE_CHARS}}}", re.ASCII)
_HASH_CHARS = 16


class Mark(msgspec.Struct, frozen=True):
    """The newest record of one origin that was acknowledged: its number and its id."""

    n: Annotated[int, msgspec.Meta(ge=0)]
    id: str


class _Entry(msgspec.Struct):
    messages: dict[str, Mark]
    at: str | None = None


class _File(msgspec.Struct):
    """What is read of a cursor file; what else it holds is kept, as bytes."""

    format: int
    schema: str
    consumer: str
    positions: dict[str, _Entry]
    updated_at: str | None = None


_decoder = msgspec.json.Decoder(_File)


class Cursor:
    """What a cursor file says. A value; fields that this version does not know are kept."""

    __slots__ = ("_content", "_file", "_positions")

    def __init__(self, content: bytes) -> None:
        """Read the bytes of a cursor file; raises msgspec.DecodeError for others."""
        self._content = content
        self._file = _decoder.decode(content)
        self._positions: dict[str, dict[str, int]] | None = None

    @property
    def document(self) -> dict[str, Any]:
        """The whole file, as JSON values."""
        found: dict[str, Any] = msgspec.json.decode(self._content)
        return found

    @property
    def header(self) -> tuple[str, int, str]:
        """The schema, the format and the consumer that the file names."""
        return self._file.schema, self._file.format, self._file.consumer

    @property
    def updated_at(self) -> str | None:
        """When it was last changed, or None for a file that is not there yet."""
        return self._file.updated_at

    def positions(self) -> Mapping[str, Mapping[str, int]]:
        """Return the position in every room, by room id."""
        if self._positions is None:
            self._positions = {
                room: {origin: mark.n for origin, mark in entry.messages.items()}
                for room, entry in self._file.positions.items()
            }
        return self._positions

    def marks(self, room_id: str) -> dict[str, Mark]:
        """Return the newest acknowledged record of each origin of a room."""
        entry = self._file.positions.get(room_id)
        return {} if entry is None else dict(entry.messages)

    def moved_at(self, room_id: str) -> str | None:
        """Return when the position in a room was last moved; None when the file does not say."""
        entry = self._file.positions.get(room_id)
        return None if entry is None else entry.at

    def moved(
        self, room_id: str, marks: Mapping[str, Mark], *, title: str, path: str, at: str
    ) -> Cursor:
        """Return the cursor with a room's marks replaced."""
        document = self.document
        entry = document["positions"].setdefault(room_id, {})
        entry["title"] = title
        entry["path"] = path
        entry["messages"] = {
            origin: {"n": mark.n, "id": mark.id} for origin, mark in sorted(marks.items())
        }
        entry["at"] = at
        # The positions stay last, below what is short.
        positions = document.pop("positions")
        return Cursor(msgspec.json.encode({**document, "updated_at": at, "positions": positions}))


class CursorFile:
    """One consumer's cursor file.

    Raises InvalidInput for a file of another consumer, schema or newer format, and Corrupt for one
    that cannot be read; both name the file and the way out, and leave it as it is.
    """

    def __init__(self, layout: Layout, consumer: str, path: Path | None = None) -> None:
        """``path`` is where the caller wants the file; the ledger's own directory otherwise."""
        self._layout = layout
        self._consumer = consumer
        self._own = path is None
        # A cursor that is a link stays one: what is replaced is the file that it leads to.
        self.path = layout.cursors / cursor_name(consumer) if path is None else path.resolve()
        self._known: tuple[tuple[int, int, int], Cursor] | None = None

    def load(self) -> Cursor:
        """Return what the file says; a missing file is a consumer that has acknowledged nothing."""
        try:
            descriptor = os.open(self.path, os.O_RDONLY | os.O_CLOEXEC)
        except FileNotFoundError:
            nothing = _File(format=FORMAT, schema=SCHEMA, consumer=self._consumer, positions={})
            return Cursor(msgspec.json.encode(nothing))
        except OSError as error:
            raise Forbidden(
                f"The cursor file {self.path} cannot be read: {error}.", path=str(self.path)
            ) from error
        with os.fdopen(descriptor, "rb") as stream:
            status = os.fstat(descriptor)
            stamp = (status.st_ino, status.st_mtime_ns, status.st_size)
            if self._known is not None and self._known[0] == stamp:
                return self._known[1]
            try:
                content = stream.read()
            except OSError as error:
                raise Forbidden(
                    f"The cursor file {self.path} cannot be read: {error}.", path=str(self.path)
                ) from error
        cursor = self._checked(content)
        self._known = (stamp, cursor)
        return cursor

    def change(self, edit: Callable[[Cursor], Cursor]) -> Cursor:
        """Read, edit and replace the file in one step that no other process can come between.

        Nothing is written when ``edit`` returns what it was given.
        """
        with files.clear_errors("writing a cursor"), self._locked():
            self._known = None
            before = self.load()
            after = edit(before)
            if after is not before:
                content = msgspec.json.format(msgspec.json.encode(after.document), indent=1)
                files.replace_beside(self.path, content + b"\n")
            return after

    def _locked(self) -> AbstractContextManager[None]:
        # In the ledger, whatever the cursor's place: a lock file beside a file that the caller
        # named would be one more file that he did not name (invariant 7).
        digest = _digest(os.fsencode(self.path))
        # A clone that was never written to has no such directory; its reader may have a cursor.
        if self._own:
            self._layout.cursors.mkdir(parents=True, exist_ok=True)
        return holding(self._layout.locks / f"cursor-{digest}.lock")

    def _checked(self, content: bytes) -> Cursor:
        cursor: Cursor | None = None
        trouble = ""
        try:
            cursor = Cursor(content)
            schema, number, consumer = cursor.header
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            trouble = str(error)
            schema, number, consumer = self._says(content, trouble)
        if schema != SCHEMA:
            raise InvalidInput(
                f"{self.path} is not a cursor file of a ledger (its schema is {schema[:80]!r}); "
                "name another file.",
                code="cursor_schema",
                path=str(self.path),
            )
        if number != FORMAT:
            raise InvalidInput(
                f"The cursor file {self.path} has format {number}; this version knows {FORMAT}: "
                "use the newer version.",
                code="cursor_format",
                path=str(self.path),
            )
        if consumer != self._consumer:
            raise InvalidInput(
                f"The cursor file {self.path} belongs to {consumer[:80]!r}, not to "
                f"{self._consumer!r}; name another file.",
                code="cursor_owner",
                path=str(self.path),
            )
        if cursor is None:
            raise self._damaged(trouble)
        return cursor

    def _says(self, content: bytes, trouble: str) -> tuple[str, int, str]:
        """Return schema, format and consumer of a file that cannot be read otherwise."""
        try:
            found = msgspec.json.decode(content)
        except (msgspec.DecodeError, UnicodeDecodeError):
            raise self._damaged(trouble) from None
        if not isinstance(found, dict):
            raise self._damaged("it is not a JSON object")
        number = found.get("format")
        return (
            str(found.get("schema")),
            number if isinstance(number, int) else FORMAT,
            str(found.get("consumer")),
        )

    def _damaged(self, why: str) -> Corrupt:
        return Corrupt(
            f"The cursor file {self.path} is damaged: {why}. Put back a copy of it, or move it "
            "away to begin again with every message unread.",
            code="cursor_damaged",
            path=str(self.path),
        )


def cursor_name(consumer: str) -> str:
    """Return the file name of a consumer's cursor: readable, and safe whatever the name holds.

    Two names never share a file, not even where file systems do not tell cases apart: a plain
    name is followed by which of its letters are capitals, any other by a part of its SHA-256.
    """
    if _PLAIN.fullmatch(consumer):
        capitals = sum(1 << place for place, char in enumerate(consumer) if char.isupper())
        return f"{consumer.lower()}-{capitals:x}.json"
    readable = _UNSAFE.sub("-", consumer.lower()).strip("-")[:_READABLE_CHARS].strip("-")
    return f"{readable or 'consumer'}-h{_digest(consumer.encode('utf-8', 'surrogatepass'))}.json"


def _digest(data: bytes) -> str:
    return sha256_hex(data)[:_HASH_CHARS]
