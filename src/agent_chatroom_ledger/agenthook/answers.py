"""What an event is answered with: who one is, what waits, or a reason not to stop yet."""

from __future__ import annotations

from contextlib import ExitStack
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Self

from agent_chatroom_ledger.agenthook import dialects
from agent_chatroom_ledger.agenthook.rendering import Shown, Word, news, reason, welcome
from agent_chatroom_ledger.domain.direct import is_direct

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from types import TracebackType

    from agent_chatroom_ledger.agenthook.dialects import Event
    from agent_chatroom_ledger.domain.identities import Client
    from agent_chatroom_ledger.inbox import Handover, Item
    from agent_chatroom_ledger.ledger import Ledger
    from agent_chatroom_ledger.room import Room

# Sessions that have lost what they were told, and are offered it again.
_FORGETFUL: Final = frozenset({"resume", "clear", "compact", "fork"})
# How long the hook waits for another door of its agent, which may be handing over just now.
_LOCK_SECONDS: Final = 1.0
_STEER: Final = "steer"


class Member(NamedTuple):
    """The agent that an event is of: its name, the client that it lives in, and the ledger.

    `base` is what it was to be called; another live client bears that name if it is not its own.
    """

    ledger: Ledger
    name: str
    base: str
    client: Client
    event: Event


class Answer:
    """A document for the client; a context manager that lets go of what is handed over with it.

    `confirm` belongs after the document was written and flushed.
    """

    def __init__(self, document: dict[str, Any] | None, handover: Handover | None = None) -> None:
        """Keep the document, and what is handed over in it."""
        self.document = document
        self._handover = handover

    def confirm(self) -> None:
        """Note that what the document holds was handed over."""
        if self._handover is not None:
            self._handover.confirm()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._handover is not None:
            self._handover.close()


NOTHING: Final = Answer(None)


def member_of(
    ledger: Ledger, event: Event, environment: Mapping[str, str], directory: str
) -> Member | None:
    """Return whom an event is of; None when the ledger has nothing to do with it.

    Who has to do with it is known from now on as a client that a message reaches at its next turn,
    and under the session that the event names.
    """
    from agent_chatroom_ledger.identity import find_client, identify
    from agent_chatroom_ledger.presence import heard_hook

    client = find_client(
        environment,
        directory,
        door="hook",
        ledger=ledger,
        # The common dialect is spoken by others than Claude Code too; its process knows better.
        name=None if event.client == "claude-code" else event.client,
        session=event.session,
        model=event.model,
    )
    identity = identify(ledger, environment, client, claim=False)
    if not identity.held:
        from agent_chatroom_ledger.nudges import is_involved

        if not is_involved(ledger, identity.name) and not is_involved(ledger, identity.base):
            return None
    if identity.held or ledger.settings.auto_join:
        identity = heard_hook(ledger, environment, client)
    return Member(ledger, identity.name, identity.base, client, event)


def answer(member: Member) -> Answer:
    """Return what to answer an event with."""
    event = member.event
    if event.kind == dialects.STOP:
        return _stopping(member)
    if event.kind not in {dialects.START, dialects.PROMPT, dialects.TOOL}:
        return NOTHING
    from agent_chatroom_ledger.nudges import at_work, prompted

    at_work(member.ledger, member.name)
    if event.kind == dialects.START:
        return _starting(member)
    if event.kind == dialects.PROMPT:
        if not event.woken:
            prompted(member.ledger, member.name, event.session)
        if not dialects.takes_messages(event):
            return _counting(member)
        return _telling(member)
    return _after_tool(member)


def _stopping(member: Member) -> Answer:
    from agent_chatroom_ledger.nudges import held_back

    event = member.event
    if event.failed:
        return NOTHING
    count = held_back(member.ledger, member.name, event.session, goes_on=event.goes_on)
    return Answer(dialects.block(event, reason(count))) if count else NOTHING


def _starting(member: Member) -> Answer:
    rooms = [
        (summary.title, summary.path)
        for summary in member.ledger.agent(member.name).rooms(mine=True)
    ]

    def show(words: list[Word], waiting: int) -> Shown:
        taken = member.base if member.base != member.name else ""
        return welcome(member.name, rooms, words, waiting, taken_name=taken)

    return _handed_over(member, show, again=member.event.source in _FORGETFUL, empty=True)


def _counting(member: Member) -> Answer:
    """Say how many wait, where it is not sure that a model gets to read it."""
    from agent_chatroom_ledger.inbox import waiting_count

    count = waiting_count(member.ledger, member.name)
    return Answer(dialects.context(member.event, reason(count))) if count else NOTHING


def _after_tool(member: Member) -> Answer:
    """Hand over after a tool what the settings want there: direct messages, rooms, or both."""
    settings = member.ledger.settings
    direct, rooms = settings.dm_delivery == _STEER, settings.room_delivery == _STEER
    if direct and rooms:
        return _telling(member)
    if not direct and not rooms:
        return NOTHING
    from agent_chatroom_ledger.inbox import waiting_counts

    # One room at a time; the others' turn comes after the next tools. What counts in a room may not
    # be there to give: then the next one's has come.
    for path in sorted(waiting_counts(member.ledger, member.name)):
        room = member.ledger.room(path)
        if is_direct(room.id) is direct:
            found = _telling(member, room)
            if found.document is not None:
                return found
    return NOTHING


def _telling(member: Member, room: Room | None = None) -> Answer:
    return _handed_over(member, news, room=room)


def _handed_over(
    member: Member,
    show: Callable[[list[Word], int], Shown],
    *,
    room: Room | None = None,
    again: bool = False,
    empty: bool = False,
) -> Answer:
    """Take what waits, as much of it as fits; with `empty` also nothing is worth an answer."""
    from agent_chatroom_ledger.inbox import take

    wanted: int | None = None
    with ExitStack() as held:
        while True:
            handover = take(
                member.ledger,
                member.name,
                max=wanted,
                room=room,
                again=again,
                door="hook",
                session=member.event.session,
                lock_seconds=_LOCK_SECONDS,
            )
            held.callback(handover.close)
            if not handover.items and not empty:
                return NOTHING
            words = [word_of(item) for item in handover]
            shown = show(words, len(words) + handover.waiting())
            if shown.taken == len(words):
                # What is said holds all that was taken, so all of it may be noted.
                held.pop_all()
                return Answer(dialects.context(member.event, shown.text), handover)
            handover.close()
            wanted = shown.taken


def word_of(item: Item) -> Word:
    """Return a record as it is shown."""
    message = item.message
    others = len(message.to) - 1
    if not item.addressed:
        to = "the room" if not message.to else "others in the room"
        if message.to == ("*",):
            to = "everybody"
    elif others == 0:
        to = "you"
    else:
        to = f"you and {others} other{'s' if others > 1 else ''}"
    number = message.n - 1
    return Word(
        title=item.room.title,
        path=item.room.path,
        ref=message.ref,
        before=str(number) if message.primary else f"{number}@{message.origin}",
        id=message.id,
        author=message.author,
        to=to,
        kind=message.kind,
        body=message.body,
        age=item.prefix.strip("[] ").removesuffix(" old"),
        again=item.again,
    )
