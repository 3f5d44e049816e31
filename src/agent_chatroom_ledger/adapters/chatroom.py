"""The shapes in which the earlier chatroom gave its rooms, messages, policies and cursors.

All are JSON values. A message id is the message's number, or text such as `57@ci-9a1c` when it was
first written in another origin than the one that created the room.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, TypeAlias

from agent_chatroom_ledger.domain.clock import from_datetime
from agent_chatroom_ledger.domain.pages import parse_header
from agent_chatroom_ledger.domain.positions import contains
from agent_chatroom_ledger.domain.projections import state_from_projections
from agent_chatroom_ledger.domain.records import OPERATIONS
from agent_chatroom_ledger.domain.references import full_ref
from agent_chatroom_ledger.errors import Corrupt, NotFound

if TYPE_CHECKING:
    from _collections_abc import dict_items, dict_values
    from collections.abc import Callable, Iterator, Mapping

    from agent_chatroom_ledger.consumers import UnreadRoom
    from agent_chatroom_ledger.domain.policy import Policy, StandIn
    from agent_chatroom_ledger.domain.records import Message
    from agent_chatroom_ledger.ledger import Ledger
    from agent_chatroom_ledger.room import Room

# What JSON can hold. Callers of the earlier interface index straight into it, which no narrower
# type would let them.
Value: TypeAlias = Any


class LoadedChat(dict[str, Any]):
    """A room as load_chat returns it: a dict whose `messages` are read when first asked for.

    So a post costs the same however many messages the room holds, and callers that only want the
    state never read them. In everything else it is an ordinary dict, also for `json`.
    """

    def __init__(self, messages: Callable[[], list[dict[str, Any]]], **values: object) -> None:
        super().__init__({**values, "messages": ()})
        self._messages: Callable[[], list[dict[str, Any]]] | None = messages

    def _whole(self) -> LoadedChat:
        if self._messages is not None:
            found, self._messages = self._messages(), None
            super().__setitem__("messages", found)
        return self

    def __getitem__(self, key: str) -> Value:
        return super(LoadedChat, self._whole() if key == "messages" else self).__getitem__(key)

    def __setitem__(self, key: str, value: Value) -> None:
        super(LoadedChat, self._whole()).__setitem__(key, value)

    def __iter__(self) -> Iterator[str]:
        # That it is defined here makes dict(chat) and {**chat} ask for each value by its key.
        return super().__iter__()

    def __eq__(self, other: object) -> bool:
        if isinstance(other, LoadedChat):
            other = dict(other)
        return super(LoadedChat, self._whole()).__eq__(other)

    def __ne__(self, other: object) -> bool:
        return not self == other

    __hash__ = None

    def __repr__(self) -> str:
        return super(LoadedChat, self._whole()).__repr__()

    def __reduce__(self) -> tuple[type[dict[str, Any]], tuple[dict[str, Any]]]:
        return dict, (dict(self),)

    def __or__(self, other: Value) -> Value:
        return dict(self) | other

    def get(self, key: str, default: Value = None) -> Value:
        """Return a value, or the default when there is no such key."""
        if key not in self:
            return default
        return self[key]

    def items(self) -> dict_items[str, Any]:
        """Return keys and values."""
        return super(LoadedChat, self._whole()).items()

    def values(self) -> dict_values[str, Any]:
        """Return the values."""
        return super(LoadedChat, self._whole()).values()

    def copy(self) -> dict[str, Any]:
        """Return an ordinary dict of the same content."""
        return dict(self)

    def pop(self, *args: Value) -> Value:
        """Remove a key and return its value."""
        return super(LoadedChat, self._whole()).pop(*args)


def chat_id(room_id: str) -> str:
    """Return the id of a room as the earlier interface writes it: `chat_` and 32 hex digits."""
    return f"chat_{room_id.replace('-', '')}"


def message_id(message: Message) -> int | str:
    """Return a message's id: its number, or its full reference in another origin."""
    return message.n if message.primary else message.full_ref


def _id(origin: str, n: int, primary: str) -> int | str:
    return n if origin == primary else full_ref(origin, n)


def message_shape(message: Message) -> dict[str, Any]:
    """Return a message; one that was copied from another room has its `provenance`."""
    shape: dict[str, Any] = {
        "message_id": message_id(message),
        "speaker": message.author,
        "kind": message.kind,
        "message": message.body,
        "mentions": list(message.mentions),
        "created_at": from_datetime(message.at),
        "synthetic": False,
    }
    if message.placed_from is not None:
        shape["provenance"] = message.placed_from
    return shape


