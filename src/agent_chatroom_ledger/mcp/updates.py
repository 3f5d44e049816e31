"""Telling clients that a room has changed, over both kinds of subscription.

Handshake clients subscribe to an address with `resources/subscribe`, newer ones listen with
`subscriptions/listen`. The journal is watched only while somebody does either.
"""

from __future__ import annotations

import weakref
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import anyio
from anyio import to_thread
from mcp import types
from mcp.server.subscriptions import InMemorySubscriptionBus, ResourcesListChanged, ResourceUpdated

from agent_chatroom_ledger.errors import Conflict, LedgerError
from agent_chatroom_ledger.limits import MCP_SUBSCRIPTIONS_MAX
from agent_chatroom_ledger.mcp.roomuris import path_of, uri_of
from agent_chatroom_ledger.waiting import watch_of

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Mapping

    from mcp.server import ServerRequestContext
    from mcp.shared.subscriptions import ServerEvent

    from agent_chatroom_ledger.mcp.speakers import House

    Context = ServerRequestContext[Any, Any]

# How long one waits where there is no ledger yet, and how long changes are gathered.
_RETRY_SECONDS = 1.0
_GATHER_SECONDS = 0.2
# A client that does not read what it subscribed to keeps the others waiting no longer than this.
_TELL_SECONDS_MAX = 2.0


class Bus(InMemorySubscriptionBus):
    """The SDK's bus, which also tells whether anybody listens."""

    def __init__(self) -> None:
        """Begin with nobody."""
        super().__init__()
        self.listeners = 0
        self.wanted = anyio.Event()

    def subscribe(self, listener: Callable[[ServerEvent], None]) -> Callable[[], None]:
        """Count a listener until it unsubscribes."""
        leave = super().subscribe(listener)
        self.listeners += 1
        self.wanted.set()
        done = False

        def once() -> None:
            nonlocal done
            if not done:
                done = True
                self.listeners -= 1
            leave()

        return once


class Updates:
    """Who has subscribed to which rooms, and the watch that tells them."""

    def __init__(self, house: House, threads: anyio.CapacityLimiter) -> None:
        """Nothing is watched yet."""
        self.bus = Bus()
        self._house = house
        self._threads = threads
        # Connections are the SDK's; one that has ended leaves the table by itself.
        self._subscribed: weakref.WeakKeyDictionary[Any, set[str]] = weakref.WeakKeyDictionary()

    async def subscribe(
        self, ctx: Context, params: types.SubscribeRequestParams
    ) -> types.EmptyResult:
        """Note that a handshake client wants to hear of a room."""
        uri = str(params.uri)
        path = path_of(uri)
        await to_thread.run_sync(
            lambda: self._house.ledger().room(f"rooms/{path}"), limiter=self._threads
        )
        mine = self._subscribed.setdefault(_connection_of(ctx), set())
        if len(mine) >= MCP_SUBSCRIPTIONS_MAX and uri not in mine:
            raise Conflict(
                f"One connection subscribes to at most {MCP_SUBSCRIPTIONS_MAX} rooms.",
                limit=MCP_SUBSCRIPTIONS_MAX,
            )
        mine.add(uri)
        self.bus.wanted.set()
        return types.EmptyResult()

    async def unsubscribe(
        self, ctx: Context, params: types.UnsubscribeRequestParams
    ) -> types.EmptyResult:
        """Forget it."""
        self._subscribed.get(_connection_of(ctx), set()).discard(str(params.uri))
        return types.EmptyResult()

    @asynccontextmanager
    async def watching(self) -> AsyncIterator[None]:
        """Watch the ledger for as long as the block lasts."""
        async with anyio.create_task_group() as group:
            group.start_soon(self._watch)
            yield
            group.cancel_scope.cancel()

    async def _watch(self) -> None:
        while True:
            await self.bus.wanted.wait()
            try:
                await self._follow()
            except (LedgerError, OSError):
                # No ledger yet, or one that cannot be read now: the tools say what is wrong.
                await anyio.sleep(_RETRY_SECONDS)
            if not self._wanted():
                self.bus.wanted = anyio.Event()

    def _wanted(self) -> bool:
        return bool(self.bus.listeners or any(self._subscribed.values()))

    async def _follow(self) -> None:
        """Tell of every change while somebody wants to hear of them."""
        ledger = await to_thread.run_sync(self._house.ledger, limiter=self._threads)
        watch = watch_of(ledger)
        known = await self._positions()
        while self._wanted():
            if not watch.changed():
                await anyio.sleep(watch.pause_seconds)
                continue
            now = await self._positions()
            for path in now.keys() | known.keys():
                if now.get(path) != known.get(path):
                    await self._tell(uri_of(path))
            if now.keys() != known.keys():
                # Handshake clients are not promised this: they cannot say that they want it.
                await self.bus.publish(ResourcesListChanged())
            known = now
            await anyio.sleep(_GATHER_SECONDS)

    async def _positions(self) -> Mapping[str, object]:
        """Return how far every room is, and who is in it, as the index has it."""

        def found() -> dict[str, object]:
            rooms = self._house.ledger().rooms()
            return {room.path: (room.positions, room.members, room.title) for room in rooms}

        return await to_thread.run_sync(found, limiter=self._threads)

    async def _tell(self, uri: str) -> None:
        await self.bus.publish(ResourceUpdated(uri=uri))
        for connection, uris in list(self._subscribed.items()):
            if uri not in uris:
                continue
            with anyio.move_on_after(_TELL_SECONDS_MAX) as telling:
                await connection.send_resource_updated(uri)
            if telling.cancelled_caught:
                # What it is still to read says that it should look; it may subscribe again.
                self._subscribed.pop(connection, None)


def _connection_of(ctx: Context) -> Any:  # noqa: ANN401 - the SDK's connection, which it keeps private
    """Return what lives as long as the client's connection; the context is of one request."""
    return getattr(ctx.session, "_connection", ctx.session)
