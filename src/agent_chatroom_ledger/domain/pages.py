"""One page of a room's compiled view: its name, its header and its text.

A page is Markdown that a person can read and a program can check byte by byte. Its header names the
room, the records it covers, their times, and a digest of what the room's policy does to it; the
newest page also says how far the whole view reaches. Every line of a body is quoted, so no body can
forge a header or another speaker. The format is pinned by a golden file (tests/domain/golden).
"""

from __future__ import annotations

import re
from hashlib import sha256
from typing import TYPE_CHECKING, Final

import msgspec

from agent_chatroom_ledger.domain.clock import from_datetime
from agent_chatroom_ledger.domain.display import terminal_safe
from agent_chatroom_ledger.domain.policy import StandIn, ranges_of
from agent_chatroom_ledger.domain.positions import decode_position, encode_position
from agent_chatroom_ledger.domain.projections import refs_of
from agent_chatroom_ledger.domain.references import parse_range, range_ref
from agent_chatroom_ledger.errors import Corrupt, InvalidInput
from agent_chatroom_ledger.limits import PAGE_BYTES_MAX, PAGE_RECORDS_MAX

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from agent_chatroom_ledger.domain.policy import Policy
    from agent_chatroom_ledger.domain.positions import Position
    from agent_chatroom_ledger.domain.records import Message
    from agent_chatroom_ledger.domain.roomstate import RoomState

FORMAT: Final = 1

_NO_POLICY: Final = "none"
_DIGEST_CHARS: Final = 16
_SEPARATOR: Final = " · "
_NAME: Final = re.compile(r"((?:\d{4}/)?\d{2}-\d{2})\.(0|[1-9]\d{0,7})\.md", re.ASCII)
_TIME: Final = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z"
_HEADER: Final = re.compile(
    r"# (?P<title>[^\n]*)\n\n"
    r"- format: (?P<format>\d{1,8})\n"
    r"- room: (?P<room>[^\n]+)\n"
    r"- records: (?P<records>[^\n]+)\n"
    rf"- times: (?P<first_at>{_TIME}) to (?P<last_at>{_TIME})\n"
    rf"- policy: (?P<policy>none|[0-9a-f]{{{_DIGEST_CHARS}}})\n"
    r"(?:- through: messages (?P<messages>[^\n;]+); operations (?P<operations>[^\n;]+)\n)?"
    r"(?=\n|\Z)",
    re.ASCII,
)
# Whatever some reader takes for the end of a line ends it here, so that none begins unquoted.
_LINE_END: Final = re.compile("\r\n|[\n\r\x0b\x0c\x1c\x1d\x1e\x85\u2028\u2029]")
_ENCODER: Final = msgspec.json.Encoder(order="sorted")

RecordRanges = tuple[tuple[str, int, int], ...]


class PageHeader(msgspec.Struct, frozen=True, kw_only=True):
    """What the header of a page says.

    ``records`` are the records that the page covers, shown or left out, as origin, first and last
    number; ``policy`` is the digest, empty when the policy does not touch the page. The newest page
    has the positions in both logs up to which the whole view was built; on any other page they are
    empty, and ``newest`` is false.
    """

    title: str
    room: str
    records: RecordRanges
    first_at: str
    last_at: str
    policy: str
    newest: bool
    through_messages: dict[str, int]
    through_operations: dict[str, int]


def page_name(day: str, k: int) -> str:
    """Return the name of a day's page, inside ``view/``: ``2026/11-29.0.md``."""
    return f"{day}.{k}.md"


def is_page(name: str) -> bool:
    """Tell whether a file is named as a page is, with or without its year: ``11-29.0.md``."""
    return _NAME.fullmatch(name) is not None


def page_order(name: str) -> tuple[str, int]:
    """Return the day and the number of a page's name, which is what pages are sorted by.

    Raises Corrupt for a name that no page has.
    """
    match = _NAME.fullmatch(name)
    if match is None:
        raise Corrupt(f"not the name of a view page: {name[:200]!r}", path=name[:200])
    return match[1], int(match[2])


def newest_page(names: Iterable[str]) -> str | None:
    """Return the last of some files' names by page_order, of those that are a page's; or None."""
    left = list(names)
    while left:
        # Without leading zeros a longer number is a greater one, so that of the thousands of pages
        # of a busy day only one has to be taken apart.
        found = max(left, key=_rough_order)
        if is_page(found):
            return found
        left = [name for name in left if is_page(name)]
    return None


def _rough_order(name: str) -> tuple[str, int, str]:
    """Sort the names of pages, all with their year or all without it, as page_order does."""
    return name.partition(".")[0], len(name), name


def day_of(message: Message) -> str:
    """Return the day of a message, in UTC, as pages are named by it: ``2026/11-29``."""
    at = message.at
    return f"{at.year:04d}/{at.month:02d}-{at.day:02d}"


def paginate(messages: Iterable[Message], k: int = 0) -> Iterator[tuple[str, list[Message]]]:
    """Yield the pages, as name and messages, of messages in canonical order.

    A day is split at 50 records or 32 KiB of record lines (the record that crosses stays), whatever
    the policy leaves out; the pages of the first day are counted from ``k``.
    """
    day = ""
    page: list[Message] = []
    size = 0
    for message in messages:
        its_day = day_of(message)
        full = len(page) >= PAGE_RECORDS_MAX or size >= PAGE_BYTES_MAX
        if page and (full or its_day != day):
            yield page_name(day, k), page
            k = k + 1 if its_day == day else 0
            page, size = [], 0
        day = its_day
        page.append(message)
        size += len(message.line) + 1
    if page:
        yield page_name(day, k), page


