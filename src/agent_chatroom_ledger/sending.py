"""The one path by which an agent sends: a message, and what is known of those it goes to."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

import msgspec

from agent_chatroom_ledger.domain.names import BROADCAST
from agent_chatroom_ledger.domain.records import Message, is_history
from agent_chatroom_ledger.room import Room

if TYPE_CHECKING:
    from collections.abc import Iterable

    from agent_chatroom_ledger.ledger import Ledger

Reach: TypeAlias = Literal["wakes", "next turn", "queued"]

NOBODY_LIVE: Final = "nobody is live under that name; the message waits for it"


class Recipient(msgspec.Struct, frozen=True, kw_only=True):
    """One whom a message goes to, as the sender may know it now.

    ``reach`` says how soon: it ``wakes`` the receiver, is read at its ``next turn``, or is
    ``queued`` until somebody of that name looks. ``note`` is a sentence where there is more to say.
    """

    name: str
    reach: Reach = "queued"
    live: bool = False
    note: str = ""


class Sent(msgspec.Struct, frozen=True, kw_only=True):
    """A message as it is stored, its room, whom it goes to, and what the sender should know."""

    message: Message
    room: Room
    recipients: tuple[Recipient, ...]
    notes: tuple[str, ...] = ()


class Sender:
    """What an agent's session sends, and what it was told about its receivers."""

    def __init__(self, ledger: Ledger, name: str, session: str | None) -> None:
        """Name the author; ``session`` is None for a session that nobody else knows of."""
        self._ledger = ledger
        self._name = name
        self._session = session
        self._told: set[str] = set()

    def send(self, room: Room, body: str, fields: dict[str, Any]) -> Sent:
        """Post, and return the message with its receivers; ``fields`` are those of a draft."""
        message = room.post(self._name, body, **fields)
        members = room.members
        recipients = self._recipients(receivers(message, members, self._name))
        notes = []
        if self._name not in members and not is_history(message.kind):
            path = room.path.removeprefix("rooms/")
            notes.append(
                f"{self._name} is no member of {path}: answers there will not reach its inbox "
                f"unless they name it; `rooms join {path}` changes that."
            )
        return Sent(message=message, room=room, recipients=recipients, notes=tuple(notes))

    def _recipients(self, names: Iterable[str]) -> tuple[Recipient, ...]:
        return tuple(self._recipient(name) for name in names)

    def _recipient(self, name: str) -> Recipient:
        note = "" if name in self._told else NOBODY_LIVE
        self._told.add(name)
        return Recipient(name=name, note=note)


def receivers(message: Message, members: Iterable[str], me: str) -> tuple[str, ...]:
    """Return the names whose inbox a message of mine comes to: addressees first, then members."""
    if is_history(message.kind):
        return ()
    named = dict.fromkeys((*message.to, *members))
    return tuple(name for name in named if name not in {me, BROADCAST})
