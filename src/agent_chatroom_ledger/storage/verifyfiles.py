"""Checks of what lies beside history: the work tree and git's index equal main (invariant 4)."""

from __future__ import annotations

import os
import stat
import struct
from typing import TYPE_CHECKING

from agent_chatroom_ledger.storage import files, gitindex
from agent_chatroom_ledger.storage.layout import is_log, is_ours, nobodys_log
from agent_chatroom_ledger.storage.objects import FILE_MODE
from agent_chatroom_ledger.storage.roomreader import POLICY_FILE, ROOM_FILE
from agent_chatroom_ledger.storage.worktree import blob_id

if TYPE_CHECKING:
    from collections.abc import Iterator

    from agent_chatroom_ledger.storage.issues import Findings
    from agent_chatroom_ledger.storage.layout import Layout
    from agent_chatroom_ledger.storage.objects import Objects

# Fields of an index entry (gitformat-index): times, device, inode, mode, owner, size, id, flags.
_ENTRY = struct.Struct(">10I20sH")
_EXECUTABLE = 0o100755
_SEARCHED = ("rooms", "operations", "archive", "artifacts")


def check_files(
    layout: Layout, objects: Objects, main: str, found: Findings, *, thorough: bool
) -> None:
    """Compare main's tree with the index and the work tree, and look for what is in neither.

    A file whose stat the index knows is taken for unchanged, as git takes it; ``thorough`` reads
    it all the same.
    """
    entries = _index(layout, found)
    ours: set[str] = set()
    directories: set[str] = set()
    for path, mode, oid in files_of(objects, objects.commit(main).tree):
        ours.add(path)
        known = entries.pop(path, None) if entries is not None else None
        if not is_ours(path):
            continue  # the user's own file: editing and staging it is his business
        found.count("files")
        directories.add(path.rpartition("/")[0])
        if entries is not None and (known is None or known[:2] != (mode, oid)):
            found.error("index_differs", f"git's index has another {path} than main", path)
        if mode not in (FILE_MODE, _EXECUTABLE):
            found.warning("foreign_mode", f"{path} is no regular file in main", path)
            continue
        trusted = known[2] if known is not None and known[1] == oid and not thorough else None
        _check_file(layout, path, oid, trusted, found)
    for path in filter(is_ours, entries or ()):
        found.error("index_differs", f"git's index has {path}, and main has not", path)
    for directory in sorted(set(filter(None, map(nobodys_log, directories)))):
        what = f"{directory} has a name that no origin has, so nothing in it is read"
        found.warning("foreign_log", what, directory)
    _look_for_foreign(layout, ours, found)


def files_of(objects: Objects, tree: str, prefix: str = "") -> Iterator[tuple[str, int, str]]:
    """Yield path, mode and id of every file of a tree."""
    for entry in objects.tree(tree):
        if entry.is_tree:
            yield from files_of(objects, entry.oid, f"{prefix}{entry.name}/")
        else:
            yield f"{prefix}{entry.name}", entry.mode, entry.oid


def _index(layout: Layout, found: Findings) -> dict[str, tuple[int, str, bytes]] | None:
    data = gitindex.read(layout)
    if data is None:
        found.error("index_missing", "git's index is missing", str(layout.git / "index"))
        return None
    try:
        return gitindex.parse(data)
    except ValueError as error:
        found.warning("index_unread", f"git's index is {error}, and was not compared")
        return None


def _check_file(
    layout: Layout, path: str, oid: str, trusted: bytes | None, found: Findings
) -> None:
    """Compare one file with its blob; ``trusted`` is its index entry, if its stat may serve."""
    link = _link_on_the_way(layout, path)
    if link is not None:
        found.error("symlink", f"{link} is a symbolic link; the ledger never follows one", link)
        return
    place = f"{layout.root}/{path}"
    try:
        status = os.lstat(place)
    except (FileNotFoundError, NotADirectoryError):
        found.error(_code(path, "missing"), f"{path} is missing in the work tree", path)
        return
    if not stat.S_ISREG(status.st_mode):
        found.error("symlink", f"{path} is no regular file in the work tree", path)
        return
    if trusted is not None and _same_stat(trusted, status):
        return
    data = files.read_bytes(place)
    if data is None or blob_id(data) != oid:
        found.error(_code(path, "changed"), f"{path} is not what main has", path)


def _code(path: str, what: str) -> str:
    """Return the code of a file that differs, by what the file is for."""
    name = path.rpartition("/")[2]
    if path.startswith("rooms/") and not is_log(path):
        if name in (ROOM_FILE, POLICY_FILE):
            return "missing_state" if what == "missing" else "state_message_mismatch"
        if "/view/" in path:
            return "compiled_parse_failed"
        if "/versions/" in path:
            return "message_version_invalid"
    return f"worktree_{what}"


def _same_stat(raw: bytes, status: os.stat_result) -> bool:
    fields = _ENTRY.unpack_from(raw)
    return fields[9] != 0 and (fields[2], fields[3], fields[5], fields[9]) == (
        status.st_mtime_ns // 10**9 & 0xFFFFFFFF,
        status.st_mtime_ns % 10**9,
        status.st_ino & 0xFFFFFFFF,
        status.st_size & 0xFFFFFFFF,
    )


def _link_on_the_way(layout: Layout, path: str) -> str | None:
    parts = path.split("/")
    for depth in range(1, len(parts)):
        above = "/".join(parts[:depth])
        try:
            if stat.S_ISLNK(os.lstat(f"{layout.root}/{above}").st_mode):
                return above
        except OSError:
            return None
    return None


def _look_for_foreign(layout: Layout, ours: set[str], found: Findings) -> None:
    """Name files and links where the ledger keeps its own; they are nobody's record."""
    waiting = [name for name in _SEARCHED if os.path.isdir(f"{layout.root}/{name}")]
    while waiting:
        directory = waiting.pop()
        try:
            with os.scandir(f"{layout.root}/{directory}") as entries:
                listed = list(entries)
        except (NotADirectoryError, FileNotFoundError):
            continue
        for entry in listed:
            path = f"{directory}/{entry.name}"
            if entry.is_symlink():
                if path not in ours:
                    found.warning("symlink", f"{path} is a link that is not ours", path)
            elif entry.is_dir(follow_symlinks=False):
                waiting.append(path)
            elif path not in ours:
                found.warning("foreign_file", f"{path} is not the ledger's", path)
