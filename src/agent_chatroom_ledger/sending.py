"""The one path by which an agent sends: a message, and what is known of those it goes to."""

from __future__ import annotations

import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

import msgspec

from agent_chatroom_ledger.domain.names import BROADCAST
from agent_chatroom_ledger.domain.records import Message, is_history
from agent_chatroom_ledger.errors import Forbidden, LedgerError, NotYetCommitted
from agent_chatroom_ledger.room import Room

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from agent_chatroom_ledger.ledger import Ledger

Reach: TypeAlias = Literal["wakes", "next turn", "queued"]

_NOBODY: Final[frozenset[str]] = frozenset()
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
    """What an agent's session sends, and what it was told about its receivers.

    A session that has an id is the same in every process, and what it was told and has sent is kept
    with the receipts; one without lives as long as this object.
    """

    def __init__(self, ledger: Ledger, name: str, session: str | None) -> None:
        """Name the author; ``session`` is None for a session that nobody else knows of."""
        self._ledger = ledger
        self._name = name
        self._session = session
        self._guard = threading.Lock()
        self._told: set[str] = set()
        self._count = 0

    def send(self, room: Room, body: str, fields: dict[str, Any]) -> Sent:
        """Post, and return the message with its receivers; ``fields`` are those of a draft.

        Whatever can go wrong about the receivers does so before the message is written.
        """
        members = room.members
        names = receivers(fields.get("to", ()), members, self._name)
        if is_history(fields.get("kind", "")):
            names = ()
        recipients = self._looked_at(names)
        with self._counted(room, fields.get("id")):
            message = room.post(self._name, body, **fields)
        notes = self._heard(recipients)
        if self._name not in members and not is_history(message.kind):
            path = room.path.removeprefix("rooms/")
            notes.append(
                f"{self._name} is no member of {path}: answers there will not reach its inbox "
                f"unless they name it; `rooms join {path}` changes that."
            )
        return Sent(message=message, room=room, recipients=recipients, notes=tuple(notes))

    # --- whom it goes to -----------------------------------------------------------------------

    def _looked_at(self, names: Sequence[str]) -> tuple[Recipient, ...]:
        if not names:
            return ()
        from agent_chatroom_ledger.presence import among

        here = among(self._ledger, frozenset(names))
        told = self._heard_of() if any(name not in here for name in names) else _NOBODY
        found = []
        for name in names:
            if name in here:
                found.append(Recipient(name=name, reach=here[name].reach, live=True))
            else:
                note = "" if name in told else NOBODY_LIVE
                found.append(Recipient(name=name, note=note))
        return tuple(found)

    def _heard_of(self) -> frozenset[str]:
        if self._session is None:
            return frozenset(self._told)
        return frozenset(self._ledger.receipts.told(self._session))

    def _heard(self, recipients: Iterable[Recipient]) -> list[str]:
        """Remember what the sender hears now, and forget it of those who are live again.

        The message is written, so that this fails is no more than a note.
        """
        dead = [recipient.name for recipient in recipients if recipient.note]
        live = [recipient.name for recipient in recipients if recipient.live]
        if self._session is None:
            self._told.update(dead)
            self._told.difference_update(live)
            return []
        try:
            self._ledger.receipts.tell(self._session, dead)
            self._ledger.receipts.untell(live)
        except LedgerError as error:
            return [f"You may hear again who is not live: {error}"]
        return []

    # --- how much a session may send -----------------------------------------------------------

    @contextmanager
    def _counted(self, room: Room, key: str | None) -> Iterator[None]:
        """Count a message where there is a limit; what was not written does not count.

        Raises Forbidden (code ``send_limit``) past the limit.
        """
        limit = self._ledger.settings.max_sends_per_session
        if limit is None or (key is not None and self._ledger.index.find_id(room.path, key)):
            yield
            return
        if not self._take(limit):
            raise self._past(limit)
        try:
            yield
        except NotYetCommitted:
            raise  # it is written
        except BaseException:
            self._give_back()
            raise

    def require_left(self) -> None:
        """Raise Forbidden (code ``send_limit``) when nothing more may be sent.

        For whoever would make a room first.
        """
        limit = self._ledger.settings.max_sends_per_session
        if limit is not None and self._sent() >= limit:
            raise self._past(limit)

    def _past(self, limit: int) -> Forbidden:
        return Forbidden(
            f"This session has sent {limit} messages, and max_sends_per_session in "
            f"{self._ledger.layout.config} allows no more; nothing was sent. Say so to whoever "
            "runs you: a higher limit there, or a new session, lets you go on.",
            code="send_limit",
            limit=limit,
            session=self._session or "",
        )

    def _sent(self) -> int:
        return self._count if self._session is None else self._ledger.receipts.sends(self._session)

    def _take(self, limit: int) -> bool:
        if self._session is not None:
            return self._ledger.receipts.count_send(self._session, limit) is not None
        with self._guard:
            if self._count >= limit:
                return False
            self._count += 1
            return True

    def _give_back(self) -> None:
        if self._session is not None:
            self._ledger.receipts.uncount_send(self._session)
            return
        with self._guard:
            self._count -= 1


def receivers(to: Iterable[str], members: Iterable[str], me: str) -> tuple[str, ...]:
    """Return the names whose inbox a message of mine comes to: addressees first, then members."""
    named = dict.fromkeys((*to, *members))
    return tuple(name for name in named if name not in {me, BROADCAST})