def record_ranges(messages: Iterable[Message]) -> RecordRanges:
    """Return the records of some messages as ranges, origins and numbers in order."""
    numbers: dict[str, list[int]] = {}
    for message in messages:
        numbers.setdefault(message.origin, []).append(message.n)
    return tuple(
        (origin, first, last)
        for origin, of_origin in sorted(numbers.items())
        for first, last in ranges_of(of_origin)
    )


def parse_header(page: bytes) -> PageHeader:
    """Return what the header of a page says.

    Raises Corrupt when it cannot be read or (code ``newer_format``) is of a newer version.
    """
    head, _, _ = page.partition(b"\n### ")
    match = _HEADER.match(head.decode(errors="replace"))
    if match is None:
        raise Corrupt("the header of a view page cannot be read; compile the room again")
    if int(match["format"]) > FORMAT:
        raise Corrupt(
            f"a view page has format {match['format']}, newer than {FORMAT}: update the package",
            code="newer_format",
            format=int(match["format"]),
        )
    newest = match["messages"] is not None
    try:
        return PageHeader(
            title=match["title"],
            room=match["room"],
            records=tuple(parse_range(text, "") for text in match["records"].split(",")),
            first_at=match["first_at"],
            last_at=match["last_at"],
            policy="" if match["policy"] == _NO_POLICY else match["policy"],
            newest=newest,
            through_messages=decode_position(match["messages"], "") if newest else {},
            through_operations=decode_position(match["operations"], "") if newest else {},
        )
    except InvalidInput as error:
        raise Corrupt(f"the header of a view page is wrong: {error}") from None


class PageWriter:
    """Writes the pages of one room in one state."""

    def __init__(self, state: RoomState) -> None:
        """Prepare to write pages as the state's policy has them."""
        self._policy = state.policy
        self._anchors = state.policy.by_anchor()
        self._primary = state.origin
        self.title = terminal_safe(state.title, lines=False)
        self.room = terminal_safe(state.id, lines=False)

    def page(
        self, messages: Sequence[Message], through: tuple[Position, Position] | None = None
    ) -> bytes:
        """Return the bytes of the page that covers these messages, at least one.

        ``through`` holds the positions in both logs that the view reaches, for the newest page.
        """
        records = record_ranges(messages)
        refs = ",".join(range_ref(origin, first, last) for origin, first, last in records)
        times = f"{from_datetime(messages[0].at)} to {from_datetime(messages[-1].at)}"
        digest = self._digest(records, messages) or _NO_POLICY
        parts = [
            f"# {self.title}\n\n- format: {FORMAT}\n- room: {self.room}\n",
            f"- records: {refs}\n- times: {times}\n- policy: {digest}\n",
        ]
        if through is not None:
            reached, operations = map(encode_position, through)
            parts.append(f"- through: messages {reached}; operations {operations}\n")
        for message in messages:
            if not self._policy.excludes(message.origin, message.n):
                parts.append(_message_text(message, self._ref(message.origin, message.n)))
            if self._anchors:
                standins = self._anchors.get((message.origin, message.n), ())
                parts.extend(map(self._standin_text, standins))
        return "".join(parts).encode()

    def _ref(self, origin: str, n: int) -> str:
        return f"#{n}" if origin == self._primary else f"#{n}@{origin}"

    def _digest(self, records: RecordRanges, messages: Sequence[Message]) -> str:
        """Return the digest of what the policy does to a page, empty when it does nothing."""
        excluded = _touching(self._policy, records)
        standins = [
            standin
            for message in (messages if self._anchors else ())
            for standin in self._anchors.get((message.origin, message.n), ())
        ]
        if not excluded and not standins:
            return ""
        entries = _ENCODER.encode({"excluded": excluded, "standins": standins})
        return sha256(entries).hexdigest()[:_DIGEST_CHARS]

    def _standin_text(self, standin: StandIn) -> str:
        refs = " ".join(
            f"#{text.removesuffix(f'@{self._primary}')}" for text in refs_of(standin.replaces)
        )
        parts = (f"stand-in {_name(standin.id)} for {refs}", _name(standin.speaker), standin.kind)
        return f"\n### {_SEPARATOR.join(parts)}\n{quoted(standin.body)}"


def _touching(policy: Policy, records: RecordRanges) -> Mapping[str, list[tuple[int, int]]]:
    touched: dict[str, list[tuple[int, int]]] = {}
    for origin, first, last in records:
        if found := policy.touching(origin, first, last):
            touched.setdefault(origin, []).extend(found)
    return touched


def _name(text: str) -> str:
    """Return a name on one line that does not hold the sign which separates a heading's parts."""
    return terminal_safe(text, lines=False).replace("·", "\\xb7")


def _message_text(message: Message, ref: str) -> str:
    """Return the heading and the quoted body of one message."""
    if message.said_at is None:
        when = f"{message.at:%H:%M:%S}Z"
    else:
        # Imported: the day it was said is not the day that the page is named by.
        when = f"{message.said_at:%Y-%m-%d %H:%M:%S}Z"
    parts = [f"{ref} {_name(message.author)}", when, message.kind]
    if message.to:
        parts.append("to " + ", ".join(map(_name, message.to)))
    if message.reply_to is not None:
        parts.append(f"re {_name(message.reply_to)}")
    return f"\n### {_SEPARATOR.join(parts)}\n{quoted(message.body)}"


def quoted(body: str) -> str:
    """Return a body with every line quoted and every control character shown, or nothing."""
    if not body:
        return ""
    if body.isprintable():
        return f"\n> {body}\n"
    lines = (terminal_safe(line, lines=True) for line in _LINE_END.split(body))
    return "\n" + "".join(f"> {line}\n" if line else ">\n" for line in lines)
