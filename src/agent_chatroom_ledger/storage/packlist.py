"""The packs that this ledger wrote itself, in the order of writing.

One line a pack, `<name> <commits>`, and a line `-` where a checkpoint made everything above it
durable. A checkpoint syncs the packs that the list names, so a note must not be lost on what a full
disk has left of the one before: each begins a line of its own, and empty lines mean nothing.
"""

from __future__ import annotations

import dataclasses
import os
from typing import TYPE_CHECKING

from agent_chatroom_ledger.domain.numerals import decimal
from agent_chatroom_ledger.storage import files

if TYPE_CHECKING:
    from collections.abc import Iterable

    from agent_chatroom_ledger.storage.layout import Layout

_SYNCED = "-"


@dataclasses.dataclass(frozen=True)
class OwnPack:
    """A pack of ours: its name without `pack-`, its number of commits, whether it is durable."""

    name: str
    commits: int
    synced: bool


def read(layout: Layout) -> list[OwnPack]:
    """Return the packs of ours, oldest first."""
    text = (files.read_bytes(layout.own_packs) or b"").decode("ascii", "replace")
    fresh: dict[str, OwnPack] = {}
    durable: dict[str, OwnPack] = {}
    for line in text.split("\n")[:-1]:
        name, _, commits = line.partition(" ")
        if name == _SYNCED:
            durable |= {
                pack.name: dataclasses.replace(pack, synced=True) for pack in fresh.values()
            }
            fresh.clear()
        elif len(name) == 40 and (count := decimal(commits)) is not None:
            # One that was stored again is as durable as it was then.
            durable.pop(name, None)
            fresh[name] = OwnPack(name, count, synced=False)
    return [*durable.values(), *fresh.values()]


def _on_its_own(line: str) -> bytes:
    """Return a line as it is appended: whatever stands before it, even half a line, is ended."""
    return f"\n{line}\n".encode()


def _append(layout: Layout, line: str) -> None:
    descriptor = os.open(
        layout.own_packs, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644
    )
    try:
        files.write_all(descriptor, _on_its_own(line))
    finally:
        os.close(descriptor)


class Notes:
    """The end of the list, kept open by who adds a line at every commit."""

    def __init__(self, layout: Layout) -> None:
        """Open nothing yet."""
        self._path = os.fspath(layout.own_packs)
        self._descriptor = -1
        self._inode = 0

    def note(self, name: str, commits: int) -> None:
        """Remember a pack; the caller holds the commit lock."""
        try:
            inode = os.stat(self._path).st_ino
        except FileNotFoundError:
            inode = 0
        if self._descriptor < 0 or inode != self._inode:
            self.close()  # the list was rewritten by a merge
            self._descriptor = os.open(
                self._path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644
            )
            self._inode = os.fstat(self._descriptor).st_ino
        files.write_all(self._descriptor, _on_its_own(f"{name} {commits}"))

    def close(self) -> None:
        """Close the file."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1


def note(layout: Layout, name: str, commits: int) -> None:
    """Remember a pack; the caller holds the commit lock, as in everything below."""
    _append(layout, f"{name} {commits}")


def note_synced(layout: Layout) -> None:
    """Remember that everything so far is durable."""
    _append(layout, _SYNCED)


def rewrite(layout: Layout, own: Iterable[OwnPack]) -> None:
    """Put another list in place, durable packs first."""
    ordered = sorted(own, key=lambda pack: not pack.synced)
    lines = [f"{pack.name} {pack.commits}" for pack in ordered if pack.synced]
    lines += [_SYNCED] if lines else []
    lines += [f"{pack.name} {pack.commits}" for pack in ordered if not pack.synced]
    files.replace(
        layout, layout.own_packs, "".join(f"{line}\n" for line in lines).encode(), sync=False
    )
