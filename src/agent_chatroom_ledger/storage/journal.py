"""The journal: frames on stable storage, in generations (docs/design.md 4).

A frame that was synced is acknowledged, and never lost (invariant 3).

A generation is a file `journal/<16 digits>`: a header line, then frames with dense numbers. A
checkpoint starts the next one and carries over what main lacks; the newest old ones stay as a
change feed for followers.
"""

from __future__ import annotations

import contextlib
import errno
import os
import re
import threading
from typing import TYPE_CHECKING

import msgspec

from agent_chatroom_ledger import limits
from agent_chatroom_ledger.domain.frames import (
    Frame,
    Header,
    decode_line,
    encode_frame,
    encode_header,
)
from agent_chatroom_ledger.domain.numerals import decimal
from agent_chatroom_ledger.errors import Busy, Corrupt
from agent_chatroom_ledger.storage import failpoints, files
from agent_chatroom_ledger.storage.locks import FileLock

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from agent_chatroom_ledger.storage.layout import Layout

_READ_BYTES = 1 << 20
# How a frame's line begins. It cannot stand inside one: there a quotation mark is escaped.
_LINE_BEGINS = re.compile(rb'[0-9a-f]{8} \{"frame":')


def generation_path(layout: Layout, generation: int) -> Path:
    """Return the file of one generation."""
    return layout.journal / f"{generation:016d}"


def generations(layout: Layout) -> list[int]:
    """Return the generations that are kept, oldest first."""
    try:
        names = os.listdir(layout.journal)
    except FileNotFoundError:
        return []
    found = (decimal(name) for name in names if len(name) == 16)
    return sorted(generation for generation in found if generation is not None)


class Scan(msgspec.Struct):
    """What stands in a generation from some offset on."""

    header: Header | None
    frames: list[Frame]
    end: int  # just past the last valid line
    rest: bytes  # what follows it: empty, a torn tail, or rot


def scan(data: bytes, base: int, expected: int | None) -> Scan:
    """Decode lines of `data` (which starts at offset `base`) up to the first that is not valid."""
    header: Header | None = None
    frames: list[Frame] = []
    start = 0
    while True:
        stop = data.find(b"\n", start)
        if stop < 0:
            break
        try:
            line = decode_line(data[start : stop + 1])
        except Corrupt:
            break
        if isinstance(line, Header):
            if base + start != 0:
                break
            header = line
            expected = line.last_frame + 1
        else:
            if expected is not None and line.frame != expected:
                break
            frames.append(line)
            expected = line.frame + 1
        start = stop + 1
    return Scan(header, frames, base + start, data[start:])


def holds_valid_frame(data: bytes) -> bool:
    """Tell whether a valid line follows damage: then it is rot, not a torn tail."""
    position = data.find(b"\n")
    while position >= 0:
        stop = data.find(b"\n", position + 1)
        if stop < 0:
            return False
        try:
            decode_line(data[position + 1 : stop + 1])
        except Corrupt:
            position = stop
            continue
        return True
    return False


