"""Pins as people and agents see them: listed with what they do, set, removed.

There is no rename alias: rooms list their members by name. So a pin that would rename a member is
refused, with the rooms it would leave behind, unless the caller insists.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

import msgspec

from agent_chatroom_ledger.domain.agentnames import check_agent_name, derived_name
from agent_chatroom_ledger.domain.clock import from_datetime, to_datetime
from agent_chatroom_ledger.domain.identities import SOURCES, SPOKEN, Client
from agent_chatroom_ledger.domain.pins import (
    PIN_KINDS,
    Pin,
    PinWord,
    Standing,
    check_pin_key,
    key_of,
    standing_of,
)
from agent_chatroom_ledger.errors import Conflict, InvalidInput, NotFound
from agent_chatroom_ledger.identity import surroundings
from agent_chatroom_ledger.storage import pinfile, presence, processes

if TYPE_CHECKING:
    from agent_chatroom_ledger.domain.pins import Surroundings
    from agent_chatroom_ledger.ledger import Ledger
    from agent_chatroom_ledger.storage.presence import Entry

_NAMED_MAX = 10


class PinState(msgspec.Struct, frozen=True, kw_only=True):
    """A pin, and what it does now; ``note`` says why where it is not followed.

    ``followed``: a live client has the name of it, or gets it at its next call. ``overridden``:
    the client has its name from its environment, or from a stronger pin. ``ambiguous``: several
    live clients are in the directory. ``taken`` and ``stale``: another process has claimed it,
    which is alive or has ended. ``waiting``: nobody it is for is here. ``process`` is who claimed
    it.
    """

    key: str
    name: str
    set_at: datetime
    set_by: str
    state: PinWord
    note: str
    process: int | None


class Pinned(msgspec.Struct, frozen=True, kw_only=True):
    """What a change of pins did; ``left`` are the paths of rooms that list a name given up.

    ``pin`` is the pin as it stands now, None when it was removed.
    """

    key: str
    pin: PinState | None
    changed: bool
    before: str | None
    left: tuple[str, ...]


def list_pins(ledger: Ledger) -> list[PinState]:
    """Return the pins by key, each with what it does now."""
    pins = pinfile.load(ledger.layout)
    here = _here(ledger) if pins else []
    around = surroundings(Client(), here)
    return [_state(pin, here, around) for _, pin in sorted(pins.items())]


def set_pin(
    ledger: Ledger,
    key: str,
    name: str,
    *,
    force: bool = False,
    by: str = "",
    client: Client | None = None,
) -> Pinned:
    """Give a session, a pane or a directory a name, from the next call on.

    ``client`` is who asks: a pin of its own pane or directory is stamped with its process at
    once, one for somebody else with the first that follows it. Raises Conflict (code
    ``rename_leaves_rooms``) when that would rename a member of rooms, unless ``force``.
    """
    key = _canonical(check_pin_key(key))
    check_agent_name(name)
    left = _left_behind(ledger, key, name, force=force)
    here = _here(ledger)
    stamp = None
    if client is not None and client.process is not None and _is_key_of(client, key):
        mine = presence.entry_among(here, client.process, client.seat)
        stamp = None if mine is None else client.process
    now = from_datetime(datetime.now(UTC))
    before: list[Pin | None] = []

    def edit(pins: dict[str, Pin]) -> dict[str, Pin] | None:
        old = pins.get(key)
        before.append(old)
        if old is not None and old.name == name and stamp in {None, old.claimed_by}:
            standing = _state(old, here, surroundings(Client(), here))
            if standing.state != "stale":
                return None
        pin = Pin(
            key=key,
            name=name,
            set_at=now,
            set_by=by,
            claimed_by=stamp,
            claimed_at=None if stamp is None else now,
        )
        return {**pins, key: pin}

    old_pins_after = pinfile.change(ledger.layout, edit)
    pin = old_pins_after[key]
    old = before[-1]
    return Pinned(
        key=key,
        pin=_state(pin, here, surroundings(Client(), here)),
        changed=pin != old,
        before=None if old is None else old.name,
        left=left,
    )


def remove_pin(ledger: Ledger, key: str, *, force: bool = False) -> Pinned:
    """Take a pin away; whoever followed it is called otherwise from the next call on.

    Raises NotFound when there is none, and Conflict (code ``rename_leaves_rooms``) when its name
    is a member of rooms, unless ``force``.
    """
    key = _canonical(check_pin_key(key))
    pin = pinfile.load(ledger.layout).get(key)
    if pin is None:
        raise NotFound(f"There is no pin {key}.", key=key)
    left = _left_behind(ledger, key, None, force=force)

    def edit(pins: dict[str, Pin]) -> dict[str, Pin]:
        return {other: kept for other, kept in pins.items() if other != key}

    pinfile.change(ledger.layout, edit)
    return Pinned(key=key, pin=None, changed=True, before=pin.name, left=left)


def own_key(kind: str, client: Client) -> str:
    """Return the key of a client's own session, pane or directory.

    Raises InvalidInput when it has none, or for another word.
    """
    key = key_of(kind, client) if kind in PIN_KINDS else check_pin_key(kind)
    if key is None:
        raise InvalidInput(
            f"No {kind} is known here; name it: {kind}:ID. A session is known once a hook or the "
            "client's environment has told it, a pane inside a multiplexer or terminal that says.",
            field="key",
            value=kind,
        )
    return key


def _here(ledger: Ledger) -> list[Entry]:
    known = presence.entries(ledger.layout)
    return [entry for entry in known if processes.is_alive(entry.process)]


def _canonical(key: str) -> str:
    kind, _, value = key.partition(":")
    return f"cwd:{processes.canonical(value)}" if kind == "cwd" else key


def _is_key_of(client: Client, key: str) -> bool:
    return any(key_of(kind, client) == key for kind in PIN_KINDS)


def _client_of(entry: Entry) -> Client:
    return Client(
        process=entry.process,
        name=entry.client,
        session=entry.session,
        pane=entry.pane,
        directory=entry.directory,
        seat=entry.seat,
    )


def _state(pin: Pin, here: list[Entry], around: Surroundings) -> PinState:
    standing = Standing(followed=False, word="waiting", note="nobody it is for is here")
    for entry in here:
        client = _client_of(entry)
        if not _is_key_of(client, pin.key):
            continue
        if _is_overridden(entry, pin):
            note = f"{entry.name} has its name from {entry.source}, which is stronger"
            standing = Standing(followed=False, word="overridden", note=note)
            continue
        standing = standing_of(pin, client, around)
        if standing.followed:
            standing = _beside_holder(pin, entry, here, standing)
            break
    else:
        standing = _unmet(pin, standing, around)
    return PinState(
        key=pin.key,
        name=pin.name,
        set_at=to_datetime(pin.set_at),
        set_by=pin.set_by,
        state=standing.word,
        note=standing.note,
        process=None if pin.claimed_by is None else pin.claimed_by.pid,
    )


def _beside_holder(pin: Pin, entry: Entry, here: list[Entry], standing: Standing) -> Standing:
    """Say of a pin that is followed when somebody else lives under its name."""
    holder = next((one for one in here if one.name == pin.name), None)
    if holder is None or (holder.process, holder.seat) == (entry.process, entry.seat):
        return standing
    note = f"process {holder.process.pid} lives under {pin.name}; who comes second gets a suffix"
    return standing._replace(note=note)


def _unmet(pin: Pin, standing: Standing, around: Surroundings) -> Standing:
    """Say what keeps a pin from being followed when nobody here follows it."""
    if standing.word != "waiting":
        return standing
    claimer = pin.claimed_by
    if pin.kind != "session" and claimer is not None:
        return standing_of(pin, Client(), around)
    if pin.kind == "cwd" and around.clients_in(pin.value) > 1:
        return standing_of(pin, Client(), around)
    return standing


def _is_overridden(entry: Entry, pin: Pin) -> bool:
    """Tell whether a client has its name from something stronger than a pin."""
    if entry.source in SPOKEN:
        return True
    return SOURCES.index(entry.source) < SOURCES.index(pin.kind)


def _left_behind(ledger: Ledger, key: str, name: str | None, *, force: bool) -> tuple[str, ...]:
    """Return the rooms that list a name which a change gives up; refuse unless forced."""
    old = _names_given_up(ledger, key) - {name}
    if not old:
        return ()
    rooms = [room for room in ledger.rooms() if old.intersection(room.members)]
    paths = tuple(room.path.removeprefix("rooms/") for room in rooms)
    if paths and not force:
        gone = sorted({member for room in rooms for member in room.members} & old)
        shown = ", ".join(paths[:_NAMED_MAX])
        if len(paths) > _NAMED_MAX:
            shown += f" and {len(paths) - _NAMED_MAX} more"
        who = ", ".join(gone)
        what = f"rename {who} -> {name}" if name is not None else f"remove the name {who}"
        raise Conflict(
            f"Refusing to {what}: it is a member of {shown}. Rooms store members by name and there "
            "is no rename alias, so renaming leaves those rooms. Pin a name before creating rooms "
            "over it, or give --force to proceed.",
            code="rename_leaves_rooms",
            key=key,
            names=gone,
            rooms=list(paths),
        )
    return paths


def _names_given_up(ledger: Ledger, key: str) -> set[str]:
    """Return the names that clients have by a key, or without the pin would have."""
    pin = pinfile.load(ledger.layout).get(key)
    found = set() if pin is None else {pin.name}
    kind, _, value = key.partition(":")
    for entry in _here(ledger):
        weaker = SOURCES.index(entry.source) >= SOURCES.index(kind)
        if weaker and _is_key_of(_client_of(entry), key):
            found.add(entry.name)
    if pin is None and kind == "cwd":
        found.add(derived_name(value))
    return found
