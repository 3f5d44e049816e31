"""The line shapes of an IRC channel log, each turned into one draft.

The format is that of the Ubuntu channel-log server: `[HH:MM] <name> text` for speech,
`[HH:MM]  * name text` for actions, `=== …` without a time for joins, leaves, renames, modes,
topics and, in logs before 2007, for actions too.
"""

from __future__ import annotations

import base64
import re
from datetime import date, timedelta
from hashlib import blake2b
from typing import TYPE_CHECKING, Final

from agent_chatroom_ledger.domain.names import check_author
from agent_chatroom_ledger.domain.records import Draft
from agent_chatroom_ledger.errors import InvalidInput
from agent_chatroom_ledger.limits import AUTHOR_CHARS_MAX

if TYPE_CHECKING:
    from collections.abc import Callable

# Who says a line that names nobody.
NOBODY: Final = "irc"

_TIME = r"\[((?:[01][0-9]|2[0-3]):[0-5][0-9])\] "
_speech = re.compile(_TIME + r"<([^>]*)> (.*)", re.DOTALL).fullmatch
_timed = re.compile(_TIME + r"(.*)", re.DOTALL).fullmatch
_day = re.compile(r"(\d{4})-(\d{2})-(\d{2})(?!\d)", re.ASCII).match
_plain_name = re.compile(r"[A-Za-z0-9._-]{1,48}").fullmatch

# What can follow the time, after speech: (what it is, pattern with the groups "name" and "body").
_TIMED_SHAPES: Final = (
    ("action", re.compile(r" ?\* (?P<name>\S+)(?: (?P<body>.*))?", re.DOTALL)),
    ("speech", re.compile(r"<(?P<name>[^>]*)> ?(?P<body>.*)", re.DOTALL)),
    ("elsewhere", re.compile(r"\((?P<name>[^/)\s]+)/#[^)\s]+\) (?P<body>.*)", re.DOTALL)),
    ("notice", re.compile(r"-(?P<name>[^\s-]\S*)- (?P<body>.*)", re.DOTALL)),
)

# What can follow "=== ". Names may hold blanks here: some clients' nicknames were cut by the log.
_EVENT_SHAPES: Final = (
    ("join", re.compile(r"(?P<name>.+?) +\[.*\]  has joined \S+", re.DOTALL)),
    ("leave", re.compile(r"(?P<name>.+?) +\[.*\]  has left \S+ \[.*", re.DOTALL)),
    ("quit", re.compile(r"(?P<name>.+?) (?:\[.*\] )? ?has quit\b.*", re.DOTALL)),
    ("rename", re.compile(r"(?P<name>.+?) is now known as \S+")),
    ("mode", re.compile(r"\S+ \[[+-].*\]  by (?P<name>\S+)")),
    ("kick", re.compile(r"\S+ was kicked off #\S+ by (?P<name>\S+) \(.*", re.DOTALL)),
    ("topic", re.compile(r"(?P<name>\S+) changed \S+ topic of #\S+ to: .*", re.DOTALL)),
    ("topic", re.compile(r"\S+ \(#\S+\): set by (?P<name>\S+) at .*", re.DOTALL)),
    ("topic", re.compile(r"(?P<name>\S+) for #\S+: .*", re.DOTALL)),
)
_old_action = re.compile(r"(?P<name>\S+) (?P<body>.*)", re.DOTALL).fullmatch

_FIRST_DAY: Final = date(1970, 1, 1)
# A clock that runs back by less is a correction within the day; by more, it passed midnight.
_MIDNIGHT_MINUTES: Final = 6 * 60
_AUTHORS_KEPT_MAX: Final = 4096


def day_of(file_name: str) -> date:
    """Return the day that a log's file name begins with (`2004-11-15_03.log`).

    Raises InvalidInput when the name begins with no date of the calendar from 1970 on, where the
    dates of git begin.
    """
    found = _day(file_name)
    if found is not None:
        try:
            day = date(int(found[1]), int(found[2]), int(found[3]))
        except ValueError:
            pass
        else:
            if day >= _FIRST_DAY:
                return day
    raise InvalidInput(
        f"the name of the log {file_name!r} must begin with its day, as in 2004-11-15.log, from"
        " 1970 on; rename the file",
        file=file_name,
    )


