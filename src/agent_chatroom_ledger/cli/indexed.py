"""Opening a ledger for questions about all of its rooms, or about its past."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from agent_chatroom_ledger.errors import Busy, Conflict, Corrupt, Forbidden

if TYPE_CHECKING:
    from agent_chatroom_ledger.cli.session import Session
    from agent_chatroom_ledger.ledger import Ledger
    from agent_chatroom_ledger.storage.index import Index

# Below these a reader makes its own index in memory in no time.
ROOMS_FEW: Final = 32
MESSAGES_FEW: Final = 2_000
BEHIND_BYTES_FEW: Final = 65_536
# Below this a reader adds to the timeline in memory in no time.
COMMITS_FEW: Final = 5_000


def indexed(session: Session) -> Ledger:
    """Open the ledger for reading, or so that its index is kept where that saves the next reader.

    A reader writes nothing and makes its index in memory, over the index file if there is one.
    Where the file is missing and rooms or messages are many, or it is far behind the journal, each
    reader would do the same work again; then the derived file is brought up to date.
    """
    ledger = session.read()
    if not wants_index_file(ledger):
        return ledger
    ledger.close()
    try:
        return session.write()
    except (Busy, Conflict, Corrupt, Forbidden):
        return session.read()


def wants_index_file(ledger: Ledger) -> bool:
    """Tell whether a reader is to open the ledger for writing, so that its index is kept."""
    behind = ledger.index.behind_bytes()
    few = _are_few(ledger.index) if behind is None else behind <= BEHIND_BYTES_FEW
    return not few and ledger.layout.writable


def _are_few(index: Index) -> bool:
    """Tell whether rooms and messages are so few that no file is needed to count them."""
    heads = index.heads()
    messages = sum(head.last for mine in heads.values() for head in mine)
    return len(index.rooms()) <= ROOMS_FEW and messages <= MESSAGES_FEW


def timed(session: Session, at: str | None) -> Ledger:
    """Open the ledger for reading at what `moment_of` gives; None is the present."""
    if at is not None:
        from datetime import datetime

        try:
            datetime.fromisoformat(at)
        except ValueError:
            # A revision is found without the timeline.
            return session.read()
        return listed(session)
    return session.read()


def listed(session: Session) -> Ledger:
    """Open the ledger for reading its history, its timeline kept where that saves the next reader.

    A reader writes nothing, and may have to walk all of history for one question. Where the
    derived file lacks many commits, it is brought up to main first.
    """
    ledger = session.read()
    if not ledger.layout.writable or ledger.timeline.behind() <= COMMITS_FEW:
        return ledger
    ledger.close()
    try:
        ledger = session.write()
    except (Busy, Conflict, Corrupt, Forbidden):
        return session.read()
    ledger.timeline.follow()
    return ledger
