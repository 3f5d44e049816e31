"""Serving one client over standard streams: what was handed over is noted after the flush."""

from __future__ import annotations

import signal
import threading
from functools import partial
from typing import TYPE_CHECKING, Self

import anyio
from anyio import to_thread
from mcp import types
from mcp.shared.message import ServerMessageMetadata, SessionMessage

from agent_chatroom_ledger.mcp.exchange import Exchange
from agent_chatroom_ledger.mcp.greeting import key_of
from agent_chatroom_ledger.mcp.server import Service, build

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType

    from anyio.streams.memory import MemoryObjectSendStream

    from agent_chatroom_ledger.mcp.greeting import RequestKey, Wire
    from agent_chatroom_ledger.mcp.speakers import House, Speaker

    Incoming = MemoryObjectSendStream[SessionMessage | Exception]

# After the client has closed the wire, a write that it never reads may hold us no longer.
_END_SECONDS_MAX = 10.0


def serve(wire: Wire, house: House, speaker: Speaker, give_up: Callable[[], None]) -> None:
    """Serve until the client closes the wire, or a signal asks for the end.

    ``give_up`` ends the process; it is called when the end takes too long.
    """
    wire.greeted()
    try:
        anyio.run(partial(_serve, wire, house, speaker, give_up))
    finally:
        speaker.close()
        house.close()


async def _serve(wire: Wire, house: House, speaker: Speaker, give_up: Callable[[], None]) -> None:
    server = build(Service(house, speaker))
    exchanges: dict[RequestKey, Exchange] = {}
    incoming, read_stream = anyio.create_memory_object_stream[SessionMessage | Exception](0)
    async with anyio.create_task_group() as group:
        group.start_soon(_end_on_signal, group.cancel_scope)
        group.start_soon(_pump, wire, speaker, exchanges, incoming, give_up)
        await server.run(
            read_stream,
            Writer(wire, exchanges),
            server.create_initialization_options(),
        )
        group.cancel_scope.cancel()


async def _end_on_signal(scope: anyio.CancelScope) -> None:
    with anyio.open_signal_receiver(signal.SIGTERM, signal.SIGINT) as signals:
        async for _ in signals:
            scope.cancel()
            return


async def _pump(
    wire: Wire,
    speaker: Speaker,
    exchanges: dict[RequestKey, Exchange],
    incoming: Incoming,
    give_up: Callable[[], None],
) -> None:
    """Hand the lines of the wire to the server, each request with its exchange."""
    async with incoming:
        while True:
            line = await to_thread.run_sync(wire.lines.get, abandon_on_cancel=True)
            if line is None:
                timer = threading.Timer(_END_SECONDS_MAX, give_up)
                timer.daemon = True
                timer.start()
                return
            try:
                message = types.jsonrpc_message_adapter.validate_json(line, by_name=False)
            except ValueError as error:
                await incoming.send(error)
                continue
            metadata = None
            if isinstance(message, types.JSONRPCRequest):
                metadata = _begin(message.id, speaker, exchanges)
            await incoming.send(SessionMessage(message, metadata=metadata))


def _begin(
    request_id: int | str, speaker: Speaker, exchanges: dict[RequestKey, Exchange]
) -> ServerMessageMetadata:
    """Make the exchange of a request; one whose answer never comes is given up."""
    key = key_of(request_id)
    exchange = Exchange(speaker)
    earlier = exchanges.pop(key, None)
    if earlier is not None:
        # The client has used an id twice: nobody can tell any more which answer is whose.
        earlier.settle(written=False)
    exchanges[key] = exchange

    async def unanswered() -> None:
        if exchanges.get(key) is exchange:
            del exchanges[key]
        exchange.settle(written=False)

    return ServerMessageMetadata(request_context=exchange, on_request_unanswered=unanswered)


class Writer:
    """The server's way out: one line a message, and the receipts of an answer after its flush."""

    def __init__(self, wire: Wire, exchanges: dict[RequestKey, Exchange]) -> None:
        """``exchanges`` are those of the requests that are not answered yet."""
        self._wire = wire
        self._exchanges = exchanges
        self._lock = anyio.Lock()

    async def send(self, item: SessionMessage, /) -> None:
        """Write a message; raises anyio.BrokenResourceError when the client is gone."""
        message = item.message
        exchange = None
        if (
            isinstance(message, types.JSONRPCResponse | types.JSONRPCError)
            and message.id is not None
        ):
            key = key_of(message.id)
            exchange = self._exchanges.pop(key, None)
            if key in self._wire.answered:
                self._wire.answered.discard(key)
                return
        line = message.model_dump_json(by_alias=True, exclude_unset=True).encode() + b"\n"
        written = False
        if exchange is not None:
            exchange.leaving()
        try:
            async with self._lock:
                # Begun is done: half a line would spoil all that follow.
                with anyio.CancelScope(shield=True):
                    await to_thread.run_sync(self._wire.write, line)
            written = isinstance(message, types.JSONRPCResponse)
        except OSError:
            raise anyio.BrokenResourceError from None
        finally:
            if exchange is not None:
                with anyio.CancelScope(shield=True):
                    await to_thread.run_sync(partial(exchange.settle, written=written))

    async def aclose(self) -> None:
        """Give up whatever was not answered."""
        for exchange in list(self._exchanges.values()):
            exchange.settle(written=False)
        self._exchanges.clear()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> bool | None:
        await self.aclose()
        return None