def standin_shape(standin: StandIn, primary: str) -> dict[str, Any]:
    """Return a stand-in as it appears among messages."""
    return {
        "message_id": f"standin:{standin.id}",
        "speaker": standin.speaker,
        "kind": standin.kind,
        "message": standin.body,
        "mentions": [],
        "created_at": standin.at,
        "synthetic": True,
        "replaces_message_ids": [_id(*one, primary) for one in standin.replaces],
    }


def policy_shape(policy: Policy, primary: str) -> dict[str, Any]:
    """Return a policy: every id that is left out, and the stand-ins."""
    return {
        "excluded_message_ids": [
            _id(origin, n, primary)
            for origin in sorted(policy.excluded, key=lambda origin: (origin != primary, origin))
            for first, last in policy.excluded[origin]
            for n in range(first, last + 1)
        ],
        "standins": [
            {
                "standin_id": standin.id,
                "replaces_message_ids": [_id(*one, primary) for one in standin.replaces],
                "insert_after_message_id": _id(*standin.insert_after, primary),
                "speaker": standin.speaker,
                "kind": standin.kind,
                "message": standin.body,
                "created_at": standin.at,
            }
            for standin in policy.standins
        ],
    }


def state_shape(room: Room) -> dict[str, Any]:
    """Return the state of a room."""
    state = room.state()
    last = next(iter(room.messages(last=1)), None)
    changed = next(room.reader().descending(log=OPERATIONS), None)
    times = [from_datetime(record.at) for record in (last, changed) if record is not None]
    return {
        "chat_id": chat_id(state.id),
        "chat_title": state.title,
        "status": room.status,
        "participants": list(state.members),
        "created_at": state.created_at,
        "updated_at": max([state.created_at, *times]),
        "last_message_id": message_id(last) if last else 0,
        "last_message_at": from_datetime(last.at) if last else None,
        "compile": compile_shape(room),
        "compile_policy": policy_shape(state.policy, state.origin),
    }


def compile_shape(room: Room) -> dict[str, Any]:
    """Say how far the compiled view has come, by the header of its newest page."""
    page = room.visible_path
    compiled = {"status": "dirty", "last_compiled_message_id": 0, "last_compiled_at": None}
    reader = room.reader()
    if page is None:
        return compiled if reader.positions() else {**compiled, "status": "clean"}
    try:
        header = parse_header(page.read_bytes())
        seconds = page.stat().st_mtime
    except (OSError, Corrupt):
        return compiled
    through = header.through_messages
    clean = contains(through, reader.positions()) and contains(
        header.through_operations, reader.positions(OPERATIONS)
    )
    return {
        "status": "clean" if clean else "dirty",
        "last_compiled_message_id": _reached(through, room.origin),
        "last_compiled_at": from_datetime(datetime.fromtimestamp(seconds, UTC)),
    }


def _reached(position: Mapping[str, int], primary: str) -> int:
    """Return a position as the earlier interface counts: in the origin that created the room."""
    return position.get(primary, 0)


def warnings_of(room: Room) -> list[str]:
    """Say what is wrong with the room's state files; what is asked for comes from its records."""
    if room.tombstone is not None:
        return []  # its files are in history, and its records are there too
    folder = room.ledger.root / room.path
    try:
        state_from_projections(
            (folder / "room.json").read_bytes(), (folder / "policy.json").read_bytes()
        )
    except (OSError, Corrupt) as error:
        return [f"the state of {room.path} cannot be read ({error}); its records were used"]
    reader = room.reader()
    if reader.state() != reader.folded_state():
        return [f"the state of {room.path} is not what its records make it; they were used"]
    return []


def unread_shape(item: UnreadRoom, warnings: list[str]) -> dict[str, Any]:
    """Return a room with unread messages."""
    room = item.room
    (last,) = room.messages(last=1)
    return {
        "chat_id": chat_id(room.id),
        "chat_title": room.title,
        "status": room.status,
        "last_message_id": message_id(last),
        "last_seen_message_id": _reached(item.position, room.origin),
        "unread_count": item.count,
        "warnings": warnings,
    }


def cursor_shape(ledger: Ledger, document: Mapping[str, Any]) -> dict[str, Any]:
    """Return a cursor file's content; ids of rooms that are not here stay as they are."""
    positions = {}
    for room_id, entry in document["positions"].items():
        marks = {origin: mark["n"] for origin, mark in entry["messages"].items()}
        try:
            primary = ledger.room(room_id).origin
        except NotFound:
            # A room of another branch or ledger: its cursor is kept, and shown as it is.
            primary = next(iter(marks), "")
        positions[chat_id(room_id)] = {
            "last_seen_message_id": _reached(marks, primary),
            "last_seen_at": entry.get("at"),
            "chat_title": entry.get("title"),
            "chat_path": entry.get("path"),
        }
    return {
        "agent_name": document["consumer"],
        "updated_at": document["updated_at"],
        "positions": positions,
    }
