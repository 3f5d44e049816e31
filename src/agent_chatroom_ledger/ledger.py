"""The ledger: one repository of rooms, opened, searched, followed, audited and closed."""

from __future__ import annotations

import warnings
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Literal, Self

from agent_chatroom_ledger.domain.names import check_author
from agent_chatroom_ledger.errors import (
    Busy,
    Conflict,
    Corrupt,
    InvalidInput,
    NotFound,
)
from agent_chatroom_ledger.room import Room
from agent_chatroom_ledger.storage import repository
from agent_chatroom_ledger.storage.layout import find_root
from agent_chatroom_ledger.storage.opened import Opened
from agent_chatroom_ledger.storage.reading import ROOMS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from datetime import datetime
    from types import TracebackType

    from agent_chatroom_ledger.agents import Agent
    from agent_chatroom_ledger.consumers import Consumer
    from agent_chatroom_ledger.domain.records import Message
    from agent_chatroom_ledger.domain.tombstones import Tombstone
    from agent_chatroom_ledger.listing import RoomSummary
    from agent_chatroom_ledger.storage.configuration import Settings
    from agent_chatroom_ledger.storage.history import LogEntry
    from agent_chatroom_ledger.storage.index import Index
    from agent_chatroom_ledger.storage.layout import Layout
    from agent_chatroom_ledger.storage.objects import Objects
    from agent_chatroom_ledger.storage.overlay import Overlay
    from agent_chatroom_ledger.storage.present import Present
    from agent_chatroom_ledger.storage.receipts import Receipts
    from agent_chatroom_ledger.storage.source import Source
    from agent_chatroom_ledger.storage.timeline import Timeline
    from agent_chatroom_ledger.storage.verify import Report
    from agent_chatroom_ledger.storage.writer import Stored, Transaction, Writer


