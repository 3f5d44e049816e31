"""Versions of messages: shown, set, audited, restored, and their history told.

Level 0 of a message is the message itself, 1 to 9 are ever shorter renditions of it. Setting and
restoring are operations of the room; the messages stay what they are.
"""

from __future__ import annotations

import dataclasses
from datetime import datetime
from typing import TYPE_CHECKING, Any

import msgspec

from agent_chatroom_ledger.changes import Change, apply_change, plan_change
from agent_chatroom_ledger.domain.names import check_author
from agent_chatroom_ledger.domain.records import Message
from agent_chatroom_ledger.domain.references import parse_ref
from agent_chatroom_ledger.domain.versions import (
    LEVELS,
    VERSIONS_SET,
    Bundle,
    check_levels,
    clear_draft,
    needs_work,
    set_draft,
    unprepared,
)
from agent_chatroom_ledger.domain.worddiff import Piece, word_diff
from agent_chatroom_ledger.errors import InvalidInput, NotFound
from agent_chatroom_ledger.room import Room

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from agent_chatroom_ledger.domain.drafts import Draft
    from agent_chatroom_ledger.ledger import Ledger
    from agent_chatroom_ledger.plans import Plan
    from agent_chatroom_ledger.storage.roomreader import RoomReader

__all__ = [
    "AuditItem",
    "Bundle",
    "LevelDiff",
    "VersionEntry",
    "audit",
    "bundle_of",
    "compare",
    "drafts_to_restore",
    "history",
    "plan_restore",
    "plan_set",
    "restore",
    "set_versions",
]

Ref = int | str | Message


class AuditItem(msgspec.Struct, frozen=True, kw_only=True):
    """The state of one message's versions; ``reasons`` are codes, none when it needs no work.

    ``stale_source``: they were made from another text. ``not_semantic``: nobody has prepared them
    for their meaning.
    """

    room: Room
    message: Message
    reasons: tuple[str, ...]
    bundle: Bundle

    @property
    def needs_work(self) -> bool:
        """Whether somebody has to prepare this message's versions."""
        return bool(self.reasons)


class VersionEntry(msgspec.Struct, frozen=True, kw_only=True):
    """One operation on the versions of a message; ``bundle`` is None where they were taken back.

    ``commit`` is None while the operation waits for its commit.
    """

    operation: str
    at: datetime
    by: str
    reason: str
    bundle: Bundle | None
    commit: str | None


class LevelDiff(msgspec.Struct, frozen=True, kw_only=True):
    """One level that differs between two bundles, word by word."""

    level: int
    old_chars: int
    new_chars: int
    pieces: tuple[Piece, ...]


def bundle_of(room: Room, ref: Ref, at: str | datetime | None = None) -> Bundle:
    """Return the versions of a message, now or as they were at a commit or time.

    A message that nobody has prepared has ten equal levels. NotFound when there is no message.
    """
    reader = room.reader(at)
    message = _message(reader, ref)
    found = reader.versions(room.ledger.layout).find(message.origin, message.n)
    return found or unprepared(message)


def set_versions(
    room: Room,
    ref: Ref,
    versions: Mapping[str, Any],
    *,
    by: str,
    semantic: bool = True,
    reason: str = "",
) -> Bundle:
    """Set the ten levels of a message: ``{"0": {"message", "char_count"}, …}``; return them.

    ``by`` is who prepared them. Raises InvalidInput (code ``version_invalid``), with nothing
    written, unless all ten are there, level 0 is the message, and every count is right. Setting
    what is set already writes nothing.
    """
    room.ledger.writer()
    _setting(room, ref, versions, by, reason, semantic=semantic).apply()
    return bundle_of(room, ref)


def plan_set(
    room: Room,
    ref: Ref,
    versions: Mapping[str, Any],
    *,
    by: str,
    semantic: bool = True,
    reason: str = "",
) -> Plan:
    """Plan to set the ten levels of a message."""
    return _setting(room, ref, versions, by, reason, semantic=semantic).plan()


def restore(
    room: Room, ref: Ref, source: str | datetime, *, by: str = "Ledger", reason: str = ""
) -> Bundle:
    """Give a message the versions again that it had at a commit or time; return them.

    Where it had none then, they are taken back. Who prepared them, and when, stays what it was.
    """
    room.ledger.writer()
    _restoring(room, ref, source, by, reason).apply()
    return bundle_of(room, ref)


def plan_restore(
    room: Room, ref: Ref, source: str | datetime, *, by: str = "Ledger", reason: str = ""
) -> Plan:
    """Plan to give a message the versions again that it had at a commit or time."""
    return _restoring(room, ref, source, by, reason).plan()


def drafts_to_restore(
    room: Room, source: str | datetime, *, by: str = "Ledger", reason: str = ""
) -> list[tuple[Draft, bytes | None]]:
    """Return the operations that bring all versions back, and the artifacts that they name.

    Messages whose versions are the same have none. An artifact must be stored, with ``store``,
    before the operation that names it is written.
    """
    layout = room.ledger.layout
    before, now = room.reader(source).versions(layout).all(), room.reader().versions(layout).all()
    found: list[tuple[Draft, bytes | None]] = []
    for key in sorted({*before, *now}):
        was = before.get(key)
        if was == now.get(key):
            continue
        if was is None:
            found.append((clear_draft(*key, by=by, reason=reason), None))
        else:
            found.append(set_draft(was, by=by, reason=reason))
    return found


def store(ledger: Ledger, artifact: bytes) -> str:
    """Store bytes durably for the record that will name them; return their name."""
    from agent_chatroom_ledger.storage import artifacts

    ledger.writer()
    return artifacts.stage(ledger.layout, artifact)


