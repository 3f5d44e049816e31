"""How the tests of the command line run it: inside this process, or as a real one."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import msgspec
import pytest
from click.testing import CliRunner, Result

from agent_chatroom_ledger.cli.program import rooms
from agent_chatroom_ledger.cli.schemabase import ErrorDocument
from agent_chatroom_ledger.cli.schemas import DOCUMENTS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from agent_chatroom_ledger import Ledger, Room

SOURCES = Path(__file__).resolve().parents[2] / "src"


class Invoke(Protocol):
    """Run a command in this process on the ledger of the test."""

    def __call__(self, *args: str, stdin: bytes | str = "") -> Result: ...


class Ask(Protocol):
    """Run a command with --json; returns its document after checking it against the schema."""

    def __call__(self, *args: str, stdin: bytes | str = "") -> Any: ...


class Start(Protocol):
    """Start a command as a process of its own on the ledger of the test."""

    def __call__(
        self,
        *args: str,
        **options: Any,
    ) -> subprocess.Popen[bytes]: ...


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Give the directory of a fresh, empty ledger."""
    from agent_chatroom_ledger import Ledger

    path = tmp_path / "ledger"
    Ledger.open(path, create=True).close()
    return path


@pytest.fixture
def ledger(root: Path) -> Iterator[Ledger]:
    """Give the ledger of the test, open."""
    from agent_chatroom_ledger import Ledger

    with Ledger.open(root) as opened:
        yield opened


@pytest.fixture
def room(ledger: Ledger) -> Room:
    """Give a room of two members."""
    return ledger.create_room("Review", members=["ana", "ben"])


@pytest.fixture
def invoke(root: Path, monkeypatch: pytest.MonkeyPatch) -> Invoke:
    """Give `invoke("read", "a-room")`."""
    monkeypatch.setenv("ROOMS_ROOT", str(root))

    def call(*args: str, stdin: bytes | str = "") -> Result:
        return CliRunner().invoke(rooms, list(args), input=stdin)

    return call


@pytest.fixture
def ask(invoke: Invoke) -> Ask:
    """Give `ask("read", "a-room")`, which fails unless the document is as documented."""

    def call(*args: str, stdin: bytes | str = "") -> Any:
        result = invoke(*args, "--json", stdin=stdin)
        document = msgspec.json.decode(result.stdout_bytes)
        if "error" in document:
            msgspec.convert(document, ErrorDocument)
        else:
            words = " ".join(args[:2])
            msgspec.convert(document, DOCUMENTS.get(words) or DOCUMENTS[args[0]])
        return document

    return call


def environment(root: Path | None = None) -> dict[str, str]:
    """Return an environment in which a process finds our sources, and the ledger if given."""
    found = {**os.environ, "PYTHONPATH": str(SOURCES)}
    found.pop("ROOMS_ROOT", None)
    # As users run it: output is held back until it is worth a write.
    found.pop("PYTHONUNBUFFERED", None)
    if root is not None:
        found["ROOMS_ROOT"] = str(root)
    return found


@pytest.fixture
def start(root: Path) -> Start:
    """Give `start("tail", "-f", "a-room", stdout=PIPE)`."""

    def call(*args: str, **options: Any) -> subprocess.Popen[bytes]:
        options.setdefault("env", environment(root))
        options.setdefault("stdout", subprocess.PIPE)
        options.setdefault("stderr", subprocess.PIPE)
        options.setdefault("stdin", subprocess.DEVNULL)
        command = [sys.executable, "-m", "agent_chatroom_ledger.cli", *args]
        return subprocess.Popen(command, **options)

    return call
