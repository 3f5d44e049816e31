"""The server as a real process, over HTTP: who may speak, under which name, and what is noted."""

from __future__ import annotations

import json
import signal
import socket
import subprocess
import time
from contextlib import asynccontextmanager, contextmanager
from typing import TYPE_CHECKING, Any

import anyio
import httpx2
import pytest
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

from agent_chatroom_ledger import Ledger
from agent_chatroom_ledger.limits import MCP_MESSAGE_BYTES_MAX
from agent_chatroom_ledger.mcp.exchange import Exchange
from agent_chatroom_ledger.mcp.http import Voices
from agent_chatroom_ledger.mcp.speakers import House
from agent_chatroom_ledger.tokens import create_token, revoke_token
from tests.mcp.conftest import (
    COMMAND,
    HANDSHAKE,
    MODERN,
    SECONDS_MAX,
    Tools,
    environment,
    over_http,
    until,
)

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator
    from pathlib import Path

    from agent_chatroom_ledger.agents import Agent

ANYWHERE = "0.0.0.0"  # noqa: S104 - what a server that others may reach is bound to
INITIALIZE = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {
        "protocolVersion": HANDSHAKE,
        "capabilities": {},
        "clientInfo": {"name": "pytest", "version": "1"},
    },
}
HEADERS = {"Accept": "application/json, text/event-stream", "Content-Type": "application/json"}


@pytest.fixture
def ledger(root: Path) -> Iterator[Ledger]:
    with Ledger.open(root) as found:
        yield found


@asynccontextmanager
async def connected(url: str, mode: str, token: str | None = None) -> AsyncIterator[Tools]:
    headers = {} if token is None else {"Authorization": f"Bearer {token}"}
    http = httpx2.AsyncClient(headers=headers, timeout=SECONDS_MAX)
    async with http, Client(streamable_http_client(url, http_client=http), mode=mode) as client:
        yield Tools(client)


@pytest.mark.anyio
async def test_a_token_binds_one_name_and_without_one_its_starter_speaks(
    root: Path, ledger: Ledger, mode: str
) -> None:
    token = create_token(ledger, "ben").secret
    with over_http(root, "ana") as url:
        async with connected(url, mode) as ana, connected(url, mode, token) as ben:
            assert ana.client.protocol_version == (HANDSHAKE if mode == "legacy" else MODERN)
            assert (await ana.call("rooms_who"))["you"] == "ana"
            for _ in range(2):
                # Two calls of one client keep one identity.
                assert (await ben.call("rooms_who"))["you"] == "ben"
            await ana.call("rooms_create", title="Review", members=["ben"])
            await ana.call("rooms_post", room="review", body="hello")
            (message,) = (await ben.call("rooms_inbox", wait_seconds=10))["messages"]
            (receipt,) = (await ana.call("rooms_receipts", id=message["id"]))["recipients"]
            assert "handed_over" in receipt
            assert await ben.call("rooms_inbox") == {"messages": [], "waiting": 0}
            here = {one.name: one.live for one in ledger.agent("watcher").who()}
            assert here == {"ana": True, "ben": True}
    assert ledger.agent("watcher").who() == []


@pytest.mark.anyio
async def test_a_wait_over_http_is_woken_and_holds_up_nobody(
    root: Path, ledger: Ledger, mode: str
) -> None:
    room = ledger.create_room("Review", members=["ana"])
    with over_http(root, "ana") as url:
        async with connected(url, mode) as ana, connected(url, mode) as other:
            found: list[str] = []

            async def wait() -> None:
                taken = await ana.call("rooms_inbox", wait_seconds=100)
                found.extend(one["body"] for one in taken["messages"])

            async with anyio.create_task_group() as group:
                group.start_soon(wait)
                assert (await ana.call("rooms_list"))["rooms"]
                assert (await other.call("rooms_list"))["rooms"]
                await anyio.to_thread.run_sync(room.post, "ben", "now")
            assert found == ["now"]


@pytest.mark.anyio
async def test_a_client_that_goes_away_while_it_waits_takes_nothing_with_it(
    root: Path, ledger: Ledger, mode: str
) -> None:
    room = ledger.create_room("Review", members=["ana"])
    agent = ledger.agent("watcher")
    with over_http(root, "ana") as url:
        with anyio.move_on_after(SECONDS_MAX):
            async with connected(url, mode) as ana, anyio.create_task_group() as group:
                group.start_soon(lambda: ana.call("rooms_inbox", wait_seconds=100))
                await anyio.to_thread.run_sync(until, lambda: wakes(agent))
                group.cancel_scope.cancel()
        await anyio.to_thread.run_sync(until, lambda: not wakes(agent))
        room.post("ben", "later")
        assert [item.message.body for item in ledger.agent("ana").inbox(peek=True)] == ["later"]
        async with connected(url, mode) as ana:
            (message,) = (await ana.call("rooms_inbox"))["messages"]
            assert message["body"] == "later"


