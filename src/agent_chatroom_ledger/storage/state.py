"""A hint: which commit main named after which frame (docs/design.md 4).

It is trusted only if it names what main names and was written since the machine booted; deleting
it costs a full check and nothing else.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING
from zlib import crc32

import msgspec

from agent_chatroom_ledger.domain.numerals import decimal
from agent_chatroom_ledger.storage import failpoints, files

if TYPE_CHECKING:
    from agent_chatroom_ledger.storage.layout import Layout

_PARTS = 4


class State(msgspec.Struct, frozen=True):
    """Main named `main` when it held every frame up to `frame`, during the boot `boot`."""

    main: str
    frame: int
    boot: str


def read_state(layout: Layout) -> State | None:
    """Return what was written last; None when it is missing or damaged."""
    return _parse(files.read_bytes(f"{layout.private}/state"))


def _parse(data: bytes | None) -> State | None:
    if data is None:
        return None
    text, _, _ = data.partition(b"\n")
    parts = text.decode("ascii", "replace").split(" ")
    frame = decimal(parts[1]) if len(parts) == _PARTS else None
    if frame is None:
        return None
    if parts[3] != f"{crc32(text[: text.rindex(b' ')]):08x}":
        return None
    return State(parts[0], frame, parts[2])


def write_state(layout: Layout, state: State) -> None:
    """Remember where main is; the caller holds the commit lock. Not synced on purpose."""
    keeper = StateFile(layout)
    keeper.write(state)
    keeper.close()


class StateFile:
    """The hint, kept open by those who read and write it at every commit."""

    def __init__(self, layout: Layout) -> None:
        """Open nothing yet."""
        self._path = f"{layout.private}/state"
        self._descriptor = -1

    def _open(self) -> None:
        if self._descriptor < 0:
            self._descriptor = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)

    def read(self) -> State | None:
        """Return what was written last; None when it is missing or damaged."""
        self._open()
        return _parse(os.pread(self._descriptor, 4096, 0))

    def write(self, state: State) -> None:
        """Remember where main is; the caller holds the commit lock."""
        failpoints.reach("state.write")
        self._open()
        text = f"{state.main} {state.frame:012d} {state.boot}".encode()
        # One short write in place: whoever reads checks the sum.
        os.pwrite(self._descriptor, text + b" %08x\n" % crc32(text), 0)

    def close(self) -> None:
        """Close the file."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1


def forget_state(layout: Layout) -> None:
    """Ask for a full check at the next commit."""
    (layout.private / "state").unlink(missing_ok=True)
