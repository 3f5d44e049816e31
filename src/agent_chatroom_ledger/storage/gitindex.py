"""git's index, patched as bytes so that `git status` is clean and a foreign commit reverts nothing.

Format: git's `gitformat-index` documentation, versions 2 and 3. Extensions are dropped, since they
describe what the patch changes; version 4 and split indexes are read by git alone, so they are
replaced by a plain index of main.
"""

from __future__ import annotations

import dataclasses
import hashlib
import os
import stat
import struct
from typing import TYPE_CHECKING, NamedTuple

from agent_chatroom_ledger.storage import failpoints, files
from agent_chatroom_ledger.storage.layout import is_ours
from agent_chatroom_ledger.storage.objects import FILE_MODE
from agent_chatroom_ledger.storage.worktree import blob_id

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from agent_chatroom_ledger.storage.layout import Layout

_HEADER = struct.Struct(">4sII")
_ENTRY = struct.Struct(">10I20sH")
# Where in an entry its time of change, its mode and its size stand.
_MTIME_AT, _MODE_AT, _SIZE_AT = 8, 24, 36
_MODES = {mode.to_bytes(4, "big") for mode in (0o100644, 0o100755, 0o120000)}
_NAME_MAX = 0xFFF
_EXTENDED = 0x4000
_STAGES = 0x3000
_UNREADABLE = {b"link", b"sdir"}  # entries in another file, entries for whole directories
_PATCHES_MAX = 64  # beyond this many changes one pass over all entries is cheaper
_NO_STAT = (0,) * 6


@dataclasses.dataclass(frozen=True)
class Entry:
    """One file of the index: its mode, its blob, and the stat of the file that equals it."""

    mode: int
    oid: str
    stat: os.stat_result | None = None


class _Unpatchable(Exception):
    """The index is of a kind that is not patched in place."""


def _encode(path: bytes, entry: Entry) -> bytes:
    status = entry.stat
    if status is None:
        times, place, owner = (0, 0, 0, 0), (0, 0), (0, 0)
        size = 0
    else:
        times = (
            status.st_ctime_ns // 10**9 & 0xFFFFFFFF,
            status.st_ctime_ns % 10**9,
            status.st_mtime_ns // 10**9 & 0xFFFFFFFF,
            status.st_mtime_ns % 10**9,
        )
        place = (status.st_dev & 0xFFFFFFFF, status.st_ino & 0xFFFFFFFF)
        owner = (status.st_uid & 0xFFFFFFFF, status.st_gid & 0xFFFFFFFF)
        size = status.st_size & 0xFFFFFFFF
    head = _ENTRY.pack(
        *times,
        *place,
        entry.mode,
        *owner,
        size,
        bytes.fromhex(entry.oid),
        min(len(path), _NAME_MAX),
    )
    return head + path + b"\0" * (8 - (len(head) + len(path)) % 8)


def _entry_size(name_bytes: int) -> int:
    return (_ENTRY.size + name_bytes + 8) // 8 * 8


def _check(data: bytes) -> tuple[int, int]:
    """Return the version and the number of entries of an index that can be patched."""
    if len(data) < _HEADER.size + 20:
        raise _Unpatchable
    signature, version, count = _HEADER.unpack_from(data)
    if signature != b"DIRC" or version not in (2, 3):
        raise _Unpatchable
    return version, count


def _find(data: bytes | bytearray, path: bytes) -> int:
    """Return where a plain entry starts, -1 when there is none."""
    key = struct.pack(">H", min(len(path), _NAME_MAX)) + path + b"\0"
    start = _HEADER.size
    while True:
        found = data.find(key, start)
        if found < 0:
            return -1
        at = found - (_ENTRY.size - 2)
        if at >= _HEADER.size and (at - _HEADER.size) % 8 == 0:
            return at
        start = found + 1


