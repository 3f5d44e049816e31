"""Work tree and git's index written anew from main, whatever they show (invariants 4 and 8)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agent_chatroom_ledger.storage import gitindex
from agent_chatroom_ledger.storage.layout import is_ours
from agent_chatroom_ledger.storage.objects import FILE_MODE
from agent_chatroom_ledger.storage.trees import walk
from agent_chatroom_ledger.storage.worktree import WorkTreeWriter

if TYPE_CHECKING:
    from agent_chatroom_ledger.storage.layout import Layout
    from agent_chatroom_ledger.storage.objects import Objects


def write_anew(layout: Layout, objects: Objects, main: str) -> list[str]:
    """Let our files and the index show a commit, durably, and say in words what was done.

    The caller holds the commit lock and the lock of git's index. What stands in the place of our
    files goes to quarantine; files of the user's own are left as they are.
    """
    entries: list[tuple[str, bytes]] = []
    done: list[str] = []
    written = 0
    with WorkTreeWriter(layout) as tree:
        for path, mode, oid in walk(objects, objects.commit(main).tree):
            entry = gitindex.Entry(mode, oid)
            if is_ours(path) and mode == FILE_MODE:
                data = objects.blob(oid)
                written += tree.read(path) != data
                status = tree.put(path, None, data)
                if status.st_size == len(data):
                    entry = gitindex.Entry(mode, oid, status)
            entries.append((path, gitindex.raw_entry(path, entry)))
        tree.sync()
        aside = list(tree.quarantined)
    wanted = gitindex.plain(entries)
    if gitindex.read(layout) != wanted:
        gitindex.write(layout, wanted, sync=True)
        done.append("wrote git's index anew")
    if written:
        done.append(f"wrote {written} files of the work tree anew")
    return [*done, *(f"moved foreign bytes to quarantine: {path}" for path in aside)]