class LineParser:
    """The parser of one log file; it remembers the clock, so lines must come in their order.

    `note(line, reason)` is told of every line that is not stored as it stands. The same file gives
    the same drafts every time: ids are made of file name, line number and content.
    """

    def __init__(self, file_name: str, note: Callable[[int, str], None]) -> None:
        self._note = note
        self._day = day_of(file_name)
        self._minute = -1
        self._stamp = ""
        self._said_at = f"{self._day.isoformat()}T00:00:00.000000Z"
        self._authors: dict[str, str] = {}
        # A name that no id could carry is stood for by its digest.
        stem = file_name.removesuffix(".log")
        plain = _plain_name(stem) is not None
        digest = blake2b(stem.encode("utf-8", "surrogateescape"), digest_size=12).hexdigest()
        self._id_head = f"irc-{stem if plain else digest}-"

    def draft(self, number: int, raw: bytes, part: int = 0) -> Draft | None:
        """Return the draft of one line, or None for a blank one, which is noted.

        `raw` is without its line end; `part` counts the pieces of a line that was too long.
        """
        digest = blake2b(raw, digest_size=6).hexdigest()
        line_id = f"{self._id_head}{number}-{digest}"
        if part:
            line_id = f"{line_id}-{part}"
        else:
            try:
                found = _speech(raw.decode())
            except UnicodeDecodeError:
                found = None
            if found is not None and b"\0" not in raw:
                stamp, name, body = found.groups()
                if stamp != self._stamp:
                    self._advance(stamp)
                author = self._authors.get(name) or self._author(name)
                if author == name:
                    return Draft(author=author, body=body, said_at=self._said_at, id=line_id)
        return self._odd(number, raw, line_id, part)

    def _odd(self, number: int, raw: bytes, line_id: str, part: int) -> Draft | None:
        """Return the draft of a line that is not speech in plain text by a plain name."""
        text, fault = _readable(raw)
        if not text.strip():
            self._note(number, "a blank line; not stored")
            return None
        data: dict[str, object] = {}
        if fault:
            data["bytes"] = base64.b64encode(raw).decode("ascii")
            self._note(number, f"{fault}; stored with escapes, its exact bytes in data")
        if part:
            # The pieces keep the order of the line; who said it stands in the first.
            data |= {"irc": "continued", "part": part}
            return self._made("event", NOBODY, text, data, line_id)
        if text.startswith("=== "):
            return self._untimed(text, data, line_id)
        timed = _timed(text)
        if timed is not None:
            if timed[1] != self._stamp:
                self._advance(timed[1])
            for irc, pattern in _TIMED_SHAPES:
                found = pattern.fullmatch(timed[2])
                if found is not None:
                    body = found["body"] or ""
                    # Lines of a rarer form are kept whole beside what was understood of them.
                    plain = irc in {"action", "notice"} or _speech(text) is not None
                    data |= {"irc": irc} if plain else {"irc": irc, "line": text}
                    return self._made("message", found["name"], body, data, line_id)
        self._note(number, "a line of no known shape; stored whole as an event")
        data["irc"] = "unknown"
        return self._made("event", NOBODY, text, data, line_id)

    def _untimed(self, text: str, data: dict[str, object], line_id: str) -> Draft:
        """Return the draft of a `===` line; it bears no time and takes that of the line before."""
        said = text[4:]
        for irc, pattern in _EVENT_SHAPES:
            found = pattern.fullmatch(said)
            if found is not None:
                data |= {"irc": irc, "untimed": True}
                return self._made("event", found["name"], said, data, line_id)
        found = _old_action(said)
        if found is not None:
            data |= {"irc": "action", "untimed": True}
            return self._made("message", found["name"], found["body"], data, line_id)
        data |= {"irc": "notice", "untimed": True}
        return self._made("event", NOBODY, said, data, line_id)

    def _made(
        self, kind: str, name: str, body: str, data: dict[str, object], line_id: str
    ) -> Draft:
        author = self._author(name)
        if author != name:
            data["name"] = name
        return Draft(
            author=author, body=body, kind=kind, data=data, said_at=self._said_at, id=line_id
        )

    def _author(self, name: str) -> str:
        """Return the name as the author rule wants it; the caller keeps the original."""
        known = self._authors.get(name)
        if known is not None:
            return known
        author = "".join(c for c in name if c.isprintable()).strip()[:AUTHOR_CHARS_MAX].rstrip()
        try:
            check_author(author)
        except InvalidInput:
            author = NOBODY
        if len(self._authors) >= _AUTHORS_KEPT_MAX:
            self._authors.clear()
        self._authors[name] = author
        return author

    def _advance(self, stamp: str) -> None:
        """Move the clock to a line's HH:MM, over midnight when that runs far back."""
        minute = int(stamp[:2]) * 60 + int(stamp[3:])
        if minute < self._minute - _MIDNIGHT_MINUTES:
            self._day += timedelta(days=1)
        self._minute = minute
        self._stamp = stamp
        self._said_at = f"{self._day.isoformat()}T{stamp}:00.000000Z"


def _readable(raw: bytes) -> tuple[str, str]:
    """Return a line as text any record can hold, and what was wrong with it ("" when nothing)."""
    fault = ""
    try:
        text = raw.decode()
    except UnicodeDecodeError as error:
        text = raw.decode(errors="backslashreplace")
        fault = f"not UTF-8 at byte {error.start + 1}"
    if "\0" in text:
        text = text.replace("\0", "\\x00")
        fault = fault or f"a NUL at byte {raw.index(0) + 1}"
    return text, fault
