"""Upkeep of a ledger: what is in it and how much room it takes, and tidying it up."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import msgspec

from agent_chatroom_ledger.storage import reading
from agent_chatroom_ledger.storage.reading import MESSAGES, OPERATIONS, log_path
from agent_chatroom_ledger.storage.space import Space, measure

if TYPE_CHECKING:
    from agent_chatroom_ledger.ledger import Ledger

_AUTHOR = re.compile(rb'"author":("(?:[^"\\]|\\.)*")')
_LOCK_WAIT_SECONDS_MAX = 60.0


class Stats(msgspec.Struct, frozen=True, kw_only=True):
    """What a ledger holds, and the room it takes.

    ``authors`` are the messages of each name, most first. ``record_bytes`` is the length of all
    messages as they are stored, ``bytes_per_message`` what git's objects take on disk for each,
    with everything else that is in them; 0 while there is none.
    """

    rooms: int
    archived: int
    messages: int
    operations: int
    authors: dict[str, int]
    record_bytes: int
    bytes_per_message: float
    space: Space


class Tidied(msgspec.Struct, frozen=True, kw_only=True):
    """What `collect` did: packs and bytes before and after, and who wrote the commit-graph."""

    before: Space
    after: Space
    commit_graph: str


def stats(ledger: Ledger) -> Stats:
    """Count what the ledger holds now; every active room's messages are read, none is kept."""
    source, overlay = ledger.look()
    counts = {MESSAGES: 0, OPERATIONS: 0}
    authors: dict[bytes, int] = {}
    size = 0
    rooms = reading.rooms(source, overlay)
    for room in ["", *rooms]:
        for log in (MESSAGES, OPERATIONS) if room else (OPERATIONS,):
            for origin in reading.origins(source, room, log, overlay):
                path = log_path(room, log, origin)
                if log == OPERATIONS:
                    counts[log] += reading.last_number(source, path, overlay)
                    continue
                for _, line in reading.records(source, path, overlay=overlay):
                    counts[log] += 1
                    size += len(line) + 1
                    match = _AUTHOR.search(line)
                    if match is not None:
                        authors[match[1]] = authors.get(match[1], 0) + 1
    named = [(msgspec.json.decode(name, type=str), n) for name, n in authors.items()]
    space = measure(ledger.layout)
    taken = space.pack_bytes + space.loose_bytes
    return Stats(
        rooms=len(rooms),
        archived=len(ledger.rooms(status="archived")),
        messages=counts[MESSAGES],
        operations=counts[OPERATIONS],
        authors=dict(sorted(named, key=lambda item: (-item[1], item[0]))),
        record_bytes=size,
        bytes_per_message=round(taken / counts[MESSAGES], 1) if counts[MESSAGES] else 0.0,
        space=space,
    )


def collect(ledger: Ledger) -> Tidied:
    """Merge our packs, write git's commit-graph, and bring the derived files up to main.

    Nothing that is stored changes, and it may be stopped at any moment. Packs of others, and those
    that they protect, are left alone. Forbidden when the ledger is open for reading only, Busy
    when another process holds a lock for long.
    """
    from agent_chatroom_ledger.storage import packmerge
    from agent_chatroom_ledger.storage.commitgraph import write_commit_graph
    from agent_chatroom_ledger.storage.locks import holding

    ledger.writer().flush()
    before = measure(ledger.layout)
    with holding(ledger.layout.locks / "commit.lock", seconds=_LOCK_WAIT_SECONDS_MAX):
        packmerge.merge_all(ledger.layout)
        ledger.objects.forget()
        graph = write_commit_graph(ledger.layout, ledger.objects)
    ledger.index.follow()
    ledger.timeline.follow()
    return Tidied(before=before, after=measure(ledger.layout), commit_graph=graph)
