"""A mark that main moved without frames, for whoever derives something from the journal alone.

It is written when the work tree shows the foreign commits, and compared, not interpreted.
"""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING

from agent_chatroom_ledger.storage import files

if TYPE_CHECKING:
    from agent_chatroom_ledger.storage.layout import Layout

_NAME = "foreign"


def mark(layout: Layout, main: str) -> None:
    """Note that main is now a commit that holds what the journal does not."""
    text = f"{main} {time.time_ns()}\n"
    files.replace(layout, layout.private / _NAME, text.encode("ascii"), sync=False)


def read(layout: Layout) -> str:
    """Return the last mark; empty when there never was one."""
    return (files.read_bytes(layout.private / _NAME) or b"").decode("ascii", "replace").strip()


def stamp(layout: Layout) -> int:
    """Return what changes with every mark, for the price of one look at the file."""
    try:
        return os.stat(f"{layout.private}/{_NAME}").st_mtime_ns
    except FileNotFoundError:
        return 0
