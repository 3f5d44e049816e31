"""Who is here: a file per name that a client lives under, a held lock per process that waits.

Reading takes no lock, writes nothing and leaves out the dead. Whoever writes does so under one
lock of the operating system, waits a bounded time for it, and takes the dead away. Nothing here is
synced: after a power cut nobody is alive.
"""

from __future__ import annotations

import itertools
import os
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

from agent_chatroom_ledger.domain.agentnames import suffixed
from agent_chatroom_ledger.domain.identities import ProcessId
from agent_chatroom_ledger.limits import CLAIM_WAIT_SECONDS_MAX
from agent_chatroom_ledger.storage import files, processes
from agent_chatroom_ledger.storage.cursors import cursor_name
from agent_chatroom_ledger.storage.locks import FileLock, holding, is_held

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from contextlib import AbstractContextManager
    from pathlib import Path

    from agent_chatroom_ledger.storage.layout import Layout

FORMAT = 1
_SUFFIX = ".json"
_WAITING = "waiting"
T = TypeVar("T")
_serial = itertools.count(1)


class Entry(msgspec.Struct, frozen=True, kw_only=True):
    """A client that lives under a name; `doors` are those through which it was heard.

    ``hooked`` says that a hook of it was seen, so that a message reaches it at its next turn. The
    names that it bore before are in ``former``, each with the time until which it is still heard.
    """

    format: int = FORMAT
    name: str
    base: str
    source: str
    process: ProcessId
    since: str
    seat: str = ""
    client: str = ""
    session: str | None = None
    session_door: str = ""
    pane: str | None = None
    directory: str = ""
    model: str | None = None
    doors: tuple[str, ...] = ()
    hooked: bool = False
    former: tuple[tuple[str, str], ...] = ()


class Waiter(msgspec.Struct, frozen=True, kw_only=True):
    """A process that waits for messages to a name; ``owner`` is the client it belongs to."""

    format: int = FORMAT
    name: str
    process: ProcessId
    owner: ProcessId
    since: str


_entries = msgspec.json.Decoder(Entry)
_waiters = msgspec.json.Decoder(Waiter)


def entries(layout: Layout) -> list[Entry]:
    """Return what the files say, the dead and all, by name; damaged files are nobody."""
    found = (_entry(layout.presence / name) for name in _names(layout.presence))
    return sorted((entry for entry in found if entry is not None), key=lambda entry: entry.name)


def entry_of(layout: Layout, name: str) -> Entry | None:
    """Return what the file of one name says, be its client alive or not."""
    found = _entry(layout.presence / cursor_name(name))
    return found if found is not None and found.name == name else None


def waiters(layout: Layout) -> list[Waiter]:
    """Return who waits now: those whose lock is held, which is the proof that they live."""
    folder = layout.presence / _WAITING
    found = []
    for name in _names(folder):
        if _is_held(folder / name):
            waiter = _read(folder / name, _waiters)
            if waiter is not None:
                found.append(waiter)
    return found


class Book:
    """The list of who is here, held by one writer."""

    def __init__(self, layout: Layout) -> None:
        """Read it, and take the dead away."""
        self._layout = layout
        self._by_name = {entry.name: entry for entry in self._reaped()}
        self._waiters = waiters(layout)

    def entries(self) -> list[Entry]:
        """Return the living."""
        return list(self._by_name.values())

    def of(self, process: ProcessId, seat: str) -> Entry | None:
        """Return the entry of a client."""
        return entry_among(self._by_name.values(), process, seat)

    def free_name(self, base: str, process: ProcessId, seat: str) -> str:
        """Return the name, or that with a suffix where a live other client holds it."""
        if self._is_free(base, process, seat):
            return base
        for attempt in itertools.count(1):
            name = suffixed(base, process.pid, attempt)
            if self._is_free(name, process, seat):
                return name
        raise AssertionError("unreachable")  # pragma: no cover

    def write(self, entry: Entry) -> None:
        """Put a client under its name, and away from any other that it had."""
        path = self._layout.presence / cursor_name(entry.name)
        files.replace(self._layout, path, msgspec.json.encode(entry), sync=False)
        self._by_name[entry.name] = entry
        for other in list(self._by_name.values()):
            if other.name != entry.name and _is_of(other, entry.process, entry.seat):
                self.remove(other)

    def remove(self, entry: Entry) -> None:
        """Take one's own entry away."""
        with suppress(FileNotFoundError):
            os.unlink(self._layout.presence / cursor_name(entry.name))
        self._by_name.pop(entry.name, None)

    def _is_free(self, name: str, process: ProcessId, seat: str) -> bool:
        holder = self._by_name.get(name)
        if holder is not None:
            return _is_of(holder, process, seat)
        line: set[ProcessId] | None = None
        for waiter in self._waiters:
            if waiter.name != name or process in {waiter.owner, waiter.process}:
                continue
            if not processes.is_alive(waiter.owner):
                continue  # Somebody's who has gone; it will end by itself.
            line = line or {found.id for found in processes.ancestors(waiter.process.pid)}
            if process not in line:
                return False
        return True

    def _reaped(self) -> list[Entry]:
        """Return the living; delete the files of the dead and those that are no entries."""
        layout = self._layout
        alive = []
        for name in _names(layout.presence):
            path = layout.presence / name
            entry = _entry(path)
            if entry is not None and processes.is_alive(entry.process):
                alive.append(entry)
            elif entry is not None or not _is_newer(path):
                with suppress(OSError):
                    os.unlink(path)
        _sweep(layout.presence / _WAITING)
        return alive


