"""What is answered before the SDK is loaded is what the SDK answers, to the letter."""

from __future__ import annotations

import io
import json
import os
import threading
from typing import TYPE_CHECKING, Any

import anyio
import pytest
from mcp.shared.memory import create_client_server_memory_streams
from mcp.shared.message import SessionMessage
from mcp.types import JSONRPCNotification, JSONRPCRequest
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS

from agent_chatroom_ledger import __version__
from agent_chatroom_ledger.errors import NotFound
from agent_chatroom_ledger.limits import MCP_MESSAGE_BYTES_MAX
from agent_chatroom_ledger.mcp.greeting import HANDSHAKE_VERSIONS, Wire
from agent_chatroom_ledger.mcp.server import Service, build
from agent_chatroom_ledger.mcp.speakers import House, NamedSpeaker

if TYPE_CHECKING:
    from agent_chatroom_ledger import Ledger

CLIENT = {"name": "pytest", "version": "1"}
ASKED = (*HANDSHAKE_VERSIONS, "1999-01-01")


def requests(version: str) -> list[dict[str, Any]]:
    params = {"protocolVersion": version, "capabilities": {}, "clientInfo": CLIENT}
    return [
        {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params},
        {"jsonrpc": "2.0", "id": "a", "method": "ping"},
        {"jsonrpc": "2.0", "id": 2, "method": "tools/list", "params": {}},
    ]


def no_ledger() -> Ledger:
    raise NotFound("Nothing of this needs a ledger.")


class Conversation:
    """A wire whose client writes all it has to say and reads what it is answered."""

    def __init__(self, *lines: bytes, greets: bool = True) -> None:
        self.answers, writing = os.pipe()
        self._writing = os.fdopen(writing, "wb", buffering=0)
        self.wire = Wire(io.BytesIO(b"".join(lines)), self._writing, __version__)
        if not greets:
            self.wire.greeted()
        self.wire.start()
        self.handed_on = list(iter(self.wire.lines.get, None))

    def read(self) -> list[dict[str, Any]]:
        self._writing.close()
        with os.fdopen(self.answers, "rb") as stream:
            return [json.loads(line) for line in stream]


def lines_of(documents: list[dict[str, Any]]) -> list[bytes]:
    return [json.dumps(document).encode() + b"\n" for document in documents]


def test_the_versions_are_those_of_the_sdk() -> None:
    assert HANDSHAKE_VERSIONS == HANDSHAKE_PROTOCOL_VERSIONS


@pytest.mark.anyio
@pytest.mark.parametrize("version", ASKED)
async def test_the_answers_are_those_of_the_sdk(version: str) -> None:
    early = Conversation(*lines_of(requests(version)))
    house = House(no_ledger)
    server = build(Service(house, NamedSpeaker(house, "ana")))
    late = []
    streams = create_client_server_memory_streams()
    async with streams as (client, ours), anyio.create_task_group() as group:
        group.start_soon(server.run, *ours, server.create_initialization_options())
        for request in requests(version):
            await client[1].send(SessionMessage(JSONRPCRequest.model_validate(request)))
            answer = await client[0].receive()
            assert isinstance(answer, SessionMessage)
            late.append(
                json.loads(answer.message.model_dump_json(by_alias=True, exclude_unset=True))
            )
            if request["method"] == "initialize":
                ready = JSONRPCNotification(jsonrpc="2.0", method="notifications/initialized")
                await client[1].send(SessionMessage(ready))
        group.cancel_scope.cancel()
    assert early.read() == late


def test_every_line_goes_on_to_the_server() -> None:
    lines = lines_of(requests("2025-11-25"))
    found = Conversation(*lines, b"\n", b"not json\n", lines[1])
    assert found.handed_on == [*lines, b"not json\n", lines[1]]
    assert found.wire.answered == {("int", 0), ("str", "a"), ("int", 2)}
    assert [answer["id"] for answer in found.read()] == [0, "a", 2, "a"]


@pytest.mark.parametrize(
    "first",
    [
        {"id": 1, "method": "tools/list"},
        {"id": 1, "method": "server/discover", "params": {"_meta": {}}},
        {"id": 1, "method": "initialize"},
        {"id": 1, "method": "initialize", "params": {"protocolVersion": 3}},
        {
            "id": 1,
            "method": "initialize",
            "params": {
                "protocolVersion": "2025-11-25",
                "capabilities": {},
                "clientInfo": CLIENT,
                "_meta": {"io.modelcontextprotocol/protocolVersion": "2026-07-28"},
            },
        },
    ],
)
def test_what_does_not_begin_as_a_handshake_is_left_to_the_server(first: dict[str, Any]) -> None:
    rest = lines_of(requests("2025-11-25"))
    found = Conversation(*lines_of([{"jsonrpc": "2.0", **first}]), *rest)
    assert found.read() == []
    assert len(found.handed_on) == 4


def test_nothing_is_answered_once_the_server_does() -> None:
    found = Conversation(*lines_of(requests("2025-11-25")), greets=False)
    assert found.read() == []
    assert len(found.handed_on) == 3


def test_a_message_that_is_too_long_is_refused_and_the_next_one_is_read() -> None:
    ping = lines_of(requests("2025-11-25"))
    found = Conversation(ping[0], b"x" * (2 * MCP_MESSAGE_BYTES_MAX + 5) + b"\n", ping[1])
    assert found.handed_on == ping[:2]
    answers = found.read()
    assert [answer["id"] for answer in answers] == [0, None, "a"]
    assert str(MCP_MESSAGE_BYTES_MAX) in answers[1]["error"]["message"]


def test_lines_of_many_threads_do_not_mix() -> None:
    reading, writing = os.pipe()
    with os.fdopen(writing, "wb", buffering=0) as stream:
        wire = Wire(io.BytesIO(), stream, __version__)
        line = b"x" * 9_999 + b"\n"
        threads = [threading.Thread(target=wire.write, args=(line,)) for _ in range(5)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    with os.fdopen(reading, "rb") as found:
        assert list(found) == [line] * 5
