"""Processes that look like agents' clients, for the tests of who is here."""

from __future__ import annotations

import subprocess
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING

from agent_chatroom_ledger import presence
from agent_chatroom_ledger.domain.identities import Client, ProcessId
from agent_chatroom_ledger.identity import identify
from agent_chatroom_ledger.storage import processes

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from agent_chatroom_ledger import Ledger
    from agent_chatroom_ledger.identity import Identity

STAYS = "import sys; print('here', flush=True); sys.stdin.read()"
# A launcher as some clients are: it starts itself once more and waits.
_LAUNCHES = f"""
import subprocess, sys
child = subprocess.Popen(["codex", "-c", {STAYS!r}], executable={sys.executable!r})
child.wait()
"""


class Program:
    """A running program; killed at the end of its test if it is not before."""

    def __init__(self, directory: Path, called: str, code: str) -> None:
        """Start it under a name of one's choice, and wait until it is there."""
        self.process = subprocess.Popen(
            [called, "-c", code],
            executable=sys.executable,
            cwd=directory,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        assert self.process.stdout is not None
        assert self.process.stdout.readline() == b"here\n"
        found = processes.identify(self.process.pid)
        assert found is not None
        self.id: ProcessId = found

    def kill(self) -> None:
        """End it with SIGKILL, and take its zombie away."""
        self.process.kill()
        self.process.communicate()

    def client(self, directory: Path | str, **facts: str) -> Client:
        """Return what a door of it would say of it."""
        fields = {"name": "claude-code", "door": "mcp", **facts}
        return Client(process=self.id, directory=str(directory), **fields)


@contextmanager
def running(directory: Path, called: str = "sleeper") -> Iterator[Program]:
    """Give a program that stays until the block ends."""
    program = Program(directory, called, STAYS)
    try:
        yield program
    finally:
        program.kill()


@contextmanager
def launched(directory: Path) -> Iterator[Program]:
    """Give a launcher called codex whose only child is the client."""
    program = Program(directory, "codex", _LAUNCHES)
    try:
        yield program
    finally:
        program.process.communicate()


def claim(ledger: Ledger, client: Client, **environment: str) -> Identity:
    """Have a client take its name, as one of its doors does."""
    return identify(ledger, environment, client, claim=True)


def names(ledger: Ledger) -> list[str]:
    """Return the names of those who are here."""
    return [found.name for found in presence.who(ledger)]
