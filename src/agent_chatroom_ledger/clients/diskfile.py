"""A client's file on disk: read whole, replaced whole, and only if nobody else wrote meanwhile."""

from __future__ import annotations

import difflib
import os
import re
import stat
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from agent_chatroom_ledger.clients.refusals import (
    Place,
    changed_meanwhile,
    not_writable,
    unreadable,
)
from agent_chatroom_ledger.limits import CLIENT_FILE_BYTES_MAX

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

_DIFF_CHARS_MAX = 400
# A text of JSON or TOML, and what makes it a key.
_TEXT = re.compile(r"""("(?:[^"\\\n]|\\.)*"|'[^'\n]*')(\s*[:=])?""")


@dataclass(frozen=True)
class FileChange:
    """What one file is and what it is to be; None stands for no file."""

    place: Place
    before: str | None
    after: str | None

    @property
    def action(self) -> Literal["none", "create", "change", "remove"]:
        """What is done to the file, in one word."""
        if self.before == self.after:
            return "none"
        if self.before is None:
            return "create"
        return "remove" if self.after is None else "change"

    def diff(self) -> str:
        """Return what changes, as a unified diff without lines around it.

        Texts that stay are hidden: they may be credentials of other servers, and what a command
        prints goes into transcripts. A line too long to read is cut, and the cut is shown.
        """
        before, after = (text or "" for text in (self.before, self.after))
        stays = set(_TEXT.findall(before)).intersection(_TEXT.findall(after))
        was, will_be = (
            os.devnull if text is None else str(self.place.path)
            for text in (self.before, self.after)
        )
        lines = difflib.unified_diff(_lines(before), _lines(after), was, will_be, n=0, lineterm="")
        shown = (
            line if line.startswith(("---", "+++")) else _hidden(line, stays) for line in lines
        )
        return "".join(f"{line}\n" for line in _shortened(shown))

    def write(self) -> None:
        """Bring the file to its new content in one step; mode, owner and links stay.

        Raises Conflict (``client_file_changed``) when it is not what it was when it was read, and
        Forbidden when it may not be written.
        """
        if self.action == "none":
            return
        path = self.place.path
        try:
            real = Path(os.path.realpath(path))
            self._require_unchanged()
            if self.after is None:
                real.unlink()
                return
            check_writable(self.place)
            real.parent.mkdir(parents=True, exist_ok=True)
            _replace(real, self.after.encode(), self._require_unchanged)
        except PermissionError as error:
            raise not_writable(self.place, f"may not be written ({error.strerror})") from error

    def _require_unchanged(self) -> None:
        if read(self.place) != self.before:
            raise changed_meanwhile(self.place)


def read(place: Place) -> str | None:
    """Return a file's text, None when there is none.

    Raises InvalidInput for what no client reads as text, and for a file beyond the limit.
    """
    path = place.path
    try:
        # Looked at first: opening a pipe would wait for somebody to write.
        if not stat.S_ISREG(path.stat().st_mode):
            raise unreadable(place, "it is not a file")
        with path.open("rb") as file:
            data = file.read(CLIENT_FILE_BYTES_MAX + 1)
    except FileNotFoundError:
        if path.is_symlink():
            raise unreadable(place, "it is a link that leads nowhere") from None
        return None
    except NotADirectoryError:
        raise unreadable(place, "it is not a file") from None
    except PermissionError as error:
        raise not_writable(place, f"cannot be read ({error.strerror})") from error
    if len(data) > CLIENT_FILE_BYTES_MAX:
        raise unreadable(
            place, f"it is larger than CLIENT_FILE_BYTES_MAX ({CLIENT_FILE_BYTES_MAX} bytes)"
        )
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise unreadable(place, "it is not UTF-8", line=line) from None


def check_writable(place: Place) -> None:
    """Refuse a file that somebody made read-only, even where the system would let us write it."""
    try:
        mode = place.path.stat().st_mode
    except FileNotFoundError:
        return
    if not mode & 0o222:
        raise not_writable(place, "is read-only")


def _replace(path: Path, data: bytes, check: Callable[[], None]) -> None:
    """Put a file in place of another; `check` raises if that is not to be, at the last moment."""
    was = path.stat() if path.exists() else None
    temporary = path.with_name(f".{path.name[:80]}.{os.getpid()}.tmp")
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_NOFOLLOW", 0)
    # What is in a file that others may not read is never readable to them, not even for a moment.
    descriptor = os.open(temporary, flags, 0o666 if was is None else 0o600)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
            file.flush()
            if was is not None:
                if hasattr(os, "chown") and (was.st_uid, was.st_gid) != _owner(temporary):
                    os.chown(temporary, was.st_uid, was.st_gid)
                temporary.chmod(stat.S_IMODE(was.st_mode))
            os.fsync(file.fileno())
        # The sync may have taken long, and a client writes to its file while it runs.
        check()
        temporary.replace(path)
    except BaseException:
        with suppress(FileNotFoundError):
            temporary.unlink()
        raise


def _owner(path: Path) -> tuple[int, int]:
    found = path.stat()
    return found.st_uid, found.st_gid


def _lines(text: str) -> list[str]:
    """Split at line ends only: other separators are characters like any."""
    lines = text.replace("\r\n", "\n").split("\n")
    last = lines.pop()
    if last:
        lines.append(f"{last}\n\\ No newline at end of file")
    return lines


def _hidden(line: str, stays: set[tuple[str, str]]) -> str:
    """Return a line with the values hidden that are in the file before and after."""

    def shown(found: re.Match[str]) -> str:
        return '"…"' if not found[2] and (found[1], "") in stays else found[0]

    return _TEXT.sub(shown, line)


def _shortened(lines: Iterable[str]) -> Iterator[str]:
    for line in lines:
        cut = len(line) - _DIFF_CHARS_MAX
        yield line if cut <= 0 else f"{line[:_DIFF_CHARS_MAX]}… ({cut} characters more)"