def audit(
    rooms: Iterable[Room], *, semantic: bool = False, ref: Ref | None = None
) -> Iterator[AuditItem]:
    """Yield the state of every message's versions, room by room, oldest message first.

    With ``semantic`` a message needs work until its versions were prepared for their meaning;
    without, only when they were made from another text than the message's. ``ref`` asks about one
    message alone.
    """
    for room in rooms:
        reader = room.reader()
        messages = reader.messages() if ref is None else [_message(reader, ref)]
        with reader.versions(room.ledger.layout) as versions:
            for message in messages:
                bundle = versions.find(message.origin, message.n) or unprepared(message)
                reasons = needs_work(bundle, message.body, semantic=semantic)
                yield AuditItem(room=room, message=message, reasons=reasons, bundle=bundle)


def history(room: Room, ref: Ref) -> list[VersionEntry]:
    """Return every operation on the versions of a message, oldest first."""
    reader = room.reader()
    message = _message(reader, ref)
    key = (message.origin, message.n)
    found = [
        (operation, bundle)
        for operation, bundle, about in reader.versions(room.ledger.layout).history()
        if about == key
    ]
    commits = _commits(room) if found else {}
    return [
        VersionEntry(
            operation=operation.full_ref,
            at=operation.at,
            by=operation.author,
            reason=str((operation.data or {}).get("reason", "")),
            bundle=bundle,
            commit=commits.get(operation.id),
        )
        for operation, bundle in found
    ]


def compare(
    room: Room,
    ref: Ref,
    old: str | datetime | None = None,
    new: str | datetime | None = None,
) -> list[LevelDiff]:
    """Return the levels of a message that differ between two commits or times, word by word.

    ``new`` is the present when it is left out, and ``old`` the bundle before the newest (the
    message itself, ten times, where there was none).
    """
    after = bundle_of(room, ref, new)
    if old is not None:
        before = bundle_of(room, ref, old)
    else:
        message = _message(room.reader(), ref)
        earlier = [entry.bundle for entry in history(room, ref)]
        before = (earlier[-2] if len(earlier) > 1 else None) or unprepared(message)
    return [
        LevelDiff(
            level=int(level),
            old_chars=len(was),
            new_chars=len(now),
            pieces=word_diff(was, now),
        )
        for level, was, now in zip(LEVELS, before.levels, after.levels, strict=True)
        if was != now
    ]


# --- inside ------------------------------------------------------------------------------------


def _message(reader: RoomReader, ref: Ref) -> Message:
    if isinstance(ref, Message):
        return reader.message(ref.origin, ref.n)
    return reader.message(*parse_ref(str(ref), reader.primary))


def _setting(
    room: Room, ref: Ref, versions: object, by: str, reason: str, *, semantic: bool
) -> _Step:
    check_author(by, "by")
    message = _message(room.reader(), ref)
    levels = check_levels(versions, message.body)
    present = bundle_of(room, message)
    if present.prepared and (present.levels, present.semantic, present.prepared_by) == (
        levels,
        semantic,
        by,
    ):
        return _Step(room=room, by=by, reason=reason)
    bundle = Bundle(origin=message.origin, n=message.n, levels=levels, semantic=semantic)
    draft, artifact = set_draft(bundle, by=by, reason=reason)
    return _Step(room=room, draft=draft, artifact=artifact, by=by, reason=reason)


def _restoring(room: Room, ref: Ref, source: str | datetime, by: str, reason: str) -> _Step:
    message = _message(room.reader(), ref)
    commit = room.ledger.commit_at(source)
    layout = room.ledger.layout
    reader = room.reader(commit)
    if reader.find(message.origin, message.n) is None:
        raise NotFound(
            f"{room.path} had no message {message.full_ref} at {commit[:12]}.",
            room=room.path,
            ref=message.full_ref,
            at=commit,
        )
    was = reader.versions(layout).find(message.origin, message.n)
    now = room.reader().versions(layout).find(message.origin, message.n)
    step = _Step(room=room, by=by, reason=reason, facts={"restored_from": commit})
    if was == now:
        return step
    if was is None:
        draft = clear_draft(message.origin, message.n, by=by, reason=reason)
        return dataclasses.replace(step, draft=draft)
    if was.levels[0] != message.body:
        raise InvalidInput(
            f"The versions that {message.full_ref} had at {commit[:12]} are of another text.",
            code="version_invalid",
            ref=message.full_ref,
        )
    draft, artifact = set_draft(was, by=by, reason=reason)
    return dataclasses.replace(step, draft=draft, artifact=artifact)


@dataclasses.dataclass(frozen=True, kw_only=True)
class _Step:
    """One operation on versions, with the artifact that it names; none when all is so already."""

    room: Room
    by: str
    reason: str
    draft: Draft | None = None
    artifact: bytes | None = None
    facts: Mapping[str, Any] = dataclasses.field(default_factory=dict)

    def apply(self) -> dict[str, Any]:
        """Do it, and return its report."""
        if self.artifact is not None:
            store(self.room.ledger, self.artifact)
        return apply_change(self.room, self._change())

    def plan(self) -> Plan:
        """Return it as a plan; its report holds no text of a message."""
        plan = plan_change(self.room, self._change())
        details = {name: value for name, value in plan.details.items() if name != "levels"}
        return dataclasses.replace(plan, details=details, carry_out=self.apply)

    def _change(self) -> Change:
        return Change(
            kind=self.draft.kind if self.draft else VERSIONS_SET,
            make=lambda *_: self.draft,
            by=self.by,
            reason=self.reason,
            facts=self.facts,
        )


def _commits(room: Room) -> dict[str, str]:
    """Return the commit of every record of a room, by the record's id."""
    return {record: entry.commit for entry in room.ledger.log(room) for record in entry.records}
