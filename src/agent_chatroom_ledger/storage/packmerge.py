"""Merging our small packs, geometrically, before there are many (docs/decisions/0003).

Packs of single calls are laid end to end: deltas count backwards from themselves, so bodies can be
moved together unchanged. When such a pack has grown, the packer lays it out anew, with every older
version as a delta. Packs that are laid out well already are again joined end to end.
"""

from __future__ import annotations

import hashlib
import os
import re
import struct
import zlib
from bisect import bisect_right
from collections import defaultdict
from typing import TYPE_CHECKING

from agent_chatroom_ledger.errors import Corrupt
from agent_chatroom_ledger.storage import failpoints, files, packlist, packs
from agent_chatroom_ledger.storage.objects import BLOB, COMMIT, TREE, parse_commit

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from agent_chatroom_ledger.storage.layout import Layout
    from agent_chatroom_ledger.storage.packlist import OwnPack

# How many packs of one size class are merged into one of the next. The first class is joined end
# to end, the second laid out anew, the others joined again.
SINGLES_MAX = 32
GROWN_MAX = 12
JOINED_MAX = 24
_GROWN_COMMITS = 16
_PACKED_COMMITS = 200
_JOINED_BYTES_MAX = 24 << 20  # a merge holds one pack and the merged index in memory
_OFS_DELTA = 6
_FAN_END = 8 + 1024
_INDEX_START = b"\377tOc\0\0\0\2"
_NUMBER = struct.Struct(">I")
_ID_BYTES = 20
_TREE_ENTRY = re.compile(rb"[0-7]+ ([^\0]+)\0.{20}", re.DOTALL)


def _class_of(commits: int) -> int:
    """Return the size class of a pack: 0 single calls, 1 grown, 2 and up laid out well."""
    if commits < _GROWN_COMMITS:
        return 0
    if commits < _PACKED_COMMITS:
        return 1
    size, level = _PACKED_COMMITS * JOINED_MAX, 2
    while commits >= size:
        size, level = size * JOINED_MAX, level + 1
    return level


def merge_small_packs(layout: Layout) -> None:
    """Merge whatever size class is full; the caller holds the commit lock.

    A pack that somebody else protects (`.keep`), lists in a multi-pack-index or has taken away is
    left alone. A full disk stops the merge and nothing else.
    """
    while True:
        own = packlist.read(layout)
        listed = _listed_by_git(layout)
        classes: dict[int, list[OwnPack]] = defaultdict(list)
        gone = False
        for pack in own:
            if not os.path.exists(f"{layout.packs}/pack-{pack.name}.idx"):
                packs.discard(layout, pack.name)  # a killed process may have got half-way
                gone = True
            elif not _is_protected(layout, pack.name, listed):
                classes[_class_of(pack.commits)].append(pack)
        for level, most in ((0, SINGLES_MAX), (1, GROWN_MAX)):
            few = _fitting(layout, classes[level]) if len(classes[level]) >= most else []
            if len(few) > 1 and _merge(layout, own, few, level):
                break
        else:
            full = [c for level, c in classes.items() if level > 1 and len(c) >= JOINED_MAX]
            if not any(_merge(layout, own, few[:JOINED_MAX], 2) for few in full):
                if gone:
                    present = [
                        p for p in own if os.path.exists(f"{layout.packs}/pack-{p.name}.idx")
                    ]
                    packlist.rewrite(layout, present)
                return


def _listed_by_git(layout: Layout) -> bytes:
    """Return what the multi-pack-indexes say, those of a chain too; names stand in them plainly."""
    chain = f"{layout.packs}/multi-pack-index.d"
    parts = [f"{chain}/{name}" for name in os.listdir(chain)] if os.path.isdir(chain) else []
    return b"\0".join(files.read_bytes(p) or b"" for p in (chain[:-2], *parts))


def merge_all(layout: Layout) -> int:
    """Merge our packs as far as they can be, however few there are; tell how many went.

    The caller holds the commit lock. What `merge_small_packs` leaves alone is left alone here too,
    and no pack becomes larger than a merge can hold in memory.
    """
    merge_small_packs(layout)
    before = len(packlist.read(layout))
    while _merge_some(layout):
        pass
    return before - len(packlist.read(layout))


