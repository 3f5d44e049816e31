"""The ledger: one repository of rooms, opened, searched, followed, audited and closed."""

from __future__ import annotations

import re
import threading
import time
import uuid
import warnings
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Self

import msgspec

from agent_chatroom_ledger.domain.clock import to_datetime
from agent_chatroom_ledger.domain.names import check_author, crowd_directory
from agent_chatroom_ledger.domain.records import message_of
from agent_chatroom_ledger.errors import (
    Busy,
    Conflict,
    Corrupt,
    Forbidden,
    InvalidInput,
    LedgerError,
    NotFound,
)
from agent_chatroom_ledger.room import Room
from agent_chatroom_ledger.storage import journal, reading, repository
from agent_chatroom_ledger.storage.layout import find_root
from agent_chatroom_ledger.storage.overlay import Overlay
from agent_chatroom_ledger.storage.reading import MESSAGES, ROOMS
from agent_chatroom_ledger.storage.roomreader import RoomReader
from agent_chatroom_ledger.storage.source import WorkTree

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from types import TracebackType

    from agent_chatroom_ledger.consumers import Consumer
    from agent_chatroom_ledger.domain.records import Message
    from agent_chatroom_ledger.storage.history import LogEntry
    from agent_chatroom_ledger.storage.index import Index, RoomRow
    from agent_chatroom_ledger.storage.layout import Layout
    from agent_chatroom_ledger.storage.objects import Objects
    from agent_chatroom_ledger.storage.present import Present
    from agent_chatroom_ledger.storage.source import Source
    from agent_chatroom_ledger.storage.verify import Report
    from agent_chatroom_ledger.storage.writer import Stored, Transaction, Writer

_CHAT_ID = re.compile(r"chat_([0-9a-f]{32})\Z", re.ASCII)
_PAUSE_SECONDS_MIN = 0.01
_PAUSE_SECONDS_MAX = 0.1
# How far the index file may lag behind the journal when a writer closes: less is caught up by
# each reader in no time, more is left to whoever needs it, so that closing stays quick.
_INDEX_LAG_BYTES_MIN = 65_536
_INDEX_LAG_BYTES_MAX = 1_048_576


class RoomSummary(msgspec.Struct, frozen=True, kw_only=True):
    """A room in a list: who it is, and its newest record in each origin.

    ``last`` is the number of the newest message in the origin that created the room, ``last_at``
    the time of the newest message of all; 0 and None while the room is empty.
    """

    id: str
    title: str
    path: str
    folder: str
    slug: str
    members: tuple[str, ...]
    origin: str
    created_at: datetime
    created_by: str
    positions: dict[str, int]
    last: int
    last_at: datetime | None


