"""Who is here, and how soon a message reaches them.

What is told is never a guess of age: a client lives while its process does, and somebody waits
while the operating system holds a lock for them.
"""

from __future__ import annotations

import os
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Literal, TypeAlias

import msgspec

from agent_chatroom_ledger.domain.agentnames import check_agent_name
from agent_chatroom_ledger.domain.clock import from_datetime, to_datetime
from agent_chatroom_ledger.domain.identities import OPTION, Client, Identity
from agent_chatroom_ledger.identity import HOOK, identify
from agent_chatroom_ledger.storage import presence as book
from agent_chatroom_ledger.storage import processes

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping

    from agent_chatroom_ledger.ledger import Ledger
    from agent_chatroom_ledger.storage.presence import Entry, Waiter

Reach: TypeAlias = Literal["wakes", "next turn", "queued"]


class Presence(msgspec.Struct, frozen=True, kw_only=True):
    """A name, who lives under it, and how soon a message reaches it.

    ``wakes``: a process waits for it now. ``next turn``: its client hands messages over when it
    works next. ``queued``: it has to look by itself. ``process`` is the client's id, 0 for a name
    that nobody lives under; the other fields are then empty.
    """

    name: str
    live: bool
    reach: Reach
    client: str = ""
    process: int = 0
    directory: str = ""
    pane: str | None = None
    model: str | None = None
    session: str | None = None
    since: datetime | None = None
    source: str = ""
    doors: tuple[str, ...] = ()


def register(ledger: Ledger, identity: Identity, client: Client) -> Identity:
    """Let a client live under the name that it was told, or beside a live holder of it.

    For who was identified without a claim and now takes part after all.
    """
    return identify(
        ledger,
        {} if identity.source == OPTION else {identity.source: identity.base},
        client,
        identity.base if identity.source == OPTION else None,
        claim=True,
    )


def heard_hook(
    ledger: Ledger, environment: Mapping[str, str], client: Client, explicit: str | None = None
) -> Identity:
    """Note that a hook of a client ran, bind its session to it, and return who it is."""
    client = msgspec.structs.replace(client, door=HOOK)
    return identify(ledger, environment, client, explicit, claim=True)


def release(ledger: Ledger, client: Client) -> bool:
    """Let a door of a client go, and its entry with the last one; nobody else's is touched.

    Returns whether the client is gone from the list. A process that ends without it is gone too.
    """
    layout = ledger.layout
    if client.process is None or not layout.writable:
        return False
    if book.entry_among(book.entries(layout), client.process, client.seat) is None:
        return False
    with book.opened(layout) as held:
        mine = held.of(client.process, client.seat)
        if mine is None:
            return False
        doors = tuple(door for door in mine.doors if door != client.door)
        if doors:
            hooked = mine.hooked and client.door != HOOK
            held.write(msgspec.structs.replace(mine, doors=doors, hooked=hooked))
            return False
        held.remove(mine)
        return True


@contextmanager
def waiter(ledger: Ledger, name: str, client: Client | None = None) -> Iterator[None]:
    """Be known as somebody whom a message to a name wakes, as long as the block lasts.

    Where the ledger may not be written, it goes unknown and the block runs all the same.
    """
    check_agent_name(name)
    layout = ledger.layout
    if not layout.writable:
        yield
        return
    owner = None if client is None else client.process
    if owner is None:
        found = processes.client_of(processes.ancestors(os.getpid()))
        owner = processes.current() if found is None else found.id
    with book.waiting(layout, name, from_datetime(datetime.now(UTC)), owner):
        yield


def who(ledger: Ledger) -> list[Presence]:
    """Return the names that somebody lives or waits under, in order."""
    found = among(ledger, None)
    return [found[name] for name in sorted(found)]


def among(ledger: Ledger, names: Collection[str] | None) -> dict[str, Presence]:
    """Return who of some names is here; nobody else's process is looked at. None means all."""
    waiting = _waiting(ledger)
    found = {
        entry.name: _presence(entry, waiting)
        for entry in book.entries(ledger.layout)
        if (names is None or entry.name in names) and processes.is_alive(entry.process)
    }
    for name, first in waiting.items():
        if name not in found and (names is None or name in names):
            found[name] = _waiting_only(first)
    return found


def everybody(ledger: Ledger) -> list[Presence]:
    """Return who is here and who else is a member of an active room, in order."""
    found = {one.name: one for one in who(ledger)}
    for room in ledger.rooms():
        for name in room.members:
            if name not in found:
                found[name] = Presence(name=name, live=False, reach="queued")
    return [found[name] for name in sorted(found)]


def live(ledger: Ledger, name: str) -> Presence | None:
    """Return who lives or waits under a name; None when nobody does."""
    waiting = _waiting(ledger)
    entry = book.entry_of(ledger.layout, name)
    if entry is not None and processes.is_alive(entry.process):
        return _presence(entry, waiting)
    return _waiting_only(waiting[name]) if name in waiting else None


def reach(ledger: Ledger, names: Iterable[str]) -> dict[str, Reach]:
    """Tell for each name how soon a message reaches it."""
    waiting = _waiting(ledger)
    found: dict[str, Reach] = {}
    for name in names:
        if name in waiting:
            found[name] = "wakes"
            continue
        entry = book.entry_of(ledger.layout, name)
        alive = entry is not None and entry.hooked and processes.is_alive(entry.process)
        found[name] = "next turn" if alive else "queued"
    return found


def former_names(ledger: Ledger, name: str) -> tuple[str, ...]:
    """Return the names that a live agent bore until lately, and that nobody else lives under.

    What goes to them is still its own, for two minutes after it was renamed.
    """
    entry = book.entry_of(ledger.layout, name)
    if entry is None or not entry.former or not processes.is_alive(entry.process):
        return ()
    now = datetime.now(UTC)
    return tuple(
        old for old, until in entry.former if to_datetime(until) > now and live(ledger, old) is None
    )


def _waiting(ledger: Ledger) -> dict[str, Waiter]:
    """Return for each name the first who waits for it."""
    found: dict[str, Waiter] = {}
    for one in book.waiters(ledger.layout):
        if one.name not in found or one.since < found[one.name].since:
            found[one.name] = one
    return found


def _presence(entry: Entry, waiting: Mapping[str, Waiter]) -> Presence:
    here: Reach = "next turn" if entry.hooked else "queued"
    return Presence(
        name=entry.name,
        live=True,
        reach="wakes" if entry.name in waiting else here,
        client=entry.client,
        process=entry.process.pid,
        directory=entry.directory,
        pane=entry.pane,
        model=entry.model,
        session=entry.session,
        since=to_datetime(entry.since),
        source=entry.source,
        doors=entry.doors,
    )


def _waiting_only(one: Waiter) -> Presence:
    return Presence(
        name=one.name,
        live=True,
        reach="wakes",
        process=one.process.pid,
        since=to_datetime(one.since),
        source=OPTION,
        doors=("cli",),
    )
