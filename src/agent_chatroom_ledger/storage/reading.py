r"""Logs read by the names of their segments, from any source, under the journal's overlay.

A log is a run of segment files, each named by the number of its first record, so the n-th record
is found by name, and the last fifty cost the last segments however long the log is. Lines end at
``\n`` only (JSON may hold other line separators raw), and what follows the last ``\n`` is a write
in progress: it is not read.
"""

from __future__ import annotations

from bisect import bisect_right
from itertools import islice
from typing import TYPE_CHECKING

from agent_chatroom_ledger.domain.names import is_origin
from agent_chatroom_ledger.domain.numerals import decimal
from agent_chatroom_ledger.domain.order import order_key
from agent_chatroom_ledger.domain.records import message_at
from agent_chatroom_ledger.domain.segments import SUFFIX, directory_of, in_order, segment_path
from agent_chatroom_ledger.errors import Corrupt
from agent_chatroom_ledger.limits import FOLDER_DEPTH_MAX

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator

    from agent_chatroom_ledger.domain.records import Message
    from agent_chatroom_ledger.storage.overlay import Overlay
    from agent_chatroom_ledger.storage.source import Source

MESSAGES = "messages"
OPERATIONS = "operations"
ROOMS = "rooms"
_NAME_CHARS = 8 + len(SUFFIX)


def log_path(room: str, log: str, origin: str) -> str:
    """Return the path of a log, ``rooms/design-review/messages/mbp-3f2a``.

    The ledger's own operations have no room: give ``""``.
    """
    return f"{room}/{log}/{origin}" if room else f"{log}/{origin}"


def room_of(log: str) -> str:
    """Return the room that a log's path lies in; ``""`` for the ledger's own log."""
    parts = log.rsplit("/", 2)
    return parts[0] if len(parts) > 2 else ""


def origins(source: Source, room: str, log: str, overlay: Overlay | None = None) -> list[str]:
    """Return the origins that wrote to a room's log, sorted.

    A directory whose name no origin may have is nobody's log: a commit by hand may name it as it
    likes, and origins stand in references, in the headers of pages and on terminals (invariant 7).
    """
    above = f"{room}/{log}" if room else log
    found = {name[:-1] for name in source.names(above) if name.endswith("/")}
    if overlay:
        found.update(overlay.origins(above))
    return sorted(filter(is_origin, found))


def last_number(source: Source, log: str, overlay: Overlay | None = None) -> int:
    """Return the number of a log's newest record; 0 for an empty or missing log."""
    bounds = overlay.bounds(log) if overlay else None
    held = bounds[1] if bounds else 0
    for first in _segments_descending(source, log):
        if lines := _segment(source, log, first):
            return max(held, first + len(lines) - 1)
    return held


def record(source: Source, log: str, n: int, overlay: Overlay | None = None) -> bytes | None:
    """Return the line of one record, without its line end; None when the log has no such number."""
    if overlay and (line := overlay.lines(log).get(n)) is not None:
        return line
    if n < 1:
        return None
    firsts = _segments_in(source, log, directory_of(n))
    index = bisect_right(firsts, n) - 1
    if index < 0:
        return None
    lines = _segment(source, log, firsts[index])
    place = n - firsts[index]
    return lines[place] if place < len(lines) else None


def some_records(source: Source, log: str, numbers: Iterable[int]) -> Iterator[tuple[int, bytes]]:
    """Yield the records of some numbers, ascending, as (number, line); a missing one is left out.

    Each segment is read once, however many of its records are wanted.
    """
    directory, segment = "", 0
    firsts: list[int] = []
    lines: list[bytes] = []
    for n in sorted(numbers):
        if directory_of(n) != directory:
            directory = directory_of(n)
            firsts = _segments_in(source, log, directory)
        index = bisect_right(firsts, n) - 1
        if index < 0:
            continue
        if firsts[index] != segment:
            segment = firsts[index]
            lines = _segment(source, log, segment)
        if n - segment < len(lines):
            yield n, lines[n - segment]