class Follower:
    """Reads frames as they come, without locks and without waiting; never a torn one.

    `position` is (generation, offset). Frames carried over into a new generation are not given
    twice. `lost` becomes True when generations it needed are gone: then it goes on with the
    oldest that is kept, and the caller has to reread what it derived.
    """

    def __init__(
        self,
        layout: Layout,
        generation: int | None = None,
        offset: int = 0,
        last_frame: int | None = None,
    ) -> None:
        """Start at a remembered place, or at the oldest generation that is kept."""
        self._layout = layout
        self._generation = generation
        self._offset = offset
        self._descriptor = -1
        self.last_frame = last_frame
        self.header: Header | None = None
        self.lost = False

    @classmethod
    def newest(cls, layout: Layout) -> Follower:
        """Start with the newest generation: what no checkpoint has covered."""
        kept = generations(layout)
        return cls(layout, kept[-1] if kept else None)

    @property
    def position(self) -> tuple[int, int]:
        """The generation and the offset up to which frames were given."""
        return (self._generation or 0, self._offset)

    def close(self) -> None:
        """Close the file."""
        descriptor, self._descriptor = self._descriptor, -1
        if descriptor >= 0:
            os.close(descriptor)

    def __del__(self) -> None:
        """Close the file of a forgotten follower."""
        self.close()

    def new_frames(self) -> list[Frame]:
        """Return the frames that were appended since the last call."""
        frames: list[Frame] = []
        while self._open():
            # Whether there is a next generation is asked before the rest of this one is read:
            # nothing is appended to a generation after its successor exists.
            assert self._generation is not None
            ended = generation_path(self._layout, self._generation + 1).exists()
            frames += self._read()
            if not ended:
                newest = generations(self._layout)
                if not newest or newest[-1] <= self._generation:
                    break
                ended = True
            self.close()
            self._generation += 1
            self._offset = 0
        return frames

    def _open(self) -> bool:
        if self._descriptor >= 0:
            return True
        for _ in range(100):
            kept = generations(self._layout) if self._generation is None else None
            if kept is not None:
                if not kept:
                    return False
                self._generation, self._offset = kept[0], 0
            assert self._generation is not None
            try:
                self._descriptor = os.open(
                    generation_path(self._layout, self._generation), os.O_RDONLY | os.O_CLOEXEC
                )
            except FileNotFoundError:
                self.lost = True
                later = [g for g in generations(self._layout) if g > self._generation]
                self._generation = later[0] if later else None
                self._offset = 0
                continue
            return True
        raise Busy("the journal's generations change faster than they can be read")

    def _read(self) -> list[Frame]:
        found: list[Frame] = []
        while True:
            size = os.fstat(self._descriptor).st_size
            if size <= self._offset:
                return found
            data = os.pread(self._descriptor, max(size - self._offset, 0), self._offset)
            found_here = scan(data, self._offset, None)
            if found_here.header is not None:
                self.header = found_here.header
                if self.last_frame is not None and found_here.header.last_frame > self.last_frame:
                    self.lost = True
            if found_here.end == self._offset:
                return found
            self._offset = found_here.end
            for frame in found_here.frames:
                if self.last_frame is not None and frame.frame <= self.last_frame:
                    continue
                found.append(frame)
                self.last_frame = frame.frame


def read_frames(layout: Layout) -> Iterator[Frame]:
    """Give every frame that the kept generations hold, each once, in order."""
    follower = Follower(layout)
    try:
        yield from follower.new_frames()
    finally:
        follower.close()


def salvage(data: bytes) -> list[Frame]:
    """Return every whole frame that stands somewhere in damaged bytes.

    One whose line begins late is found too: where the end of the line before it was damaged.
    """
    found: list[Frame] = []
    for line in data.split(b"\n")[:-1]:
        begins = (0, *(match.start() for match in _LINE_BEGINS.finditer(line, 1)))
        whole = next((one for at in begins if (one := _whole(line[at:])) is not None), None)
        if isinstance(whole, Frame):
            found.append(whole)
    return found


def _whole(line: bytes) -> Header | Frame | None:
    try:
        return decode_line(line + b"\n")
    except Corrupt:
        return None