class Ledger:
    """A repository of rooms. Open one with ``Ledger.open``; use it as a context manager.

    A ledger may be shared by threads; each process opens its own. Reading takes no locks and sees
    everything whose call has returned, in this process or another.
    """

    def __init__(
        self, layout: Layout, *, commit: Literal["sync", "group"], read_only: bool
    ) -> None:
        """Use ``Ledger.open``."""
        self._layout = layout
        self._commit: Literal["sync", "group"] = commit
        self._read_only = read_only
        self._guard = threading.RLock()
        self._tree = WorkTree(layout.root)
        self._follower: journal.Follower | None = None
        self._overlay = Overlay()
        self._index: Index | None = None
        self._writer: Writer | None = None
        self._objects: Objects | None = None
        self._closed = False

    @classmethod
    def open(
        cls,
        path: str | Path,
        *,
        create: bool = False,
        commit: Literal["sync", "group"] = "sync",
        read_only: bool = False,
    ) -> Ledger:
        """Open the ledger in a directory; ``create`` makes one where there is none.

        With ``commit="sync"`` a write returns when its commit is in main; with ``"group"`` when
        it is durable in the journal, and the commit follows within 50 milliseconds. ``read_only``
        changes nothing in the ledger at all. What a killed process left unfinished is finished
        first. A directory that may not be written is opened for reading, with a warning.
        Raises NotFound when there is no ledger, and Conflict for a repository of a kind that
        cannot hold one.
        """
        if commit not in {"sync", "group"}:
            raise InvalidInput(f'commit is "sync" or "group", not {commit!r}.', field="commit")
        root = Path(path).absolute()
        if create and not read_only and not (root / "ledger.json").is_file():
            layout = repository.create(root)
        else:
            layout = repository.open_layout(root)
        if not layout.writable and not read_only:
            warnings.warn(
                f"{root} may not be written: the ledger is open for reading only", stacklevel=2
            )
            read_only = True
        if not read_only:
            _recover(layout)
        return cls(layout, commit=commit, read_only=read_only)

    @staticmethod
    def find(directory: str | Path) -> Path | None:
        """Return the root of the nearest ledger, from a directory upwards as git looks; or None."""
        return find_root(Path(directory).absolute())

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Finish what is pending and let go of every file; closing twice is harmless."""
        with self._guard:
            if self._closed:
                return
            self._closed = True
            try:
                if self._writer is not None:
                    self._writer.close()
                    self._refresh_index_file()
            finally:
                if self._index is not None:
                    self._index.close()
                if self._follower is not None:
                    self._follower.close()
                if self._objects is not None:
                    self._objects.close()

    @property
    def root(self) -> Path:
        """The ledger's directory."""
        return self._layout.root

    @property
    def origin(self) -> str:
        """The name under which this clone writes; empty for a clone that was only read so far."""
        return repository.origin_of(self._layout) or ""

    @property
    def read_only(self) -> bool:
        """Whether writing is refused."""
        return self._read_only

    @property
    def layout(self) -> Layout:
        """Where everything lies on disk."""
        return self._layout

    # --- rooms ---------------------------------------------------------------------------------

    def create_room(
        self,
        title: str,
        *,
        folder: str = "",
        members: Sequence[str] = (),
        by: str = "Ledger",
        reason: str = "",
        id: str | None = None,  # noqa: A002 - the record's own word
    ) -> Room:
        """Make a room and return it.

        Its directory is named after the title; where that name is taken it gets a number
        (``design-review_2``). ``id`` makes the call idempotent: the same id with the same title
        and folder again returns the room that is there, with others it is a Conflict.
        """
        from agent_chatroom_ledger import operations

        return operations.create_room(
            self, title, folder=folder, members=members, by=by, reason=reason, room_id=id
        )

    def ensure_room(self, name: str, *, by: str = "Ledger") -> Room:
        """Find a room, as ``room`` does, or make it: ``folder/title``, and without a folder none.

        Of several who ask at once only one makes it. An ambiguous name is a Conflict all the same.
        """
        from agent_chatroom_ledger import operations

        try:
            return self.room(name)
        except NotFound:
            folder, _, title = name.strip().removeprefix(f"{ROOMS}/").strip("/").rpartition("/")
            return operations.create_room(self, title, folder=folder, by=by, if_missing=True)

    def room(self, name: str | Room) -> Room:
        """Find a room by path (with or without ``rooms/``), id, unique slug or unique title.

        Raises NotFound, or Conflict (code ``ambiguous``) when several bear the name; both list the
        nearest paths in ``fields["candidates"]``.
        """
        if isinstance(name, Room):
            return name
        if not str(name).strip():
            raise InvalidInput("A room is named by path, slug, title or id.", field="room")
        wanted = str(name).strip().rstrip("/")
        source, overlay = self.look()
        for path in _paths_of(wanted):
            if reading.is_room(source, path, overlay):
                return Room(self, path)
        found = self._search(wanted)
        if len(found) != 1:
            raise self._not_one(name, found)
        return Room(self, found[0].path)

    def rooms(self, at: str | datetime | None = None) -> list[RoomSummary]:
        """Return all rooms, by path, as they are now or were at a commit or time."""
        if at is None:
            rows, heads = self.index.rooms_and_heads()
            found = []
            for row in rows:
                mine = heads.get(row.path, ())
                positions = {head.origin: head.last for head in mine}
                newest = max((head.last_at for head in mine), default="")
                found.append(_summary(row, positions, newest))
            return found
        source = self.source_at(at)
        return [_summary_of(RoomReader(source, None, path)) for path in reading.rooms(source)]

    def consumer(self, name: str, cursor: str | Path | None = None) -> Consumer:
        """Return a consumer: its cursor is kept in the ledger, or in the file that is named.

        Nothing is read or written yet.
        """
        from agent_chatroom_ledger.consumers import Consumer

        return Consumer(self, check_author(name, "consumer"), cursor)

    # --- the whole ledger ----------------------------------------------------------------------

    def flush(self) -> None:
        """Return when everything written so far is committed and checkpointed."""
        with self._guard:
            if self._writer is not None:
                self._writer.flush()

    def verify(self, *, repair: bool = False, full: bool = False) -> Report:
        """Check the whole ledger and report what is wrong; an unsound ledger is no error here.

        Objects of git are read as far back as the last commit that verified clean; ``full`` reads
        all of them. With ``repair`` what can be mended is mended first, and foreign bytes are
        kept in quarantine.
        """
        from agent_chatroom_ledger.storage import verify

        self.flush()
        report = verify.verify(self._layout, full=full, remember=not self._read_only)
        if repair and not report.ok:
            self._require_writable()
            self.mend(report)
            report = verify.verify(self._layout, full=full)
        return report

    def mend(self, report: Report) -> list[str]:
        """Mend what a report of ``verify`` found, as far as it can be; say what was done."""
        from agent_chatroom_ledger.storage import repair

        self._require_writable()
        with self._guard:
            if self._writer is not None:
                # It remembers what main was; after a repair it has to look afresh.
                self._writer.close()
                self._writer = None
            done = repair.repair(self._layout, report)
            self._forget()
            self.index.rebuild()
        return list(done or [])

    def log(
        self,
        room: str | Room | None = None,
        *,
        author: str | None = None,
        since: datetime | None = None,
        limit: int | None = None,
        patch: bool = False,
    ) -> list[LogEntry]:
        """Return the audit trail, newest commit first: commit, time, author, what.

        ``patch`` adds to each entry the lines that its commit added and the projections it
        changed, as a unified diff.
        """
        from agent_chatroom_ledger.storage import history

        path = None if room is None else self.room(room).path
        self.flush()
        entries = history.log(
            self._layout,
            self.objects,
            room=path,
            author=author,
            since=since,
            patch=patch,
        )
        found: list[LogEntry] = []
        for entry in entries:
            if limit is not None and len(found) >= limit:
                break
            found.append(entry)
        return found

    def follow(
        self, room: str | Room | None = None, *, since: Mapping[str, int] | None = None
    ) -> Iterator[Message]:
        """Yield messages as they are posted, in this process or any other; it never ends.

        Begins with what is posted after the first step. ``since``, for one room, is a position
        that the caller has read to: what lies between it and now is given first.
        """
        chosen = None if room is None else self.room(room)
        follower = journal.Follower.newest(self._layout)
        follower.new_frames()
        reached: dict[str, int] = {}
        try:
            if chosen is not None:
                reached.update(chosen.last_position() if since is None else since)
                for message in chosen.reader().after(dict(reached)):
                    reached[message.origin] = message.n
                    yield message
            pause = _PAUSE_SECONDS_MIN
            primaries: dict[str, str] = {}
            while True:
                frames = follower.new_frames()
                for frame in frames:
                    for entry in frame.records:
                        path, kind, origin = (
                            entry.log.rsplit("/", 2) if "/" in entry.log else ("",) * 3
                        )
                        if kind != MESSAGES or (chosen is not None and path != chosen.path):
                            continue
                        if path not in primaries:
                            primaries[path] = Room(self, path).origin
                        primary = origin == primaries[path]
                        message = message_of(bytes(entry.record), origin, MESSAGES, primary)
                        if chosen is not None and message.n <= reached.get(origin, 0):
                            continue
                        yield message
                pause = _PAUSE_SECONDS_MIN if frames else min(pause * 2, _PAUSE_SECONDS_MAX)
                time.sleep(pause)
        finally:
            follower.close()

    # --- for the other use cases ---------------------------------------------------------------

    def look(self) -> tuple[Source, Overlay]:
        """Return the work tree, and what the journal holds beyond it, as of now."""
        with self._guard:
            self._require_open()
            while True:
                if self._follower is None:
                    self._follower = journal.Follower.newest(self._layout)
                    self._overlay = Overlay()
                generation = self._follower.position[0]
                frames = self._follower.new_frames()
                now = self._follower.position[0]
                if now != generation and self._overlay:
                    # What the older generation held is in the files now: let go of it.
                    self._follower.close()
                    self._follower = None
                    continue
                self._overlay.extend(frames)
                return self._tree, self._overlay

    def source_at(self, at: str | datetime) -> Source:
        """Return the files of a commit, named by a revision or by a time."""
        from agent_chatroom_ledger.storage import history
        from agent_chatroom_ledger.storage.source import CommitTree

        self.flush()
        return CommitTree(self.objects, history.resolve(self._layout, self.objects, at))

    @property
    def index(self) -> Index:
        """The derived index over all rooms."""
        with self._guard:
            self._require_open()
            if self._index is None:
                from agent_chatroom_ledger.storage.index import Index

                self._index = Index(self._layout, self.look, writable=not self._read_only)
            return self._index

    @property
    def objects(self) -> Objects:
        """Git's objects."""
        with self._guard:
            self._require_open()
            if self._objects is None:
                from agent_chatroom_ledger.storage.objects import Objects

                self._objects = Objects(self._layout)
            return self._objects

    def transact(self, build: Callable[[Present], Sequence[Transaction]]) -> tuple[Stored, ...]:
        """Write transactions that are built, and validated, under the journal's lock."""
        return self.writer().transact(build)

    def writer(self) -> Writer:
        """Return the writer, opened at the first write; Forbidden when open for reading only."""
        with self._guard:
            self._require_open()
            self._require_writable()
            if self._writer is None:
                from agent_chatroom_ledger.storage.writer import Writer

                self._writer = Writer(self._layout, self._commit)
            return self._writer

    def _search(self, name: str) -> list[RoomRow]:
        chat = _CHAT_ID.match(name)
        if chat is not None and (row := self.index.room_by_id(str(uuid.UUID(hex=chat[1])))):
            return [row]
        if row := self.index.room_by_id(name):
            return [row]
        return self.index.rooms_by_slug(name) or self.index.rooms_by_title(name)

    def _not_one(self, name: str, found: list[RoomRow]) -> LedgerError:
        if found:
            return Conflict(
                f"{len(found)} rooms are called {name[:80]!r}; name one by its path.",
                code="ambiguous",
                room=name[:200],
                candidates=[row.path.removeprefix(f"{ROOMS}/") for row in found[:10]],
            )
        return NotFound(
            f"There is no room {name[:80]!r}.",
            room=name[:200],
            candidates=[
                row.path.removeprefix(f"{ROOMS}/") for row in self.index.candidates(name[:200])
            ],
        )

    def _refresh_index_file(self) -> None:
        """Bring the index file near the journal, so that readers who may not write it have it."""
        import sqlite3

        index = self._index
        if index is None:
            from agent_chatroom_ledger.storage.index import Index

            index = Index(self._layout)
        try:
            lag = index.behind_bytes()
            if lag is not None and _INDEX_LAG_BYTES_MIN <= lag <= _INDEX_LAG_BYTES_MAX:
                index.follow()
        except (sqlite3.Error, OSError, Corrupt):
            # Nothing of the ledger is in it: who needs it next mends it or says what is wrong.
            pass
        finally:
            index.close()

    def _forget(self) -> None:
        if self._follower is not None:
            self._follower.close()
            self._follower = None
        if self._objects is not None:
            self._objects.close()
            self._objects = None

    def _require_open(self) -> None:
        if self._closed:
            raise InvalidInput("The ledger is closed.", code="closed")

    def _require_writable(self) -> None:
        if self._read_only:
            raise Forbidden(
                f"The ledger in {self.root} is open for reading only.", code="read_only"
            )


