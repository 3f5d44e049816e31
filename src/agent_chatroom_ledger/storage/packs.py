"""The append-aware pack writer (docs/decisions/0003-append-aware-packs.md).

Every older version of a segment is a prefix of the newest, so in a pack the newest is stored whole
and each older one as a single copy instruction; a tree changes one entry at a time, so an older
one is a copy-insert-copy against the next newer, in chains of at most 50. Formats: git's
`gitformat-pack` documentation.
"""

from __future__ import annotations

import hashlib
import os
import struct
import zlib
from functools import lru_cache
from typing import TYPE_CHECKING

from agent_chatroom_ledger.storage import failpoints, files
from agent_chatroom_ledger.storage.objects import BLOB, COMMIT, TREE

try:
    from isal.isal_zlib import compress as _deflate
except ImportError:  # not CPython, or a platform without a wheel
    from zlib import compress as _deflate

if TYPE_CHECKING:
    from collections.abc import Iterable

    from agent_chatroom_ledger.storage.layout import Layout
    from agent_chatroom_ledger.storage.trees import Node

DEPTH_MAX = 50
_OFS_DELTA = 6
_DEFLATE_LEVEL = 2
_STORED = struct.Struct("<HH")
_SUM = struct.Struct(">I")
_DELTA_BYTES_MIN = 60  # below this a delta does not pay
_STORED_BYTES_MAX = 120  # ids do not compress: so short a delta is stored as it is


@lru_cache(maxsize=8192)
def size_number(number: int) -> bytes:
    """Encode a size as a delta's header does."""
    out = bytearray()
    while number > 127:
        out.append(number & 127 | 128)
        number >>= 7
    out.append(number)
    return bytes(out)


@lru_cache(maxsize=8192)
def entry_header(kind: int, size: int) -> bytes:
    """Encode the kind and size that stand before every entry."""
    byte, size = kind << 4 | size & 15, size >> 4
    out = bytearray()
    while size:
        out.append(byte | 128)
        byte, size = size & 127, size >> 7
    out.append(byte)
    return bytes(out)


@lru_cache(maxsize=8192)
def offset_number(number: int) -> bytes:
    """Encode how far back a delta's base starts."""
    out = [number & 127]
    number >>= 7
    while number:
        number -= 1
        out.append(128 | number & 127)
        number >>= 7
    out.reverse()
    return bytes(out)


@lru_cache(maxsize=8192)
def copy_instruction(offset: int, length: int) -> bytes:
    """Encode copying `length` bytes of the base from `offset`."""
    out = bytearray()
    while length:
        part = min(length, 0xFFFFFF)
        at, op = len(out), 128
        out.append(op)
        for bit in range(4):
            if byte := offset >> 8 * bit & 255:
                out.append(byte)
                op |= 1 << bit
        for bit in range(3):
            if byte := part >> 8 * bit & 255:
                out.append(byte)
                op |= 16 << bit
        out[at] = op
        offset, length = offset + part, length - part
    return bytes(out)


def insert_instruction(data: bytes) -> bytes:
    """Encode inserting bytes."""
    if len(data) <= 127:
        return bytes([len(data)]) + data if data else b""
    return b"".join(
        bytes([len(data[i : i + 127])]) + data[i : i + 127] for i in range(0, len(data), 127)
    )


def delta(base_size: int, target: bytes, head: int, tail: int) -> bytes:
    """Build a target that shares `head` bytes at the start and `tail` at the end with its base."""
    return b"".join(
        (
            size_number(base_size),
            size_number(len(target)),
            copy_instruction(0, head),
            insert_instruction(target[head : len(target) - tail]),
            copy_instruction(base_size - tail, tail),
        )
    )


@lru_cache(maxsize=8192)
def _around_id(size: int, spot: int) -> tuple[bytes, bytes]:
    """Return what stands before and after the twenty bytes of an id in the delta of a tree."""
    numbers = size_number(size) * 2
    tail = copy_instruction(spot + 20, size - spot - 20)
    return numbers + copy_instruction(0, spot) + b"\x14", tail


def replaced_id(older: bytes, spot: int) -> bytes:
    """Build the delta of a tree of which one id, at `spot`, is another in its base."""
    before, after = _around_id(len(older), spot)
    return before + older[spot : spot + 20] + after


