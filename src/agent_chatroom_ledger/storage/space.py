"""How much room a ledger takes on disk, part by part."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import msgspec

from agent_chatroom_ledger.storage import journal

if TYPE_CHECKING:
    from pathlib import Path

    from agent_chatroom_ledger.storage.layout import Layout

_HEX = frozenset("0123456789abcdef")


class Space(msgspec.Struct, frozen=True, kw_only=True):
    """Files and bytes: git's packs and loose objects, the journal, and what is derived."""

    packs: int = 0
    pack_bytes: int = 0
    loose_objects: int = 0
    loose_bytes: int = 0
    generations: int = 0
    journal_bytes: int = 0
    derived_bytes: int = 0


def measure(layout: Layout) -> Space:
    """Measure a ledger; files that come and go meanwhile are counted or not."""
    packs = loose = pack_bytes = loose_bytes = 0
    for name, size in _files(layout.packs):
        pack_bytes += size
        packs += name.endswith(".pack")
    objects = layout.packs.parent
    for folder in os.listdir(objects):
        if len(folder) == 2 and _HEX.issuperset(folder):
            sizes = [size for _, size in _files(objects / folder)]
            loose += len(sizes)
            loose_bytes += sum(sizes)
    derived = [
        size for name, size in _files(layout.private) if name.endswith((".sqlite3", "-journal"))
    ]
    return Space(
        packs=packs,
        pack_bytes=pack_bytes,
        loose_objects=loose,
        loose_bytes=loose_bytes,
        generations=len(journal.generations(layout)),
        journal_bytes=sum(size for _, size in _files(layout.journal)),
        derived_bytes=sum(derived),
    )


def _files(directory: Path) -> list[tuple[str, int]]:
    found = []
    try:
        with os.scandir(directory) as entries:
            for entry in entries:
                try:
                    if entry.is_file(follow_symlinks=False):
                        found.append((entry.name, entry.stat(follow_symlinks=False).st_size))
                except FileNotFoundError:
                    continue
    except FileNotFoundError:
        return []
    return found
