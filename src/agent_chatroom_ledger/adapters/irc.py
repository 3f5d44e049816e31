"""Import of IRC channel logs: every line becomes a record of its room, or is reported."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, Final

from agent_chatroom_ledger.adapters.irc_lines import LineParser, day_of
from agent_chatroom_ledger.domain.records import is_history
from agent_chatroom_ledger.errors import InvalidInput, NotFound
from agent_chatroom_ledger.limits import BATCH_FRAMES_MAX, POST_MANY_MAX

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from agent_chatroom_ledger.domain.records import Draft
    from agent_chatroom_ledger.ledger import Ledger
    from agent_chatroom_ledger.room import Room

# A longer line is stored in pieces: escaped or in base64 each still fits a record's body and data.
LINE_BYTES_MAX: Final = 32_768
# Of the lines that were not stored as they stand the first are kept one by one, the others counted.
BAD_LINES_KEPT_MAX: Final = 1_000

_BYTE_ORDER_MARK: Final = b"\xef\xbb\xbf"


@dataclass(frozen=True, kw_only=True, slots=True)
class BadLine:
    """A line that is not stored as it stands: its file, its number from 1, and why."""

    file: str
    line: int
    reason: str


@dataclass(frozen=True, kw_only=True, slots=True)
class ImportReport:
    """What an import did: every line read is one of messages, events, skipped or not stored.

    `skipped` lines were already in the room. `bad_lines` holds the first 1,000 lines that were
    not stored as they stand, `bad_count` says how many there are. A line of more than 32 KiB makes
    several records, so the sum of the records can be above `lines`.
    """

    files: int
    lines: int
    messages: int
    events: int
    skipped: int
    bad_lines: tuple[BadLine, ...]
    bad_count: int

    def as_dict(self) -> dict[str, object]:
        """Return the report as plain JSON values."""
        return {
            "files": self.files,
            "lines": self.lines,
            "messages": self.messages,
            "events": self.events,
            "skipped": self.skipped,
            "bad_count": self.bad_count,
            "bad_lines": [
                {"file": bad.file, "line": bad.line, "reason": bad.reason} for bad in self.bad_lines
            ],
        }


@dataclass(slots=True)
class LogFiles:
    """The logs of an import, read as one stream of drafts with what was met on the way."""

    paths: tuple[Path, ...]
    lines: int = 0
    bytes_read: int = 0
    bad_count: int = 0
    bad_lines: list[BadLine] = field(default_factory=list)

    def drafts(self) -> Iterator[Draft]:
        """Yield the drafts of all files in their order, holding one line at a time."""
        for path in self.paths:

            def note(line: int, reason: str, name: str = path.name) -> None:
                self.bad_count += 1
                if len(self.bad_lines) < BAD_LINES_KEPT_MAX:
                    self.bad_lines.append(BadLine(file=name, line=line, reason=reason))

            parse = LineParser(path.name, note).draft
            with path.open("rb") as file:
                for number, part, raw in _lines(file, note):
                    if not part:
                        self.lines += 1
                    draft = parse(number, raw, part)
                    if draft is not None:
                        yield draft
                    self.bytes_read += len(raw) + 1


def import_irc(
    ledger: Ledger,
    room: Room | str,
    paths: Iterable[Path | str],
    progress: Callable[[int, int], None] | None = None,
    chunk: int = BATCH_FRAMES_MAX,
) -> ImportReport:
    """Import channel logs into a room, one commit per line; importing them again adds nothing.

    The speaker is the author and the time in the log is `said_at`; the day comes from the file's
    name, and a clock that runs back by more than six hours has passed midnight. Lines without a
    time take that of the line before. Speech and actions are messages; joins, leaves, renames,
    modes, topics and lines of no known shape are events. Bytes that are no text are escaped in the
    body and kept exactly, as base64, in `data["bytes"]`; a name that an author may not have is
    kept in `data["name"]`. A blank line is reported and not stored.

    A room named by text is made when the ledger has none of that name. `progress` is told the
    bytes read and the bytes there are, after every `chunk` of lines. Memory does not grow with the
    logs. At the end everything is committed and the view is built.

    Raises NotFound for a path that is no file and InvalidInput for a file name without a day, both
    before anything is written.
    """
    if not 1 <= chunk <= POST_MANY_MAX:
        raise InvalidInput(f"chunk must be from 1 to {POST_MANY_MAX} lines, not {chunk}")
    files = _checked(paths)
    total = sum(path.stat().st_size for path in files)
    target = ledger.ensure_room(room) if isinstance(room, str) else room
    logs = LogFiles(files)
    drafts = logs.drafts()
    counts = {"messages": 0, "events": 0, "skipped": 0}
    origin = ledger.origin
    # What the room already holds is found by its id and comes back with its old number, which is
    # not past the newest one that was there before; new numbers only grow.
    last = target.last_position().get(origin, 0)
    while batch := list(islice(drafts, chunk)):
        for message in target.post_many(batch):
            if message.origin != origin or message.n <= last:
                counts["skipped"] += 1
            else:
                counts["events" if is_history(message.kind) else "messages"] += 1
                last = message.n
        if progress is not None:
            progress(min(logs.bytes_read, total), total)
    ledger.flush()
    return ImportReport(
        files=len(files),
        lines=logs.lines,
        bad_lines=tuple(logs.bad_lines),
        bad_count=logs.bad_count,
        **counts,
    )


def _checked(paths: Iterable[Path | str]) -> tuple[Path, ...]:
    files = tuple(Path(path) for path in paths)
    for path in files:
        if not path.is_file():
            raise NotFound(f"there is no log file {str(path)!r}", path=str(path))
        day_of(path.name)
    return files


def _lines(file: BinaryIO, note: Callable[[int, str], None]) -> Iterator[tuple[int, int, bytes]]:
    """Yield (line number, piece number, bytes without the line end), never more than a piece."""
    number = 0
    while line := file.readline(LINE_BYTES_MAX):
        number += 1
        if number == 1:
            line = line.removeprefix(_BYTE_ORDER_MARK)
        if line.endswith(b"\n") or len(line) < LINE_BYTES_MAX:
            yield number, 0, line.removesuffix(b"\n").removesuffix(b"\r")
            continue
        part = 0
        while not line.endswith(b"\n") and (more := file.readline(LINE_BYTES_MAX)):
            cut = _whole_characters(line)
            yield number, part, line[:cut]
            part += 1
            line = line[cut:] + more
        last = line.removesuffix(b"\n").removesuffix(b"\r")
        if last:
            yield number, part, last
        if part:
            note(number, f"longer than {LINE_BYTES_MAX} bytes; stored in {part + 1} pieces")


def _whole_characters(piece: bytes) -> int:
    """Return where to cut so that no character's bytes are torn apart by the cut itself."""
    for back in range(1, 4):
        byte = piece[-back] if back <= len(piece) else 0
        if byte >= 0xC0:
            return len(piece) - back
        if byte < 0x80:
            break
    return len(piece)