def _recover(layout: Layout) -> None:
    """Finish what a killed process left, if anything, and make a fresh clone ready."""
    from agent_chatroom_ledger.storage import recovery

    if not recovery.needed(layout):
        return
    from agent_chatroom_ledger.storage.writer import Writer

    writer = Writer(layout)
    try:
        writer.flush()
    except (Busy, Conflict, Corrupt) as error:
        # The ledger can be read all the same, and verify and its repair need it open; whoever
        # writes is told again.
        warnings.warn(f"The ledger in {layout.root} can only be read: {error}", stacklevel=3)
    finally:
        with suppress(Busy, Conflict, Corrupt):
            writer.close()


def _paths_of(name: str) -> Iterator[str]:
    """Yield the paths that a name can stand for."""
    plain = name.removeprefix(f"{ROOMS}/")
    yield f"{ROOMS}/{plain}"
    folder, _, slug = plain.rpartition("/")
    crowded = f"{folder}/{crowd_directory(slug)}/{slug}".lstrip("/")
    yield f"{ROOMS}/{crowded}"


def _summary(row: RoomRow | Any, positions: dict[str, int], last_at: str) -> RoomSummary:  # noqa: ANN401 - a row or a state
    return RoomSummary(
        id=row.id,
        title=row.title,
        path=row.path,
        folder=row.folder,
        slug=row.slug,
        members=row.members,
        origin=row.origin,
        created_at=to_datetime(row.created_at),
        created_by=row.created_by,
        positions=positions,
        last=positions.get(row.origin, 0),
        last_at=to_datetime(last_at) if last_at else None,
    )


def _summary_of(reader: RoomReader) -> RoomSummary:
    state = reader.state()
    newest = max((m.at for m in reader.newest_of_each()), default=None)
    at = "" if newest is None else newest.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    return _summary(state, reader.positions(), at)
