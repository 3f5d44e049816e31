"""The face of one who talks in a ledger: it sends, joins and leaves, and receives.

Each method is one call into the module that does it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from agent_chatroom_ledger.domain.direct import answered, check_addressees, is_direct
from agent_chatroom_ledger.domain.names import check_author
from agent_chatroom_ledger.domain.records import is_history
from agent_chatroom_ledger.errors import Conflict, InvalidInput, NotFound
from agent_chatroom_ledger.limits import LIST_ROOMS_MAX
from agent_chatroom_ledger.sending import Sender

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Iterable, Sequence

    from agent_chatroom_ledger.domain.records import Message
    from agent_chatroom_ledger.inbox import Handover, Item
    from agent_chatroom_ledger.joining import Created, Joined, Left
    from agent_chatroom_ledger.ledger import Ledger
    from agent_chatroom_ledger.listing import RoomSummary
    from agent_chatroom_ledger.presence import Presence
    from agent_chatroom_ledger.receipts import Receipts
    from agent_chatroom_ledger.room import Room
    from agent_chatroom_ledger.sending import Sent

# How often a direct message is sent again into a room that is archived at that very moment.
_TRIES_MAX = 3


class Agent:
    """One name that talks in a ledger, a person's or a program's. Make one with ``Ledger.agent``.

    It is cheap, may be shared by threads, and claims nothing: a name is a claim, not a proof.
    """

    def __init__(
        self, ledger: Ledger, name: str, *, session: str | None = None, door: str = "python"
    ) -> None:
        """Use ``Ledger.agent``."""
        self._ledger = ledger
        self._name = check_author(name, "name")
        self._session = session
        self._door = door
        self._sender = Sender(ledger, self._name, session)

    def __repr__(self) -> str:
        return f"<Agent {self._name}>"

    @property
    def ledger(self) -> Ledger:
        """The ledger that it talks in."""
        return self._ledger

    @property
    def name(self) -> str:
        """The name that it speaks with."""
        return self._name

    # --- sending -------------------------------------------------------------------------------

    def post(
        self,
        room: str | Room,
        body: str,
        *,
        to: Sequence[str] = (),
        reply_to: int | str | Message | None = None,
        kind: str = "message",
        mentions: Sequence[str] = (),
        correlation: str | None = None,
        cause: str | None = None,
        status: str | None = None,
        data: Mapping[str, Any] | None = None,
        key: str | None = None,
    ) -> Sent:
        """Say something in a room, and return it with those whom it goes to.

        Anybody may post; who is no member is told that answers will not reach its inbox. ``key``
        becomes the id of the record: the same call again is no second message. Raises what
        ``Room.post`` raises, and Forbidden (code ``send_limit``) past the limit of sends.
        """
        place = self._ledger.room(room)
        if not to and is_direct(place.id) and not is_history(kind):
            # What is said in a direct room is said to its members, whichever way it came there.
            to = tuple(name for name in place.members if name != self._name)
        fields = {
            "to": _names(to, "to"),
            "reply_to": reply_to,
            "kind": kind,
            "mentions": _names(mentions, "mentions"),
            "correlation": correlation,
            "cause": cause,
            "status": status,
            "data": dict(data) if isinstance(data, Mapping) else data,
            "id": key,
        }
        return self._send(place, body, fields)

    def dm(
        self,
        names: str | Iterable[str],
        body: str,
        *,
        correlation: str | None = None,
        cause: str | None = None,
        key: str | None = None,
    ) -> Sent:
        """Write to 1 to 32 names, in the direct room that they and the sender have to themselves.

        One text is one name. It reaches them whether or not they run, know the sender or share
        another room. A name given twice counts once, and one's own is left out; alone it is
        InvalidInput. ``key`` is as in ``post``, and unique among the messages of these names.
        """
        others = check_addressees((names,) if isinstance(names, str) else names, self._name)
        fields = {"correlation": correlation, "cause": cause, "id": key}
        return self._send_direct(others, body, fields)

    def reply_all(self, record_id: str, body: str, *, key: str | None = None) -> Sent:
        """Answer a message: in its room, or in the direct room of all whom a direct one concerns.

        The answer's ``cause`` is the message's id, and within one room it replies to it.
        ``record_id`` is an id, or a place such as ``review#12``. Raises NotFound when there is no
        such message, Conflict (code ``ambiguous``) when several rooms hold the id.
        """
        from agent_chatroom_ledger.lookup import find_message

        room, message = find_message(self._ledger, record_id, self._name)
        fields: dict[str, Any] = {
            "cause": message.id,
            "correlation": message.correlation,
            "id": key,
        }
        if is_direct(room.id):
            others = answered(message, room.members, self._name)
            return self._send_direct(others, body, fields, answering=(room, message))
        return self._send(room, body, {**fields, "reply_to": message})

    # --- rooms ---------------------------------------------------------------------------------

    def create(
        self,
        title: str,
        *,
        members: Sequence[str] = (),
        folder: str = "",
        new: bool = False,
    ) -> Created:
        """Make a room whose members are the agent and those named; join it when it is there.

        A room is there when one bears the title, whatever case and spacing; ``new`` makes another
        all the same. Of many who create one title at once, one makes the room.
        """
        from agent_chatroom_ledger.joining import create_or_join

        return create_or_join(
            self._ledger, self._name, title, folder=folder, members=members, new=new
        )

    def join(self, room: str | Room) -> Joined:
        """Become a member of a room; its messages come to the inbox from now on.

        A member already changes nothing. What was said before is there to be read, and is not
        handed over.
        """
        from agent_chatroom_ledger.joining import join

        return join(self._ledger.room(room), self._name)

    def leave(self, room: str | Room, *, keep_queued: bool = False) -> Left:
        """Stop being a member of a room; its history stays.

        What waits of that room to be handed over is discarded, and counted, unless
        ``keep_queued``. Who is no member changes nothing in the room.
        """
        from agent_chatroom_ledger.joining import leave

        return leave(self._ledger.room(room), self._name, keep_queued=keep_queued)

    def rooms(
        self,
        *,
        mine: bool = False,
        archived: bool = False,
        after: str | None = None,
        limit: int = 200,
    ) -> list[RoomSummary]:
        """Return rooms by path, at most ``limit`` of them, from the one after a path on.

        ``mine`` leaves out those that do not list the agent; ``archived`` gives archived rooms
        instead of active ones. Rooms of others, direct ones too, are no secret.
        """
        if not 1 <= limit <= LIST_ROOMS_MAX:
            raise InvalidInput(
                f"limit is a number of rooms, 1 to {LIST_ROOMS_MAX}, not {limit}.",
                field="limit",
                limit=LIST_ROOMS_MAX,
            )
        start = "" if after is None else f"rooms/{after.removeprefix('rooms/')}"
        found = [
            room
            for room in self._ledger.rooms(status="archived" if archived else "active")
            if room.path > start and (not mine or self._name in room.members)
        ]
        return found[:limit]

    def who(self) -> list[Presence]:
        """Return the names that somebody lives or waits under now, in order."""
        from agent_chatroom_ledger.presence import who

        return who(self._ledger)

    # --- receiving -----------------------------------------------------------------------------

    def inbox(
        self,
        max: int | None = None,  # noqa: A002 - the word of the commands and tools
        wait: float | None = None,
        *,
        room: str | Room | None = None,
        peek: bool = False,
        again: bool = False,
    ) -> list[Item]:
        """Return the oldest messages that wait for the agent, and note them as handed over.

        They are those addressed to it, and those said in its rooms while it was a member: not its
        own, no history, none handed over before. At most ``max``, by default as the settings say.
        ``wait`` is how many seconds to wait for the first one. With ``peek`` nothing is noted.
        ``again`` gives first what was handed over and never acknowledged. A caller that may fail
        before it has used them takes them with ``take``. Raises Busy while another door of this
        name is handing over.
        """
        from agent_chatroom_ledger.waiting import inbox

        place = None if room is None else self._ledger.room(room)
        return inbox(
            self._ledger,
            self._name,
            count=max,
            seconds=wait,
            room=place,
            peeking=peek,
            again=again,
            door=self._door,
            session=self._session,
        )

    def take(
        self,
        max: int | None = None,  # noqa: A002 - the word of the commands and tools
        *,
        room: str | Room | None = None,
        again: bool = False,
        addressed_only: bool = False,
    ) -> Handover:
        """Return what ``inbox`` does, noted only when the caller says ``confirm``.

        Until then, or until it is closed, no other door of this name hands anything over.
        """
        from agent_chatroom_ledger.inbox import take

        return take(
            self._ledger,
            self._name,
            max=max,
            room=None if room is None else self._ledger.room(room),
            again=again,
            addressed_only=addressed_only,
            door=self._door,
            session=self._session,
        )

    def seen(
        self,
        what: Item | Message | str | Room,
        through: Message | int | str | Mapping[str, int] | None = None,
    ) -> dict[str, int]:
        """Move the agent's cursor in a room past what it has dealt with, and return the position.

        ``what`` is an item of the inbox or a message, or a room with what was read ``through``, as
        ``Consumer.acknowledge`` takes it. Nothing else says that a message was seen.
        """
        from agent_chatroom_ledger.domain.records import Message
        from agent_chatroom_ledger.inbox import Item

        if isinstance(what, Item):
            room: str | Room = what.room
            through = what.message
        elif isinstance(what, Message):
            from agent_chatroom_ledger.lookup import find_message

            room, through = find_message(self._ledger, what.id, self._name)
        else:
            room = what
        return self._ledger.consumer(self._name).acknowledge(room, through)

    def receipts(self, record_id: str) -> Receipts:
        """Return to whom a message was handed over, who has seen it, and who has answered it."""
        from agent_chatroom_ledger.receipts import receipts_of

        return receipts_of(self._ledger, record_id, self._name)

    def messages(self, *, room: str | Room | None = None) -> AsyncGenerator[Item, None]:
        """Yield messages as they come, one at a time; it never ends.

        Each is noted as handed over when the caller asks for the next one; one at which the loop
        ends comes again. Until then no other door of this name hands anything over. It uses no
        thread, and ends at once when its task is cancelled.
        """
        from agent_chatroom_ledger.waiting import messages

        place = None if room is None else self._ledger.room(room)
        return messages(
            self._ledger, self._name, room=place, door=self._door, session=self._session
        )

    # --- inside --------------------------------------------------------------------------------

    def _send_direct(
        self,
        others: Sequence[str],
        body: str,
        fields: dict[str, Any],
        answering: tuple[Room, Message] | None = None,
    ) -> Sent:
        """Send to the direct room of some names, which comes back if somebody archives it."""
        from agent_chatroom_ledger.direct import direct_room

        for left in reversed(range(_TRIES_MAX)):
            try:
                room = direct_room(self._ledger, self._name, others, self._sender.require_left)
                same = answering is not None and answering[0].id == room.id
                reply = answering[1] if answering is not None and same else None
                return self._send(room, body, {**fields, "to": tuple(others), "reply_to": reply})
            except (Conflict, NotFound) as error:
                if error.code not in {"archived", "not_found"} or not left:
                    raise
            # Readers see it as archived, and so as one to bring back, after the next checkpoint.
            self._ledger.flush()
        raise AssertionError("the last try returns or raises")

    def _send(self, room: Room, body: str, fields: dict[str, Any]) -> Sent:
        """Send: the one path, which every method above takes."""
        return self._sender.send(room, body, fields)


def _names(names: Iterable[str], field: str) -> tuple[str, ...]:
    if isinstance(names, str):
        raise InvalidInput(f"{field} is a list of names, not one text.", field=field)
    return tuple(names)
