"""What the agent hook remembers: blocked stops of a session, and who may wake a name.

Outside version control, and nothing of it is a promise: a file that is lost or damaged means that
a session is blocked no more until its user says something. Nothing is synced.
"""

from __future__ import annotations

import os
from contextlib import suppress
from typing import TYPE_CHECKING

import msgspec

from agent_chatroom_ledger.limits import STOP_BLOCKS_MAX
from agent_chatroom_ledger.storage import files, quietfile
from agent_chatroom_ledger.storage.cursors import cursor_name
from agent_chatroom_ledger.storage.locks import holding

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from agent_chatroom_ledger.storage.layout import Layout

FORMAT = 1
_LOCK_SECONDS = 1.0
_TOKEN_BYTES_MAX = 256


class Nudges(msgspec.Struct, frozen=True, kw_only=True):
    """What one session was told of.

    ``blocks`` is how often its stop was blocked since its user's last prompt; ``through`` says, by
    room's id and origin, through which number it was blocked or woken.
    """

    format: int = FORMAT
    session: str = ""
    blocks: int = 0
    through: dict[str, dict[str, int]] = {}

    def knows(self, room: str, origin: str, n: int) -> bool:
        """Tell whether the session was blocked or woken for a record."""
        return n <= self.through.get(room, {}).get(origin, 0)


_decoder = msgspec.json.Decoder(Nudges)


def load(layout: Layout, session: str) -> Nudges:
    """Return what a session was told of; a damaged file says that it was blocked often enough."""
    content = files.read_bytes(_path(layout, session))
    if content is None:
        return Nudges(session=session)
    try:
        found = _decoder.decode(content)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return Nudges(session=session, blocks=STOP_BLOCKS_MAX)
    if found.format > FORMAT or found.session != session:
        return Nudges(session=session, blocks=STOP_BLOCKS_MAX)
    return found


def change(layout: Layout, session: str, edit: Callable[[Nudges], Nudges | None]) -> Nudges | None:
    """Change what a session was told of, one at a time, and return it; None if nothing changed.

    Raises Busy when another process holds the lock for a second, Forbidden when nothing may be
    written: then nobody was told of anything.
    """
    path = _path(layout, session)
    with files.clear_errors("writing what a session was told of"):
        layout.tmp.mkdir(parents=True, exist_ok=True)
        with holding(layout.locks / "agenthook.lock", seconds=_LOCK_SECONDS):
            after = edit(load(layout, session))
            if after is None:
                return None
            fresh = not path.exists()
            path.parent.mkdir(parents=True, exist_ok=True)
            files.replace(layout, path, msgspec.json.encode(after), sync=False)
            if fresh:
                quietfile.sweep(path.parent)
        return after


def claim_watch(layout: Layout, name: str, token: str) -> None:
    """Let one process, and no earlier one, wake the client that lives under a name."""
    path = _watch(layout, name)
    with files.clear_errors("writing who wakes"):
        path.parent.mkdir(parents=True, exist_ok=True)
        layout.tmp.mkdir(parents=True, exist_ok=True)
        files.replace(layout, path, token.encode(), sync=False)


def holds_watch(layout: Layout, name: str, token: str) -> bool:
    """Tell whether a process may still wake."""
    content = files.read_bytes(_watch(layout, name))
    return content is not None and content[:_TOKEN_BYTES_MAX] == token.encode()


def end_watch(layout: Layout, name: str, token: str | None = None) -> None:
    """Let nobody wake the client any more: it is at work; with `token` only that process."""
    if token is not None and not holds_watch(layout, name, token):
        return
    with suppress(OSError):
        os.unlink(_watch(layout, name))


def watch_file(name: str) -> str:
    """Return the name of the file by which somebody may wake the client under a name."""
    return cursor_name(name)


def _path(layout: Layout, session: str) -> Path:
    return layout.private / "agenthook" / "stops" / cursor_name(session)


def _watch(layout: Layout, name: str) -> Path:
    return quietfile.watches(layout) / watch_file(name)
