"""The wire of standard streams, answered from the first moment.

Importing the SDK takes a second, and clients begin their first turn without the tools of a server
that is not ready. So a thread reads the wire from the start. While the SDK is loaded it answers
what every handshake client asks first: `initialize`, `ping` and `tools/list`, whose answers never
change. Every line goes on to the SDK all the same, which then knows the whole conversation; what
it answers a second time is left out by the writer. The tests hold both answers side by side.
"""

from __future__ import annotations

import os
import queue
import threading
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final, Self, TypeAlias

import msgspec

from agent_chatroom_ledger.limits import MCP_MESSAGE_BYTES_MAX
from agent_chatroom_ledger.mcp import wording

if TYPE_CHECKING:
    from typing import BinaryIO

# Protocols that begin with a handshake, oldest first; the tests compare them with the SDK's.
HANDSHAKE_VERSIONS: Final = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")
# What the SDK says of a server with our handlers.
CAPABILITIES: Final = {
    "prompts": {"listChanged": False},
    "resources": {"subscribe": True, "listChanged": False},
    "tools": {"listChanged": False},
}

# An id is a number or a text, and 1 is not "1".
RequestKey: TypeAlias = tuple[str, int | str]


def key_of(request_id: int | str) -> RequestKey:
    """Return what tells a request's id from every other one."""
    return type(request_id).__name__, request_id


class _Request(msgspec.Struct):
    method: str
    id: int | str | None = None
    params: dict[str, Any] = {}


_decoder = msgspec.json.Decoder(_Request)


class Wire:
    """The lines of a client, read by a thread, and the answers that were given already."""

    def __init__(self, reading: BinaryIO, writing: BinaryIO, version: str) -> None:
        """``version`` is this package's, which an answer to `initialize` names."""
        self.lines: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        self.answered: set[RequestKey] = set()
        self._reading = reading
        self._writing = writing
        self._version = version
        self._lock = threading.Lock()
        self._writes = threading.Lock()
        self._greets = True
        self._shaken = False

    @classmethod
    def of_standard_streams(cls, version: str) -> Self:
        """Take standard input and output for the wire, and give this process others.

        What else writes to standard output then goes to standard error, and a child that reads
        standard input finds its end.
        """
        reading, writing = os.dup(0), os.dup(1)
        nothing = os.open(os.devnull, os.O_RDONLY)
        os.dup2(nothing, 0)
        os.close(nothing)
        os.dup2(2, 1)
        return cls(os.fdopen(reading, "rb"), os.fdopen(writing, "wb", buffering=0), version)

    def start(self) -> None:
        """Begin to read."""
        threading.Thread(target=self._read, name="rooms-wire", daemon=True).start()

    def greeted(self) -> None:
        """Answer no more: from now on the server does."""
        with self._lock:
            self._greets = False

    def write(self, line: bytes) -> None:
        """Write a line and flush it; raises OSError when the client is gone."""
        left = memoryview(line)
        with self._writes:
            while left:
                left = left[self._writing.write(left) or 0 :]

    def _read(self) -> None:
        try:
            while line := self._reading.readline(MCP_MESSAGE_BYTES_MAX + 1):
                if len(line) > MCP_MESSAGE_BYTES_MAX and not line.endswith(b"\n"):
                    self._skip_rest()
                    self._refuse()
                    continue
                with self._lock:
                    if self._greets:
                        self._greet(line)
                if line.strip():
                    self.lines.put(line)
        except OSError:
            pass  # The wire is cut; that is its end.
        finally:
            self.lines.put(None)

    def _skip_rest(self) -> None:
        while (rest := self._reading.readline(MCP_MESSAGE_BYTES_MAX)) and not rest.endswith(b"\n"):
            pass

    def _refuse(self) -> None:
        """Say that a message was too long; whose it was stands somewhere in what was not read."""
        error = {
            "code": -32600,
            "message": f"A message has at most {MCP_MESSAGE_BYTES_MAX} bytes.",
        }
        answer = {"jsonrpc": "2.0", "id": None, "error": error}
        with suppress(OSError):
            self.write(msgspec.json.encode(answer) + b"\n")

    def _greet(self, line: bytes) -> None:
        try:
            request = _decoder.decode(line)
        except (msgspec.DecodeError, UnicodeDecodeError):
            return
        if request.id is None:
            return
        if not self._shaken and request.method != "initialize":
            # A client of the newer protocol, or one that breaks the older; the server knows.
            self._greets = False
            return
        result = self._result(request)
        if result is None:
            return
        answer = {"jsonrpc": "2.0", "id": request.id, "result": result}
        try:
            self.write(msgspec.json.encode(answer) + b"\n")
        except OSError:
            self._greets = False
            return
        self.answered.add(key_of(request.id))

    def _result(self, request: _Request) -> dict[str, Any] | None:
        if request.method == "initialize" and not self._shaken:
            if not _is_handshake(request.params):
                self._greets = False
                return None
            self._shaken = True
            return initialize_result(request.params["protocolVersion"], self._version)
        if request.method == "ping":
            return {}
        if request.method == "tools/list":
            from agent_chatroom_ledger.mcp.catalogue import listing

            return {"tools": listing()}
        return None


def initialize_result(requested: str, version: str) -> dict[str, Any]:
    """Return the answer to `initialize`: the protocol that was asked for, if it is known."""
    known = requested if requested in HANDSHAKE_VERSIONS else HANDSHAKE_VERSIONS[-1]
    return {
        "protocolVersion": known,
        "capabilities": CAPABILITIES,
        "serverInfo": {
            "name": wording.SERVER_NAME,
            "title": wording.SERVER_TITLE,
            "version": version,
        },
        "instructions": wording.INSTRUCTIONS,
    }


def _is_handshake(params: dict[str, Any]) -> bool:
    client = params.get("clientInfo")
    return (
        isinstance(params.get("protocolVersion"), str)
        and isinstance(params.get("capabilities"), dict)
        and isinstance(client, dict)
        and isinstance(client.get("name"), str)
        and isinstance(client.get("version"), str)
        and "_meta" not in params
    )