def _merge_some(layout: Layout) -> bool:
    own = packlist.read(layout)
    listed = _listed_by_git(layout)
    classes: dict[int, list[OwnPack]] = defaultdict(list)
    for pack in own:
        there = os.path.exists(f"{layout.packs}/pack-{pack.name}.idx")
        if there and not _is_protected(layout, pack.name, listed):
            classes[min(_class_of(pack.commits), 2)].append(pack)
    for level in (0, 1):
        few = _fitting(layout, classes[level])
        if len(few) > 1 and _merge(layout, own, few, level):
            return True
    # What is left is laid out well, or alone; a few single calls go with it.
    rest = _fitting(layout, classes[0] + classes[1] + classes[2])
    return len(rest) > 1 and _merge(layout, own, rest, 2)


def _is_protected(layout: Layout, name: str, listed: bytes) -> bool:
    if f"pack-{name}.idx".encode() in listed:
        return True
    return os.path.exists(f"{layout.packs}/pack-{name}.keep")


def _size(layout: Layout, pack: OwnPack) -> int:
    try:
        return os.path.getsize(f"{layout.packs}/pack-{pack.name}.pack")
    except FileNotFoundError:
        return _JOINED_BYTES_MAX + 1  # a foreign repack has just taken it away


def _fitting(layout: Layout, chosen: Sequence[OwnPack]) -> list[OwnPack]:
    """Return the packs that one merge can hold, the smallest of them, in their order."""
    sizes = {pack.name: _size(layout, pack) for pack in chosen}
    total, taken = 0, set()
    for name in sorted(sizes, key=sizes.__getitem__):
        total += sizes[name]
        if total > _JOINED_BYTES_MAX:
            break
        taken.add(name)
    return [pack for pack in chosen if pack.name in taken]


def _merge(layout: Layout, own: list[OwnPack], chosen: Sequence[OwnPack], level: int) -> bool:
    """Merge some packs of a size class into one; False when it has to be left alone.

    That is so when their sum would be too large, and when a foreign repack takes one away while it
    is read. Raises Corrupt for one that is there and damaged.
    """
    try:
        return _merge_whole(layout, own, chosen, level)
    except (Corrupt, OSError, struct.error, zlib.error, LookupError, ValueError) as error:
        for pack in chosen:
            for suffix in ("pack", "idx"):
                if not os.path.exists(f"{layout.packs}/pack-{pack.name}.{suffix}"):
                    return False
        if isinstance(error, Corrupt | OSError):
            raise
        raise Corrupt(
            f"one of the packs {', '.join(pack.name for pack in chosen[:9])} is damaged "
            f"({type(error).__name__}); run `rooms verify`",
            code="bad_pack",
        ) from error


def _merge_whole(layout: Layout, own: list[OwnPack], chosen: Sequence[OwnPack], level: int) -> bool:
    sizes = [os.path.getsize(f"{layout.packs}/pack-{pack.name}.pack") for pack in chosen]
    if sum(sizes) > _JOINED_BYTES_MAX:
        return False
    # What was durable stays durable. What was not is in the journal still, and can wait too.
    durable = any(pack.synced for pack in chosen)
    if level == 1:
        name, data, index = _laid_out_anew(layout, chosen)
        failpoints.reach("packmerge.built")
        packs.store(layout, name, data, index, sync=durable)
    else:
        name, temporary, index = _joined(layout, chosen, sync=durable)
        failpoints.reach("packmerge.built")
        packs.place(layout, name, temporary, index, sync=durable)
    failpoints.reach("packmerge.stored")
    taken = {pack.name for pack in chosen}
    commits = sum(pack.commits for pack in chosen)
    rest = [pack for pack in own if pack.name not in taken and pack.name != name]
    packlist.rewrite(layout, [*rest, packlist.OwnPack(name, commits, synced=durable)])
    for pack in chosen:
        if pack.name != name:
            packs.discard(layout, pack.name)
    packs.release(layout, (name,))
    failpoints.reach("packmerge.done")
    return True


def object_count(path: str) -> int:
    """Return how many objects a version 2 index of a pack holds."""
    with open(path, "rb") as stream:
        head = stream.read(_FAN_END)
    if len(head) < _FAN_END or not head.startswith(_INDEX_START):
        raise Corrupt(f"{path} is not an index that we wrote", path=path)
    return int(_NUMBER.unpack_from(head, _FAN_END - 4)[0])


