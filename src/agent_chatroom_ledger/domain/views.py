"""A room's compiled view: built whole from its logs, or brought up to date page by page.

Both ways give the same bytes (invariant 2), which a property test holds them to. Bringing up to
date reads the newest page, what was said since, and the old pages that a change of policy touches;
so its cost does not grow with the room.

Ids that two origins wrote apart from each other are folded away in a whole build only. They come
with another clone's messages, so a view that takes in any of these is built whole.
"""

from __future__ import annotations

from bisect import bisect_left
from typing import TYPE_CHECKING, Final, Protocol

from agent_chatroom_ledger.domain.clock import from_datetime
from agent_chatroom_ledger.domain.order import drop_repeated_ids, order_key
from agent_chatroom_ledger.domain.pages import (
    PageHeader,
    PageWriter,
    day_of,
    is_page,
    newest_page,
    page_name,
    page_order,
    paginate,
    parse_header,
)
from agent_chatroom_ledger.domain.policy import difference
from agent_chatroom_ledger.domain.positions import contains, covers, encode_position, maximum
from agent_chatroom_ledger.domain.rooms import fold_room
from agent_chatroom_ledger.errors import Corrupt, NotFound

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from agent_chatroom_ledger.domain.policy import Policy
    from agent_chatroom_ledger.domain.positions import Position
    from agent_chatroom_ledger.domain.records import Message
    from agent_chatroom_ledger.domain.rooms import RoomState

__all__ = [
    "PageHeader",
    "ViewReader",
    "build_view",
    "day_of",
    "is_page",
    "newest_page",
    "page_name",
    "page_order",
    "parse_header",
    "update_view",
]

_POLICY_AREA: Final = "policy."


class ViewReader(Protocol):
    """What update_view asks about the room: its pages as they are, and its logs as they are now."""

    def newest_page(self) -> tuple[str, bytes] | None:
        """Return the name (``2026/11-29.0.md``) and the bytes of the last page by page_order."""

    def page(self, name: str) -> bytes | None:
        """Return the bytes of a page, None when there is none of this name."""

    def pages_of_day(self, day: str) -> list[str]:
        """Return the names of a day's pages (``2026/11-29``), in the order of their numbers."""

    def messages_after(self, position: Position) -> Iterator[Message]:
        """Yield the messages past a position in canonical order."""

    def message(self, origin: str, n: int) -> Message:
        """Return one message; raises NotFound."""

    def operations_after(self, position: Position) -> Iterator[Message]:
        """Yield the operations past a position in canonical order."""


def build_view(
    state: RoomState, messages: Iterable[Message], operations_position: Position
) -> dict[str, bytes]:
    """Return every page of a view, by name; a room without messages has none.

    ``messages`` are all that the view covers, and ``state`` is the fold of the room's operations up
    to ``operations_position``.
    """
    ordered = sorted(messages, key=order_key)
    through = _reached(ordered), operations_position
    writer = PageWriter(state)
    pages = list(paginate(drop_repeated_ids(ordered)))
    last = len(pages) - 1
    return {
        name: writer.page(page, through if place == last else None)
        for place, (name, page) in enumerate(pages)
    }


def update_view(
    state: RoomState,
    reader: ViewReader,
    through_messages: Position,
    through_operations: Position,
    own: str,
) -> dict[str, bytes | None]:
    """Return the pages that differ once the view reaches these positions; None for one that goes.

    ``own`` is the origin of who writes here, who gives no id twice. ``state`` is the fold of the
    room's operations up to ``through_operations``. The result equals what build_view gives for all
    messages up to ``through_messages``, less the pages that have these bytes already. A view that
    cannot be read, is of another room or reaches further than asked for is built whole.
    """
    update = _Update(state, reader, through_messages, through_operations, own)
    try:
        pages = update.pages()
    except Corrupt:
        return update.whole()
    return update.whole() if pages is None else pages


def _reached(messages: Iterable[Message]) -> dict[str, int]:
    last: dict[str, int] = {}
    for message in messages:
        if message.n > last.get(message.origin, 0):
            last[message.origin] = message.n
    return last


