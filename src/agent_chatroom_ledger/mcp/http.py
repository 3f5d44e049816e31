"""Serving any number of clients over streamable HTTP: who asks, and when an answer has left."""

from __future__ import annotations

import time
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import anyio
import uvicorn
from anyio import to_thread
from mcp.server.auth.middleware.bearer_auth import AuthenticatedUser
from mcp.server.auth.provider import AccessToken
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from uvicorn.protocols.http.h11_impl import H11Protocol

from agent_chatroom_ledger.errors import LedgerError
from agent_chatroom_ledger.limits import MCP_CONNECTIONS_MAX, MCP_MESSAGE_BYTES_MAX
from agent_chatroom_ledger.mcp.exchange import SCOPE_KEY, Exchange
from agent_chatroom_ledger.mcp.failures import sentence_of
from agent_chatroom_ledger.mcp.guard import Guard, Refusal, bearer_of
from agent_chatroom_ledger.mcp.server import Service, build
from agent_chatroom_ledger.mcp.speakers import NamedSpeaker
from agent_chatroom_ledger.tokens import bound_name

if TYPE_CHECKING:
    import asyncio
    import socket
    from collections.abc import Awaitable, Callable, MutableMapping

    from agent_chatroom_ledger.mcp.speakers import House, Speaker

    Scope = MutableMapping[str, Any]
    Message = MutableMapping[str, Any]
    Receive = Callable[[], Awaitable[Message]]
    Send = Callable[[Message], Awaitable[None]]

PATH: Final = "/mcp"
_LINE_KEY: Final = "agent_chatroom_ledger.line"
# A client whose session rests so long is gone; so is a name that nobody used.
_IDLE_SECONDS: Final = 1_800.0
_TIDY_SECONDS: Final = 60.0
_STOP_SECONDS_MAX: Final = 3
_DRAIN_PAUSE_SECONDS: Final = 0.005
_DRAIN_SECONDS_MAX: Final = 30.0


class Voices:
    """Who speaks over HTTP: one agent for each name that a token binds."""

    def __init__(self, house: House) -> None:
        """Begin with none."""
        self._house = house
        self._speakers: dict[str, tuple[NamedSpeaker, float]] = {}
        self.active: set[Exchange] = set()

    def of(self, name: str) -> NamedSpeaker:
        """Return who speaks under a name."""
        known = self._speakers.get(name)
        speaker = known[0] if known else NamedSpeaker(self._house, name)
        self._speakers[name] = (speaker, time.monotonic())
        return speaker

    async def tidy(self) -> None:
        """Take those off the list of who is here who have not been heard for long."""
        while True:
            await anyio.sleep(_TIDY_SECONDS)
            busy = {exchange.speaker for exchange in self.active}
            for name, (speaker, heard) in list(self._speakers.items()):
                if speaker not in busy and time.monotonic() - heard > _IDLE_SECONDS:
                    del self._speakers[name]
                    await to_thread.run_sync(speaker.close)

    def close(self) -> None:
        """Take everybody off that list."""
        for speaker, _ in self._speakers.values():
            speaker.close()


class Door:
    """The ASGI application: guards, recognises, and settles every exchange."""

    def __init__(self, house: House, speaker: Speaker, guard: Guard, voices: Voices) -> None:
        """``speaker`` is who speaks without a token, which only loopback allows."""
        self._house = house
        self._speaker = speaker
        self._guard = guard
        self._voices = voices
        self._service = Service(house, speaker)
        self.manager = StreamableHTTPSessionManager(
            build(self._service),
            session_idle_timeout=_IDLE_SECONDS,
            max_request_body_size=MCP_MESSAGE_BYTES_MAX,
            max_sessions=MCP_CONNECTIONS_MAX,
        )

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            return
        headers = _headers_of(scope)
        refusal = self._guard.refusal(headers("host"), headers("origin"))
        if refusal is None and scope["path"].rstrip("/") != PATH:
            refusal = Refusal(404, f"The server is at {PATH}.")
        if refusal is not None:
            await _refuse(send, refusal)
            return
        try:
            speaker = await self._speaker_of(headers("authorization"), scope)
        except LedgerError as error:
            await _refuse(send, Refusal(500, sentence_of(error)))
            return
        if speaker is None:
            await _refuse(send, Refusal(401, "This server asks for a bearer token that it knows."))
            return
        exchange = Exchange(speaker)
        self._voices.active.add(exchange)
        try:
            await _Way(exchange, receive, send, scope.get(_LINE_KEY)).served(
                self.manager.handle_request, {**scope, SCOPE_KEY: exchange}
            )
        finally:
            self._voices.active.discard(exchange)

    async def _speaker_of(self, authorization: list[str], scope: Scope) -> Speaker | None:
        token = bearer_of(authorization)
        if token is None:
            return self._speaker if self._guard.is_loopback else None
        name = await to_thread.run_sync(lambda: bound_name(self._house.ledger(), token))
        if name is None:
            return None
        # By this the SDK lets a session be used only with the token that began it.
        scope["user"] = AuthenticatedUser(AccessToken(token="", client_id=name, scopes=[]))
        return self._voices.of(name)


