"""Commits and checkpoints that happen while the caller does something else.

Sync mode: a thread makes the checkpoint once nothing was written for 50 milliseconds. Group mode:
a child process follows the journal, because a thread would share the interpreter with the caller
(measured: 344 against 485 microseconds a post); it ends with the pipe to its parent, so that a
killed parent's frames are committed all the same.
"""

from __future__ import annotations

import contextlib
import gc
import os
import select
import subprocess
import sys
import threading
import time
import weakref
from typing import TYPE_CHECKING, Protocol

from agent_chatroom_ledger.errors import LedgerError
from agent_chatroom_ledger.storage.layout import Layout

if TYPE_CHECKING:
    from pathlib import Path

    from agent_chatroom_ledger.storage.writer import Writer

IDLE_SECONDS = 0.05
GATHER_SECONDS = 0.03
_RETRY_SECONDS = 1.0
_STOP_SECONDS_MAX = 30.0
_STOP = b"!"

# The child finds modules where its parent finds them, whatever the environment says.
_PROGRAM = """\
import sys
sys.path[:] = sys.argv[2:]
from pathlib import Path
from agent_chatroom_ledger.storage.background import follow
follow(Path(sys.argv[1]), 0)
"""


class Background(Protocol):
    """Something that is told of every write and does the rest."""

    def wake(self) -> None:
        """Say that something was written."""
        ...

    def stop(self) -> None:
        """End without a last checkpoint: the caller makes it."""
        ...


def start(writer: Writer) -> Background:
    """Start what the writer's mode needs."""
    if writer.mode == "group" and sys.executable:
        return _Child(writer.layout)
    return _Thread(writer)


class _Thread:
    """Waits until nothing was written for a moment, then makes the checkpoint."""

    def __init__(self, writer: Writer) -> None:
        self._writer = weakref.ref(writer)
        self._group = writer.mode == "group"
        self._event = threading.Event()
        self._stopping = False
        self._last = time.monotonic()
        self._thread = threading.Thread(target=self._run, name="rooms-checkpoint", daemon=True)
        self._thread.start()

    def wake(self) -> None:
        self._last = time.monotonic()
        if not self._event.is_set():
            self._event.set()

    def stop(self) -> None:
        self._stopping = True
        self._event.set()
        self._thread.join(_STOP_SECONDS_MAX)

    def _quiet_seconds(self) -> float:
        """Return for how long nobody has written, in this process or another."""
        writer = self._writer()
        if writer is None:
            return IDLE_SECONDS
        return min(time.monotonic() - self._last, writer.quiet_seconds())

    def _wait_until_quiet(self) -> None:
        while not self._stopping:
            quiet = self._quiet_seconds()
            if quiet >= IDLE_SECONDS:
                return
            time.sleep(IDLE_SECONDS - quiet)

    def _run(self) -> None:
        while not self._stopping:
            self._event.wait()
            self._event.clear()
            if not self._group:
                self._wait_until_quiet()
            writer = self._writer()
            if writer is None or self._stopping:
                return
            if self._group:
                time.sleep(GATHER_SECONDS)
            try:
                if self._group and time.monotonic() - self._last < IDLE_SECONDS:
                    writer.commit()
                    self._event.set()
                elif not writer.checkpoint_when_quiet(IDLE_SECONDS):
                    self._event.set()
                writer.problem = None
            except LedgerError as error:
                if error.code == "closed":
                    return
                # Nothing is lost: the frames are in the journal. flush and close say it aloud.
                writer.problem = error
                if not self._stopping:
                    time.sleep(_RETRY_SECONDS)
                    self._event.set()
            del writer


class _Child:
    """A child process that commits; it lives as long as the pipe to it."""

    def __init__(self, layout: Layout) -> None:
        self._child = subprocess.Popen(  # noqa: S603 - our own module, our own interpreter
            [sys.executable, "-I", "-c", _PROGRAM, str(layout.root), *sys.path],
            bufsize=0,  # closing it then takes no lock, which a fork may have found taken
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,  # Ctrl-C in the terminal is the parent's business
        )
        assert self._child.stdin is not None
        self._pipe = self._child.stdin.fileno()
        os.set_blocking(self._pipe, False)
        # Whoever writes has the pipe for himself: its number may be another file's after a close.
        self._lock = threading.Lock()
        _children.add(self)

    def wake(self) -> None:
        self._send(b".")

    def _send(self, word: bytes) -> None:
        # A full pipe means that the child has enough to wake it; a broken one, that it died: then
        # the next flush commits.
        with self._lock, contextlib.suppress(BlockingIOError, BrokenPipeError):
            if self._pipe >= 0:
                os.write(self._pipe, word)

    def stop(self) -> None:
        # The end of the pipe says so too, but a program that was forked beside us may hold it.
        self._send(_STOP)
        with self._lock:
            self.let_go()
        try:
            self._child.wait(_STOP_SECONDS_MAX)
        except subprocess.TimeoutExpired:
            self._child.kill()
            self._child.wait()

    def let_go(self) -> None:
        """Close this end of the pipe."""
        assert self._child.stdin is not None
        self._pipe = -1
        self._child.stdin.close()


# A forked child lets go of its parent's pipes, which otherwise would outlive the parent.
_children: weakref.WeakSet[_Child] = weakref.WeakSet()


def _let_go_of_all() -> None:
    for child in tuple(_children):
        child.let_go()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_let_go_of_all)


def follow(root: Path, pipe: int) -> None:
    """Commit what comes into a ledger's journal until the pipe says so or ends, then once more."""
    from agent_chatroom_ledger.storage.writer import Writer

    # Building commits makes many small objects and no cycles; looking for them took a tenth.
    gc.set_threshold(100_000, 50, 100)
    writer = Writer(Layout(root), commit="sync")
    busy = open_end = True
    while open_end:
        readable, _, _ = select.select([pipe], [], [], IDLE_SECONDS if busy else None)
        if readable:
            told = os.read(pipe, 65536)
            open_end = bool(told) and not told.endswith(_STOP)
            if open_end:
                time.sleep(GATHER_SECONDS)
        try:
            if open_end and (readable or writer.quiet_seconds() < IDLE_SECONDS):
                writer.commit()
                busy = True
            else:
                writer.checkpoint()
                busy = False
        except LedgerError:
            # The frames are safe in the journal; the parent's flush says what is wrong.
            time.sleep(GATHER_SECONDS)
            busy = True
    writer.close()
