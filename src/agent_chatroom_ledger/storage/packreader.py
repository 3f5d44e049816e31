"""Packs read fast, for those who read very many objects: verification, and lists of all commits.

It looks ids up in mapped indexes and keeps what deltas were made against, within a fixed number of
bytes. It is only ever a short cut: whatever it does not find or cannot read (loose objects, packs
that came since, foreign index versions, damage) is None, and the caller asks `Objects`, which knows
every case. Nothing is checked here; who verifies hashes what he is given. Formats: git's
`gitformat-pack` documentation.
"""

from __future__ import annotations

import mmap
import os
import struct
from typing import TYPE_CHECKING

from agent_chatroom_ledger.storage.objects import COMMIT
from agent_chatroom_ledger.storage.packmerge import apply_delta
from agent_chatroom_ledger.storage.recent import Recent

try:
    from isal.isal_zlib import decompress as _inflate
except ImportError:  # not CPython, or a platform without a wheel
    from zlib import decompress as _inflate

if TYPE_CHECKING:
    from pathlib import Path

    from agent_chatroom_ledger.storage.layout import Layout
    from agent_chatroom_ledger.storage.objects import Objects

_START = b"\377tOc\0\0\0\2"
_NAMES = 8 + 1024
_WORD = struct.Struct(">I")
_LONG = struct.Struct(">Q")
_FAN = struct.Struct(">256I")
_LONG_OFFSET = 0x80000000
_OFS_DELTA, _REF_DELTA = 6, 7
_KEPT_BYTES_MAX = 48 * 1024 * 1024


class _Pack:
    """One pack with its version 2 index, both mapped."""

    __slots__ = ("_fan", "_index", "_offsets", "data", "number")

    def __init__(self, path: Path, number: int) -> None:
        self.number = number
        self._index = _mapped(path)
        try:
            _check_version(self._index)
            self._fan = _FAN.unpack_from(self._index, 8)
            self._offsets = _NAMES + 24 * self._fan[255]
            self.data = _mapped(path.with_suffix(".pack"))
        except BaseException:
            self._index.close()
            raise

    def close(self) -> None:
        self._index.close()
        self.data.close()

    def find(self, name: bytes) -> int:
        """Return where in the pack an object lies; -1 when it is not in it."""
        first = name[0]
        low, high = self._fan[first - 1] if first else 0, self._fan[first]
        index = self._index
        while low < high:
            middle = (low + high) >> 1
            at = _NAMES + 20 * middle
            here = index[at : at + 20]
            if here < name:
                low = middle + 1
            elif here > name:
                high = middle
            else:
                (offset,) = _WORD.unpack_from(index, self._offsets + 4 * middle)
                if offset & _LONG_OFFSET:
                    at = self._offsets + 4 * self._fan[255] + 8 * (offset & ~_LONG_OFFSET)
                    (offset,) = _LONG.unpack_from(index, at)
                return int(offset)
        return -1


class PackReader:
    """Reads objects of the packs that there were when it was made. Not for several threads."""

    def __init__(self, layout: Layout) -> None:
        self._packs: list[_Pack] = []
        self._kept: Recent[tuple[int, int], tuple[int, bytes]] = Recent(_KEPT_BYTES_MAX)
        try:
            names = sorted(os.listdir(layout.packs))
        except FileNotFoundError:
            names = []
        for number, name in enumerate(names):
            if name.endswith(".idx"):
                try:
                    self._packs.append(_Pack(layout.packs / name, number))
                except (OSError, ValueError, struct.error):
                    continue

    def close(self) -> None:
        """Let go of the files."""
        for pack in self._packs:
            pack.close()
        self._packs = []
        self._kept.clear()

    def get(self, oid: str) -> tuple[int, bytes] | None:
        """Return the kind and the bytes of an object as its pack has them; None for who knows."""
        return self._named(bytes.fromhex(oid))

    def commit(self, objects: Objects, oid: str) -> bytes:
        """Return the bytes of a commit, from wherever it can be read; Corrupt when it is none."""
        found = self.get(oid)
        return objects.data(oid, COMMIT) if found is None or found[0] != COMMIT else found[1]

    def _named(self, name: bytes) -> tuple[int, bytes] | None:
        for place, pack in enumerate(self._packs):
            offset = pack.find(name)
            if offset >= 0:
                if place:
                    # What is read next mostly lies beside what was read last.
                    self._packs.insert(0, self._packs.pop(place))
                try:
                    return self._at(pack, offset)
                except Exception:  # noqa: BLE001 - whatever it is, `Objects` meets and names it
                    return None
        return None

    def _at(self, pack: _Pack, offset: int) -> tuple[int, bytes] | None:
        deltas: list[tuple[int, bytes]] = []
        data, number = pack.data, pack.number
        while True:
            found = self._kept.get((number, offset))
            if found is not None:
                break
            byte = data[offset]
            kind, size, shift, at = byte >> 4 & 7, byte & 15, 4, offset + 1
            while byte & 128:
                byte = data[at]
                size |= (byte & 127) << shift
                shift += 7
                at += 1
            if kind == _OFS_DELTA:
                byte = data[at]
                at += 1
                back = byte & 127
                while byte & 128:
                    byte = data[at]
                    at += 1
                    back = (back + 1) << 7 | byte & 127
                deltas.append((offset, _unpacked(data, at, size)))
                offset -= back
                if back <= 0 or offset < 12:
                    return None
            elif kind == _REF_DELTA:
                base = self._named(data[at : at + 20])
                if base is None:
                    return None
                deltas.append((offset, _unpacked(data, at + 20, size)))
                found = base
                break
            else:
                found = kind, _unpacked(data, at, size)
                self._keep((number, offset), found)
                break
        kind, content = found
        while deltas:
            offset, delta = deltas.pop()
            content = apply_delta(content, delta)
            self._keep((number, offset), (kind, content))
        return kind, content

    def _keep(self, place: tuple[int, int], found: tuple[int, bytes]) -> None:
        self._kept.put(place, found, len(found[1]) + 200)


def _check_version(index: mmap.mmap) -> None:
    if index[:8] != _START:
        raise ValueError("not an index of version 2")


def _mapped(path: Path) -> mmap.mmap:
    with path.open("rb") as stream:
        return mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ)


def _unpacked(data: mmap.mmap, at: int, size: int) -> bytes:
    """Inflate an entry; how long its stream is nobody says, but it is not much longer than that."""
    content: bytes = _inflate(data[at : at + size + (size >> 6) + 128], bufsize=size + 1)
    if len(content) != size:
        raise ValueError("an entry is not as long as it says")
    return content
