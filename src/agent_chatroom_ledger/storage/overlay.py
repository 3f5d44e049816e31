"""What the journal holds beyond the files: the records of its frames, by log and number."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from agent_chatroom_ledger.errors import Corrupt

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from agent_chatroom_ledger.domain.frames import Frame

_NOTHING: Mapping[int, bytes] = {}
_PREFIX = b'{"n":'


class Overlay:
    """The records of journal frames, laid over a source: for every number it holds, it wins.

    Files may lag behind the journal, and after a power cut hold zeros; frames carry a checksum.
    Within one log the numbers it holds are consecutive, because a journal is.
    """

    __slots__ = ("_decoded", "_raw")

    def __init__(self, frames: Iterable[Frame] = ()) -> None:
        self._raw: dict[str, list[bytes]] = {}
        self._decoded: dict[str, dict[int, bytes]] = {}
        self.extend(frames)

    def extend(self, frames: Iterable[Frame]) -> None:
        """Take in further frames, which must come in journal order."""
        for frame in frames:
            for entry in frame.records:
                self._raw.setdefault(entry.log, []).append(bytes(entry.record))

    def lines(self, log: str) -> Mapping[int, bytes]:
        """Return the lines held of a log, by number, ascending; empty when there are none."""
        raw = self._raw.get(log)
        if raw is None:
            return _NOTHING
        decoded = self._decoded.setdefault(log, {})
        # A frame met twice (it was carried over into a new generation) repeats its number with
        # the same bytes, so the count of lines says where to go on, and a repetition is harmless.
        for line in raw:
            decoded[number_of(line)] = line
        raw.clear()
        return decoded

    def logs(self) -> Iterable[str]:
        """Return the paths of the logs of which records are held."""
        return self._raw.keys()

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
