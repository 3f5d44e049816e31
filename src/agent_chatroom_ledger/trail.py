"""The audit trail: the commits of main, of one room, or of one message of it, newest first."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Any

from agent_chatroom_ledger.domain.references import parse_range, parse_ref
from agent_chatroom_ledger.domain.rooms import apply_operation
from agent_chatroom_ledger.errors import InvalidInput, NotFound
from agent_chatroom_ledger.storage import history
from agent_chatroom_ledger.storage.reading import OPERATIONS
from agent_chatroom_ledger.storage.stays import Stays

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime

    from agent_chatroom_ledger.domain.policy import Policy, StandIn
    from agent_chatroom_ledger.domain.records import Message
    from agent_chatroom_ledger.domain.roomstate import RoomState
    from agent_chatroom_ledger.ledger import Ledger
    from agent_chatroom_ledger.room import Room
    from agent_chatroom_ledger.storage.history import LogEntry

# What an operation's data holds in words is no reference, whatever it looks like; and a report
# names operations too, as references of the same form.
_WORDS = frozenset({"body", "levels", "reason", "report", "text", "title", "speaker"})
# What says that a part of an operation's data is about a room, and maybe about another one.
_ROOM_KEYS = ("room", "room_id", "path")


def trail(
    ledger: Ledger,
    room: Room | None = None,
    *,
    message: int | str | Message | None = None,
    author: str | None = None,
    since: datetime | None = None,
    limit: int | None = None,
    patch: bool = False,
) -> list[LogEntry]:
    """Return commits of main, newest first; see ``Ledger.log``."""
    if message is None:
        entries = history.log(
            ledger.layout,
            ledger.objects,
            lambda: ledger.timeline,
            room=None if room is None else _stays(room),
            author=author,
            since=since,
            patch=patch,
        )
        return list(islice(entries, limit))
    if room is None:
        raise InvalidInput("A message is named together with its room.", field="message")
    found = []
    for record in reversed(list(touching(room, message))):
        commit = history.commit_of(ledger.objects, ledger.timeline, room.path, record)
        if commit is None:
            continue
        if since is not None and commit.committer_seconds < since.timestamp():
            continue
        if history.is_by(commit, author or ""):
            shown = history.patch_of(ledger.objects, commit) if patch else None
            found.append(history.entry_of(commit, shown))
    unique = {entry.commit: entry for entry in found}
    return list(islice(unique.values(), limit))


def _stays(room: Room) -> Stays:
    source, overlay = room.ledger.look()
    return Stays(source, overlay, room.id, room.path, here=room.tombstone is None)


def touching(room: Room, message: int | str | Message) -> Iterator[Message]:
    """Yield a message and each operation of its room that was about it, oldest first.

    An operation is about a message when it names it, alone or in a range, or when it changed
    whether the message is left out or which stand-ins concern it. Being read, acknowledged or
    answered is no change. NotFound when there is no such message.
    """
    reader = room.reader()
    if isinstance(message, int | str):
        place = parse_ref(str(message), reader.primary)
    else:
        place = (message.origin, message.n)
    own = reader.message(*place)
    yield own
    names = {room.path, room.id}
    state: RoomState | None = None
    for operation in reader.after(log=OPERATIONS):
        before = None if state is None else _as_shown(state.policy, place)
        try:
            state = apply_operation(state, operation)
        except NotFound:
            continue
        names.add(state.path)
        after = _as_shown(state.policy, place)
        if _names(_here(operation.data or {}, names), place, names) or (
            before is not None and before != after
        ):
            yield operation


def _as_shown(policy: Policy, place: tuple[str, int]) -> tuple[bool, tuple[StandIn, ...]]:
    """Return what a policy does with a message."""
    concerned = (s for s in policy.standins if place in s.replaces or place == s.insert_after)
    return policy.excludes(*place), tuple(concerned)


def _here(data: dict[str, Any], room: set[str]) -> dict[str, Any]:
    """Return what of an operation's data is about this room.

    A placement names the originals, which are the source's, and the copies, which are the target's.
    """
    left = dict(data)
    for side, numbers in (("source", "messages"), ("target", "placed")):
        facts = data.get(side)
        if isinstance(facts, dict) and facts.get("id") not in room:
            left.pop(numbers, None)
    return left


def _names(data: Any, place: tuple[str, int], room: set[str]) -> bool:  # noqa: ANN401 - any value of a JSON document
    """Tell whether a part of an operation's data names a message of this room."""
    if isinstance(data, str):
        try:
            origin, first, last = parse_range(data, "")
        except InvalidInput:
            return False
        return origin == place[0] and first <= place[1] <= last
    if isinstance(data, dict):
        about = {data[key] for key in _ROOM_KEYS if isinstance(data.get(key), str)}
        if about.isdisjoint(room) and about:
            return False
        return any(_names(v, place, room) for key, v in data.items() if key not in _WORDS)
    return isinstance(data, list) and any(_names(item, place, room) for item in data)
