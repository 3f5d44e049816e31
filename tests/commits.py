"""The commits of a ledger that tests count."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from agent_chatroom_ledger import Ledger
    from agent_chatroom_ledger.storage.history import LogEntry


def record_commits(ledger: Ledger) -> list[LogEntry]:
    """Return the commits that hold records, newest first.

    Views are committed whenever nothing else is written for a moment, so all commits together are
    as many as the machine is slow.
    """
    return [entry for entry in ledger.log() if entry.kinds]