class Journal:
    """The writer's end of the journal. Every method but `sync` needs the journal's lock held."""

    def __init__(self, layout: Layout) -> None:
        """Open nothing yet."""
        self._layout = layout
        self.lock = FileLock(layout.locks / "journal.lock")
        self._generation = 0
        self._failed = 0  # the generation whose sync failed: its mark may not have found room
        self._descriptor = -1
        self._swap = threading.Lock()  # threads sync while others go on to the next generation

    @property
    def generation(self) -> int:
        """The generation that appends go to."""
        return self._generation

    def close(self) -> None:
        """Close the file and the lock."""
        with self._swap:
            if self._descriptor >= 0:
                os.close(self._descriptor)
                self._descriptor = -1
        self.lock.close()

    def settle(self, generation: int = 0) -> bool:
        """Open the newest generation; False when there is none yet.

        A caller who has just looked which one is the newest gives its number.
        """
        with self._swap:
            return self._settle(generation)

    def _settle(self, generation: int = 0) -> bool:
        if self._descriptor >= 0 and (
            self._generation == generation
            or not os.path.exists(f"{self._layout.journal}/{self._generation + 1:016d}")
        ):
            return True
        kept = generations(self._layout)
        if not kept:
            return False
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1
        path = generation_path(self._layout, kept[-1])
        self._descriptor = os.open(path, os.O_RDWR | os.O_CLOEXEC)
        self._generation = kept[-1]
        return True

    def size(self) -> int:
        """Return the size of the newest generation in bytes."""
        return os.fstat(self._descriptor).st_size

    def mend_tail(self, end: int) -> None:
        """Move whatever follows the last valid frame (at `end`) out of the way.

        A torn tail was never acknowledged: it goes to quarantine and off. Damage before valid
        frames is rot: Corrupt, nothing is changed.
        """
        rest = self.rest(end)
        if holds_valid_frame(rest):
            raise Corrupt(
                f"generation {self._generation} of the journal is damaged at byte {end} before "
                "valid frames; run `rooms verify --repair --apply`",
                code="journal_rot",
                path=str(generation_path(self._layout, self._generation)),
                offset=end,
            )
        if rest:
            self.cut_off(end)

    def rest(self, end: int) -> bytes:
        """Return what follows the last valid frame."""
        size = self.size()
        return b"" if size == end else os.pread(self._descriptor, size - end, end)

    def cut_off(self, end: int) -> None:
        """Move everything from a place on to quarantine."""
        files.quarantine(self._layout, f"torn-{self._generation}-{end}", self.rest(end))
        failpoints.reach("journal.torn_kept")
        os.ftruncate(self._descriptor, end)

    def append(self, end: int, data: bytes) -> int:
        """Append whole lines at `end`, the end of the last valid frame; return the new end.

        All of `data` is appended, or nothing of it when the system refuses. Where the caller is
        interrupted, whole frames may stay of which nobody is told.
        """
        self.mend_tail(end)
        failpoints.reach("journal.append")
        try:
            if data.count(b"\n", 0, -1) and hasattr(os, "posix_fallocate"):
                # Committers read without the lock: the disk has to say no before the first of
                # several frames can be seen.
                self._reserve(end, len(data))
            files.write_all(self._descriptor, data, end)
            failpoints.reach("journal.appended")
        except OSError:
            os.ftruncate(self._descriptor, end)
            raise
        except BaseException:
            # A committer may have read the frames that are whole, and will commit them.
            os.ftruncate(self._descriptor, end + self.rest(end).rfind(b"\n") + 1)
            raise
        return end + len(data)

    def _reserve(self, end: int, size: int) -> None:
        """Let the disk have room; some file systems know no such promise."""
        try:
            os.posix_fallocate(self._descriptor, end, size)
        except OSError as error:
            if error.errno not in (errno.EOPNOTSUPP, errno.EINVAL):
                raise

    def sync(self, newest: int = 0) -> None:
        """Make every frame written so far durable.

        It is the newest generation that has to be synced, whoever started it: a generation is
        made durable, or what it holds is, before its successor exists. After a failed sync the
        generation takes no more frames, because the system may have dropped its pages: Busy, and
        a mark that sends the next append to a new generation. `newest` is as in `settle`.
        """
        with self._swap:
            self._settle(newest)
            generation = self._generation
            descriptor = os.dup(self._descriptor)
        path = generation_path(self._layout, generation)
        try:
            if not self.failed():
                files.sync_descriptor(descriptor)
                return
            reason: object = "an earlier sync of it failed"
        except OSError as error:
            self._failed = generation
            with contextlib.suppress(OSError):
                path.with_name(f"{path.name}.failed").touch()
            reason = error
        finally:
            os.close(descriptor)
        raise Busy(
            f"the disk refused to make the journal durable: {reason}; what this call wrote may be "
            "lost",
            code="sync_failed",
            path=str(path),
        )

    def failed(self) -> bool:
        """Tell whether the newest generation takes no more frames."""
        return self._failed == self._generation or os.path.exists(
            f"{self._layout.journal}/{self._generation:016d}.failed"
        )

    def start(self, header: Header, lines: Sequence[bytes]) -> None:
        """Start a generation with the frames it carries over, durably, in one step."""
        failpoints.reach("journal.rotate")
        data = encode_header(header) + b"".join(lines)
        temporary = files.write_temporary(self._layout, "journal", data, sync=True)
        failpoints.reach("journal.rotate_written")
        os.replace(temporary, generation_path(self._layout, header.generation))
        failpoints.reach("journal.rotate_renamed")
        files.sync_directory(self._layout.journal)
        self.settle()

    def restart(self, header: Header, frames: Sequence[Frame]) -> None:
        """Start a generation after one that could not be read on, with the frames main lacks."""
        renumbered = [
            msgspec.structs.replace(frame, frame=header.last_frame + 1 + place)
            for place, frame in enumerate(frames)
        ]
        self.start(header, [encode_frame(frame) for frame in renumbered])

    def trim(self) -> None:
        """Delete old generations beyond what is kept as a change feed."""
        kept = generations(self._layout)
        total = 0
        for generation in reversed(kept):
            path = generation_path(self._layout, generation)
            size = path.stat().st_size
            total += size
            if generation != kept[-1] and total > limits.JOURNAL_KEPT_BYTES:
                path.unlink()
                path.with_name(f"{path.name}.failed").unlink(missing_ok=True)
