"""The versions of a room's messages: folded from its operations, and read where they stand.

The newest bundle of each message that keeps the rules is projected to a file (invariant 2). A
reader takes the file, unless the journal holds a newer operation, and folds the operations where
a file cannot be read.
"""

from __future__ import annotations

from contextlib import ExitStack
from typing import TYPE_CHECKING, Self

from agent_chatroom_ledger.domain.order import order_key
from agent_chatroom_ledger.domain.records import message_at
from agent_chatroom_ledger.domain.segments import directory_of
from agent_chatroom_ledger.domain.versions import (
    VERSIONS,
    Bundle,
    bundle_from_json,
    bundle_json,
    bundle_of,
    change_of,
    versions_path,
)
from agent_chatroom_ledger.errors import Corrupt, InvalidInput
from agent_chatroom_ledger.storage import artifacts, reading
from agent_chatroom_ledger.storage.reading import OPERATIONS, log_path
from agent_chatroom_ledger.storage.source import WorkTree

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from agent_chatroom_ledger.domain.records import Message
    from agent_chatroom_ledger.storage.layout import Layout
    from agent_chatroom_ledger.storage.overlay import Overlay
    from agent_chatroom_ledger.storage.source import Source

_MARK = b'"kind":"versions.'
_SUFFIX = ".json"
Key = tuple[str, int]


def operations(source: Source, room: str, overlay: Overlay | None = None) -> list[Message]:
    """Return the operations on versions of a room, in canonical order."""
    found = []
    for origin in reading.origins(source, room, OPERATIONS, overlay):
        for n, line in reading.records(source, log_path(room, OPERATIONS, origin), overlay=overlay):
            if _MARK in line and (message := _decoded(line, origin, n)) is not None:
                found.append(message)
    found.sort(key=order_key)
    return found


def _decoded(line: bytes, origin: str, n: int) -> Message | None:
    return message_at(line, origin, OPERATIONS, n, primary=False)


def applied(
    bundles: dict[Key, Bundle | None], message: Message, artifact: Callable[[str], bytes | None]
) -> Key | None:
    """Let one more operation, the newest, change the bundles; return which, None when none.

    A message whose bundle was taken back is kept as None. An operation that breaks a rule, or
    whose artifact is not there, is skipped.
    """
    try:
        change = change_of(message)
        if change is None:
            return None
        key = (change.origin, change.n)
        if change.clear:
            bundles[key] = None
        else:
            needed = None if change.levels is not None else artifact(change.bundle_hash)
            bundles[key] = bundle_of(change, needed)
    except InvalidInput:
        return None
    return key


def folded(source: Source, room: str) -> dict[Key, Bundle]:
    """Return every bundle of a room as its operations in one tree leave them."""
    found: dict[Key, Bundle | None] = {}
    for message in operations(source, room):
        applied(found, message, lambda name: artifacts.committed(source, name))
    return {key: bundle for key, bundle in found.items() if bundle is not None}


def projections(source: Source, room: str) -> dict[str, bytes]:
    """Return the path and the bytes of every projected bundle of a room (invariant 2)."""
    return {
        versions_path(room, *key): bundle_json(bundle)
        for key, bundle in folded(source, room).items()
    }


def projected_paths(source: Source, room: str) -> list[str]:
    """Return the path of every file under a room's ``versions/``, whatever it is."""
    found = []
    waiting = [f"{room}/{VERSIONS}"]
    while waiting:
        directory = waiting.pop()
        for name in source.names(directory):
            if name.endswith("/"):
                waiting.append(f"{directory}/{name[:-1]}")
            else:
                found.append(f"{directory}/{name}")
    return sorted(found)


