"""How a ledger stood when nothing waited for a client, so that its hook need not ask again.

A file per client, of two lines: a stamp, and the file by which somebody may wake the client.
Derived: without it, or with one that does not fit, the hook asks.
"""

from __future__ import annotations

import os
from contextlib import suppress
from typing import TYPE_CHECKING

from agent_chatroom_ledger.limits import NUDGE_FILES_MAX
from agent_chatroom_ledger.storage import files
from agent_chatroom_ledger.storage.watching import Watch

if TYPE_CHECKING:
    from pathlib import Path

    from agent_chatroom_ledger.storage.layout import Layout


def stamp(layout: Layout, facts: tuple[object, ...]) -> str:
    """Return what stays the same as long as nothing was said, moved, joined or set.

    ``facts`` are those of the client and of its environment. Commits of others, which no journal
    tells of, move main or change git's index.
    """
    watched = (
        layout.config,
        layout.pins,
        layout.presence,
        layout.git / "refs" / "heads" / "main",
        layout.git / "packed-refs",
        layout.git / "index",
    )
    return repr((Watch(layout, 0).seen, *map(_version, watched), *facts))


def is_remembered(layout: Layout, key: str, found: str) -> bool:
    """Tell whether nothing waits for a client as things stand; it works, so nobody wakes it."""
    try:
        before, _, watch = (files.read_bytes(_path(layout, key)) or b"").decode().partition("\n")
    except (OSError, UnicodeDecodeError):
        return False
    watch = watch.rstrip("\n")
    if before != found or not watch or os.path.basename(watch) != watch:
        return False
    with suppress(OSError):
        os.unlink(watches(layout) / watch)
    return True


def remember(layout: Layout, key: str, found: str, watch: str) -> None:
    """Keep that nothing waits; where that cannot be written, the next event asks again."""
    path = _path(layout, key)
    with suppress(OSError):
        fresh = not path.exists()
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary = f"{path}.{os.getpid()}"
        with open(temporary, "wb") as file:
            file.write(f"{found}\n{watch}\n".encode())
        os.replace(temporary, path)
        if fresh:
            sweep(path.parent)


def watches(layout: Layout) -> Path:
    """Return where the files lie by which somebody may wake a client."""
    return layout.private / "agenthook" / "watches"


def sweep(folder: Path) -> None:
    """Delete the files that were written longest ago, those beyond a number that is kept."""
    found = []
    for name in os.listdir(folder):
        with suppress(OSError):
            found.append((os.stat(folder / name).st_mtime_ns, name))
    for _, name in sorted(found)[: max(0, len(found) - NUDGE_FILES_MAX)]:
        with suppress(OSError):
            os.unlink(folder / name)


def _path(layout: Layout, key: str) -> Path:
    return layout.private / "agenthook" / "quiet" / key


def _version(path: Path) -> tuple[int, int]:
    try:
        found = os.stat(path)
    except OSError:
        return 0, 0
    return found.st_mtime_ns, found.st_size
