"""One room as it stands in a source under the journal: its messages, its operations, its state."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from agent_chatroom_ledger.domain.numerals import decimal
from agent_chatroom_ledger.domain.order import merge, merge_reversed, order_key
from agent_chatroom_ledger.domain.projections import state_from_projections
from agent_chatroom_ledger.domain.records import message_at
from agent_chatroom_ledger.domain.rooms import fold_room
from agent_chatroom_ledger.errors import Corrupt, NotFound
from agent_chatroom_ledger.storage import reading
from agent_chatroom_ledger.storage.reading import MESSAGES, OPERATIONS, log_path

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from agent_chatroom_ledger.domain.records import Message
    from agent_chatroom_ledger.domain.rooms import RoomState
    from agent_chatroom_ledger.storage.layout import Layout
    from agent_chatroom_ledger.storage.overlay import Overlay
    from agent_chatroom_ledger.storage.source import Source
    from agent_chatroom_ledger.storage.versionfold import VersionReader

ROOM_FILE = "room.json"
POLICY_FILE = "policy.json"
VIEW = "view"
_START: Mapping[str, int] = {}


class _Named(msgspec.Struct):
    """The one field of a record by which two may be the same."""

    id: str


_NAMED = msgspec.json.Decoder(_Named)


class RoomReader:
    """Reads one room, several origins merged in canonical order (by time, origin, log, number).

    It is a snapshot of nothing: records that arrive while it reads may or may not be given, but
    never out of order and never without those before them in their own log. Of two records with
    one id, from two origins, only the earlier in canonical order is given. A line that breaks the
    rules of a record is skipped, as every fold skips it; verify names it. Raises Corrupt where a
    number is missing.
    """

    def __init__(
        self, source: Source, overlay: Overlay | None, room: str, primary: str | None = None
    ) -> None:
        """Name the room by its path; ``primary``, the origin that created it, if it is known."""
        self._source = source
        self._overlay = overlay
        self._primary = primary
        self._repeated: frozenset[tuple[str, int]] | None = None
        self._origins: dict[str, list[str]] = {}
        self.room = room

    def versions(self, layout: Layout) -> VersionReader:
        """Return a reader of the versions of the room's messages, of the same source."""
        from agent_chatroom_ledger.storage.versionfold import VersionReader

        return VersionReader(layout, self._source, self._overlay, self.room)

    @property
    def primary(self) -> str:
        """The origin that created the room, whose numbers are written without their origin."""
        if self._primary is None:
            self._primary = self.state().origin
        return self._primary

    def origins(self, log: str = MESSAGES) -> list[str]:
        """Return the origins that wrote to a log, sorted."""
        known = self._origins.get(log)
        if known is None:
            known = reading.origins(self._source, self.room, log, self._overlay)
            self._origins[log] = known
        return known

    def positions(self, log: str = MESSAGES) -> dict[str, int]:
        """Return the number of the newest record of each origin."""
        found = {}
        for origin in self.origins(log):
            path = log_path(self.room, log, origin)
            if last := reading.last_number(self._source, path, self._overlay):
                found[origin] = last
        return found

    def newest_of_each(self) -> list[Message]:
        """Return the newest message of each origin."""
        found = (self.find(origin, n) for origin, n in self.positions().items())
        return [message for message in found if message is not None]

    def message(self, origin: str, n: int) -> Message:
        """Return one message; NotFound, naming it, when there is none that can be read."""
        found = self.find(origin, n)
        if found is None:
            raise NotFound(
                f"There is no message {n} of {origin} in {self.room}.",
                room=self.room,
                ref=f"{n}@{origin}",
            )
        return found

    def find(self, origin: str, n: int, log: str = MESSAGES) -> Message | None:
        """Return one record; None when the log has no such number, or no record there."""
        if origin not in self.origins(log):
            return None
        path = log_path(self.room, log, origin)
        line = reading.record(self._source, path, n, self._overlay)
        return None if line is None else self._decoded(line, origin, n, log)

    def run(self, origin: str, first: int, last: int) -> Iterator[Message]:
        """Yield the messages of one origin from a number to another; unreadable ones are left out.

        Each segment is read once, however many of its messages are asked for.
        """
        path = log_path(self.room, MESSAGES, origin)
        for n, line in reading.records(self._source, path, first - 1, last, self._overlay):
            if message := self._decoded(line, origin, n, MESSAGES):
                yield message

    def messages(
        self,
        since: Mapping[str, int] = _START,
        *,
        limit: int | None = None,
        last: int | None = None,
    ) -> list[Message]:
        """Return messages past a position, oldest first.

        ``limit`` keeps the first ones, ``last`` the newest ones (then it reads from the end).
        """
        if last is None:
            found = []
            if limit is None or limit > 0:
                for message in self.after(since):
                    found.append(message)
                    if len(found) == limit:
                        break
            return found
        if last <= 0:
            return []
        newest: list[Message] = []
        for message in self.descending(since):
            newest.append(message)
            if len(newest) == last:
                break
        newest.reverse()
        return newest if limit is None else newest[: max(limit, 0)]

    def after(self, position: Mapping[str, int] = _START, log: str = MESSAGES) -> Iterator[Message]:
        """Yield the records of a log past a position, in canonical order."""
        origins = self.origins(log)
        if len(origins) == 1:
            return self._ascending(origins[0], log, position.get(origins[0], 0))
        runs = [self._ascending(origin, log, position.get(origin, 0)) for origin in origins]
        return self._kept(merge(*runs), log)

    def descending(
        self, position: Mapping[str, int] = _START, log: str = MESSAGES
    ) -> Iterator[Message]:
        """Yield the records of a log past a position, newest first."""
        origins = self.origins(log)
        if len(origins) == 1:
            return self._descending(origins[0], log, position.get(origins[0], 0))
        runs = [self._descending(origin, log, position.get(origin, 0)) for origin in origins]
        return self._kept(merge_reversed(*runs), log)

    def state(self) -> RoomState:
        """Return the room's state: who it is, its members, its policy.

        The projections are read for speed. The operations are folded instead when the journal
        holds some that the projections may lack, or when the projections cannot be read.
        """
        in_journal = self._overlay is not None and self._overlay.origins(
            f"{self.room}/{OPERATIONS}"
        )
        if not in_journal:
            room = self._source.read(f"{self.room}/{ROOM_FILE}")
            policy = self._source.read(f"{self.room}/{POLICY_FILE}")
            if room is not None and policy is not None:
                try:
                    return state_from_projections(room, policy)
                except Corrupt as error:
                    if error.code != "corrupt":
                        raise
        return self.folded_state()

    def folded_state(self) -> RoomState:
        """Return the room's state from its operations alone; NotFound when there is no room."""
        if not self.origins(OPERATIONS):
            raise NotFound(f"There is no room at {self.room}.", room=self.room)
        # Which origin is primary is what the fold finds out, so it starts without one.
        primary, self._primary = self._primary, self._primary or ""
        try:
            state = fold_room(self.after(log=OPERATIONS))
        finally:
            self._primary = primary
        return state

    def newest_page(self) -> tuple[str, bytes] | None:
        """Return the name and the bytes of the newest page of the view."""
        for year in _descending_names(self._source, f"{self.room}/{VIEW}"):
            names = self._source.names(f"{self.room}/{VIEW}/{year}")
            pages = sorted((page for page in names if page.endswith(".md")), key=_page_order)
            if pages:
                name = f"{year}/{pages[-1]}"
                content = self.page(name)
                return None if content is None else (name, content)
        return None

    def page(self, name: str) -> bytes | None:
        """Return the bytes of one page, ``2026/11-29.0.md``."""
        return self._source.read(f"{self.room}/{VIEW}/{name}")

    def pages(self) -> list[str]:
        """Return the names of all pages, in order."""
        found = []
        for year in reversed(_descending_names(self._source, f"{self.room}/{VIEW}")):
            names = self._source.names(f"{self.room}/{VIEW}/{year}")
            pages = sorted((page for page in names if page.endswith(".md")), key=_page_order)
            found += [f"{year}/{page}" for page in pages]
        return found

    def _ascending(self, origin: str, log: str, after: int) -> Iterator[Message]:
        path = log_path(self.room, log, origin)
        for n, line in reading.records(self._source, path, after, None, self._overlay):
            if message := self._decoded(line, origin, n, log):
                yield message

    def _descending(self, origin: str, log: str, after: int) -> Iterator[Message]:
        path = log_path(self.room, log, origin)
        for n, line in reading.records_descending(self._source, path, self._overlay):
            if n <= after:
                return
            if message := self._decoded(line, origin, n, log):
                yield message

    def _decoded(self, line: bytes, origin: str, n: int, log: str) -> Message | None:
        primary = self._primary if self._primary is not None else self.primary
        return message_at(line, origin, log, n, origin == primary)

    def _kept(self, messages: Iterator[Message], log: str) -> Iterator[Message]:
        """Leave out records whose id an earlier one, from another origin, bears already."""
        if log != MESSAGES:
            yield from messages
            return
        if self._repeated is None:
            self._repeated = self._find_repeated()
        for message in messages:
            if (message.origin, message.n) not in self._repeated:
                yield message

    def _find_repeated(self) -> frozenset[tuple[str, int]]:
        # Of each line only the id is decoded. Where two have one, both are decoded whole: a line
        # that is no record must not hide one.
        first: dict[str, tuple[str, int]] = {}
        doubtful: dict[str, set[int]] = {}
        for origin in self.origins():
            path = log_path(self.room, MESSAGES, origin)
            for n, line in reading.records(self._source, path, 0, None, self._overlay):
                try:
                    identifier = _NAMED.decode(line).id
                except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
                    continue
                place = (origin, n)
                other = first.setdefault(identifier, place)
                if other is not place:
                    doubtful.setdefault(other[0], set()).add(other[1])
                    doubtful.setdefault(origin, set()).add(n)
        ordered = sorted(
            (order_key(message), message.id)
            for origin, numbers in doubtful.items()
            for message in self._some(origin, numbers)
        )
        seen: set[str] = set()
        repeated = set()
        for (_, origin, _, n), identifier in ordered:
            if identifier in seen:
                repeated.add((origin, n))
            seen.add(identifier)
        return frozenset(repeated)

    def _some(self, origin: str, numbers: set[int]) -> Iterator[Message]:
        """Yield the messages of one origin that some numbers have, ascending."""
        path = log_path(self.room, MESSAGES, origin)
        held = self._overlay.lines(path) if self._overlay else {}
        lines = dict(reading.some_records(self._source, path, numbers - held.keys()))
        lines |= {n: held[n] for n in numbers & held.keys()}
        for n in sorted(lines):
            if message := self._decoded(lines[n], origin, n, MESSAGES):
                yield message


def _descending_names(source: Source, directory: str) -> list[str]:
    names = [name[:-1] for name in source.names(directory) if name.endswith("/")]
    return sorted(names, reverse=True)


def _page_order(name: str) -> tuple[str, int, str]:
    day, _, rest = name.partition(".")
    number = decimal(rest.removesuffix(".md"))
    return (day, -1 if number is None else number, name)
