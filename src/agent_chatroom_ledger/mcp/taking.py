"""`rooms_inbox`: what waits is taken, or waited for, and held until the answer is out."""

from __future__ import annotations

from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import anyio
from anyio import to_thread

from agent_chatroom_ledger.inbox import is_waiting, peek, waiting_count
from agent_chatroom_ledger.mcp import results
from agent_chatroom_ledger.mcp.calls import said
from agent_chatroom_ledger.presence import waiter
from agent_chatroom_ledger.waiting import watch_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from agent_chatroom_ledger.agents import Agent
    from agent_chatroom_ledger.inbox import Item
    from agent_chatroom_ledger.mcp import parameters
    from agent_chatroom_ledger.mcp.exchange import Exchange
    from agent_chatroom_ledger.room import Room


async def inbox(
    agent: Agent,
    exchange: Exchange,
    given: parameters.Inbox,
    threads: anyio.CapacityLimiter,
) -> results.InboxResult:
    """Return what waits; after ``wait_seconds`` without anything, an empty list.

    What is handed over is in the exchange, which notes it when the answer is out. Waiting takes
    no thread and ends with a cancelled task, or when nobody waits for the answer any more.
    """
    room = None
    if given.room is not None:
        room = await to_thread.run_sync(agent.ledger.room, given.room, limiter=threads)
    until = anyio.current_time() + given.wait_seconds
    while True:
        # A thread is not left alone with what it has taken: a cancelled call comes back first.
        found = await to_thread.run_sync(_taken, agent, exchange, given, room, limiter=threads)
        if found.messages or anyio.current_time() >= until or exchange.is_given_up:
            return found
        await _arrival(agent, exchange, room, until, threads)


def _taken(
    agent: Agent, exchange: Exchange, given: parameters.Inbox, room: Room | None
) -> results.InboxResult:
    ledger, name = agent.ledger, agent.name
    if given.peek:
        items: Sequence[Item] = peek(ledger, name, max=given.max, room=room)
        left = max(0, waiting_count(ledger, name, room) - len(items))
        return results.InboxResult(messages=[_handed(item) for item in items], waiting=left)
    handover = agent.take(given.max, room=room)
    try:
        result = results.InboxResult(
            messages=[_handed(item) for item in handover], waiting=handover.waiting()
        )
        if not result.messages:
            # Nothing to lose: what is noted is only how far there is nothing.
            handover.confirm()
            return result
    except BaseException:
        handover.close()
        raise
    exchange.hold(handover)
    return result


async def _arrival(
    agent: Agent,
    exchange: Exchange,
    room: Room | None,
    until: float,
    threads: anyio.CapacityLimiter,
) -> None:
    """Return when something waits, the time is up, or nobody waits for the answer any more."""
    ledger = agent.ledger
    watch = watch_of(ledger)
    since: Any = None
    with ExitStack() as stack:
        stack.enter_context(waiter(ledger, agent.name, exchange.speaker.client()))
        while True:
            # The place in the journal was taken before this look: nothing falls between them.
            found, since = await to_thread.run_sync(
                is_waiting, ledger, agent.name, room, since, limiter=threads
            )
            if found:
                return
            while not watch.changed():
                if anyio.current_time() >= until or exchange.is_given_up:
                    return
                left = until - anyio.current_time()
                await anyio.sleep(max(0.0, min(watch.pause_seconds, left)))


def _handed(item: Item) -> results.Handed:
    return results.Handed(
        **said(item.room, item.message),
        age=item.prefix.strip(" []") or None,
        again=item.again,
    )