def test_a_dead_client_is_noticed_and_what_it_was_to_get_comes_again(
    root: Path, ledger: Ledger
) -> None:
    room = ledger.create_room("Review", members=["ana"])
    agent = ledger.agent("watcher")
    with over_http(root, "ana") as url:
        with raw_call(url, "rooms_inbox", {"wait_seconds": 100}):
            until(lambda: wakes(agent))
        until(lambda: not wakes(agent))
        room.post("ben", "later")
        assert len(ledger.agent("ana").inbox(peek=True)) == 1


def test_an_answer_that_was_not_read_to_its_end_was_not_handed_over(
    root: Path, ledger: Ledger
) -> None:
    room = ledger.create_room("Review", members=["ana"])
    # More than the system holds for a client that does not read.
    ledger.layout.config.write_text("max_deliver_per_flush = 100\n")
    for _ in range(60):
        room.post("ben", "x" * 250_000)
    with over_http(root, "ana") as url:
        with raw_call(url, "rooms_inbox", {}, small=True) as client:
            assert client.recv(10)
            time.sleep(0.5)
            assert len(ledger.agent("ana").inbox(100, peek=True)) == 60
        until(lambda: len(ledger.agent("ana").take(100)) == 60)
        with raw_call(url, "rooms_inbox", {}) as client:
            while client.recv(1 << 20):
                if ledger.agent("ana").inbox(1, peek=True) == []:
                    break
        assert ledger.agent("ana").inbox(peek=True) == []


def test_off_loopback_every_request_needs_a_token(root: Path, ledger: Ledger) -> None:
    made = create_token(ledger, "ben")
    with over_http(root, "ana", "--host", ANYWHERE) as shown:
        url = shown.replace(ANYWHERE, "127.0.0.1")
        assert post(url).status_code == 401
        assert post(url).headers["www-authenticate"] == "Bearer"
        assert post(url, Authorization="Bearer rooms_wrong").status_code == 401
        assert post(url, Authorization=f"Basic {made.secret}").status_code == 401
        assert post(url, Authorization=f"Bearer {made.secret}").status_code == 200
        foreign = post(url, Authorization=f"Bearer {made.secret}", Host="evil.example")
        assert foreign.status_code == 421
        origin = post(url, Authorization=f"Bearer {made.secret}", Origin="http://evil.example")
        assert origin.status_code == 403
        revoke_token(ledger, "ben")
        assert post(url, Authorization=f"Bearer {made.secret}").status_code == 401


def test_a_wrong_token_is_no_better_than_another_on_loopback(root: Path) -> None:
    with over_http(root, "ana", "--allow-host", "box.lan") as url:
        assert post(url).status_code == 200
        assert post(url, Authorization="Bearer rooms_wrong").status_code == 401
        assert post(url, Host="evil.example").status_code == 421
        assert post(url, Host="box.lan").status_code == 200
        assert post(url, Origin="http://localhost:1").status_code == 403
        assert post(url.replace("/mcp", "/other")).status_code == 404


def test_a_session_is_used_only_with_the_token_that_began_it(root: Path, ledger: Ledger) -> None:
    ana, ben = (create_token(ledger, name).secret for name in ("ana", "ben"))
    with over_http(root, "carl") as url:
        begun = post(url, Authorization=f"Bearer {ana}")
        session = {"Mcp-Session-Id": begun.headers["mcp-session-id"]}
        listing = {"jsonrpc": "2.0", "id": 2, "method": "tools/list"}
        assert post(url, listing, Authorization=f"Bearer {ana}", **session).status_code == 200
        assert post(url, listing, Authorization=f"Bearer {ben}", **session).status_code == 404
        assert post(url, listing, **session).status_code == 404


def test_off_loopback_it_does_not_start_without_tokens(root: Path) -> None:
    done = run(root, "--host", ANYWHERE)
    assert done.returncode == 4
    assert "rooms tokens create NAME" in done.stderr