def read_index(path: str) -> Iterator[tuple[bytes, int, int]]:
    """Give (id, crc32, offset) of every object in a version 2 index of a pack below 2 GiB."""
    oids, crcs, offsets = _columns(path)
    for oid, crc, offset in zip(oids, crcs, offsets, strict=True):
        yield oid, int.from_bytes(crc, "big"), offset


def _columns(path: str) -> tuple[list[bytes], list[bytes], tuple[int, ...]]:
    """Return the ids, the sums as they are stored, and the offsets of an index."""
    count = object_count(path)
    data = files.read_bytes(path) or b""
    crc_at = _FAN_END + 20 * count
    offset_at = crc_at + 4 * count
    oids = [data[at : at + 20] for at in range(_FAN_END, crc_at, 20)]
    crcs = [data[at : at + 4] for at in range(crc_at, offset_at, 4)]
    return oids, crcs, struct.unpack_from(f">{count}I", data, offset_at)


def _moved_entries(path: str, by: int) -> list[bytes]:
    """Return the entries of an index, as `packs.index_entry` makes them, for a moved body."""
    oids, crcs, offsets = _columns(path)
    places = struct.pack(f">{len(offsets)}I", *[offset + by for offset in offsets])
    moved = [places[at : at + 4] for at in range(0, len(places), 4)]
    return [b"".join(parts) for parts in zip(oids, crcs, moved, strict=True)]


def _pack_bytes(layout: Layout, name: str) -> bytes:
    path = f"{layout.packs}/pack-{name}.pack"
    data = files.read_bytes(path)
    if data is None or hashlib.sha1(data[:-20], usedforsecurity=False).digest() != data[-20:]:
        raise Corrupt(f"{path} is damaged; run `rooms verify`", code="bad_pack", path=path)
    return data


def _joined(layout: Layout, chosen: Sequence[OwnPack], *, sync: bool) -> tuple[str, str, bytes]:
    """Lay packs end to end in a temporary file; return the name, the file and the index.

    Only one pack is in memory at a time. An object may stand in two of them, when content went
    back to what it was; git and dulwich read such packs, and laying out anew drops the second.
    """
    paths = [f"{layout.packs}/pack-{pack.name}.idx" for pack in chosen]
    count = sum(object_count(path) for path in paths)
    entries: list[bytes] = []
    head = b"PACK" + struct.pack(">II", 2, count)
    checksum = hashlib.sha1(head, usedforsecurity=False)
    temporary = files.write_temporary(layout, "pack", head, mode=0o644)
    descriptor = os.open(temporary, os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC)
    try:
        offset = len(head)
        for pack, path in zip(reversed(chosen), reversed(paths), strict=True):  # newest first
            data = _pack_bytes(layout, pack.name)
            entries += _moved_entries(path, offset - len(head))
            body = data[len(head) : -20]
            files.write_all(descriptor, body)
            checksum.update(body)
            offset += len(body)
        files.write_all(descriptor, checksum.digest())
        if sync:
            files.sync_descriptor(descriptor)
        os.fchmod(descriptor, 0o444)
    except BaseException:
        os.unlink(temporary)
        raise
    finally:
        os.close(descriptor)
    return checksum.hexdigest(), temporary, packs.pack_index(entries, checksum.digest())


def read_pack(layout: Layout, name: str) -> dict[bytes, tuple[int, bytes]]:
    """Return id -> (kind, bytes) of every object in a pack of ours."""
    data = _pack_bytes(layout, name)
    index = read_index(f"{layout.packs}/pack-{name}.idx")
    by_offset: dict[int, tuple[int, bytes]] = {}
    found: dict[bytes, tuple[int, bytes]] = {}
    for oid, _, start in sorted(index, key=lambda entry: entry[2]):
        byte = data[start]
        kind, at = byte >> 4 & 7, start + 1
        while byte & 128:
            byte = data[at]
            at += 1
        if kind == _OFS_DELTA:
            byte = data[at]
            at += 1
            back = byte & 127
            while byte & 128:
                byte = data[at]
                at += 1
                back = (back + 1) << 7 | byte & 127
            kind, base = by_offset[start - back]
            content = apply_delta(base, zlib.decompressobj().decompress(memoryview(data)[at:]))
        else:
            content = zlib.decompressobj().decompress(memoryview(data)[at:])
        by_offset[start] = found[oid] = (kind, content)
    return found