def _entries_end(data: bytes, count: int) -> int:
    """Walk over all entries and return where they end."""
    at = _HEADER.size
    limit = len(data) - 20
    for _ in range(count):
        if at + _ENTRY.size > limit:
            raise _Unpatchable
        flags = (data[at + 60] << 8) | data[at + 61]
        name_at = at + _ENTRY.size + (2 if flags & _EXTENDED else 0)
        size = flags & _NAME_MAX
        if size == _NAME_MAX:
            size = data.index(b"\0", name_at) - name_at
        at += (name_at - at + size + 8) // 8 * 8
    if at > limit:
        raise _Unpatchable
    return at


def _all_entries(data: bytes) -> Iterator[tuple[str, int, bytes]]:
    """Give (path, stage, raw entry) of all entries; ValueError when it is another kind."""
    try:
        version, count = _check(data)
        end = _entries_end(data, count)
    except (_Unpatchable, IndexError, ValueError) as error:
        raise ValueError("not a plain index") from error
    if not _UNREADABLE.isdisjoint(_extensions(data, end)):
        raise ValueError("a split or sparse index")
    at = _HEADER.size
    while at < end:
        flags = data[at + 60] << 8
        name_at = at + _ENTRY.size + (2 if version > 2 and flags & _EXTENDED else 0)
        stop = data.index(b"\0", name_at)
        size = (stop - at + 8) // 8 * 8
        path = data[name_at:stop].decode("utf-8", "surrogateescape")
        yield path, flags >> 12 & 3, data[at : at + size]
        at += size


def _extensions(data: bytes, end: int) -> Iterator[bytes]:
    """Give the names of the extensions that follow the entries."""
    while end + 8 <= len(data) - 20:
        yield data[end : end + 4]
        end += 8 + int.from_bytes(data[end + 4 : end + 8], "big")


def parse(data: bytes) -> dict[str, tuple[int, str, bytes]]:
    """Return path -> (mode, id, raw entry) of all entries of stage 0.

    Raises ValueError for an index of another kind than version 2 or 3 without splitting.
    """
    found: dict[str, tuple[int, str, bytes]] = {}
    for path, stage, raw in _all_entries(data):
        if not stage:
            fields = _ENTRY.unpack_from(raw)
            found[path] = (fields[6], fields[10].hex(), raw)
    return found


def _sealed(count: int, body: bytes, version: int = 2) -> bytes:
    data = _HEADER.pack(b"DIRC", version, count) + body
    return data + hashlib.sha1(data, usedforsecurity=False).digest()


def patched(
    data: bytes,
    changes: Mapping[str, Entry | None],
    before: Callable[[str], str | None],
    last: str | None,
) -> bytes | None:
    """Return the index with some entries set or (None) removed; None when it cannot be patched.

    `before(path)` names the file that stands just before a new path in main, None for the first;
    `last` is the last file of the commit that the index stands for.
    """
    if len(changes) > _PATCHES_MAX:
        return _merged(data, changes)
    try:
        version, count = _check(data)
        body = bytearray(data[: len(data) - 20])
        if version != 2 or _plain_end(data, count, last) is None:
            return _merged(data, changes)
        for path in sorted(changes):
            name = path.encode("utf-8", "surrogateescape")
            entry = changes[path]
            at = _find(body, name)
            size = _entry_size(len(name))
            if at >= 0:
                body[at : at + size] = b"" if entry is None else _encode(name, entry)
                count -= entry is None
            elif body.find(name + b"\0") >= 0:
                return _merged(data, changes)  # an entry with flags of its own
            elif entry is not None:
                previous = before(path)
                spot = _HEADER.size
                if previous is not None:
                    earlier = previous.encode("utf-8", "surrogateescape")
                    spot = _find(body, earlier)
                    if spot < 0:
                        return _merged(data, changes)
                    spot += _entry_size(len(earlier))
                    following = bytes(body[spot + _ENTRY.size : spot + _ENTRY.size + 4096])
                    if following.partition(b"\0")[0] and following.partition(b"\0")[0] < name:
                        return _merged(data, changes)  # foreign entries stand in between
                elif body[spot + _ENTRY.size :].partition(b"\0")[0] < name and count:
                    return _merged(data, changes)
                body[spot:spot] = _encode(name, entry)
                count += 1
        return _sealed(count, bytes(body[_HEADER.size :]), version)
    except (_Unpatchable, IndexError, ValueError):
        return None


