"""A room's compiled view, read from and updated in any tree (docs/formats.md, "View pages")."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agent_chatroom_ledger.domain import order, views
from agent_chatroom_ledger.domain.positions import contains
from agent_chatroom_ledger.domain.records import message_at
from agent_chatroom_ledger.errors import Corrupt, NotFound
from agent_chatroom_ledger.storage import reading

if TYPE_CHECKING:
    from collections.abc import Iterator

    from agent_chatroom_ledger.domain.frames import ViewMark
    from agent_chatroom_ledger.domain.positions import Position
    from agent_chatroom_ledger.domain.records import Message
    from agent_chatroom_ledger.domain.roomstate import RoomState
    from agent_chatroom_ledger.storage.source import Source


class TreeViewReader:
    """What `domain.views.update_view` needs to know of one room in one tree."""

    def __init__(
        self,
        source: Source,
        room: str,
        primary: str,
        through_messages: Position,
        through_operations: Position,
    ) -> None:
        """Read `room`, whose origin is `primary`, up to the given positions and no further."""
        self._source = source
        self._room = room
        self._primary = primary
        self._through = {"messages": through_messages, "operations": through_operations}

    def newest_page(self) -> tuple[str, bytes] | None:
        """Return the name and the bytes of the newest page."""
        directory = f"{self._room}/view"
        years = sorted(n for n in self._source.names(directory) if n.endswith("/"))
        for year in reversed(years):
            newest = views.newest_page(self._source.names(f"{directory}/{year[:-1]}"))
            if newest is not None:
                name = f"{year}{newest}"
                data = self._source.read(f"{directory}/{name}")
                return None if data is None else (name, data)
        return None

    def page(self, name: str) -> bytes | None:
        """Return the bytes of a page, None when it is missing."""
        return self._source.read(f"{self._room}/view/{name}")

    def pages_of_day(self, day: str) -> list[str]:
        """Return the names of a day's pages, such as `2026/11-29.0.md`, in order."""
        year, _, date = day.partition("/")
        names = [
            name
            for name in self._source.names(f"{self._room}/view/{year}")
            if name.startswith(f"{date}.") and views.is_page(name)
        ]
        return [f"{year}/{name}" for name in sorted(names, key=views.page_order)]

    def _after(self, log: str, position: Position) -> Iterator[Message]:
        runs = [
            self._messages(log, origin, position.get(origin, 0), through)
            for origin, through in self._through[log].items()
        ]
        return order.merge(*runs)

    def _messages(self, log: str, origin: str, after: int, through: int) -> Iterator[Message]:
        path = f"{self._room}/{log}/{origin}"
        for n, line in reading.records(self._source, path, after, through):
            message = message_at(line, origin, log, n, primary=origin == self._primary)
            if message is not None:
                yield message

    def messages_after(self, position: Position) -> Iterator[Message]:
        """Give the messages past a position in canonical order."""
        return self._after("messages", position)

    def operations_after(self, position: Position) -> Iterator[Message]:
        """Give the operations past a position in canonical order."""
        return self._after("operations", position)

    def message(self, origin: str, n: int) -> Message:
        """Return one message; NotFound when there is none that can be read."""
        line = reading.record(self._source, f"{self._room}/messages/{origin}", n)
        primary = origin == self._primary
        message = None if line is None else message_at(line, origin, "messages", n, primary)
        if message is None:
            raise NotFound(f"{self._room} has no message {n}@{origin}", room=self._room, n=n)
        return message


def view_covers(source: Source, mark: ViewMark) -> bool:
    """Tell whether a room's newest page reaches the positions of a mark already."""
    newest = TreeViewReader(source, mark.room, "", {}, {}).newest_page()
    if newest is None:
        return not any(mark.messages.values())  # a room without messages has no pages
    try:
        header = views.parse_header(newest[1])
    except Corrupt as error:
        if error.code == "newer_format":
            raise
        return False  # somebody has changed it: it is built again
    return contains(header.through_messages, mark.messages) and contains(
        header.through_operations, mark.operations
    )


def whole_view(source: Source, state: RoomState) -> dict[str, bytes]:
    """Return every page of a room's view, built from its logs in a tree."""
    positions = {
        log: {
            origin: reading.last_number(source, f"{state.path}/{log}/{origin}")
            for origin in reading.origins(source, state.path, log)
        }
        for log in ("messages", "operations")
    }
    reader = TreeViewReader(
        source, state.path, state.origin, positions["messages"], positions["operations"]
    )
    return views.build_view(state, reader.messages_after({}), positions["operations"])


def update_pages(
    source: Source, state: RoomState, mark: ViewMark, own: str
) -> dict[str, bytes | None]:
    """Return the pages that differ once the view covers a mark; None for one that goes.

    ``own`` is the origin of who writes.
    """
    reader = TreeViewReader(source, mark.room, state.origin, mark.messages, mark.operations)
    return views.update_view(state, reader, mark.messages, mark.operations, own)
