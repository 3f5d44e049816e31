"""A mark that main moved without frames, for whoever derives something from the journal alone.

It is written when the work tree shows the foreign commits, and compared, not interpreted. Until
the next write notices them, main itself is the mark.
"""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING

from agent_chatroom_ledger.errors import Corrupt
from agent_chatroom_ledger.storage import files, refs
from agent_chatroom_ledger.storage.state import read_state

if TYPE_CHECKING:
    from agent_chatroom_ledger.storage.layout import Layout

_NAME = "foreign"


def mark(layout: Layout, main: str) -> None:
    """Note that main is now a commit that holds what the journal does not."""
    text = f"{main} {time.time_ns()}\n"
    files.replace(layout, layout.private / _NAME, text.encode("ascii"), sync=False)


def read(layout: Layout) -> str:
    """Return the last mark, and main where somebody has moved it since; empty without either."""
    text = (files.read_bytes(layout.private / _NAME) or b"").decode("ascii", "replace").strip()
    return f"{text} {_moved_to(layout)}".strip()


def _moved_to(layout: Layout) -> str:
    """Return the commit that main names, unless the ledger's own writers moved it there."""
    try:
        main = refs.read_main(layout)
    except Corrupt:
        return ""  # after a power cut: recovery judges
    known = read_state(layout)
    if known is None or known.main == main:
        return ""
    # Whoever commits for the ledger holds this lock from before he moves main until he has noted
    # it; what others do meanwhile he notices himself.
    return "" if refs.ours(layout, f"{layout.git}/index.lock") else main


def stamp(layout: Layout) -> int:
    """Return what changes with every mark that was written, for the price of one look at it."""
    try:
        return os.stat(f"{layout.private}/{_NAME}").st_mtime_ns
    except FileNotFoundError:
        return 0


def stamp_with_main(layout: Layout) -> int:
    """Return what changes whenever `read` may, also while no writer has noticed anything."""
    try:
        status = os.stat(f"{layout.git}/{refs.MAIN}")
    except FileNotFoundError:
        return hash((stamp(layout), 0, 0))
    return hash((stamp(layout), status.st_mtime_ns, status.st_ino))