class VersionReader:
    """Reads the versions of one room's messages, from a tree under the journal.

    What it has listed is remembered, so one serves for one look at the room. For many messages
    use it as a context manager: then it keeps the directory open that it reads from.
    """

    def __init__(self, layout: Layout, source: Source, overlay: Overlay | None, room: str) -> None:
        self._layout = layout
        self._source = source
        self._overlay = overlay
        self._room = room
        self._names: dict[str, frozenset[str]] = {}
        self._all: dict[Key, Bundle] | None = None
        self._newer = self._in_journal()
        self._many = False
        self._opened = ExitStack()
        self._directory = ""
        self._reading: Callable[[str], bytes | None] | None = None

    def find(self, origin: str, n: int) -> Bundle | None:
        """Return the bundle of a message; None when nobody has prepared it."""
        key = (origin, n)
        if key in self._newer:
            return self._newer[key]
        if self._all is not None:
            return self._all.get(key)
        directory = f"{self._room}/{VERSIONS}/{origin}/{directory_of(n)}"
        names = self._names.get(directory)
        if names is None:
            names = self._names[directory] = self._listed(directory)
        if f"{n}{_SUFFIX}" not in names:
            return None
        data = self._read(directory, f"{n}{_SUFFIX}")
        try:
            return bundle_from_json(data or b"", key)
        except Corrupt as error:
            if error.code == "newer_format":
                raise
            return self._from_operations().get(key)

    def __enter__(self) -> Self:
        self._many = True
        return self

    def __exit__(self, *_: object) -> None:
        self._many = False
        self._opened.close()
        self._reading, self._directory = None, ""

    def history(self) -> Iterator[tuple[Message, Bundle | None, Key]]:
        """Yield each operation that keeps the rules, oldest first, with the bundle it leaves."""
        for message in operations(self._source, self._room, self._overlay):
            found: dict[Key, Bundle | None] = {}
            key = applied(found, message, self._artifact)
            if key is not None:
                yield message, found[key], key

    def all(self) -> dict[Key, Bundle]:
        """Return every bundle of the room, from the operations alone."""
        found = dict(self._from_operations())
        for key, bundle in self._newer.items():
            if bundle is None:
                found.pop(key, None)
            else:
                found[key] = bundle
        return found

    def _read(self, directory: str, name: str) -> bytes | None:
        # Whoever steps one message to a shorter version mostly goes on to its neighbours.
        if self._many and directory != self._directory:
            self._opened.close()
            self._reading = None
            if isinstance(self._source, WorkTree):
                self._reading = self._opened.enter_context(self._source.directory(directory))
            self._directory = directory
        if self._reading is not None:
            return self._reading(name)
        return self._source.read(f"{directory}/{name}")

    def _listed(self, directory: str) -> frozenset[str]:
        # Most rooms have no versions at all: then nothing below is looked for again.
        top = f"{self._room}/{VERSIONS}"
        known = self._names.get(top)
        if known is None:
            known = self._names[top] = frozenset(self._source.names(top))
        return frozenset(self._source.names(directory)) if known else frozenset()

    def _from_operations(self) -> dict[Key, Bundle]:
        if self._all is None:
            self._all = folded(self._source, self._room)
        return self._all

    def _artifact(self, name: str) -> bytes | None:
        return artifacts.read(self._layout, self._source, name)

    def _in_journal(self) -> dict[Key, Bundle | None]:
        found: dict[Key, Bundle | None] = {}
        if self._overlay is None:
            return found
        above = f"{self._room}/{OPERATIONS}"
        messages = [
            message
            for origin in self._overlay.origins(above)
            for n, line in self._overlay.lines(f"{above}/{origin}").items()
            if _MARK in line and (message := _decoded(line, origin, n)) is not None
        ]
        messages.sort(key=order_key)
        own = self._overlay.origins(above)
        if messages and reading.is_followed(self._source, self._room, messages[0], own):
            for message in operations(self._source, self._room, self._overlay):
                applied(found, message, self._artifact)
            self._all = {key: bundle for key, bundle in found.items() if bundle is not None}
            return {}
        for message in messages:
            applied(found, message, self._artifact)
        return found
