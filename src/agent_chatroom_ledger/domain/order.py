"""The canonical order of a room: by time, origin, log and number.

Display follows this order and delivery follows positions, so a record that arrives late from
another machine may appear earlier in the transcript, and is delivered exactly once all the same.
"""

from __future__ import annotations

from heapq import merge as heap_merge
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from datetime import datetime

    from agent_chatroom_ledger.domain.records import Message


OrderKey: TypeAlias = "tuple[datetime, str, str, int]"


def order_key(message: Message) -> OrderKey:
    """Return what messages are sorted by: time, origin, log, number."""
    return message.at, message.origin, message.log, message.n


def merge(*runs: Iterable[Message]) -> Iterator[Message]:
    """Yield the messages of several runs in canonical order; each run is in that order already."""
    if len(runs) == 1:
        return iter(runs[0])
    return heap_merge(*runs, key=order_key)


def merge_reversed(*runs: Iterable[Message]) -> Iterator[Message]:
    """Yield the messages of several runs, each newest first, newest first."""
    if len(runs) == 1:
        return iter(runs[0])
    return heap_merge(*runs, key=order_key, reverse=True)


def drop_repeated_ids(messages: Iterable[Message]) -> Iterator[Message]:
    """Yield the messages, given in canonical order, without those whose id has come before.

    Two origins may have written one id apart from each other; the later one is folded away. It
    remembers every id, so its memory grows with the number of messages.
    """
    seen: set[str] = set()
    for message in messages:
        if message.id not in seen:
            seen.add(message.id)
            yield message
