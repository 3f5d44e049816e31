"""Who am I: the name that a client, a hook or a command acts under, and how it is claimed.

One agent is one client process. A live holder keeps its name: who comes second gets a suffix, and
nobody's presence is ever overwritten.
"""

from __future__ import annotations

import os
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from agent_chatroom_ledger.domain.agentnames import check_agent_name, derived_name, suffixed
from agent_chatroom_ledger.domain.clientprograms import KNOWN, client_name, is_passed_over
from agent_chatroom_ledger.domain.clock import from_datetime
from agent_chatroom_ledger.domain.display import has_control, one_line
from agent_chatroom_ledger.domain.identities import (
    DERIVED,
    OPTION,
    SOURCES,
    SPOKEN,
    Client,
    Identity,
    ProcessId,
    pane_of,
    session_of,
    spoken_name,
)
from agent_chatroom_ledger.domain.pins import Choice, Pin, Surroundings, choose
from agent_chatroom_ledger.storage import pinfile, presence, processes
from agent_chatroom_ledger.storage.layout import Layout
from agent_chatroom_ledger.storage.presence import Book, Entry, entry_among

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

    from agent_chatroom_ledger.ledger import Ledger
    from agent_chatroom_ledger.storage.processes import Ancestor

__all__ = ["Client", "Identity", "find_client", "identify", "seated", "whoami"]

HOOK = "hook"
CLI = "cli"
# For so long a renamed agent is still handed what goes to the name that it had.
FORMER_SECONDS_MAX = 120
_SHOWN_CHARS = 64
_ID_CHARS_MAX = 512


def find_client(
    environment: Mapping[str, str],
    directory: str | Path,
    *,
    door: str,
    ledger: Ledger | None = None,
    pid: int | None = None,
    name: str | None = None,
    session: str | None = None,
    model: str | None = None,
    seat: str = "",
) -> Client:
    """Return the client that started this process (or the process ``pid``), as far as it shows.

    It is the nearest ancestor that is neither a shell nor a launcher nor our own command. A
    command line passes over further programs, up to one that is known in ``ledger`` or is a client
    we know by name. ``name``, ``session`` and ``model`` are what the client says of itself.
    """
    known = [] if ledger is None else presence.entries(ledger.layout)
    return _client(
        environment,
        str(directory),
        known,
        msgspec.structs.replace(
            Client(door=door, seat=seat), name=name or "", session=session, model=model
        ),
        os.getpid() if pid is None else pid,
    )


def has_client() -> bool:
    """Tell whether a client started this process, and not shells and launchers alone.

    A hook whose client has ended just now is left with the shell that the client started it by,
    and with the first process, which adopts orphans and is a client only where it is a known one.
    """
    found = processes.client_of(processes.ancestors(os.getpid()))
    if found is None or is_passed_over(found.name, found.words):
        return False
    return not _is_adopter(found)


def is_orphaned() -> bool:
    """Tell whether the first process has adopted this one: the client that started it has ended.

    Nothing is heard from it and nothing told to it: a name that the first process came to bear
    would be borne for as long as the machine runs.
    """
    found = processes.client_of(processes.ancestors(os.getpid()))
    return found is not None and _is_adopter(found)


def _is_adopter(found: processes.Ancestor) -> bool:
    return found.id.pid == 1 and client_name(found.name, found.words) not in KNOWN


def seated(client: Client) -> Client:
    """Return a client that lives in this very process, as those whom a server hosts do."""
    return msgspec.structs.replace(client, process=processes.current())


def identify(
    ledger: Ledger,
    environment: Mapping[str, str],
    client: Client,
    explicit: str | None = None,
    *,
    claim: bool,
) -> Identity:
    """Tell which name a client acts under; with ``claim`` it lives under it from now on.

    The strongest of: ``explicit``; ROOMS_NAME, PI_ROOMS_NAME, PI_AGENT_NAME; the pin of its
    session, its pane, its directory; a name derived of the directory. Pins are read at every
    call. A client keeps the name it has, suffix and all, until what it should be called changes.
    Without ``claim`` nothing is written: no entry, no stamp on a pin. Raises InvalidInput for a
    name that no agent may have, Corrupt for damaged pins, Busy when a claim waited too long.
    """
    layout = ledger.layout
    spoken = (explicit, OPTION) if explicit else spoken_name(environment)
    found = _resolve(layout, spoken, client, presence.entries(layout))
    if not claim or not layout.writable:
        return found.identity
    if found.mine is not None and found.identity.held and not _changes(found):
        return found.identity
    if client.process is None:
        client = msgspec.structs.replace(client, process=processes.current())
    with presence.opened(layout) as book:
        return _claimed(layout, book, spoken, client)