def _plain_end(data: bytes, count: int, last: str | None) -> int | None:
    """Return where the entries end if nothing but the checksum follows them, else None.

    `last` is the last file of main: when its entry ends where the checksum starts, there are no
    extensions, and no walk over all entries was needed to see it.
    """
    if not count:
        return _HEADER.size if len(data) == _HEADER.size + 20 else None
    if last is None:
        return None
    name = last.encode("utf-8", "surrogateescape")
    at = _find(data, name)
    end = len(data) - 20
    return end if at >= 0 and at + _entry_size(len(name)) == end else None


def _merged(data: bytes, changes: Mapping[str, Entry | None]) -> bytes | None:
    """Patch by one pass over all entries; None when the index is of another kind."""
    try:
        version, _ = _check(data)
        # Unfinished merges of the user's files stay as they are, all three stages of them.
        kept = [(path, raw) for path, _, raw in _all_entries(data) if path not in changes]
    except (_Unpatchable, ValueError):
        return None
    kept += [(path, raw_entry(path, entry)) for path, entry in changes.items() if entry is not None]
    return plain(kept, version)


def plain(entries: Iterable[tuple[str, bytes]], version: int = 2) -> bytes:
    """Lay out an index of raw entries."""
    ordered = sorted(
        ((path.encode("utf-8", "surrogateescape"), raw) for path, raw in entries),
        key=lambda entry: (entry[0], entry[1][60] & 0x30),  # stages after their path
    )
    return _sealed(len(ordered), b"".join([raw for _, raw in ordered]), version)


class _Run(NamedTuple):
    """The entries below a prefix: from where to where they lie in an index, and how many."""

    version: int
    entries: int
    start: int
    stop: int
    end: int
    inside: int
    staged: bool


def _run(data: bytes, prefix: bytes) -> _Run:
    """Find the entries below a prefix, which follow one another since an index is sorted.

    Without any, the run is empty and stands where they would. Raises _Unpatchable for an index of
    another kind.
    """
    version, entries = _check(data)
    at, limit, width = _HEADER.size, len(data) - 20, len(prefix)
    start = stop = -1
    inside = staged = 0
    for _ in range(entries):
        if at + _ENTRY.size > limit:
            raise _Unpatchable
        flags = (data[at + 60] << 8) | data[at + 61]
        name_at = at + (_ENTRY.size + 2 if flags & _EXTENDED else _ENTRY.size)
        size = flags & _NAME_MAX
        if size == _NAME_MAX:
            size = data.index(b"\0", name_at) - name_at
        if stop < 0:
            head = data[name_at : name_at + width]
            if head > prefix:
                stop = at
                start = stop if start < 0 else start
            elif head == prefix:
                inside += 1
                start = at if start < 0 else start
            elif start >= 0:
                raise _Unpatchable  # out of order
        elif data.startswith(prefix, name_at):
            raise _Unpatchable
        staged |= flags & _STAGES
        at += (name_at - at + size + 8) // 8 * 8
    if at > limit or not _UNREADABLE.isdisjoint(_extensions(data, at)):
        raise _Unpatchable
    stop = at if stop < 0 else stop
    start = stop if start < 0 else start
    return _Run(version, entries, start, stop, at, inside, bool(staged))


def cut(data: bytes, prefix: str) -> tuple[bytes, bytes] | None:
    """Part an index in two: what lies elsewhere, and what lies below a prefix, which ends in `/`.

    None when the index is of a kind that is not patched. Extensions are dropped.
    """
    try:
        run = _run(data, prefix.encode("utf-8", "surrogateescape"))
    except (_Unpatchable, IndexError, ValueError):
        return None
    rest = data[_HEADER.size : run.start] + data[run.stop : run.end]
    below = data[run.start : run.stop]
    return (
        _sealed(run.entries - run.inside, rest, run.version),
        _sealed(run.inside, below, run.version),
    )


