"""A mark that main moved without frames, for whoever derives something from the journal alone.

It counts from the generation of the journal on which lacks what the commits brought, and is
written before that begins: who is killed in between has left both, or neither counts. It is
compared, not interpreted. Until the next write notices such commits, main itself is the mark.
"""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING

from agent_chatroom_ledger.errors import Corrupt
from agent_chatroom_ledger.storage import files, journal, refs
from agent_chatroom_ledger.storage.state import read_state

if TYPE_CHECKING:
    from agent_chatroom_ledger.storage.layout import Layout

_NAME = "foreign"
# Of a mark: the commit, when it was noted, and the generation.
_WORDS = 3


def mark(layout: Layout, main: str, generation: int) -> None:
    """Note that from a generation on main is a commit that holds what the journal does not."""
    text = f"{_marked(layout)}\n{main} {time.time_ns()} {generation}\n"
    files.replace(layout, layout.private / _NAME, text.encode("ascii"), sync=False)


def read(layout: Layout) -> str:
    """Return the last mark, and main where somebody has moved it since; empty without either."""
    return f"{_marked(layout)} {_moved_to(layout)}".strip()


def _marked(layout: Layout) -> str:
    """Return the mark that counts: the one before, until the generation of the last has begun."""
    text = (files.read_bytes(layout.private / _NAME) or b"").decode("ascii", "replace")
    before, _, last = text.rstrip("\n").rpartition("\n")
    generation = last.rpartition(" ")[2]
    if len(last.split()) == _WORDS and generation.isdigit():
        newest = max(journal.generations(layout), default=0)
        return last if newest >= int(generation) else before
    return last


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