def whoami(
    root: Path | None,
    environment: Mapping[str, str],
    directory: str | Path,
    explicit: str | None = None,
) -> Identity:
    """Tell under which name one call of the command line acts; nothing is claimed or written.

    It is the name of the agent whose client started it, where one did. The table of processes is
    looked at only when pins or somebody's presence could make a difference. ``root`` is the
    ledger's directory; None where there is none yet.
    """
    if explicit:
        return Identity(name=explicit, base=explicit, source=OPTION)
    spoken = spoken_name(environment)
    layout = None if root is None else Layout(root)
    known = [] if layout is None else presence.entries(layout)
    if spoken is not None:
        name, source = check_agent_name(spoken[0], spoken[1]), spoken[1]
        if not any(entry.base == name != entry.name for entry in known):
            return Identity(name=name, base=name, source=source)
    if layout is None or not (known or layout.pins.exists()):
        name = derived_name(processes.canonical(str(directory)))
        return Identity(name=name, base=name, source=DERIVED)
    client = _client(environment, str(directory), known, Client(), os.getpid())
    return _resolve(layout, spoken, client, known).identity


def acting_client(ledger: Ledger, environment: Mapping[str, str], directory: str | Path) -> Client:
    """Return the client that a call of the command line belongs to, as its other doors know it."""
    known = presence.entries(ledger.layout)
    client = _client(environment, str(directory), known, Client(), os.getpid())
    if client.process is None:
        return client
    return _completed(client, entry_among(known, client.process, client.seat))


def session_of_client(ledger: Ledger, client: Client) -> str | None:
    """Return the session that a client is in now, as the door that knows it best has told."""
    if client.process is None:
        return client.session
    known = presence.entries(ledger.layout)
    return _completed(client, entry_among(known, client.process, client.seat)).session


class _Found(NamedTuple):
    """What was resolved: the identity, the choice behind it, and the client with what we knew."""

    identity: Identity
    choice: Choice
    client: Client
    mine: Entry | None


def _resolve(
    layout: Layout, spoken: tuple[str, str] | None, client: Client, known: list[Entry]
) -> _Found:
    """Choose a name by what there is now, and see whether the client lives under it already."""
    mine = None
    if client.process is not None:
        mine = entry_among(known, client.process, client.seat)
    client = _completed(client, mine)
    choice = choose(
        _strongest(spoken, client, mine), pinfile.load(layout), client, surroundings(client, known)
    )
    base = choice.name
    held = mine is not None and mine.base == base
    if mine is not None and held:
        name = mine.name
    elif choice.source in SPOKEN and client.door == CLI:
        name = base  # Somebody says so here and now; a name is a claim, not a proof.
    else:
        name = _name_beside(base, client, known)
    identity = Identity(
        name=name, base=base, source=choice.source, warnings=choice.warnings, held=held
    )
    return _Found(identity, choice, client, mine)


def _claimed(
    layout: Layout, book: Book, spoken: tuple[str, str] | None, client: Client
) -> Identity:
    """Claim a name under the lock of the list, where what was seen before it is looked at again."""
    found = _resolve(layout, spoken, client, book.entries())
    process = client.process
    assert process is not None, "a claim is a process's"
    identity = found.identity
    if not identity.held:
        name = book.free_name(identity.base, process, client.seat)
        identity = msgspec.structs.replace(identity, name=name, held=True)
    entry = _entry(found, identity)
    if entry != found.mine:
        book.write(entry)
    if _to_stamp(found, identity):
        _stamp(layout, found)
    if found.mine is not None and found.mine.session not in {None, entry.session}:
        _let_go(layout, f"session:{found.mine.session}", process)
    return identity


def _completed(client: Client, mine: Entry | None) -> Client:
    """Return a client with what we know of it from other doors.

    Hooks know the session best, since the environment of a server goes stale; the directory is
    the one that the client came from, wherever it has gone since.
    """
    if mine is None:
        return client
    session = client.session or mine.session
    if client.door != HOOK and mine.session_door == HOOK:
        session = mine.session
    return msgspec.structs.replace(
        client,
        name=client.name or mine.client,
        session=session,
        pane=client.pane or mine.pane,
        directory=mine.directory or client.directory,
        model=client.model or mine.model,
    )


def _strongest(
    spoken: tuple[str, str] | None, client: Client, mine: Entry | None
) -> tuple[str, str] | None:
    """Return the name of the environment that counts for a client.

    All doors of one process were started in one environment; where a client hands only a part of
    it on, what another door has heard still counts. On a command line it is said here and now.
    """
    if mine is None or mine.source not in SPOKEN or (spoken is not None and client.door == CLI):
        return spoken
    if spoken is None or SOURCES.index(mine.source) < SOURCES.index(spoken[1]):
        return mine.base, mine.source
    return spoken


def _name_beside(base: str, client: Client, known: Iterable[Entry]) -> str:
    """Return what a client that claims nothing is called where a live other has the name."""
    holder = next((entry for entry in known if entry.name == base), None)
    if holder is None or client.process is None or not processes.is_alive(holder.process):
        return base
    return suffixed(base, client.process.pid)


def surroundings(client: Client, known: list[Entry]) -> Surroundings:
    """Return what the table of processes and those who are known say about pins."""

    def clients_in(directory: str) -> int:
        there = processes.clients_in(directory)
        there.update(
            entry.process
            for entry in known
            if entry.directory == directory and processes.is_alive(entry.process)
        )
        if client.process is not None:
            there.add(client.process)
        return len(there)

    return Surroundings(processes.is_alive, clients_in)