def test_a_port_that_is_taken_is_named(root: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        done = run(root, "--port", port)
    assert done.returncode == 1
    assert f"port {port}" in done.stderr


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_the_address_is_a_document_too_and_a_signal_ends_every_wait(
    root: Path, ledger: Ledger, number: signal.Signals
) -> None:
    ledger.create_room("Review", members=["ana"])
    agent = ledger.agent("watcher")
    process = subprocess.Popen(
        [*COMMAND, "--http", "--port", "0", "--json"],
        stdout=subprocess.PIPE,
        env=environment(root, "ana"),
        text=True,
    )
    assert process.stdout is not None
    url = json.loads(process.stdout.readline())["url"]
    with raw_call(url, "rooms_inbox", {"wait_seconds": 100}) as client:
        until(lambda: wakes(agent))
        process.send_signal(number)
        assert client.recv(15) == b"HTTP/1.1 200 OK"
    assert process.wait(SECONDS_MAX) == 0
    process.stdout.close()
    assert agent.who() == []


def test_a_message_that_is_too_long_is_refused(root: Path) -> None:
    with over_http(root, "ana") as url:
        long = {**INITIALIZE, "params": "x" * (MCP_MESSAGE_BYTES_MAX + 1)}
        assert post(url, long).status_code == 413
        assert post(url).status_code == 200


@pytest.mark.anyio
async def test_a_name_that_nobody_used_for_long_is_not_here_any_more(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    voices = Voices(House(lambda: ledger))
    speaker = voices.of("ana")
    assert voices.of("ana") is speaker
    speaker.agent(None)
    voices.of("ben").agent(None)
    waiting = Exchange(voices.of("ben"))
    voices.active.add(waiting)
    agent = ledger.agent("watcher")
    assert [one.name for one in agent.who()] == ["ana", "ben"]
    monkeypatch.setattr("agent_chatroom_ledger.mcp.http._IDLE_SECONDS", 0.0)
    monkeypatch.setattr("agent_chatroom_ledger.mcp.http._TIDY_SECONDS", 0.01)
    async with anyio.create_task_group() as group:
        group.start_soon(voices.tidy)
        await anyio.to_thread.run_sync(until, lambda: [one.name for one in agent.who()] == ["ben"])
        group.cancel_scope.cancel()
    assert voices.of("ana") is not speaker
    voices.close()
    assert agent.who() == []


@pytest.mark.anyio
async def test_subscriptions_are_served_over_http(root: Path, ledger: Ledger) -> None:
    room = ledger.create_room("Review")
    with over_http(root, "ana") as url:

        async def post_on() -> None:
            while True:
                await anyio.to_thread.run_sync(room.post, "ben", "news")
                await anyio.sleep(0.5)

        async with (
            connected(url, "auto") as ana,
            ana.client.listen(resource_subscriptions=["room:///review"]) as events,
            anyio.create_task_group() as group,
        ):
            group.start_soon(post_on)
            with anyio.fail_after(SECONDS_MAX):
                event = await anext(aiter(events))
            assert event.uri == "room:///review"
            group.cancel_scope.cancel()


def post(url: str, document: dict[str, Any] = INITIALIZE, **headers: str) -> httpx2.Response:
    """Post one message, by default the one that begins a session."""
    plain = {name.replace("_", "-"): value for name, value in headers.items()}
    return httpx2.post(url, json=document, headers={**HEADERS, **plain}, timeout=SECONDS_MAX)


@contextmanager
def raw_call(
    url: str, tool: str, arguments: dict[str, Any], *, small: bool = False
) -> Iterator[socket.socket]:
    """Send a call over a connection of its own, whose answer nobody reads for us."""
    host, port = url.removeprefix("http://").removesuffix("/mcp").split(":")
    envelope = {
        "io.modelcontextprotocol/protocolVersion": MODERN,
        "io.modelcontextprotocol/clientCapabilities": {},
        "io.modelcontextprotocol/clientInfo": {"name": "pytest", "version": "1"},
    }
    params = {"name": tool, "arguments": arguments, "_meta": envelope}
    body = json.dumps({"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": params})
    headers = {
        **HEADERS,
        "Host": f"{host}:{port}",
        "Content-Length": str(len(body)),
        "MCP-Protocol-Version": MODERN,
        "Mcp-Method": "tools/call",
        "Mcp-Name": tool,
    }
    lines = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
    with socket.socket() as client:
        if small:
            client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        client.connect((host, int(port)))
        client.sendall(f"POST /mcp HTTP/1.1\r\n{lines}\r\n{body}".encode())
        yield client


def wakes(agent: Agent) -> bool:
    """Tell whether somebody waits."""
    return "wakes" in [one.reach for one in agent.who()]


def run(root: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*COMMAND, "--http", *words],
        env=environment(root, "ana"),
        capture_output=True,
        text=True,
        timeout=SECONDS_MAX,
        check=False,
    )
