"""A room: what was said in it, what its policy shows of it, and saying something more."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import msgspec

from agent_chatroom_ledger.domain.lenses import LensItem, lens
from agent_chatroom_ledger.domain.policy import Policy
from agent_chatroom_ledger.domain.positions import position_of
from agent_chatroom_ledger.domain.records import (
    Draft,
    Message,
    Record,
    check_draft,
    message_of,
)
from agent_chatroom_ledger.domain.references import parse_ref
from agent_chatroom_ledger.errors import Conflict, InvalidInput, NotFound
from agent_chatroom_ledger.limits import POST_MANY_MAX
from agent_chatroom_ledger.posting import transactions
from agent_chatroom_ledger.storage.reading import MESSAGES
from agent_chatroom_ledger.storage.roomreader import VIEW, RoomReader

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from datetime import datetime
    from pathlib import Path

    from agent_chatroom_ledger.changes import Refs
    from agent_chatroom_ledger.domain.roomstate import RoomState
    from agent_chatroom_ledger.domain.tombstones import Tombstone
    from agent_chatroom_ledger.ledger import Ledger
    from agent_chatroom_ledger.placement import Placed
    from agent_chatroom_ledger.storage.index import RoomRow
    from agent_chatroom_ledger.storage.present import Present
    from agent_chatroom_ledger.storage.writer import Stored, Transaction


class Lens(msgspec.Struct, frozen=True, kw_only=True):
    """A room as its policy shows it, computed when asked and never stored.

    ``items`` are messages and stand-ins in order; ``position`` is that of the newest records,
    whether or not they are shown, and ``message_count`` the number of all messages.
    """

    room: Room
    items: tuple[LensItem, ...]
    policy: Policy
    position: Mapping[str, int]
    message_count: int
    last: Message | None


class Room:
    """One room of a ledger; cheap to make, and never out of date: what changes is read anew.

    Rooms are equal when they are the same room of the same ledger. When a room is archived and
    another is made at its path, what was got before stays the first: its state, and all that
    writes, is a Conflict then.
    """

    def __init__(
        self,
        ledger: Ledger,
        path: str,
        row: RoomRow | RoomState | None = None,
        tombstone: Tombstone | None = None,
        *,
        room_id: str = "",
    ) -> None:
        """Use ``Ledger.room``."""
        known = tombstone or row
        self._id = room_id if known is None else known.id
        self._ledger = ledger
        self._tombstone = tombstone
        self._row = row
        self.path = path

    def __repr__(self) -> str:
        return f"<Room {self.path}>"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Room):
            return NotImplemented
        return (self.path, self._ledger.root) == (other.path, other._ledger.root)

    def __hash__(self) -> int:
        return hash((self.path, self._ledger.root))

    # --- who it is -----------------------------------------------------------------------------

    @property
    def ledger(self) -> Ledger:
        """The ledger that the room is in."""
        return self._ledger

    @property
    def id(self) -> str:
        """The room's id, which never changes."""
        return self._id or self._fixed().id

    @property
    def title(self) -> str:
        """The room's title."""
        return self._fixed().title

    @property
    def folder(self) -> str:
        """The folder that the room was placed in; empty for none."""
        return self._fixed().folder

    @property
    def slug(self) -> str:
        """The name of the room's directory."""
        return self._fixed().slug

    @property
    def origin(self) -> str:
        """The origin that created the room: its message numbers are written without it."""
        return self._fixed().origin

    @property
    def status(self) -> str:
        """``active``, or ``archived`` for a room that was archived when it was looked up."""
        return "active" if self._tombstone is None else "archived"

    @property
    def tombstone(self) -> Tombstone | None:
        """What stays of an archived room; None for an active one."""
        return self._tombstone

    @property
    def members(self) -> tuple[str, ...]:
        """The names on the member list now."""
        return self.state().members

    @property
    def listed_members(self) -> tuple[str, ...]:
        """The names on the member list when the room was looked up."""
        return self._fixed().members

    def state(self, at: str | datetime | None = None) -> RoomState:
        """Return the room's state now, or as it was at a commit or time."""
        state = self.reader(at).state()
        if at is None:
            self._row = self.require_same(state)
        return state

    def refolded(self) -> Room:
        """Return the same room with title, members and origin from its records alone."""
        return Room(self._ledger, self.path, self.reader().folded_state(), self._tombstone)

    def policy(self, at: str | datetime | None = None) -> Policy:
        """Return which messages are left out, and which stand-ins are shown."""
        return self.state(at).policy

    def last_position(self) -> dict[str, int]:
        """Return the number of the newest message of each origin."""
        return self.reader().positions()

    def reader(self, at: str | datetime | None = None) -> RoomReader:
        """Return a reader of the room's logs, now or at a commit or time, wherever it lay then.

        NotFound when the room was not there then, though another lay at its path.
        """
        if at is not None:
            from agent_chatroom_ledger.past import reader_at

            return reader_at(self, at)
        primary = None if self._row is None else self._row.origin
        if self._tombstone is not None:
            return RoomReader(
                self._ledger.source_at(self._tombstone.commit), None, self.path, primary
            )
        source, overlay = self._ledger.look()
        return RoomReader(source, overlay, self.path, primary)

    # --- reading -------------------------------------------------------------------------------

    def messages(
        self,
        since: int | str | Message | Mapping[str, int] = 0,
        limit: int | None = None,
        last: int | None = None,
        at: str | datetime | None = None,
        kind: str | None = None,
    ) -> list[Message]:
        """Return messages, oldest first.

        ``since`` is a number, a reference, a message or a position: only what comes after it.
        ``limit`` keeps the first ones, ``last`` the newest ones, ``kind`` those of one kind (and
        is applied first). ``at`` reads the room as it was at a commit or time; NotFound when it was
        not there then.
        """
        for name, value in (("limit", limit), ("last", last)):
            if value is not None and value < 0:
                raise InvalidInput(f"{name} must not be negative.", field=name)
        reader = self.reader(at)
        position = position_of(since, reader.primary) if since else {}
        if kind is None:
            return reader.messages(position, limit=limit, last=last)
        found: list[Message] = []
        if last is None:
            for message in reader.after(position):
                if limit is not None and len(found) >= limit:
                    break
                if message.kind == kind:
                    found.append(message)
            return found
        for message in reader.descending(position):
            if len(found) >= last:
                break
            if message.kind == kind:
                found.append(message)
        found.reverse()
        return found if limit is None else found[:limit]

    def message(self, ref: int | str | Message) -> Message:
        """Return one message by number or reference (``57``, ``57@ci-9a1c``); NotFound if none."""
        reader = self.reader()
        return reader.message(*self._ref(ref, reader.primary))

    def lens(self, at: str | datetime | None = None) -> Lens:
        """Return the room as its policy shows it, from the logs alone."""
        reader = self.reader(at)
        policy = reader.folded_state().policy
        messages = reader.messages()
        return Lens(
            room=self,
            items=tuple(lens(messages, policy)),
            policy=policy,
            position=reader.positions(),
            message_count=len(messages),
            last=messages[-1] if messages else None,
        )

    @property
    def visible_path(self) -> Path | None:
        """The newest page of the compiled view, or None while there is none."""
        newest = self.reader().newest_page()
        return self._ledger.root / self.path / VIEW / newest[0] if newest else None

    # --- writing -------------------------------------------------------------------------------

    def post(self, author: str, body: str, **fields: Any) -> Message:  # noqa: ANN401 - a draft's fields
        """Say something, and return it with its number and time.

        ``fields`` are those of a ``Draft``: kind, to, mentions, reply_to, correlation, cause,
        status, data, said_at, id. With an ``id`` the call is idempotent: the same id with the same
        content again returns the first message, with other content it is a Conflict. Raises
        InvalidInput for what breaks a rule or a limit, and NotYetCommitted when the message is
        durable but its commit is still to come: then it must not be posted again.
        """
        return self.post_many([{"author": author, "body": body, **fields}])[0]

    def post_many(self, drafts: Iterable[Draft | Mapping[str, Any]]) -> list[Message]:
        """Say several things in order, with one lock and one sync; one commit each.

        At most 10,000 at once. All are checked first, and a call that is refused wrote none.
        """
        checked = [self._checked(draft) for draft in drafts]
        if len(checked) > POST_MANY_MAX:
            raise InvalidInput(
                f"One call posts at most {POST_MANY_MAX} messages, not {len(checked)}; split it.",
                field="drafts",
                limit=POST_MANY_MAX,
            )
        if not checked:
            return []
        self.require_active()
        told: list[Record] = []
        fresh: list[int] = []

        def build(present: Present) -> Sequence[Transaction]:
            told.clear()
            fresh.clear()
            self.require_same(present.required(self.path))
            return transactions(present, self.path, checked, told, fresh)

        stored = self._ledger.transact(build)
        return self._messages(told, fresh, stored)

    def exclude(self, refs: Refs, *, by: str = "Ledger", reason: str = "") -> Policy:
        """Leave messages out of the view and of every lens; their records stay.

        ``refs`` are numbers, references, messages or text such as ``3,5-9``. Raises InvalidInput
        naming those that do not exist; then nothing is written.
        """
        from agent_chatroom_ledger import operations

        return operations.exclude(self, refs, by=by, reason=reason)

    def include(self, refs: Refs, *, by: str = "Ledger", reason: str = "") -> Policy:
        """Show messages again that were left out."""
        from agent_chatroom_ledger import operations

        return operations.include(self, refs, by=by, reason=reason)

    def add_standin(
        self,
        replaces: Refs,
        body: str,
        *,
        insert_after: int | str | Message | None = None,
        speaker: str = "System",
        kind: str = "system",
        id: str | None = None,  # noqa: A002 - the stand-in's own word
        by: str = "Ledger",
        reason: str = "",
    ) -> Policy:
        """Show a text in the place of messages, which are left out.

        It appears after ``insert_after``, by default after the last of those that it replaces.
        """
        from agent_chatroom_ledger import operations

        return operations.add_standin(
            self,
            replaces,
            body,
            insert_after=insert_after,
            speaker=speaker,
            kind=kind,
            standin_id=id,
            by=by,
            reason=reason,
        )

    def clear_policy(self, *, by: str = "Ledger", reason: str = "") -> Policy:
        """Take back every exclusion and every stand-in."""
        from agent_chatroom_ledger import operations

        return operations.clear_policy(self, by=by, reason=reason)

    def add_member(self, name: str, *, by: str = "Ledger", reason: str = "") -> tuple[str, ...]:
        """Make somebody a member, and return the members; a member already changes nothing."""
        from agent_chatroom_ledger import members

        return members.add_member(self, name, by=by, reason=reason)

    def remove_member(self, name: str, *, by: str = "Ledger", reason: str = "") -> tuple[str, ...]:
        """Take somebody off the member list, and return the members.

        What the member said stays. A name that is no member changes nothing.
        """
        from agent_chatroom_ledger import members

        return members.remove_member(self, name, by=by, reason=reason)

    def place(self, refs: Refs, target: Room, *, reason: str, by: str = "Ledger") -> Placed:
        """Copy messages of this room into another, each with where it came from and why.

        A copy keeps speaker, kind, text, mentions, data and attachments, and when it was said. All
        is one commit in both rooms, or none of it. What stands there for the same reason already is
        skipped. At most 10,000 messages at once, of 32 MiB together.
        """
        from agent_chatroom_ledger import placement

        return placement.place(self, refs, target, reason=reason, by=by)

    def duplicate(self, refs: Refs, target: Room, *, reason: str, by: str = "Ledger") -> Placed:
        """Copy messages as ``place`` does, those too that stand there already."""
        from agent_chatroom_ledger import placement

        return placement.duplicate(self, refs, target, reason=reason, by=by)

    def compile(self) -> list[Path]:
        """Bring the compiled view up to now, in a commit of its own; return all its pages.

        A page that was changed or deleted from outside is written again.
        """
        self.state()
        self._ledger.writer().checkpoint([self.path])
        view = self._ledger.root / self.path / VIEW
        return [view / page for page in self.reader().pages()]

    # --- inside --------------------------------------------------------------------------------

    def require_active(self) -> None:
        """Raise Conflict (code ``archived``) for a room that was archived when it was looked up."""
        if self._tombstone is not None:
            name = self.path.removeprefix("rooms/")
            raise Conflict(
                f"{name} is archived; `rooms restore {name}` brings it back",
                code="archived",
                room=self.path,
            )

    def require_same(self, state: RoomState) -> RoomState:
        """Return the state that lies at the room's path; Conflict when it is another room's by now.

        A room that nobody has looked at yet becomes the one that lies there.
        """
        if self._id and state.id != self._id:
            raise Conflict(f"{self.path} is another room now; look again.", room=self.path)
        self._id = state.id
        return state

    def _fixed(self) -> RoomRow | RoomState:
        return self.state() if self._row is None else self._row

    def _ref(self, ref: int | str | Message, primary: str) -> tuple[str, int]:
        if isinstance(ref, Message):
            return ref.origin, ref.n
        return parse_ref(str(ref), primary)

    def _checked(self, draft: Draft | Mapping[str, Any]) -> Draft:
        if not isinstance(draft, Draft):
            reply = draft.get("reply_to")
            if isinstance(reply, Message):
                draft = {**draft, "reply_to": reply.full_ref}
            elif isinstance(reply, int) and not isinstance(reply, bool):
                draft = {**draft, "reply_to": str(reply)}
            draft = Draft.of(draft)
        return check_draft(draft)

    def _messages(
        self, told: list[Record], fresh: list[int], stored: Sequence[Stored]
    ) -> list[Message]:
        """Return what was posted now, or before under the same ids, as messages."""
        primary = self.origin
        lines = dict(zip(fresh, stored, strict=True))
        reader: RoomReader | None = None
        found = []
        for place, record in enumerate(told):
            item = lines.get(place)
            if item is not None:
                origin = item.log.rpartition("/")[2]
                found.append(message_of(item.line, origin, MESSAGES, origin == primary))
                continue
            reader = reader or self.reader()
            found.append(_the_same(reader, record))
        return found


def _the_same(reader: RoomReader, record: Record) -> Message:
    for origin in reader.origins():
        found = reader.find(origin, record.n)
        if found is not None and found.id == record.id:
            return found
    # It was written in this very call, so the journal may not show it to readers yet.
    raise NotFound(f"The message {record.n} of {reader.room} cannot be read.", room=reader.room)
