"""Work tree directories of archived rooms, put aside whole so that no file is copied.

`.git/ledger/attic/<tree id>` is a room's directory as it was, `<tree id>.index` its entries of
git's index. Both are derived: without them a restored room's files are written anew.
"""

from __future__ import annotations

import os
import stat
from typing import TYPE_CHECKING

from agent_chatroom_ledger.storage import failpoints, files, gitindex

if TYPE_CHECKING:
    from agent_chatroom_ledger.storage.layout import Layout


def _place(layout: Layout, tree: str) -> str:
    return f"{layout.private}/attic/{tree}"


def _is_plain(layout: Layout, path: str) -> bool:
    """Tell whether every part of a path is a directory, and none a link."""
    place = str(layout.root)
    for part in path.split("/"):
        place = f"{place}/{part}"
        try:
            if not stat.S_ISDIR(os.lstat(place).st_mode):
                return False
        except OSError:
            return False
    return True


def put_aside(layout: Layout, path: str, tree: str, index: bytes | None) -> bytes | None:
    """Move a room's directory to the attic and cut it out of an index, which is returned.

    None when the index is of a kind that is not patched. A directory that is not there, or behind
    a link, is left to whoever compares files.
    """
    target = _place(layout, tree)
    if not _is_plain(layout, path) or os.path.lexists(target):
        return None
    cut = None if index is None else gitindex.cut(index, f"{path}/")
    if cut is None:
        return None
    rest, entries = cut
    os.makedirs(os.path.dirname(target), exist_ok=True)
    files.replace(layout, f"{target}.index", entries, sync=False)
    failpoints.reach("attic.aside")
    os.rename(f"{layout.root}/{path}", target)
    failpoints.reach("attic.moved")
    above = os.path.dirname(f"{layout.root}/{path}")
    files.sync_directory(above)
    files.sync_directory(os.path.dirname(target))
    while above != f"{layout.root}/rooms" and not os.listdir(above):
        os.rmdir(above)  # a folder without rooms is none, as git sees it
        above = os.path.dirname(above)
    return rest


def bring_back(layout: Layout, path: str, tree: str, index: bytes | None) -> bytes | None:
    """Move a room's directory back from the attic, and its entries into an index, returned.

    None when it is not there, or cannot be put in place: its files are then written anew.
    """
    source = _place(layout, tree)
    entries = files.read_bytes(f"{source}.index")
    if index is None or entries is None or not os.path.isdir(source):
        return None
    target = f"{layout.root}/{path}"
    above = os.path.dirname(path)
    os.makedirs(f"{layout.root}/{above}", exist_ok=True)
    if os.path.lexists(target) or not _is_plain(layout, above):
        return None
    joined = gitindex.joined(index, entries, f"{path}/")
    if joined is None:
        return None
    failpoints.reach("attic.back")
    os.rename(source, target)
    failpoints.reach("attic.returned")
    os.unlink(f"{source}.index")
    files.sync_directory(os.path.dirname(target))
    files.sync_directory(os.path.dirname(source))
    return joined
