"""What a checkpoint that did not end may have shown in part.

A checkpoint writes the files that differ between the base of the generation and main. One that is
killed leaves some of them as its own main had them, and what has changed back since differs no
more: a member who came and went, a room that came and was archived. So a checkpoint first notes
which commit it is about to show, and the note goes when the next generation has begun.
"""

from __future__ import annotations

import os
import re
from contextlib import suppress
from typing import TYPE_CHECKING

from agent_chatroom_ledger.storage import files

if TYPE_CHECKING:
    from collections.abc import Iterable

    from agent_chatroom_ledger.storage.layout import Layout

_NAME = "showing"
_LINE = re.compile(rb"^([0-9a-f]{40})$", re.MULTILINE)


def note(layout: Layout, commits: Iterable[str]) -> None:
    """Add commits, oldest first. The holder of the commit lock calls it; nothing is synced."""
    # The line end comes first: what a full disk has cut off before is no part of a line.
    data = "".join(f"\n{commit}\n" for commit in commits).encode("ascii")
    flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC
    descriptor = os.open(layout.private / _NAME, flags, 0o666)
    try:
        files.write_all(descriptor, data)
    finally:
        os.close(descriptor)


def noted(layout: Layout) -> list[str]:
    """Return the commits, oldest first."""
    data = files.read_bytes(layout.private / _NAME) or b""
    return [line.decode("ascii") for line in _LINE.findall(data)]


def clear(layout: Layout) -> None:
    """Forget them: what main has is shown."""
    with suppress(FileNotFoundError):
        os.unlink(layout.private / _NAME)