class _Update:
    """One run of update_view; it reads every page once."""

    def __init__(
        self,
        state: RoomState,
        reader: ViewReader,
        through_messages: Position,
        through_operations: Position,
        own: str,
    ) -> None:
        self._own = own
        self._state = state
        self._reader = reader
        self._writer = PageWriter(state)
        self._messages = through_messages
        self._operations = through_operations
        # The view as it is: how far it reaches, its pages and their headers.
        self._covered: Position = {}
        self._stored: dict[str, bytes | None] = {}
        self._headers: dict[str, PageHeader] = {}
        self._days: dict[str, list[str]] = {}

    def whole(self) -> dict[str, bytes | None]:
        """Return the pages that differ from a build of the whole view."""
        messages = self._after({})
        built = build_view(self._state, messages, self._operations)
        newest = self._reader.newest_page()
        days = {page_order(name)[0] for name in (*built, *([newest[0]] if newest else ()))}
        gone = [
            name for day in days for name in self._reader.pages_of_day(day) if name not in built
        ]
        return {**self._changed(built), **dict.fromkeys(gone)}

    def pages(self) -> dict[str, bytes | None] | None:
        """Return the pages that differ, or None when the view must be built whole."""
        newest = self._reader.newest_page()
        if newest is None:
            return None
        newest_name, data = newest
        header = parse_header(data)
        day = page_order(newest_name)[0]
        if not self._continues(header, day) or newest_name not in self._pages_of_day(day):
            return None
        self._covered = header.through_messages
        self._stored[newest_name] = data
        self._headers[newest_name] = header
        new = sorted(self._after(self._covered), key=order_key)
        if not new and encode_position(self._operations) == encode_position(
            header.through_operations
        ):
            return {}
        if any(message.origin != self._own for message in new):
            return None
        pages, gone = self._with_new(new)
        for name in (newest_name, *self._touched(header.through_operations)):
            if name not in pages and name not in gone:
                pages[name] = self._load([name])
        last = max(pages, key=page_order)
        through = maximum(self._covered, _reached(new)), self._operations
        written = {
            name: self._writer.page(page, through if name == last else None)
            for name, page in pages.items()
        }
        return {**self._changed(written), **dict.fromkeys(gone)}

    def _continues(self, header: PageHeader, day: str) -> bool:
        """Tell whether the view is one of this room, in its place, that has to grow, not shrink."""
        return (
            header.newest
            and f"{day[:4]}-{day[5:]}" == header.last_at[:10]
            and header.title == self._writer.title
            and header.room == self._writer.room
            and contains(self._messages, header.through_messages)
            and contains(self._operations, header.through_operations)
        )

    def _after(self, position: Position) -> list[Message]:
        return [
            message
            for message in self._reader.messages_after(position)
            if covers(self._messages, message.origin, message.n)
        ]

    def _changed(self, pages: dict[str, bytes]) -> dict[str, bytes | None]:
        return {name: data for name, data in pages.items() if self._page(name) != data}

    def _page(self, name: str) -> bytes | None:
        if name not in self._stored:
            self._stored[name] = self._reader.page(name)
        return self._stored[name]

    def _header(self, name: str) -> PageHeader:
        header = self._headers.get(name)
        if header is None:
            data = self._page(name)
            if data is None:
                raise Corrupt(f"the view page {name} is missing", path=name)
            header = self._headers[name] = parse_header(data)
        return header

    def _pages_of_day(self, day: str) -> list[str]:
        """Return the names of a day's pages; raises Corrupt when their numbers have a gap."""
        if day not in self._days:
            names = self._reader.pages_of_day(day)
            if names != [page_name(day, k) for k in range(len(names))]:
                raise Corrupt(f"the view pages of {day} have a gap", path=day)
            self._days[day] = names
        return self._days[day]

    def _place(self, day: str, at: str) -> int:
        """Return which of a day's pages holds what was said at a time: the first to end there."""
        names = self._pages_of_day(day)
        if names and self._header(names[-1]).last_at < at:
            # What is said now follows the newest page; no other page is looked at for it.
            return len(names)
        return bisect_left(names, at, key=lambda name: self._header(name).last_at)

    def _load(self, names: list[str]) -> list[Message]:
        """Return the messages that some pages cover, in canonical order."""
        wanted = {
            (origin, n)
            for name in names
            for origin, first, last in self._header(name).records
            for n in range(first, last + 1)
        }
        start = dict(self._covered)
        for origin, n in wanted:
            start[origin] = min(start.get(origin, 0), n - 1)
        found: list[Message] = []
        for message in self._reader.messages_after(start) if wanted else ():
            if (message.origin, message.n) in wanted:
                found.append(message)
                if len(found) == len(wanted):
                    return sorted(found, key=order_key)
        raise Corrupt(f"the view covers messages that are not there: {names[0]}", path=names[0])

    def _with_new(self, new: Iterable[Message]) -> tuple[dict[str, list[Message]], list[str]]:
        """Return the pages that new messages come to lie on, and the names of those that go.

        Each day is split anew from the first page that a new message falls on or follows.
        """
        by_day: dict[str, list[Message]] = {}
        for message in new:
            by_day.setdefault(day_of(message), []).append(message)
        pages: dict[str, list[Message]] = {}
        gone: list[str] = []
        for day, added in by_day.items():
            names = self._pages_of_day(day)
            place = self._place(day, from_datetime(added[0].at))
            first = max(min(place, len(names) - 1), 0)
            old = self._load(names[first:]) if names else []
            split = dict(paginate(sorted((*old, *added), key=order_key), first))
            pages.update(split)
            gone.extend(name for name in names[first:] if name not in split)
        return pages, gone

    def _touched(self, since: Position) -> list[str]:
        """Return the names of the old pages that the policy shows otherwise than before."""
        newer = [
            operation
            for operation in self._reader.operations_after(since)
            if covers(self._operations, operation.origin, operation.n)
        ]
        if not any(operation.kind.startswith(_POLICY_AREA) for operation in newer):
            return []
        names: dict[str, None] = {}
        for origin, first, last in difference(self._old_policy(since), self._state.policy):
            n = first
            end = min(last, self._covered.get(origin, 0))
            while n <= end:
                name, n = self._page_of(origin, n)
                if name:
                    names[name] = None
        return list(names)

    def _old_policy(self, position: Position) -> Policy:
        before = (
            operation
            for operation in self._reader.operations_after({})
            if covers(position, operation.origin, operation.n)
        )
        try:
            return fold_room(before).policy
        except NotFound:
            raise Corrupt("the view's operations position names no room") from None

    def _page_of(self, origin: str, n: int) -> tuple[str, int]:
        """Return the page that covers a message, and the next number that may lie elsewhere."""
        try:
            message = self._reader.message(origin, n)
        except NotFound:
            return "", n + 1
        day = day_of(message)
        names = self._pages_of_day(day)
        at = from_datetime(message.at)
        # Two origins may have written at one time, on both sides of the end of a page.
        for name in names[self._place(day, at) :]:
            header = self._header(name)
            if header.first_at > at:
                break
            for its_origin, first, last in header.records:
                if its_origin == origin and first <= n <= last:
                    return name, last + 1
        return "", n + 1