class _Way:
    """The way of one answer to its client: whether all of it has left this process."""

    def __init__(
        self,
        exchange: Exchange,
        receive: Receive,
        send: Send,
        line: _Line | None,
    ) -> None:
        self._exchange = exchange
        self._receive = receive
        self._send = send
        self._line = line
        self._status = 0
        self._gone = False
        self._ended = False
        self._settled = False

    async def served(
        self, app: Callable[[Scope, Receive, Send], Awaitable[None]], scope: Scope
    ) -> None:
        """Let an application answer, and settle the exchange."""
        try:
            await app(scope, self.receive, self.send)
        finally:
            if not self._settled:
                await self._settle(written=False)

    async def receive(self) -> Message:
        """Hand on what the client sends; its going away ends a wait."""
        message = await self._receive()
        if message["type"] == "http.disconnect" and not self._ended:
            self._gone = True
            self._exchange.give_up()
        return message

    async def send(self, message: Message) -> None:
        """Hand on a part of the answer; after the last one the exchange is settled."""
        if message["type"] == "http.response.start":
            self._status = message["status"]
        last = message["type"] == "http.response.body" and not message.get("more_body", False)
        if last:
            self._exchange.leaving()
        await self._send(message)
        if last:
            gone, self._ended = self._gone, True
            # The end of an answer reads like the end of its client: whoever sends is cancelled.
            with anyio.CancelScope(shield=True):
                written = not gone and self._status < 300 and await self._left()
                await self._settle(written=written)

    async def _left(self) -> bool:
        """Wait until the system has every byte; False when the client has gone or reads nothing.

        Meanwhile nobody else hands over to this name, so a client that stopped is not waited for
        long. What it was to get comes again.
        """
        line = self._line
        if line is None:
            return False
        end = time.monotonic() + _DRAIN_SECONDS_MAX
        while line.transport.get_write_buffer_size():
            # A line that breaks has nothing left to write; that it broke is told a moment later.
            await anyio.sleep(_DRAIN_PAUSE_SECONDS)
            if time.monotonic() > end:
                return False
        return not line.is_broken

    async def _settle(self, *, written: bool) -> None:
        self._settled = True
        with anyio.CancelScope(shield=True):
            await to_thread.run_sync(partial(self._exchange.settle, written=written))


class _Line:
    """The connection of a client, and whether it has broken."""

    def __init__(self, transport: asyncio.Transport) -> None:
        self.transport = transport
        self.is_broken = False


class _Protocol(H11Protocol):
    """The protocol of a connection, which tells the application of its line."""

    _line: _Line | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override] # uvicorn narrows the type as well
        """Let every request of this connection know the line."""
        super().connection_made(transport)
        app, line = self.app, _Line(transport)

        async def known(scope: Any, receive: Any, send: Any) -> None:  # noqa: ANN401 - what ASGI passes has no narrower type
            scope[_LINE_KEY] = line
            await app(scope, receive, send)

        self.app, self._line = known, line

    def connection_lost(self, exc: Exception | None) -> None:
        """Remember that it broke before it was closed."""
        if self._line is not None:
            self._line.is_broken = exc is not None
        super().connection_lost(exc)


class _Server(uvicorn.Server):
    """A server that lets nobody wait for what will not come when it ends."""

    def __init__(self, config: uvicorn.Config, voices: Voices) -> None:
        super().__init__(config)
        self._voices = voices

    def handle_exit(self, sig: int, frame: Any) -> None:  # noqa: ANN401 - the signature of uvicorn
        """End every wait, then all the rest."""
        for exchange in list(self._voices.active):
            exchange.give_up()
        super().handle_exit(sig, frame)
        # Otherwise it would raise the signal again at its end, before names are let go.
        self._captured_signals.clear()


def serve(
    listening: socket.socket,
    house: House,
    speaker: Speaker,
    guard: Guard,
    ready: Callable[[], None],
) -> None:
    """Serve on a socket that listens already, until a signal asks for the end."""
    voices = Voices(house)
    try:
        anyio.run(partial(_serve, listening, Door(house, speaker, guard, voices), voices, ready))
    finally:
        voices.close()
        speaker.close()
        house.close()


async def _serve(
    listening: socket.socket, door: Door, voices: Voices, ready: Callable[[], None]
) -> None:
    config = uvicorn.Config(
        door,
        http=_Protocol,
        ws="none",
        lifespan="off",
        log_config=None,
        log_level="critical",
        access_log=False,
        server_header=False,
        limit_concurrency=MCP_CONNECTIONS_MAX,
        timeout_graceful_shutdown=_STOP_SECONDS_MAX,
    )
    async with door.manager.run(), anyio.create_task_group() as group:
        group.start_soon(voices.tidy)
        ready()
        await _Server(config, voices).serve(sockets=[listening])
        group.cancel_scope.cancel()


def _headers_of(scope: Scope) -> Callable[[str], list[str]]:
    def values(name: str) -> list[str]:
        wanted = name.encode()
        return [value.decode("latin-1") for key, value in scope["headers"] if key == wanted]

    return values


async def _refuse(send: Send, refusal: Refusal) -> None:
    body = refusal.why.encode() + b"\n"
    headers = [
        (b"content-type", b"text/plain; charset=utf-8"),
        (b"content-length", b"%d" % len(body)),
    ]
    if refusal.status == 401:
        headers.append((b"www-authenticate", b"Bearer"))
    await send({"type": "http.response.start", "status": refusal.status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
