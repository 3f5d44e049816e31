"""One short life of a ledger that reaches every point of the write path, call by call.

Each call is named, so that a test can fail it at some point and see that it tells the truth: an
error means that nothing was written, unless it says that the record is safe.
"""

from __future__ import annotations

import errno
import os
import warnings
from typing import TYPE_CHECKING

from agent_chatroom_ledger import Ledger, versions
from agent_chatroom_ledger.domain.versions import Bundle, levels_shape
from agent_chatroom_ledger.errors import LedgerError, NotYetCommitted
from tests.faults import workload
from tests.faults.soundness import Acknowledged, Notebook

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from agent_chatroom_ledger.domain.records import Message
    from agent_chatroom_ledger.room import Room
    from tests.faults.workload import Mode

ROOM = "rooms/design-review"
POSTS = 18


class Life:
    """Drives one ledger through every kind of write; what returned stands in `notes`."""

    def __init__(self, root: Path, notes: Path, mode: Mode) -> None:
        self.root = root
        self.mode = mode
        self.notebook = Notebook(notes)
        self.refused: list[LedgerError] = []
        self.seen = 0

    def live(self) -> None:
        """Create, post, change the policy, compile, acknowledge, merge packs, close."""
        ledger = self.attempt(lambda: Ledger.open(self.root, create=True, commit=self.mode))
        room = self.attempt(lambda: ledger.create_room("Design review", members=["A"], id=_uuid(1)))
        self.post(room, 1)
        self.post(room, 2)
        # More than a page of the disk's at once, of which a power cut may take any.
        body = "one of many " * 60
        drafts = [{"author": "A", "body": f"{i} {body}", "id": f"many-{i}"} for i in range(24)]
        self.attempt(lambda: self.note(*room.post_many(drafts)))
        self.attempt(lambda: room.exclude("2", by="Reviewer", reason="noise"))
        self.attempt(room.compile)
        self.acknowledge(ledger, room)
        self.prepare(room, 1, "short")
        for number in range(3, POSTS):
            self.post(room, number)
        self.prepare(room, 3, "x" * 9_000)
        self.attempt(ledger.flush)
        self.acknowledge(ledger, room)
        self.post(room, POSTS)
        self.attempt(ledger.close, again=False)
        with warnings.catch_warnings():
            # A ledger that cannot be recovered for want of room is opened all the same.
            warnings.simplefilter("ignore", UserWarning)
            ledger = self.attempt(lambda: Ledger.open(self.root, commit=self.mode))
        self.post(ledger.room(ROOM), POSTS + 1)
        self.attempt(ledger.close, again=False)

    def attempt(self, call: Callable[[], object], *, again: bool = True) -> object:
        """Make a call; when it is refused, make it once more, as a caller would."""
        try:
            return call()
        except LedgerError as error:
            self.refused.append(error)
            return call() if again else None

    def post(self, room: Room, number: int) -> None:
        """Post under an id, and once more after a refusal, unless the message is safe already."""
        before = room.last_position().get(room.origin, 0)

        def call() -> None:
            self.note(room.post("Analyst", f"message {number} {workload.BODIES[number % 5]}"))

        try:
            call()
        except NotYetCommitted as error:
            self.refused.append(error)
            (record,) = error.records
            assert record.n == before + 1
            self.notebook.write(Acknowledged(ROOM, record.n, record.id, record.body))
        except LedgerError as error:
            self.refused.append(error)
            now = room.last_position().get(room.origin, 0)
            if now != before and error.code != "sync_failed":  # which says that it may be there
                raise AssertionError(f"{error.code}: refused, but written") from error
            call()

    def prepare(self, room: Room, n: int, fill: str) -> None:
        """Set a message's versions: a long text makes an artifact, which waits for its commit."""
        texts = (room.message(n).body, *(f"{fill} {level}" for level in range(1, 10)))
        found = self.attempt(
            lambda: versions.set_versions(room, n, levels_shape(texts), by="Editor")
        )
        assert isinstance(found, Bundle)
        assert found.levels == texts

    def note(self, *messages: Message) -> None:
        self.notebook.note(ROOM, *messages)

    def acknowledge(self, ledger: Ledger, room: Room) -> None:
        """Move a consumer's cursor; what was acknowledged stays acknowledged."""
        reader = ledger.consumer("Reviewer")
        assert reader.position(room).get(room.origin, 0) == self.seen
        position = self.attempt(lambda: reader.acknowledge(room))
        assert isinstance(position, dict)
        self.seen = position[room.origin]
        self.notebook.seen(self.seen)


def _uuid(number: int) -> str:
    return f"01a229c5-23d6-7000-8000-{number:012d}"


def full(point: str) -> None:
    """Fail as a full disk does."""
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), point)