def _entry(found: _Found, identity: Identity) -> Entry:
    """Return the entry that a client is to have under a name."""
    client, mine = found.client, found.mine
    assert client.process is not None, "an entry is a process's"
    now = datetime.now(UTC)
    doors = mine.doors if mine is not None else ()
    hooks_session = mine is not None and mine.session_door == HOOK and client.door != HOOK
    return Entry(
        name=identity.name,
        base=identity.base,
        source=identity.source,
        process=client.process,
        since=mine.since if mine is not None else from_datetime(now),
        seat=client.seat,
        client=client.name,
        session=client.session,
        session_door=HOOK if hooks_session else client.door,
        pane=client.pane,
        directory=client.directory,
        model=client.model,
        doors=doors if client.door in doors else (*doors, client.door),
        hooked=client.door == HOOK or (mine is not None and mine.hooked),
        former=_former(mine, identity.name, now),
    )


def _former(mine: Entry | None, name: str, now: datetime) -> tuple[tuple[str, str], ...]:
    """Return the names that a client bore and is still heard under."""
    if mine is None or mine.name == name:
        return () if mine is None else mine.former
    until = from_datetime(now + timedelta(seconds=FORMER_SECONDS_MAX))
    kept = tuple((old, end) for old, end in mine.former if old != name and end > from_datetime(now))
    return (*kept, (mine.name, until))


def _changes(found: _Found) -> bool:
    """Tell whether a claim would write anything."""
    entry = _entry(found, found.identity)
    return entry != found.mine or _to_stamp(found, found.identity)


def _to_stamp(found: _Found, identity: Identity) -> bool:
    """Tell whether a pin is to be stamped: by whom it names, and never by a contender."""
    pin = found.choice.pin
    return (
        pin is not None
        and identity.name == identity.base
        and pin.claimed_by != found.client.process
    )


def _stamp(layout: Layout, found: _Found) -> None:
    seen = found.choice.pin
    assert seen is not None, "what is stamped is a pin"
    at = from_datetime(datetime.now(UTC))

    def edit(pins: dict[str, Pin]) -> dict[str, Pin] | None:
        if pins.get(seen.key) != seen:
            return None  # Set anew in between; the next call reads it.
        process = found.client.process
        stamped = msgspec.structs.replace(seen, claimed_by=process, claimed_at=at)
        return {**pins, seen.key: stamped}

    pinfile.change(layout, edit)


def _let_go(layout: Layout, key: str, process: ProcessId) -> None:
    """Take a client's stamp off the pin of a session that it has left, for who goes on with it."""
    pin = pinfile.load(layout).get(key)
    if pin is None or pin.claimed_by != process:
        return

    def edit(pins: dict[str, Pin]) -> dict[str, Pin] | None:
        if pins.get(key) != pin:
            return None
        return {**pins, key: msgspec.structs.replace(pin, claimed_by=None, claimed_at=None)}

    pinfile.change(layout, edit)


def _id(text: str | None) -> str | None:
    """Return an id that somebody else gave; None for one that no pin could be set for."""
    usable = text and len(text) <= _ID_CHARS_MAX and not has_control(text)
    return text if usable else None


def _agent_among(line: list[Ancestor], known: list[Entry]) -> Ancestor | None:
    """Return the first ancestor that lives here or is a client we know by name."""
    living = {entry.process for entry in known}
    for ancestor in line:
        if ancestor.id in living or client_name(ancestor.name, ancestor.words) in KNOWN:
            return ancestor
    return None


def _by_session(environment: Mapping[str, str], known: list[Entry]) -> Entry | None:
    """Return the agent in whose session a command runs, where the table of processes cannot say.

    Clients put what their agents run into a sandbox that shows no process outside of it.
    """
    for entry in known:
        if entry.session and session_of(environment, entry.client) == entry.session:
            return entry
    return None


def _client(
    environment: Mapping[str, str], directory: str, known: list[Entry], said: Client, pid: int
) -> Client:
    """Complete what a client says of itself by what the table of processes says."""
    line = processes.ancestors(pid)
    chosen = processes.client_of(line)
    if said.door == CLI:
        nearest = _agent_among(line, known)
        alias = _by_session(environment, known) if nearest is None else None
        if alias is not None:
            return _completed(
                msgspec.structs.replace(said, process=alias.process, seat=alias.seat), alias
            )
        chosen = nearest or chosen
    name = said.name or ("" if chosen is None else client_name(chosen.name, chosen.words))
    return msgspec.structs.replace(
        said,
        process=processes.identify(pid) if chosen is None else chosen.id,
        name=one_line(name, _SHOWN_CHARS),
        session=_id(said.session) or _id(session_of(environment, name)),
        pane=_id(pane_of(environment)),
        model=None if said.model is None else one_line(said.model, _SHOWN_CHARS),
        directory=processes.canonical(directory),
    )
