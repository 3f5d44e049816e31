"""What the journal holds beyond the files: the records of its frames, by log and number."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from agent_chatroom_ledger.domain.tombstones import restores_room
from agent_chatroom_ledger.errors import Corrupt
from agent_chatroom_ledger.limits import NUMBER_MAX

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from agent_chatroom_ledger.domain.frames import Frame

_NOTHING: Mapping[int, bytes] = {}
_PREFIX = b'{"n":'


class Overlay:
    """The records of journal frames, laid over a source: for every number it holds, it wins.

    Files may lag behind the journal, and after a power cut hold zeros; frames carry a checksum.
    Within one log the numbers it holds are consecutive, because a journal is.
    """

    __slots__ = ("_bounds", "_decoded", "_origins", "_raw")

    def __init__(self, frames: Iterable[Frame] = ()) -> None:
        self._raw: dict[str, list[bytes]] = {}
        self._decoded: dict[str, dict[int, bytes]] = {}
        self._bounds: dict[str, tuple[int, int]] = {}
        # By the path above the origins, such as rooms/design-review/messages.
        self._origins: dict[str, list[str]] = {}
        self.extend(frames)

    def extend(self, frames: Iterable[Frame]) -> None:
        """Take in further frames, which must come in journal order."""
        for frame in frames:
            # The logs of a restored room come with its files: a record alone would be a gap.
            alone = len(frame.records) > 1 and restores_room(frame)
            for entry in frame.records[:1] if alone else frame.records:
                waiting = self._raw.get(entry.log)
                if waiting is None:
                    waiting = self._raw[entry.log] = []
                    above, _, origin = entry.log.rpartition("/")
                    self._origins.setdefault(above, []).append(origin)
                waiting.append(bytes(entry.record))

    def lines(self, log: str) -> Mapping[int, bytes]:
        """Return the lines held of a log, by number, ascending; empty when there are none."""
        raw = self._raw.get(log)
        if raw is None:
            return _NOTHING
        decoded = self._decoded.setdefault(log, {})
        if raw:
            first, last = self._bounds.get(log, (NUMBER_MAX, 0))
            for line in raw:
                n = number_of(line)
                decoded[n] = line
                first, last = min(first, n), max(last, n)
            raw.clear()
            self._bounds[log] = first, last
        return decoded

    def bounds(self, log: str) -> tuple[int, int] | None:
        """Return the first and the last number held of a log; None when there are none."""
        return self._bounds.get(log) if self.lines(log) else None

    def origins(self, above: str) -> Sequence[str]:
        """Return the origins that wrote below a path such as ``rooms/design-review/messages``."""
        return self._origins.get(above, ())

    def rooms(self) -> set[str]:
        """Return the paths of the rooms of which records are held."""
        return {above.rpartition("/")[0] for above in self._origins} - {""}

    def __bool__(self) -> bool:
        return bool(self._raw)


class _Numbered(msgspec.Struct):
    n: int


_numbered = msgspec.json.Decoder(_Numbered)


def number_of(line: bytes) -> int:
    """Return the number of a record line; Corrupt when it has none."""
    if line.startswith(_PREFIX):
        end = line.find(b",", len(_PREFIX), len(_PREFIX) + 10)
        digits = line[len(_PREFIX) : end]
        if end > 0 and digits.isdigit():
            return int(digits)
    try:
        return _numbered.decode(line).n
    except msgspec.DecodeError as error:
        raise Corrupt(f"A record has no readable number: {error}.") from error
