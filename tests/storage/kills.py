"""Kills of a writer, without a process: what it leaves behind, and what stands for one inside."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agent_chatroom_ledger.storage.writer import Writer
from tests.storage.processes import Silent
from tests.storage.samples import say, write, write_room

if TYPE_CHECKING:
    from collections.abc import Sequence

    from agent_chatroom_ledger.storage.layout import Layout


class Killed(BaseException):
    """Stands for a kill: nobody catches it."""


def kill(_: str) -> None:
    """Arm a failpoint with this, to be killed there."""
    raise Killed


def leave(writer: Writer) -> None:
    """Close only what a kill would close."""
    writer._release()
    writer._closed = True


def killed_after(layout: Layout, said: Sequence[str]) -> Layout:
    """Let a writer be killed after some messages, two of them before its only checkpoint."""
    writer = Writer(layout)
    writer._background = Silent()
    write_room(writer)
    for body in said[:2]:
        write(writer, say(body))
    writer.checkpoint()
    for body in said[2:]:
        write(writer, say(body))
    leave(writer)
    return layout