def joined(data: bytes, entries: bytes, prefix: str) -> bytes | None:
    """Put the entries that `cut` gave back into an index; None when they do not fit together."""
    key = prefix.encode("utf-8", "surrogateescape")
    try:
        around, back = _run(data, key), _run(entries, key)
    except (_Unpatchable, IndexError, ValueError):
        return None
    if around.inside or around.staged or back.staged or back.inside != back.entries:
        return None
    body = b"".join(
        (
            data[_HEADER.size : around.start],
            entries[back.start : back.stop],
            data[around.stop : around.end],
        )
    )
    return _sealed(around.entries + back.inside, body, max(around.version, back.version))


def raw_entry(path: str, entry: Entry) -> bytes:
    """Encode one entry."""
    return _encode(path.encode("utf-8", "surrogateescape"), entry)


def read(layout: Layout) -> bytes | None:
    """Return the bytes of the index, None when there is none."""
    return files.read_bytes(layout.git / "index")


def read_to_keep(layout: Layout) -> bytes | None:
    """Return the bytes of an index whose entries are to stay in a younger one.

    git takes a file for unchanged whose stat is that of its entry, except where the entry is as
    young as the index: there the file may have changed within the same second, so git looks at the
    content. A younger index would take that away. So each file of the user's that has changed so
    gets what git itself gives it then, a size that no stat agrees with (git's documentation
    `racy-git`).
    """
    data = read(layout)
    if data is None:
        return None
    written = int(os.stat(layout.git / "index").st_mtime) & 0xFFFFFFFF
    kept = bytearray(data)
    for at, path in _of_second(data, written):
        if not is_ours(path) and _has_changed(layout, path, data[at : at + _ENTRY.size]):
            kept[at + _SIZE_AT : at + _SIZE_AT + 4] = bytes(4)
    if kept == data:
        return data
    return bytes(kept[:-20]) + hashlib.sha1(kept[:-20], usedforsecurity=False).digest()


def _of_second(data: bytes, second: int) -> Iterator[tuple[int, str]]:
    """Give where the entries of files stand that were changed in one second, and their paths."""
    key = struct.pack(">I", second)
    found = data.find(key, _HEADER.size + _MTIME_AT)
    while found >= 0:
        at = found - _MTIME_AT
        # Eight bytes of an entry may be such a number by chance; then its mode is none.
        if (at - _HEADER.size) % 8 == 0 and data[at + _MODE_AT : at + _MODE_AT + 4] in _MODES:
            extended = data[at + 60] << 8 & _EXTENDED
            name_at = at + _ENTRY.size + (2 if extended else 0)
            name = data[name_at : data.find(b"\0", name_at)]
            yield at, name.decode("utf-8", "surrogateescape")
        found = data.find(key, found + 1)


def _has_changed(layout: Layout, path: str, entry: bytes) -> bool:
    """Tell whether the content of a file is not that of its entry, though its size is."""
    *_, size, oid, _ = _ENTRY.unpack(entry)
    place = layout.root / path
    try:
        status = os.lstat(place)
        if status.st_size & 0xFFFFFFFF != size:
            return False  # git sees that
        link = stat.S_ISLNK(status.st_mode)
        content = os.fsencode(os.readlink(place)) if link else place.read_bytes()
    except (OSError, ValueError):
        return False  # not there, or not to be read: git sees that
    return bool(bytes.fromhex(blob_id(content)) != oid)


def write(layout: Layout, data: bytes, *, sync: bool) -> None:
    """Put the index in place; the caller holds `.git/index.lock`."""
    failpoints.reach("gitindex.write")
    files.replace(layout, layout.git / "index", data, sync=sync)
    failpoints.reach("gitindex.written")


def file_mode(mode: int) -> int:
    """Return the mode that the index notes for a file of a tree."""
    return mode or FILE_MODE