def _common(a: bytes, b: bytes, most: int) -> int:
    low, high = 0, most
    while low < high:
        middle = (low + high + 1) // 2
        if a[low:middle] == b[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low


def compare(base: bytes, target: bytes) -> tuple[int, int]:
    """Return how many bytes two texts share at the start, and how many more at the end."""
    most = min(len(base), len(target))
    head = most if base[:most] == target[:most] else _common(base, target, most)
    most -= head
    if not most:
        return head, 0
    return head, _common(base[: -most - 1 : -1], target[: -most - 1 : -1], most)


def _compress(data: bytes) -> bytes:
    """Deflate; what is short and made of ids only is stored, because it would not shrink."""
    size = len(data)
    if size > _STORED_BYTES_MAX:
        return _deflate(data, _DEFLATE_LEVEL)
    return b"".join(
        (
            b"\x78\x01\x01",
            _STORED.pack(size, size ^ 0xFFFF),
            data,
            _SUM.pack(zlib.adler32(data)),
        )
    )


class _Run:
    """Versions of one path, oldest first. Each but the newest may be a delta against the next."""

    __slots__ = ("kind", "newest", "oids", "older")

    def __init__(self, kind: int) -> None:
        self.kind = kind
        self.oids: list[bytes] = []
        # For each version but the newest: a delta against the next newer version, whole bytes, or
        # the length of the prefix of the newest version that it is.
        self.older: list[tuple[bytes, bool] | int] = []
        self.newest: bytes | Node = b""


class PackBuilder:
    """Collects the objects of some commits and lays them out as one pack."""

    def __init__(self) -> None:
        """Start empty."""
        self._commits: list[tuple[bytes, bytes]] = []
        self._runs: list[_Run] = []
        self._open: dict[object, _Run] = {}
        self._seen: set[bytes] = set()

    def __len__(self) -> int:
        """Return the number of objects."""
        return len(self._seen)

    @property
    def commits(self) -> int:
        """The number of commits."""
        return len(self._commits)

    def commit(self, oid: bytes, data: bytes) -> None:
        """Add a commit."""
        if oid not in self._seen:
            self._seen.add(oid)
            self._commits.append((oid, data))

    def blob(self, path: str | bytes, oid: bytes, data: bytes) -> None:
        """Add the newest version of a file."""
        run = self._open.get(path)
        if oid in self._seen:
            self._open.pop(path, None)
            return
        self._seen.add(oid)
        if run is not None:
            older = run.newest
            assert isinstance(older, bytes)
            grown = all(isinstance(step, int) for step in run.older[-1:])
            if grown and data.startswith(older):
                run.older.append(len(older))
            elif run.older and grown:
                run = None  # a run is prefixes of its newest version or steps, not both
            else:
                self._step(run, older, data)
        if run is None:
            run = self._open[path] = _Run(BLOB)
            self._runs.append(run)
        run.oids.append(oid)
        run.newest = data

    def version(self, path: str | bytes, kind: int, oid: bytes, data: bytes) -> None:
        """Add the newest version of a path whose history is laid out again."""
        if kind == BLOB:
            self.blob(path, oid, data)
            return
        if oid in self._seen:
            return
        self._seen.add(oid)
        run = self._open.get((kind, path))
        if run is None:
            run = self._open[kind, path] = _Run(kind)
            self._runs.append(run)
        else:
            assert isinstance(run.newest, bytes)
            self._step(run, run.newest, data)
        run.oids.append(oid)
        run.newest = data

    @staticmethod
    def _step(run: _Run, older: bytes, newer: bytes) -> None:
        head, tail = compare(newer, older)
        if head + tail <= len(older) // 4 or len(run.older) % DEPTH_MAX == DEPTH_MAX - 1:
            run.older.append((older, False))
        else:
            run.older.append((delta(len(newer), older, head, tail), True))

    def tree(self, node: Node, older: bytes, head: int, tail: int) -> None:
        """Add the newest version of a directory, which shares bytes with the `older` one."""
        oid = node.oid
        assert oid is not None
        run = self._open.get(node)
        if oid in self._seen or not node.data:
            # The version before stays the newest of its run, so its bytes have to be kept.
            if run is not None:
                run.newest = older
                del self._open[node]
            return
        self._seen.add(oid)
        if run is None:
            run = self._open[node] = _Run(TREE)
            self._runs.append(run)
            run.newest = node
        elif len(run.older) % DEPTH_MAX == DEPTH_MAX - 1 or len(older) < _DELTA_BYTES_MIN:
            run.older.append((older, False))
        elif head + tail + 20 == len(older) == len(node.data):
            run.older.append((replaced_id(older, head), True))
        else:
            run.older.append((delta(len(node.data), older, head, tail), True))
        run.oids.append(oid)

    def finish(self) -> tuple[str, bytes, bytes]:
        """Return the pack's name, its bytes and its index; the builder is then used up."""
        parts: list[bytes] = []
        entries: list[bytes] = []
        offset = 12

        def add(oid: bytes, part: bytes) -> int:
            nonlocal offset
            start = offset
            parts.append(part)
            entries.append(index_entry(oid, zlib.crc32(part), start))
            offset += len(part)
            return start

        for oid, data in reversed(self._commits):
            add(oid, entry_header(COMMIT, len(data)) + _deflate(data, _DEFLATE_LEVEL))
        for run in self._runs:
            newest = run.newest if isinstance(run.newest, bytes) else bytes(run.newest.data)
            header = entry_header(run.kind, len(newest))
            base = first = add(run.oids[-1], header + _compress(newest))
            for position in range(len(run.older) - 1, -1, -1):
                older = run.older[position]
                if older == 0:
                    older = (b"", False)  # git takes no delta for nothing at all
                if isinstance(older, int):
                    ops, against = delta(len(newest), newest[:older], older, 0), first
                elif older[1]:
                    ops, against = older[0], base
                else:
                    header = entry_header(run.kind, len(older[0]))
                    whole = header + _compress(older[0])
                    base = add(run.oids[position], whole)
                    continue
                back = offset_number(offset - against)
                part = entry_header(_OFS_DELTA, len(ops)) + back + _compress(ops)
                base = add(run.oids[position], part)
        body = b"".join((b"PACK", struct.pack(">II", 2, len(parts)), *parts))
        checksum = hashlib.sha1(body, usedforsecurity=False).digest()
        return checksum.hex(), body + checksum, pack_index(entries, checksum)


_PLACE = struct.Struct(">II")
_PIECES_MAX = 4_096


def index_entry(oid: bytes, crc: int, offset: int) -> bytes:
    """Pack what an index says of one object into 28 bytes, which sort by id."""
    return oid + _PLACE.pack(crc, offset)


def pack_index(entries: list[bytes], checksum: bytes) -> bytes:
    """Lay out a version 2 index of entries made by `index_entry`, for a pack below 2 GiB."""
    entries.sort()
    counts = [0] * 256
    for entry in entries:
        counts[entry[0]] += 1
    total, fan = 0, []
    for count in counts:
        total += count
        fan.append(total)
    parts = [b"\377tOc\0\0\0\2", struct.pack(">256I", *fan)]
    for start, end in ((0, 20), (20, 24), (24, 28)):
        # Some at a time: a joined pack has a hundred thousand, and each piece is an object.
        parts += [
            b"".join([entry[start:end] for entry in entries[at : at + _PIECES_MAX]])
            for at in range(0, total, _PIECES_MAX)
        ]
    parts.append(checksum)
    body = b"".join(parts)
    return body + hashlib.sha1(body, usedforsecurity=False).digest()


def store(layout: Layout, name: str, pack: bytes, index: bytes, *, sync: bool = False) -> bool:
    """Put a pack beside git's own; it stays under `.keep` until `release`.

    `.keep` first: a `git gc` of the user deletes packs that nothing refers to yet. False when it
    was there already: a killed process may have stored it, and main may be on it. Where it has to
    be durable, it counts as there only if it is whole: a power cut leaves names without bytes.
    """
    stem = f"{layout.packs}/pack-{name}"
    if os.path.exists(f"{stem}.idx") and os.path.exists(f"{stem}.pack"):
        same = not sync or (
            files.read_bytes(f"{stem}.pack") == pack and files.read_bytes(f"{stem}.idx") == index
        )
        if same:
            mark(layout, name)
            if sync:
                files.sync_paths((f"{stem}.pack", f"{stem}.idx"))
                files.sync_directory(layout.packs)
            return False
    temporary = files.write_temporary(layout, "pack", pack, mode=0o444, sync=sync)
    place(layout, name, temporary, index, sync=sync)
    return True


def place(layout: Layout, name: str, temporary: str, index: bytes, *, sync: bool) -> None:
    """Put a pack in place that stands in a temporary file, durable if `sync` is asked for."""
    stem = f"{layout.packs}/pack-{name}"
    try:
        failpoints.reach("packs.pack_written")
        index_temporary = files.write_temporary(layout, "idx", index, mode=0o444, sync=sync)
    except BaseException:
        os.unlink(temporary)
        raise
    failpoints.reach("packs.idx_written")
    try:
        mark(layout, name)
    except FileNotFoundError:
        layout.packs.mkdir(parents=True, exist_ok=True)
        mark(layout, name)
    failpoints.reach("packs.kept")
    os.rename(temporary, f"{stem}.pack")
    failpoints.reach("packs.pack_placed")
    os.rename(index_temporary, f"{stem}.idx")
    failpoints.reach("packs.placed")
    if sync:
        files.sync_directory(layout.packs)


def mark(layout: Layout, name: str) -> None:
    """Protect a pack from a `git gc` of the user."""
    try:
        os.link(layout.own_mark, f"{layout.packs}/pack-{name}.keep")
    except FileExistsError:
        return


def release(layout: Layout, names: Iterable[str]) -> None:
    """Take our `.keep` marks away: the packs are referred to now."""
    for name in names:
        path = f"{layout.packs}/pack-{name}.keep"
        try:
            if os.path.samefile(path, layout.own_mark):
                os.unlink(path)
        except FileNotFoundError:
            continue


def release_forgotten(layout: Layout) -> None:
    """Take away the marks that killed processes left; the caller holds the commit lock.

    Whoever stores a pack holds that lock, so no mark of ours protects anything now.
    """
    for file in os.listdir(layout.packs):
        if file.startswith("pack-") and file.endswith(".keep"):
            release(layout, (file.removeprefix("pack-").removesuffix(".keep"),))


def discard(layout: Layout, name: str) -> None:
    """Delete a pack of ours that nothing refers to; its `.keep` goes last."""
    for suffix in ("idx", "pack"):
        try:
            os.unlink(f"{layout.packs}/pack-{name}.{suffix}")
        except FileNotFoundError:
            continue
    release(layout, (name,))
