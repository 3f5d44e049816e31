"""Packs that a power cut has damaged, known by their sums and put aside (docs/design.md 4).

Between checkpoints packs need not be durable. One that is damaged is in the way of every object
that is looked for in it, and of the whole one that a replay puts in its place.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
from typing import TYPE_CHECKING

from agent_chatroom_ledger.domain.clock import to_micros
from agent_chatroom_ledger.storage import files, journal, packlist, packs, refs

if TYPE_CHECKING:
    from agent_chatroom_ledger.storage.layout import Layout

_PART_BYTES = 1 << 20
_SUM_BYTES = 20


def set_aside(layout: Layout) -> list[str]:
    """Move packs that a power cut has damaged to quarantine, and return their names.

    Only packs that no checkpoint has made durable are looked at: those written since the last
    one, and those that the list of ours does not call durable. The commit lock is held.
    """
    own = packlist.read(layout)
    fresh = {pack.name for pack in own if not pack.synced}
    since = _last_checkpoint(layout, [pack.name for pack in own if pack.synced])
    damaged: list[str] = []
    names = sorted(os.listdir(layout.packs)) if layout.packs.is_dir() else []
    for file in names:
        name = file.removeprefix("pack-").removesuffix(".pack")
        if not file.startswith("pack-") or not file.endswith(".pack"):
            continue
        path = f"{layout.packs}/{file}"
        if name not in fresh and os.stat(path).st_mtime_ns < since:
            continue
        if _is_whole(path):
            continue
        for suffix in ("idx", "pack"):
            data = files.read_bytes(f"{layout.packs}/pack-{name}.{suffix}")
            if data is not None:
                files.quarantine(layout, f"pack-{name}.{suffix}", data)
                os.unlink(f"{layout.packs}/pack-{name}.{suffix}")
        packs.release(layout, (name,))
        damaged.append(name)
    return damaged


def _last_checkpoint(layout: Layout, durable: list[str]) -> int:
    """Return a time since which all packs were written that no checkpoint has made durable.

    The list of packs is not synced: a cut may have taken its end. A checkpoint moves our anchor,
    durably, after it has synced the packs and before any other is written; and its generation
    says when the newest record was written that it stands on. The earlier of the two: in a copy
    the files' times may be those of copying, and the ledger's time may be ahead of the clock.
    When git has packed the anchor, the newest pack that the list calls durable has to do for it.
    """
    anchor = _times([f"{layout.git}/{refs.TIP}"])
    written = anchor or _times([f"{layout.packs}/pack-{name}.pack" for name in durable])
    return min(max(written, default=0), _newest_at(layout)) - refs.TICK_NANOSECONDS


def _times(paths: list[str]) -> list[int]:
    """Return when files were written to, those that are not there aside."""
    found = []
    for path in paths:
        with contextlib.suppress(FileNotFoundError):
            found.append(os.stat(path).st_mtime_ns)
    return found


def _newest_at(layout: Layout) -> int:
    kept = journal.generations(layout)
    data = files.read_bytes(journal.generation_path(layout, kept[-1])) if kept else None
    line, _, _ = (data or b"").partition(b"\n")
    header = journal.scan(line + b"\n", 0, None).header
    return 0 if header is None else to_micros(header.newest_at) * 1_000


def _is_whole(path: str) -> bool:
    """Check the sums of a pack and of its index, which has to be there."""
    data, index = _end(path), _end(f"{path.removesuffix('.pack')}.idx")
    return data is not None and index is not None and index[:_SUM_BYTES] == data[_SUM_BYTES:]


def _end(path: str) -> bytes | None:
    """Return the last forty bytes of a file that ends in its own sum, None for any other.

    It is read in parts: a pack that git has made may be larger than memory.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    try:
        left = os.fstat(descriptor).st_size - _SUM_BYTES
        if left < _SUM_BYTES:
            return None
        digest, end = hashlib.sha1(usedforsecurity=False), b""
        while left:
            part = os.read(descriptor, min(left, _PART_BYTES))
            if not part:
                return None
            digest.update(part)
            left -= len(part)
            end = (end + part)[-_SUM_BYTES:]
        seal = digest.digest()
        return end + seal if os.read(descriptor, _SUM_BYTES) == seal else None
    finally:
        os.close(descriptor)
