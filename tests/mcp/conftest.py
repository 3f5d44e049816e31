"""Clients of the server: the official one in memory, and real processes over pipes and HTTP."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from contextlib import asynccontextmanager, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import pytest
from mcp import Client

from agent_chatroom_ledger import Ledger
from agent_chatroom_ledger.mcp.answers import to_letter
from agent_chatroom_ledger.mcp.server import Service, build
from agent_chatroom_ledger.mcp.speakers import House, NamedSpeaker

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator

SOURCES = Path(__file__).resolve().parents[2] / "src"
# The two generations of the protocol: with a handshake, and with an envelope on every request.
MODES = ("legacy", "auto")
HANDSHAKE = "2025-11-25"
MODERN = "2026-07-28"
SECONDS_MAX = 60


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(params=MODES)
def mode(request: pytest.FixtureRequest) -> str:
    found: str = request.param
    return found


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Give the directory of a fresh, empty ledger."""
    path = tmp_path / "ledger"
    Ledger.open(path, create=True).close()
    return path


class Tools:
    """A connected client, whose calls give the structured result."""

    def __init__(self, client: Client) -> None:
        self.client = client

    async def call(self, tool: str, **arguments: Any) -> dict[str, Any]:
        """Call a tool, and return its structured result to the letter.

        It must succeed, its text must say the same, and nothing in it may open a tag.
        """
        result = await self.client.call_tool(tool, arguments)
        assert not result.is_error, result.content[0].text
        (content,) = result.content
        assert "<" not in json.dumps(result.structured_content)
        found: dict[str, Any] = to_letter(result.structured_content)
        assert json.loads(content.text) == found
        return found

    async def fails(self, tool: str, **arguments: Any) -> str:
        """Call a tool that must fail, and return what it says."""
        result = await self.client.call_tool(tool, arguments)
        assert result.is_error
        text: str = result.content[0].text
        return text


@asynccontextmanager
async def in_memory(ledger: Ledger, name: str, mode: str = "auto") -> AsyncIterator[Tools]:
    """Connect the official client to a server in this process that speaks as a name."""
    house = House(lambda: ledger)
    speaker = NamedSpeaker(house, name)
    try:
        async with Client(build(Service(house, speaker)), mode=mode) as client:
            yield Tools(client)
    finally:
        speaker.close()


def environment(root: Path, name: str | None = None, **more: str) -> dict[str, str]:
    """Return an environment in which a process finds our sources, the ledger and its name."""
    found = {**os.environ, "PYTHONPATH": str(SOURCES), "ROOMS_ROOT": str(root), **more}
    for variable in ("ROOMS_NAME", "PI_ROOMS_NAME", "PI_AGENT_NAME"):
        found.pop(variable, None)
    if name is not None:
        found["ROOMS_NAME"] = name
    return found


# A program that is nothing but the parent of the next one.
CLIENT = (sys.executable, "-c", "import subprocess, sys; subprocess.call(sys.argv[1:])")
COMMAND = [sys.executable, "-m", "agent_chatroom_ledger.cli", "mcp"]


class Piped:
    """A server as a real process, spoken to line by line: what it wrote is known to the byte."""

    def __init__(
        self, root: Path, name: str | None, *, of_its_own: bool = False, **more: str
    ) -> None:
        """With ``of_its_own`` the server has a client process of its own, which is not ours."""
        self.process = subprocess.Popen(
            [*(CLIENT if of_its_own else ()), *COMMAND],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=environment(root, name, **more),
            start_new_session=True,
        )
        self._id = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()
        self.process.wait()
        for stream in (self.process.stdin, self.process.stdout):
            assert stream is not None
            stream.close()

    def kill(self) -> None:
        """Kill the server, and its client if it has one of its own."""
        with suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)

    def send(self, document: dict[str, Any]) -> None:
        """Write one message."""
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps({"jsonrpc": "2.0", **document}).encode() + b"\n")
        self.process.stdin.flush()

    def receive(self) -> dict[str, Any] | None:
        """Return the next whole message; None when the server has ended."""
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if not line.endswith(b"\n"):
            return None
        found: dict[str, Any] = json.loads(line)
        return found

    def request(self, method: str, **params: Any) -> int:
        """Send a request and return its id."""
        self._id += 1
        self.send({"id": self._id, "method": method, "params": params})
        return self._id

    def ask(self, method: str, **params: Any) -> dict[str, Any]:
        """Send a request and return its result; other messages in between are dropped."""
        number = self.request(method, **params)
        while (answer := self.receive()) is not None:
            if answer.get("id") == number:
                found: dict[str, Any] = answer["result"]
                return found
        raise EOFError(method)

    def shake(self) -> dict[str, Any]:
        """Shake hands as a client does."""
        found = self.ask(
            "initialize",
            protocolVersion=HANDSHAKE,
            capabilities={},
            clientInfo={"name": "pytest", "version": "1"},
        )
        self.send({"method": "notifications/initialized"})
        return found

    def call(self, tool: str, **arguments: Any) -> dict[str, Any]:
        """Call a tool, and return its structured result."""
        result = self.ask("tools/call", name=tool, arguments=arguments)
        assert not result.get("isError"), result["content"][0]["text"]
        found: dict[str, Any] = result["structuredContent"]
        return found


@contextmanager
def over_http(root: Path, name: str | None, *words: str) -> Iterator[str]:
    """Run a server over HTTP as a real process on a free port, and give its address."""
    process = subprocess.Popen(
        [*COMMAND, "--http", "--port", "0", *words],
        stdout=subprocess.PIPE,
        env=environment(root, name),
        text=True,
    )
    assert process.stdout is not None
    try:
        yield process.stdout.readline().strip()
    finally:
        process.terminate()
        process.wait(SECONDS_MAX)
        process.stdout.close()


def until(come: Callable[[], bool]) -> None:
    """Wait for something that comes soon."""
    end = time.monotonic() + SECONDS_MAX
    while not come():
        assert time.monotonic() < end
        time.sleep(0.02)
