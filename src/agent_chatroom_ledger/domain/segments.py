"""Where a record of a log lies: segment files, each named by the number of its first record.

A log is a run of segments in two levels of directories, ``nn/nn/00000001.jsonl``. A segment is
closed by its own bytes alone, so every writer and every replay closes it at the same record, and
nothing that an append rewrites grows with the room.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from agent_chatroom_ledger.errors import Corrupt
from agent_chatroom_ledger.limits import NUMBER_MAX, SEGMENT_BYTES_MAX, SEGMENT_RECORDS_MAX

if TYPE_CHECKING:
    from collections.abc import Iterable

SUFFIX: Final = ".jsonl"

_OUTER_NUMBERS: Final = 100_000
_INNER_NUMBERS: Final = 1_000
_INNER_DIRECTORIES: Final = 100
_SEGMENT: Final = re.compile(r"(\d{8})\.jsonl\Z", re.ASCII)
_ORDERED: Final = re.compile(r"(\d{2,8})(?:\.jsonl|/)?\Z", re.ASCII)


def directory_of(n: int) -> str:
    """Return the directory, inside its log, of the segment that record ``n`` lies in: ``00/00``."""
    return f"{n // _OUTER_NUMBERS:02d}/{n // _INNER_NUMBERS % _INNER_DIRECTORIES:02d}"


def segment_path(first: int) -> str:
    """Return the path, inside its log, of the segment whose first record is ``first``."""
    return f"{directory_of(first)}/{first:08d}{SUFFIX}"


def first_of(name: str) -> int:
    """Return the number of a segment's first record from its name, with or without directories.

    Raises Corrupt for a name that no segment has.
    """
    match = _SEGMENT.match(name.rpartition("/")[2])
    first = 0 if match is None else int(match[1])
    if not 1 <= first <= NUMBER_MAX:
        message = f"not the name of a segment: {name[:64]!r}"
        raise Corrupt(message, path=name[:200])
    return first


def starts_new_segment(first: int, count: int, size: int, n: int) -> bool:
    """Tell whether record ``n`` opens a new segment rather than joining the one before it.

    ``first``, ``count`` and ``size`` are the first number, the records and the bytes of the newest
    segment. It is closed when it holds 50 records, or 32 KiB or more (the record that crossed stays
    in it), or when ``n`` belongs to another directory.
    """
    return (
        count >= SEGMENT_RECORDS_MAX
        or size >= SEGMENT_BYTES_MAX
        or n // _INNER_NUMBERS != first // _INNER_NUMBERS
    )


def in_order(names: Iterable[str]) -> list[str]:
    """Return the names that are ours, of directories or of segments, in the order of their numbers.

    Plain sorting is not enough: the outer directory has three digits from record 10,000,000 on.
    Names that no segment and no directory of segments has are left out; directories may end in
    ``/``.
    """
    numbered = [(int(match[1]), name) for name in names if (match := _ORDERED.match(name))]
    return [name for _, name in sorted(numbered)]
