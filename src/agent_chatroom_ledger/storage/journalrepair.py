"""Leaving a journal with damage before valid frames (docs/design.md 4).

What was appended since the generation's base stands in its whole lines or in main. A new
generation begins that holds all of it, or that stands on main once everything of main is durable.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

import msgspec

from agent_chatroom_ledger.domain.frames import Header
from agent_chatroom_ledger.domain.records import decode_record
from agent_chatroom_ledger.errors import Corrupt
from agent_chatroom_ledger.storage import damagedpacks, files, journal, mainfiles, refs
from agent_chatroom_ledger.storage.checkpoint import sync_objects
from agent_chatroom_ledger.storage.commits import COMMIT_FORMAT
from agent_chatroom_ledger.storage.history import ledgers_time
from agent_chatroom_ledger.storage.locks import FileLock
from agent_chatroom_ledger.storage.objects import NO_OBJECT, Objects
from agent_chatroom_ledger.storage.reading import record
from agent_chatroom_ledger.storage.repository import origin_of
from agent_chatroom_ledger.storage.source import CommitTree

if TYPE_CHECKING:
    from pathlib import Path

    from agent_chatroom_ledger.domain.frames import Frame
    from agent_chatroom_ledger.storage.layout import Layout

_INDEX_LOCK_WAIT_SECONDS_MAX = 1.0


def mend_journal(layout: Layout, done: list[str]) -> None:
    """Leave generations with damage before valid frames, and say so in `done`.

    Raises Corrupt for frames that neither the journal nor main has, while others are in the
    journal alone; and Busy while another program holds the lock of git's index.
    """
    if not journal.generations(layout):
        return
    commit_lock = FileLock(layout.locks / "commit.lock")
    own = journal.Journal(layout)
    objects = Objects(layout)
    try:
        # Nobody appends, commits or repairs between the look at what is there and the new
        # generation: a second repair would put one of its own in the place of the first's.
        with commit_lock, own.lock:
            *older, newest = journal.generations(layout)
            rotten = _rotten(layout, newest)
            if rotten is not None:
                own.settle()
                place = files.quarantine(layout, f"rot-{rotten.path.name}", rotten.data)
                _begin_anew(layout, own, objects, rotten, place)
                _drop(rotten.path, place, done)
            # A repair that was killed may have left one behind.
            for generation in older:
                rotten = _rotten(layout, generation)
                if rotten is not None:
                    place = files.quarantine(layout, f"rot-{rotten.path.name}", rotten.data)
                    _drop(rotten.path, place, done)
    finally:
        own.close()
        commit_lock.close()
        objects.close()


@dataclasses.dataclass(frozen=True)
class _Rotten:
    """A damaged generation: its file, its bytes, its number, and what can be read of it."""

    path: Path
    data: bytes
    generation: int
    header: Header | None
    frames: dict[int, Frame]


def _rotten(layout: Layout, generation: int) -> _Rotten | None:
    """Read a generation; None when it is whole, or ends in no more than a torn tail."""
    path = journal.generation_path(layout, generation)
    data = files.read_bytes(path) or b""
    scan = journal.scan(data, 0, None)
    if scan.header is not None and not (scan.rest and journal.holds_valid_frame(scan.rest)):
        return None
    frames = {frame.frame: frame for frame in (*scan.frames, *journal.salvage(scan.rest))}
    return _Rotten(path, data, generation, scan.header, frames)


def _drop(path: Path, place: Path, done: list[str]) -> None:
    """Delete a damaged generation: its bytes are in quarantine, and here they stop readers."""
    path.unlink()
    done.append(f"left the damaged journal {path.name}, kept in quarantine as {place.name}")


def _begin_anew(
    layout: Layout, own: journal.Journal, objects: Objects, rotten: _Rotten, place: Path
) -> None:
    """Start the generation after a damaged one."""
    header, frames = rotten.header, rotten.frames
    newest = max(frames, default=0)
    first = (header.last_frame if header else min(frames, default=1) - 1) + 1
    lost = [str(number) for number in range(first, newest + 1) if number not in frames]
    found = [frames[number] for number in range(first, newest + 1) if number in frames]
    if header is not None and not lost:
        # Everything is made again from the base, whatever has become of main.
        own.restart(msgspec.structs.replace(header, generation=rotten.generation + 1), found)
        return
    # A power cut may have come before the damage was met: nothing is built on what it has left.
    damagedpacks.set_aside(layout)
    main = refs.read_main(layout)
    tree = None if main == NO_OBJECT else CommitTree(objects, main)
    pending = [frame for frame in found if tree is None or not _is_in(frame, tree)]
    if tree is None or (lost and pending):
        lacks = f"frames {', '.join(lost)}" if lost else "every frame"
        raise Corrupt(
            f"the journal is damaged, and main lacks {lacks}; the bytes are kept in {place}. "
            "Nothing was changed: ask for help before deleting anything",
            code="journal_rot",
            path=str(place),
        )
    at = ledgers_time(objects, main)
    if header is not None:
        at = max(at, header.newest_at)
    for frame in found:
        at = max([at, *(decode_record(bytes(item.record)).at for item in frame.records)])
    # As at any checkpoint: what a generation stands on is durable and shown before it begins.
    # Who reads asks the journal and the work tree, and no later checkpoint looks below the base.
    refs.take_mark(layout, f"{layout.git}/index.lock", _INDEX_LOCK_WAIT_SECONDS_MAX)
    mainfiles.write_anew(layout, objects, main)
    sync_objects(layout, header.base if header else NO_OBJECT, main)
    own.restart(
        Header(
            generation=rotten.generation + 1,
            base=main,
            newest_at=at,
            last_frame=newest - len(pending),
            commit_format=COMMIT_FORMAT,
            origin=header.origin if header else origin_of(layout) or "",
        ),
        pending,
    )


def _is_in(frame: Frame, tree: CommitTree) -> bool:
    """Tell whether a commit's tree holds every record of a frame; views can be folded again."""
    for item in frame.records:
        line = bytes(item.record)
        if record(tree, item.log, decode_record(line).n) != line:
            return False
    return True
