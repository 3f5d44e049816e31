"""Opening a ledger for questions about all of its rooms."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from agent_chatroom_ledger.errors import Busy, Conflict, Corrupt, Forbidden

if TYPE_CHECKING:
    from agent_chatroom_ledger.cli.session import Session
    from agent_chatroom_ledger.ledger import Ledger

# Below these a reader makes its own index in memory in no time.
ROOMS_FEW: Final = 32
BEHIND_BYTES_FEW: Final = 1_048_576


def indexed(session: Session) -> Ledger:
    """Open the ledger for reading, or so that its index is kept where that saves the next reader.

    A reader writes nothing and makes its index in memory, over the index file if there is one.
    Where the file is missing and there are many rooms, or it is far behind the journal, each
    reader would do the same work again; then the derived file is brought up to date.
    """
    ledger = session.read()
    behind = ledger.index.behind_bytes()
    few = len(ledger.index.rooms()) <= ROOMS_FEW if behind is None else behind <= BEHIND_BYTES_FEW
    if few or not ledger.layout.writable:
        return ledger
    ledger.close()
    try:
        return session.write()
    except (Busy, Conflict, Corrupt, Forbidden):
        return session.read()