def records(
    source: Source,
    log: str,
    after: int = 0,
    through: int | None = None,
    overlay: Overlay | None = None,
) -> Iterator[tuple[int, bytes]]:
    """Yield the records of a log as (number, line), ascending.

    Only numbers greater than ``after`` and at most ``through`` are given, and only the segments
    that hold them are read. Raises Corrupt where a number is missing (invariant 1).
    """
    bounds = overlay.bounds(log) if overlay else None
    if overlay is None or bounds is None:
        yield from _records_of_files(source, log, after, through)
        return
    held, (first, last) = overlay.lines(log), bounds
    if after < first - 1:
        stop = first - 1 if through is None else min(first - 1, through)
        reached = after
        for reached, line in _records_of_files(source, log, after, stop):
            yield reached, line
        if reached < stop:
            raise _gap(log, reached + 1)
    stop = last if through is None else min(last, through)
    for n in range(max(after + 1, first), stop + 1):
        if n not in held:
            raise _gap(log, n)
        yield n, held[n]
    if through is None or through > last:
        # The files can be newer than the journal we read, because we read the journal first.
        yield from _records_of_files(source, log, max(after, last), through)


def records_descending(
    source: Source, log: str, overlay: Overlay | None = None
) -> Iterator[tuple[int, bytes]]:
    """Yield the records of a log as (number, line), newest first; Corrupt where one is missing."""
    bounds = overlay.bounds(log) if overlay else None
    below: int | None = None
    if overlay is not None and bounds is not None:
        held, (oldest, newest) = overlay.lines(log), bounds
        for n, line in _descending(source, log):
            if n <= newest:
                break
            yield n, line
        for n in range(newest, oldest - 1, -1):
            if n not in held:
                raise _gap(log, n)
            yield n, held[n]
        below = oldest
    for n, line in _descending(source, log, below):
        if below is not None and n != below - 1:
            raise _gap(log, below - 1)
        yield n, line
        below = n
    if below is not None and below > 1:
        raise _gap(log, below - 1)


def last_records(
    source: Source, log: str, count: int, overlay: Overlay | None = None
) -> list[tuple[int, bytes]]:
    """Return the newest ``count`` records of a log as (number, line), ascending."""
    found = list(islice(records_descending(source, log, overlay), count))
    found.reverse()
    return found


def segments(source: Source, log: str) -> list[int]:
    """Return the first numbers of all segments of a log, ascending."""
    return list(_segments_ascending(source, log, 1))


def is_followed(source: Source, room: str, operation: Message, own: Collection[str]) -> bool:
    """Tell whether an operation of the journal precedes one that the files have, of another origin.

    A merge may have brought that from a clone whose clock is ahead. Then what the files say is no
    state to go on from: all operations have to be folded in canonical order. ``own`` are the
    origins that the journal's operations are of.
    """
    for origin in origins(source, room, OPERATIONS):
        log = log_path(room, OPERATIONS, origin)
        if origin not in own and (n := last_number(source, log)):
            line = record(source, log, n)
            newest = line and message_at(line, origin, OPERATIONS, n, primary=False)
            if not newest or order_key(newest) > order_key(operation):
                return True
    return False


def lines_of(data: bytes) -> list[bytes]:
    """Split a segment's bytes into its whole lines; what follows the last line end is left out."""
    lines = data.split(b"\n")
    lines.pop()
    return lines


def rooms(source: Source, overlay: Overlay | None = None) -> list[str]:
    """Return the paths of all rooms, sorted; it looks into every folder, so prefer the index."""
    found: set[str] = set()
    waiting = [(ROOMS, 0)]
    while waiting:
        directory, depth = waiting.pop()
        names = source.names(directory)
        if depth and _is_room(names):
            found.add(directory)
        elif depth <= 2 * FOLDER_DEPTH_MAX + 2:
            # Each folder level may add one of its own for crowded folders.
            waiting += [(f"{directory}/{n[:-1]}", depth + 1) for n in names if n.endswith("/")]
    if overlay:
        found |= overlay.rooms()
    return sorted(found)


