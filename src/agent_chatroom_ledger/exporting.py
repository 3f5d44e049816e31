"""Writing a room out, as it is or as it was at a commit."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agent_chatroom_ledger.domain.exports import FORMATS, Export
from agent_chatroom_ledger.errors import InvalidInput

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime

    from agent_chatroom_ledger.domain.lenses import LensItem
    from agent_chatroom_ledger.domain.policy import Policy
    from agent_chatroom_ledger.room import Room
    from agent_chatroom_ledger.storage.roomreader import RoomReader


def export(
    room: Room,
    format: str = "md",  # noqa: A002 - the option's own word
    *,
    at: str | datetime | None = None,
    shown: bool = False,
) -> Iterator[str]:
    """Yield a room as text of a format, ``md``, ``json``, ``jsonl`` or ``html``, in parts.

    ``at`` takes it as it was at a commit or time. Everything that was said is written, or with
    ``shown`` what the policy shows of it. Messages are read as they are written, so memory does
    not grow with the room. Raises InvalidInput for another format.
    """
    write = FORMATS.get(format)
    if write is None:
        raise InvalidInput(
            f"There is no export format {format[:80]!r}; there are {', '.join(FORMATS)}.",
            field="format",
        )
    commit = "" if at is None else room.ledger.commit_at(at)
    reader = room.reader(commit or None)
    state = reader.state()
    items = _shown(reader, state.policy) if shown else reader.after()
    return write(
        Export(state=state, position=reader.positions(), commit=commit, shown=shown), items
    )


def _shown(reader: RoomReader, policy: Policy) -> Iterator[LensItem]:
    anchors = policy.by_anchor()
    for message in reader.after():
        if not policy.excludes(message.origin, message.n):
            yield message
        yield from anchors.get((message.origin, message.n), ())
