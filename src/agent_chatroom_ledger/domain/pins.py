"""Pins: which name a session, a pane or a directory has, and when a pin is followed.

The rule is a pure function: `choose`. A pin never overrides a name of the environment; one of a
pane or a directory belongs to the process that claimed it first, and no other inherits it; one of
a session goes on after a restart.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal, NamedTuple, TypeAlias

import msgspec

from agent_chatroom_ledger.domain.agentnames import check_agent_name, derived_name
from agent_chatroom_ledger.domain.display import has_control, shown
from agent_chatroom_ledger.domain.identities import DERIVED, OPTION, ProcessId
from agent_chatroom_ledger.errors import InvalidInput
from agent_chatroom_ledger.limits import PIN_KEY_CHARS_MAX

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from agent_chatroom_ledger.domain.identities import Client

# The strongest first.
PIN_KINDS: Final = ("session", "pane", "cwd")
# What a pin does now; `waiting` and `overridden` are for lists, where nobody in particular asks.
PinWord: TypeAlias = Literal["followed", "overridden", "ambiguous", "taken", "stale", "waiting"]


class Pin(msgspec.Struct, frozen=True, kw_only=True):
    """A name for a key: ``session:…``, ``pane:…`` or ``cwd:…``; ``claimed_by`` is its stamp."""

    key: str
    name: str
    set_at: str
    set_by: str = ""
    claimed_by: ProcessId | None = None
    claimed_at: str | None = None

    @property
    def kind(self) -> str:
        """What the key is of: session, pane or cwd."""
        return self.key.partition(":")[0]

    @property
    def value(self) -> str:
        """The session, the pane or the directory."""
        return self.key.partition(":")[2]


class Surroundings(NamedTuple):
    """What the machine knows, asked only when a rule needs it.

    ``is_alive`` judges a process; ``clients_in`` counts the live clients in a directory, the one
    who asks among them.
    """

    is_alive: Callable[[ProcessId], bool]
    clients_in: Callable[[str], int]


class Choice(msgspec.Struct, frozen=True, kw_only=True):
    """The name that was chosen, what said so, the pin if it was one, and what was not followed."""

    name: str
    source: str
    pin: Pin | None = None
    warnings: tuple[str, ...] = ()


class Standing(NamedTuple):
    """What a pin means for one client: whether it is followed, a word for it, and a sentence."""

    followed: bool
    word: PinWord
    note: str = ""


def check_pin_key(text: str) -> str:
    """Return a pin's key as given; raises InvalidInput unless it is one of the three kinds."""
    kind, colon, value = text.partition(":")
    if kind not in PIN_KINDS or not colon or not value.strip():
        raise InvalidInput(
            "A pin's key is session:ID, pane:ID or cwd:DIRECTORY.", field="key", value=shown(text)
        )
    if len(text) > PIN_KEY_CHARS_MAX:
        raise InvalidInput(
            f"A pin's key has {len(text)} characters, and at most {PIN_KEY_CHARS_MAX} are allowed.",
            field="key",
            value=shown(text),
            limit=PIN_KEY_CHARS_MAX,
        )
    if has_control(text):
        raise InvalidInput(
            "A pin's key must not hold line breaks or other control characters.",
            field="key",
            value=shown(text),
        )
    return text


def key_of(kind: str, client: Client) -> str | None:
    """Return the key under which a client would be pinned; None when it has no such thing."""
    value = {"session": client.session, "pane": client.pane, "cwd": client.directory}[kind]
    return f"{kind}:{value}" if value else None


def choose(
    spoken: tuple[str, str] | None,
    pins: Mapping[str, Pin],
    client: Client,
    around: Surroundings,
) -> Choice:
    """Choose a client's name: a spoken one, else session, pane and directory pin, else a derived.

    ``spoken`` is a name with what said it (``--as`` or the environment). Raises InvalidInput for
    a name that no agent may have.
    """
    if spoken is not None:
        name, source = spoken
        check_agent_name(name, "name" if source == OPTION else source)
        return Choice(name=name, source=source)
    warnings: list[str] = []
    for kind in PIN_KINDS:
        key = key_of(kind, client)
        pin = pins.get(key) if key else None
        if pin is None:
            continue
        standing = standing_of(pin, client, around)
        if standing.followed:
            return Choice(name=pin.name, source=kind, pin=pin, warnings=tuple(warnings))
        warnings.append(f"The pin {pin.key} ({pin.name}) is not followed: {standing.note}.")
    return Choice(name=derived_name(client.directory), source=DERIVED, warnings=tuple(warnings))


def standing_of(pin: Pin, client: Client, around: Surroundings) -> Standing:
    """Tell whether a client whose key a pin has follows it."""
    claimer = pin.claimed_by
    if claimer is not None and claimer != client.process:
        alive = around.is_alive(claimer)
        if alive:
            note = f"process {claimer.pid}, which is alive, has claimed it"
            return Standing(followed=False, word="taken", note=note)
        if pin.kind != "session":
            note = (
                f"process {claimer.pid}, which has ended, had claimed it, and no other process "
                "inherits it; set it again"
            )
            return Standing(followed=False, word="stale", note=note)
    if pin.kind == "cwd":
        count = around.clients_in(pin.value)
        if count != 1 and claimer is not None:
            # A live holder keeps its name, whoever comes after it.
            note = f"{count} live clients are in this directory; it is followed by its claimer"
            return Standing(followed=True, word="followed", note=note)
        if count != 1:
            note = f"{count} live clients are in this directory, and it is followed only by one"
            return Standing(followed=False, word="ambiguous", note=note)
    return Standing(followed=True, word="followed")