def apply_delta(base: bytes, ops: bytes) -> bytes:
    """Build the target of a delta."""
    at = 0
    for _ in range(2):  # the sizes of base and target
        while ops[at] & 128:
            at += 1
        at += 1
    out: list[bytes] = []
    while at < len(ops):
        op = ops[at]
        at += 1
        if op & 128:
            offset = size = 0
            for bit in range(4):
                if op >> bit & 1:
                    offset |= ops[at] << 8 * bit
                    at += 1
            for bit in range(3):
                if op >> 4 + bit & 1:
                    size |= ops[at] << 8 * bit
                    at += 1
            out.append(base[offset : offset + (size or 0x10000)])
        else:
            out.append(ops[at : at + op])
            at += op
    return b"".join(out)


def _laid_out_anew(layout: Layout, chosen: Sequence[OwnPack]) -> tuple[str, bytes, bytes]:
    """Pack the objects of some packs again, each path's versions in the order of the commits."""
    objects: dict[bytes, tuple[int, bytes]] = {}
    for pack in chosen:
        objects.update(read_pack(layout, pack.name))
    builder = packs.PackBuilder()
    seen: set[bytes] = set()
    directories: dict[bytes, _Directory] = {}

    def visit(path: bytes, oid: bytes) -> None:
        if oid in seen or oid not in objects:
            return
        seen.add(oid)
        kind, data = objects[oid]
        if kind == TREE:
            directory = directories.setdefault(path, _Directory())
            for name, entry in directory.changed(data):
                visit(path + b"/" + name, entry)
        builder.version(path, kind, oid, data)

    for oid in _in_order(objects):
        builder.commit(oid, objects[oid][1])
        tree = parse_commit(oid.hex(), objects[oid][1]).tree
        visit(b"", bytes.fromhex(tree))
    for oid, (kind, data) in objects.items():
        # What no commit of these packs reaches is kept all the same.
        if kind in (TREE, BLOB) and oid not in seen:
            builder.version(oid, kind, oid, data)
    return builder.finish()


class _Directory:
    """Versions of one directory in turn: of each, the entries that the one before did not have.

    Of a directory of many rooms a message changes one entry, so the others are not looked at.
    """

    __slots__ = ("_data", "_names", "_spots")

    def __init__(self) -> None:
        self._data = b""
        self._names: list[bytes] = []
        self._spots: list[int] = []  # where in the data the entries' ids stand

    def changed(self, data: bytes) -> list[tuple[bytes, bytes]]:
        """Return (name, id) of entries of the next version, all that are new to it among them."""
        older, self._data = self._data, data
        if len(older) == len(data):
            head, tail = packs.compare(older, data)
            place = bisect_right(self._spots, head) - 1
            if place >= 0 and len(data) - tail <= self._spots[place] + _ID_BYTES:
                # All that differs lies within one id: names and places are what they were.
                spot = self._spots[place]
                return [(self._names[place], data[spot : spot + _ID_BYTES])]
        found = [(match[1], match.end()) for match in _TREE_ENTRY.finditer(data)]
        self._names = [name for name, _ in found]
        self._spots = [end - _ID_BYTES for _, end in found]
        return [(name, data[end - _ID_BYTES : end]) for name, end in found]


def _in_order(objects: dict[bytes, tuple[int, bytes]]) -> list[bytes]:
    """Return the commits, each after its parents."""
    parents = {
        oid: [bytes.fromhex(p) for p in parse_commit(oid.hex(), data).parents]
        for oid, (kind, data) in objects.items()
        if kind == COMMIT
    }
    ordered: list[bytes] = []
    done: set[bytes] = set()
    for start in parents:
        waiting = [start]
        while waiting:
            oid = waiting[-1]
            missing = [p for p in parents[oid] if p in parents and p not in done]
            if oid in done or not missing:
                waiting.pop()
                if oid not in done:
                    done.add(oid)
                    ordered.append(oid)
            else:
                waiting += missing
    return ordered
