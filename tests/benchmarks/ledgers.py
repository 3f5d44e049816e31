"""Ledgers of a given size for the benchmarks, each made once and then used as it stands."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.benchmarks.measure import BODY

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from agent_chatroom_ledger import Ledger, Room
    from tests.benchmarks.measure import Scale

ROOM = "Review"
PEOPLE = ("Analyst", "Reviewer", "Builder")
_BATCH = 1_000


def drafts(count: int) -> Iterator[dict[str, str]]:
    """Yield messages in the manner of a room where three take turns."""
    for number in range(count):
        yield {"author": PEOPLE[number % len(PEOPLE)], "body": f"{number}: {BODY}"}


def fill(room: Room, count: int) -> None:
    """Post messages in batches, as an import does."""
    for start in range(0, count, _BATCH):
        room.post_many(list(drafts(min(_BATCH, count - start))))


def made(scale: Scale, name: str, *, messages: int, rooms: int) -> Path:
    """Return a ledger of `rooms` rooms whose room "Review" holds `messages`; the rest hold ten."""
    from agent_chatroom_ledger import Ledger

    root = scale.folder / f"{name}-{messages}-{rooms}"
    if not root.exists():
        with Ledger.open(root, create=True, commit="group") as ledger:
            fill(ledger.create_room(ROOM, members=PEOPLE), messages)
            for number in range(1, rooms):
                fill(ledger.create_room(f"Side room {number}", members=PEOPLE), 10)
    return root


def large(scale: Scale) -> Path:
    """Return the ledger of 100,000 messages and 200 rooms (5,000 and 20 when quick)."""
    return made(scale, "large", messages=scale.size(100_000, 5_000), rooms=scale.size(200, 20))


def opened(root: Path, commit: str = "sync") -> Ledger:
    """Open a ledger in one of the two commit modes."""
    from agent_chatroom_ledger import Ledger

    return Ledger.open(root, create=True, commit=commit)