@contextmanager
def opened(layout: Layout) -> Iterator[Book]:
    """Hold the list for a change; raises Busy when others hold it for 5 seconds."""
    with files.clear_errors("writing who is here"):
        _make_folders(layout)
        with _locked(layout):
            yield Book(layout)


@contextmanager
def waiting(layout: Layout, name: str, since: str, owner: ProcessId) -> Iterator[Waiter]:
    """Be known as waiting for messages to a name, as long as the block lasts.

    The proof is a lock that the operating system frees with its holder, however that ends.
    """
    waiter = Waiter(name=name, process=processes.current(), owner=owner, since=since)
    path = layout.presence / _WAITING / f"{os.getpid()}-{next(_serial)}{_SUFFIX}"
    lock = FileLock(path)
    try:
        with files.clear_errors("writing who waits"):
            _make_folders(layout)
            # Under the lock of the list, so that nobody takes the file for one left behind.
            with _locked(layout):
                _sweep(layout.presence / _WAITING)
                lock.acquire(seconds=CLAIM_WAIT_SECONDS_MAX)
                path.write_bytes(msgspec.json.encode(waiter))
        yield waiter
    finally:
        # A forked child has neither the lock nor the file, which are its parent's.
        if os.getpid() == waiter.process.pid:
            with suppress(OSError):
                os.unlink(path)
            lock.close()


def entry_among(found: Iterable[Entry], process: ProcessId, seat: str) -> Entry | None:
    """Return the entry of a client among some."""
    return next((entry for entry in found if _is_of(entry, process, seat)), None)


def _entry(path: Path) -> Entry | None:
    return _read(path, _entries)


def _read(path: Path, decoder: msgspec.json.Decoder[T]) -> T | None:
    """Return what a file says; None for one that is gone, damaged or not ours to read."""
    try:
        content = files.read_bytes(path)
        return None if content is None else decoder.decode(content)
    except (OSError, msgspec.DecodeError, UnicodeDecodeError):
        return None


def _is_held(path: Path) -> bool:
    """Tell whether somebody holds a waiter's lock; one that is not ours to look at is left be."""
    try:
        return is_held(path)
    except OSError:
        return True


def _is_newer(path: Path) -> bool:
    """Tell whether a file that we cannot read was written by a newer version."""
    try:
        found = msgspec.json.decode(files.read_bytes(path) or b"", type=dict[str, Any])
    except (OSError, msgspec.DecodeError, UnicodeDecodeError):
        return False
    number = found.get("format")
    return isinstance(number, int) and number > FORMAT


def _sweep(folder: Path) -> None:
    for name in _names(folder):
        if not _is_held(folder / name):
            with suppress(OSError):
                os.unlink(folder / name)


def _is_of(entry: Entry, process: ProcessId, seat: str) -> bool:
    return entry.process == process and entry.seat == seat


def _names(folder: Path) -> list[str]:
    try:
        return sorted(name for name in os.listdir(folder) if name.endswith(_SUFFIX))
    except FileNotFoundError:
        return []


def _make_folders(layout: Layout) -> None:
    layout.locks.mkdir(parents=True, exist_ok=True)
    layout.tmp.mkdir(exist_ok=True)
    (layout.presence / _WAITING).mkdir(parents=True, exist_ok=True)


def _locked(layout: Layout) -> AbstractContextManager[None]:
    return holding(layout.locks / "presence.lock", seconds=CLAIM_WAIT_SECONDS_MAX)
