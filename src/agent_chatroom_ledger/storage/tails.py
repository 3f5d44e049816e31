"""The newest segment of each log in a tree under construction, and the lines that go there next.

A frame may hold thousands of records, and no commit shows a segment as it was between two of them.
So lines are gathered, and each segment is written, hashed and stored once for each frame.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from agent_chatroom_ledger.domain.segments import (
    first_of,
    in_order,
    segment_path,
    starts_new_segment,
)
from agent_chatroom_ledger.errors import Corrupt

if TYPE_CHECKING:
    from agent_chatroom_ledger.storage.packs import PackBuilder
    from agent_chatroom_ledger.storage.trees import TreeEditor

_TAILS_MAX = 20_000


class Tail:
    """The newest segment of a log: `count` records and `size` bytes, waiting lines included."""

    __slots__ = ("count", "first", "last", "path", "size", "waiting", "written")

    def __init__(self, path: str, first: int, count: int, size: int) -> None:
        """Take what the tree holds of the segment."""
        self.path = path
        self.first = first
        self.count = count
        self.size = self.written = size
        self.last = first + count - 1
        self.waiting: list[bytes] = []

    def takes(self, n: int) -> bool:
        """Tell whether record `n` joins this segment rather than opening the next one."""
        return bool(self.count) and not starts_new_segment(self.first, self.count, self.size, n)


class Tails:
    """The tails of the logs that were written to, which `write` brings into the tree."""

    def __init__(self, editor: TreeEditor) -> None:
        """Know nothing yet of the tree that `editor` changes."""
        self._editor = editor
        self._known: dict[str, Tail] = {}
        self._waiting: dict[str, Tail] = {}

    def known(self, log: str) -> Tail | None:
        """Return a log's tail if it was looked at before."""
        return self._known.get(log)

    def of(self, log: str) -> Tail:
        """Return a log's tail; an empty one, which is not kept, for a log without records."""
        return self._known.get(log) or self._load(log)

    def append(self, log: str, n: int, line: bytes, pack: PackBuilder) -> None:
        """Let record `n`, which follows the tail, wait; a segment that it leaves is written."""
        tail = self._known.get(log) or self._load(log)
        assert n == tail.last + 1, "whoever appends has looked"
        if not tail.takes(n):
            if tail.waiting:
                self._write(tail, pack)
            tail = self._known[log] = Tail(f"{log}/{segment_path(n)}", n, 0, 0)
        tail.waiting.append(line)
        self._waiting[log] = tail
        tail.count += 1
        tail.size += len(line) + 1
        tail.last = n

    def write(self, pack: PackBuilder) -> None:
        """Write what waits: readers of the tree then see every record that was appended."""
        for tail in self._waiting.values():
            self._write(tail, pack)
        self._waiting.clear()
        if len(self._known) > _TAILS_MAX:
            self._known.clear()

    def forget(self, room: str) -> None:
        """Forget the logs of a room whose directory was removed or put back; nothing may wait."""
        assert not self._waiting, "what waits is written before directories are moved"
        for log in [log for log in self._known if log.startswith(f"{room}/")]:
            del self._known[log]

    def _write(self, tail: Tail, pack: PackBuilder) -> None:
        lines = b"\n".join((*tail.waiting, b""))
        tail.waiting.clear()
        if tail.written:
            older = self._editor.read(tail.path)
            if older is None or len(older) != tail.written:
                raise Corrupt(f"segment {tail.path} changed under us", path=tail.path)
            lines = older + lines
        self._editor.write(tail.path, lines, pack)
        tail.written = tail.size

    def _load(self, log: str) -> Tail:
        directory = log
        for _ in range(2):
            names = in_order([n for n in self._editor.names(directory) if n.endswith("/")])
            if not names:
                return Tail("", 1, 0, 0)
            directory = f"{directory}/{names[-1].rstrip('/')}"
        names = in_order([n for n in self._editor.names(directory) if not n.endswith("/")])
        if not names:
            raise Corrupt(f"{directory} of the committed tree holds no segment", path=directory)
        path = f"{directory}/{names[-1]}"
        data = self._editor.read(path) or b""
        tail = Tail(path, first_of(names[-1]), data.count(b"\n"), len(data))
        if not data.endswith(b"\n"):
            raise Corrupt(f"segment {path} of the committed tree is cut off", path=path)
        self._known[log] = tail
        return tail