def is_room(source: Source, path: str, overlay: Overlay | None = None) -> bool:
    """Say whether there is a room at exactly this path."""
    if not path.startswith(ROOMS + "/"):
        return False
    if overlay and any(overlay.origins(f"{path}/{log}") for log in (OPERATIONS, MESSAGES)):
        return True
    return _is_room(source.names(path))


def _is_room(names: list[str]) -> bool:
    return OPERATIONS + "/" in names or "room.json" in names or MESSAGES + "/" in names


def _records_of_files(
    source: Source, log: str, after: int, through: int | None
) -> Iterator[tuple[int, bytes]]:
    expected = after + 1
    if through is not None and through < expected:
        return
    start = expected
    for first in _segments_ascending(source, log, start):
        if through is not None and first > through:
            return
        lines = _segment(source, log, first)
        if first > expected:
            # A writer may have filled the segment before this one since we listed its directory.
            while (line := record(source, log, expected)) is not None and expected < first:
                yield expected, line
                expected += 1
            if first > expected:
                raise _gap(log, expected)
        stop = len(lines) if through is None else min(len(lines), through - first + 1)
        for index in range(expected - first, stop):
            yield first + index, lines[index]
        expected = max(expected, first + stop)


def _descending(source: Source, log: str, below: int | None = None) -> Iterator[tuple[int, bytes]]:
    for first in _segments_descending(source, log, below):
        lines = _segment(source, log, first)
        stop = len(lines) if below is None else min(len(lines), below - first)
        for index in range(stop - 1, -1, -1):
            yield first + index, lines[index]
            below = first + index


def _segment(source: Source, log: str, first: int) -> list[bytes]:
    return lines_of(source.read(f"{log}/{segment_path(first)}") or b"")


def _segments_in(source: Source, log: str, directory: str) -> list[int]:
    found = [
        first
        for name in source.names(f"{log}/{directory}")
        if len(name) == _NAME_CHARS and name.endswith(SUFFIX) and (first := decimal(name[:8]))
    ]
    found.sort()
    return found


def _levels(source: Source, directory: str) -> list[str]:
    found = in_order(name for name in source.names(directory) if name.endswith("/"))
    return [name[:-1] for name in found]


def _segments_ascending(source: Source, log: str, n: int) -> Iterator[int]:
    """Yield the first numbers of the segments that hold ``n`` and what follows it."""
    high, _, low = directory_of(n).partition("/")
    for outer in _levels(source, log):
        if int(outer) < int(high):
            continue
        for inner in _levels(source, f"{log}/{outer}"):
            if int(outer) == int(high) and int(inner) < int(low):
                continue
            firsts = _segments_in(source, log, f"{outer}/{inner}")
            yield from firsts[max(bisect_right(firsts, n) - 1, 0) :]


def _segments_descending(source: Source, log: str, below: int | None = None) -> Iterator[int]:
    """Yield the first numbers of the segments that hold numbers smaller than ``below``.

    Numbers have no gaps, so the directory of the segment before this one is known without
    looking; it stops where that one is missing.
    """
    if below is None:
        firsts = _newest_directory(source, log)
    elif below > 1:
        firsts = [n for n in _segments_in(source, log, directory_of(below - 1)) if n < below]
    else:
        return
    while firsts:
        yield from reversed(firsts)
        if firsts[0] <= 1:
            return
        firsts = _segments_in(source, log, directory_of(firsts[0] - 1))


def _newest_directory(source: Source, log: str) -> list[int]:
    """Return the first numbers of the segments in the newest directory that has any."""
    for outer in reversed(_levels(source, log)):
        for inner in reversed(_levels(source, f"{log}/{outer}")):
            if firsts := _segments_in(source, log, f"{outer}/{inner}"):
                return firsts
    return []


def _gap(log: str, n: int) -> Corrupt:
    return Corrupt(
        f"Record {n} of {log} is missing although later ones are there; "
        "`rooms verify --repair` puts back what main has.",
        log=log,
        n=n,
    )