class Ledger:
    """A repository of rooms. Open one with ``Ledger.open``; use it as a context manager.

    A ledger may be shared by threads; each process opens its own. Reading takes no locks and sees
    everything whose call has returned, in this process or another.
    """

    def __init__(
        self, layout: Layout, *, commit: Literal["sync", "group"], read_only: bool
    ) -> None:
        """Use ``Ledger.open``."""
        self._storage = Opened(layout, commit=commit, read_only=read_only)

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
        self._storage.close()

    @property
    def root(self) -> Path:
        """The ledger's directory."""
        return self.layout.root

    @property
    def origin(self) -> str:
        """The name under which this clone writes; empty for a clone that was only read so far."""
        return repository.origin_of(self.layout) or ""

    @property
    def read_only(self) -> bool:
        """Whether writing is refused."""
        return self._storage.read_only

    @property
    def layout(self) -> Layout:
        """Where everything lies on disk."""
        return self._storage.layout

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
        from agent_chatroom_ledger.creation import create_room

        return create_room(
            self, title, folder=folder, members=members, by=by, reason=reason, room_id=id
        )

    def ensure_room(self, name: str, *, by: str = "Ledger") -> Room:
        """Find a room, as ``room`` does, or make it: ``folder/title``, and without a folder none.

        Of several who ask at once only one makes it. An ambiguous name is a Conflict all the same.
        """
        from agent_chatroom_ledger.creation import create_room

        try:
            return self.room(name)
        except NotFound:
            folder, _, title = name.strip().removeprefix(f"{ROOMS}/").strip("/").rpartition("/")
            return create_room(self, title, folder=folder, by=by, if_missing=True)

    def room(self, name: str | Room, at: str | datetime | None = None) -> Room:
        """Find a room by path (with or without ``rooms/``), id, unique slug or unique title.

        A title may have the folder before it, ``team/Big review``.

        Raises NotFound, or Conflict (code ``ambiguous``) when several bear the name; both list the
        nearest paths in ``fields["candidates"]``. With ``at``, a room that is not there now is
        looked for in the files of that commit or time.
        """
        if isinstance(name, Room):
            return name
        if at is not None:
            from agent_chatroom_ledger.past import room_at

            return room_at(self, name, at)
        from agent_chatroom_ledger.listing import find_room

        return find_room(self, name)

    def archive_room(self, room: str | Room, *, by: str = "Ledger", reason: str = "") -> Tombstone:
        """Archive a room: a tombstone and a removed directory, one commit; history keeps it.

        It can still be found, listed, read and verified. Writing to it is a Conflict (code
        ``archived``), as is archiving it again.
        """
        from agent_chatroom_ledger.archives import archive_room

        return archive_room(self, self.room(room), by=by, reason=reason)

    def restore_room(self, room: str | Room, *, by: str = "Ledger", reason: str = "") -> Room:
        """Bring an archived room back, the very same tree, and return it.

        Where its path is taken meanwhile it gets the next free number, and so does a folder that
        is a room now. Conflict (code ``not_archived``) when it is not archived.
        """
        from agent_chatroom_ledger.archives import restore_room

        found = self.room(room)
        if found.tombstone is None:
            raise Conflict(f"{found.path} is not archived.", code="not_archived", room=str(room))
        return restore_room(self, found.tombstone, by=by, reason=reason)

    def rooms(
        self,
        at: str | datetime | None = None,
        status: Literal["active", "archived", "all"] = "active",
    ) -> list[RoomSummary]:
        """Return the rooms of a status, by path, as they are now or were at a commit or time."""
        from agent_chatroom_ledger.listing import list_rooms

        return list_rooms(self, at, status)

    def consumer(self, name: str, cursor: str | Path | None = None) -> Consumer:
        """Return a consumer: its cursor is kept in the ledger, or in the file that is named.

        Nothing is read or written yet.
        """
        from agent_chatroom_ledger.consumers import Consumer

        return Consumer(self, check_author(name, "consumer"), cursor)

    def agent(self, name: str, *, session: str | None = None, door: str = "python") -> Agent:
        """Return the face of one who talks here: posts, writes to others, joins, leaves, receives.

        ``session`` is the id of the sender's session, for the limit of sends and for what is told
        once a session; without it every agent returned here is a session of its own. ``door`` is
        what a receipt names as the way by which a message was handed over. Nothing is read or
        written yet.
        """
        from agent_chatroom_ledger.agents import Agent

        return Agent(self, name, session=session, door=door)

    # --- the whole ledger ----------------------------------------------------------------------

    def flush(self) -> None:
        """Return when everything written so far is committed and checkpointed."""
        self._storage.flush()

    def verify(self, *, repair: bool = False, full: bool = False) -> Report:
        """Check the whole ledger and report what is wrong; an unsound ledger is no error here.

        Objects of git are read as far back as the last commit that verified clean; ``full`` reads
        all of them. With ``repair`` what can be mended is mended first, and foreign bytes are
        kept in quarantine.
        """
        from agent_chatroom_ledger.storage import verify

        with suppress(Busy, Conflict, Corrupt):
            # What keeps a commit from being made is what is looked for here.
            self.flush()
        report = verify.verify(self.layout, full=full, remember=not self.read_only)
        if repair and not report.ok:
            self.mend(report)
            report = verify.verify(self.layout, full=full)
        return report

    def mend(self, report: Report) -> list[str]:
        """Mend what a report of ``verify`` found, as far as it can be; say what was done."""
        from agent_chatroom_ledger.storage import repair

        self._storage.require_writable()
        self._storage.let_go()
        done = repair.repair(self.layout, report)
        self._storage.let_go()
        self.index.rebuild()
        return list(done or [])

    def log(
        self,
        room: str | Room | None = None,
        *,
        message: int | str | Message | None = None,
        author: str | None = None,
        since: datetime | None = None,
        limit: int | None = None,
        patch: bool = False,
    ) -> list[LogEntry]:
        """Return the audit trail, newest commit first: commit, time, author, what.

        With ``message``, a number or reference of the room, only what touched that message: its
        own commit and those of the operations about it. ``patch`` adds to each entry the lines
        that its commit added and the projections it changed, as a unified diff.
        """
        from agent_chatroom_ledger.trail import trail

        self._storage.commit_pending()
        return trail(
            self,
            None if room is None else self.room(room),
            message=message,
            author=author,
            since=since,
            limit=limit,
            patch=patch,
        )

    def commit_at(self, at: str | datetime) -> str:
        """Return the id of the commit that a revision or a time means.

        A revision is a branch, a tag, an id or the beginning of one, with ``~n`` and ``^`` after
        it; a time means the newest commit at or before it, to the second. Raises NotFound for one
        that is not there, Conflict for a beginning that several commits share.
        """
        from agent_chatroom_ledger.storage import history

        self._storage.commit_pending()
        return history.resolve(self.layout, self.objects, lambda: self.timeline, at)

    def follow(
        self, room: str | Room | None = None, *, since: Mapping[str, int] | None = None
    ) -> Iterator[Message]:
        """Yield messages as they are posted, in this process or any other; it never ends.

        Begins with what is posted after the first step. ``since``, for one room, is a position
        that the caller has read to: what lies between it and now is given first.
        """
        for _, message in self.changes(room, since=since):
            yield message

    def changes(
        self, room: str | Room | None = None, *, since: Mapping[str, int] | None = None
    ) -> Iterator[tuple[Room, Message]]:
        """Yield what ``follow`` does, each message with the room that it was posted to."""
        from agent_chatroom_ledger.following import changes

        yield from changes(self, None if room is None else self.room(room), since)

    # --- for the other use cases ---------------------------------------------------------------

    def look(self) -> tuple[Source, Overlay]:
        """Return the work tree, and what the journal holds beyond it, as of now."""
        return self._storage.look()

    def source_at(self, at: str | datetime) -> Source:
        """Return the files of a commit, named by a revision or by a time."""
        from agent_chatroom_ledger.storage.source import CommitTree

        return CommitTree(self.objects, self.commit_at(at))

    @property
    def timeline(self) -> Timeline:
        """The derived list of main's commits, by time and by room."""
        return self._storage.timeline

    @property
    def index(self) -> Index:
        """The derived index over all rooms."""
        return self._storage.index

    def keep_index(self) -> None:
        """Let a ledger that is open for reading bring the file of its index up to date.

        Only where it is there and lags far behind: each reader would do the same work again.
        """
        self._storage.keeps_index = self.layout.writable

    @property
    def receipts(self) -> Receipts:
        """What was handed over to whom, outside version control."""
        return self._storage.receipts

    @property
    def settings(self) -> Settings:
        """The settings of this ledger on this machine, as its file has them now."""
        from agent_chatroom_ledger.storage.configuration import load_settings

        return load_settings(self.layout)

    def settings_set(self) -> frozenset[str]:
        """Return the settings that the file sets."""
        from agent_chatroom_ledger.storage.configuration import settings_set

        return settings_set(self.layout)

    def set_setting(self, key: str, value: bool | int | str | None) -> None:  # noqa: FBT001 - a setting is a truth value as well as a number or a text
        """Set a setting in the file, or with None let it have its default; the rest stays."""
        from agent_chatroom_ledger.storage.configuration import change_setting

        change_setting(self.layout, key, value)

    @property
    def objects(self) -> Objects:
        """Git's objects."""
        return self._storage.objects

    def transact(self, build: Callable[[Present], Sequence[Transaction]]) -> tuple[Stored, ...]:
        """Write transactions that are built, and validated, under the journal's lock."""
        return self._storage.writer.transact(build)

    def writer(self) -> Writer:
        """Return the writer, opened at the first write; Forbidden when open for reading only."""
        return self._storage.writer


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
