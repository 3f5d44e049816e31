"""The interface that users of the earlier chatroom know: a thin door over Ledger.

Every call opens the ledger, does one thing and closes it again, so an instance holds nothing:
several may work on one directory, and a new one sees what the last one did. The shapes of what is
returned are those of the earlier system, JSON values throughout; the rules are the ledger's own.
A message id is the message's number, or text such as `57@ci-9a1c` when it was first written in
another origin than the one that created the room.
"""

from __future__ import annotations

from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

from agent_chatroom_ledger.adapters.administration import (
    ASKER,
    AdministrativeCalls,
    room_of,
)
from agent_chatroom_ledger.adapters.chatroom import (
    LoadedChat,
    chat_id,
    compile_shape,
    cursor_shape,
    message_id,
    message_shape,
    policy_shape,
    standin_shape,
    state_shape,
    unread_shape,
    warnings_of,
)
from agent_chatroom_ledger.adapters.versioning import VersionCalls
from agent_chatroom_ledger.domain.clock import from_datetime
from agent_chatroom_ledger.domain.policy import StandIn
from agent_chatroom_ledger.domain.records import SPEECH_KINDS
from agent_chatroom_ledger.errors import Corrupt, Forbidden, InvalidInput
from agent_chatroom_ledger.ledger import Ledger

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from agent_chatroom_ledger.listing import RoomSummary
    from agent_chatroom_ledger.room import Room

Status: TypeAlias = Literal["active", "archived", "all"]
_STATUSES: Final[tuple[Status, ...]] = ("active", "archived", "all")
_SOURCES: Final = ("state", "canonical", "messages")


class ChatroomService(AdministrativeCalls, VersionCalls):
    """Rooms and cursors below one directory, which becomes a ledger when it is none.

    Errors are those of the ledger, and so also the built-in ones of the earlier interface:
    InvalidInput is a ValueError, NotFound a FileNotFoundError, Forbidden a PermissionError.
    """

    def __init__(self, root: Path | str) -> None:
        self.root = Path(root).absolute()
        Ledger.open(self.root, create=True).close()

    def create_chat(
        self, title: str, folder: str = "Parking_Lot", participants: Sequence[str] | None = None
    ) -> dict[str, Any]:
        """Make a room and return it as load_chat does; a taken title gets a room `…_2`.

        Raises ValueError for a title that is blank or breaks a rule of names.
        """
        _refuse_blank(title, "title")
        with Ledger.open(self.root) as ledger:
            room = ledger.create_room(title, folder=folder, members=participants or (), by=ASKER)
            return self._chat(room)

    def load_chat(self, ref: str | Path) -> dict[str, Any]:
        """Return a room, named by id or path: state, messages, visible_path and the other paths.

        `messages` are read when they are first asked for. Raises FileNotFoundError when there is
        no such room.
        """
        with Ledger.open(self.root, read_only=True) as ledger:
            return self._chat(room_of(ledger, ref))

    def list_chats(self, status: Status = "active") -> list[dict[str, Any]]:
        """Return summaries of the rooms of a status (active, archived or all), by path."""
        _check(status, _STATUSES, "status")
        with Ledger.open(self.root, read_only=True) as ledger:
            return [
                {
                    "chat_id": chat_id(found.id),
                    "chat_title": found.title,
                    "status": found.status,
                    "last_message_id": found.last,
                    "last_message_at": found.last_at and from_datetime(found.last_at),
                    "compile_status": compile_shape(_listed(ledger, found))["status"],
                }
                for found in ledger.rooms(status=status)
            ]

    def archive_chat(self, ref: str | Path) -> dict[str, Any]:
        """Archive a room, and return it as load_chat does; it takes no more messages."""
        with Ledger.open(self.root) as ledger:
            room = room_of(ledger, ref)
            room_id = room.id
            ledger.archive_room(room, by=ASKER)
            return self._chat(ledger.room(room_id))

    def restore_chat(self, ref: str | Path) -> dict[str, Any]:
        """Bring an archived room back, and return it as load_chat does."""
        with Ledger.open(self.root) as ledger:
            return self._chat(ledger.restore_room(room_of(ledger, ref), by=ASKER))

    def post_message(
        self,
        ref: str | Path,
        speaker: str,
        message: str,
        *,
        kind: str = "message",
        mentions: Sequence[str] | None = None,
        compile_after: bool = True,
        require_participant: bool = False,
    ) -> dict[str, Any]:
        """Post a message, verbatim, and return the room as load_chat does.

        Raises ValueError for a blank speaker or message and for another kind than message,
        proposal, review, decision, status and system; PermissionError when `require_participant`
        is set and the speaker is no member. Posting makes nobody a member.
        """
        _refuse_blank(speaker, "speaker")
        _refuse_blank(message, "message")
        _check(kind, SPEECH_KINDS, "kind")
        with Ledger.open(self.root) as ledger:
            room = room_of(ledger, ref)
            if require_participant and speaker not in room.members:
                raise Forbidden(
                    f"{speaker!r} is not a participant of {room.path}", author=speaker,
                    room=room.path,
                )  # fmt: skip
            room.post(speaker, message, kind=kind, mentions=tuple(mentions or ()))
            if compile_after:
                room.compile()
            return self._chat(room)

    def compile_chat(self, ref: str | Path) -> dict[str, Any]:
        """Bring the room's compiled view up to now, mending what is broken; as load_chat."""
        with Ledger.open(self.root) as ledger:
            room = room_of(ledger, ref)
            room.compile()
            return self._chat(room)

    def get_compile_policy(self, ref: str | Path) -> dict[str, Any]:
        """Return which messages are left out and which stand-ins are shown instead."""
        with Ledger.open(self.root, read_only=True) as ledger:
            room = room_of(ledger, ref)
            return policy_shape(room.policy(), room.origin)

    def exclude_messages(self, ref: str | Path, ids: Iterable[int | str]) -> dict[str, Any]:
        """Leave messages out of the view and the lenses; compiles, and returns as load_chat.

        Excluding never erases. Raises ValueError naming ids that do not exist; nothing is written.
        """
        with Ledger.open(self.root) as ledger:
            room = room_of(ledger, ref)
            room.exclude(list(ids), by=ASKER)
            room.compile()
            return self._chat(room)

    def include_messages(self, ref: str | Path, ids: Iterable[int | str]) -> dict[str, Any]:
        """Show messages again that were left out; otherwise as exclude_messages."""
        with Ledger.open(self.root) as ledger:
            room = room_of(ledger, ref)
            room.include(list(ids), by=ASKER)
            room.compile()
            return self._chat(room)

    def add_standin(
        self,
        ref: str | Path,
        replaces_ids: Iterable[int | str],
        message: str,
        *,
        insert_after_message_id: int | str | None = None,
        speaker: str = "System",
        kind: str = "system",
        standin_id: str | None = None,
    ) -> dict[str, Any]:
        """Show a text in the place of messages, which are left out; as exclude_messages.

        It appears after `insert_after_message_id`, by default after the last that it replaces, as
        `message_id "standin:<id>"` with `synthetic` and `replaces_message_ids`.
        """
        _refuse_blank(message, "message")
        with Ledger.open(self.root) as ledger:
            room = room_of(ledger, ref)
            room.add_standin(
                list(replaces_ids),
                message,
                insert_after=insert_after_message_id,
                speaker=speaker,
                kind=kind,
                id=standin_id,
                by=ASKER,
            )
            room.compile()
            return self._chat(room)

    def clear_compile_policy(self, ref: str | Path) -> dict[str, Any]:
        """Take back every exclusion and stand-in; compiles, and returns as load_chat."""
        with Ledger.open(self.root) as ledger:
            room = room_of(ledger, ref)
            room.clear_policy(by=ASKER)
            room.compile()
            return self._chat(room)

    def scan_unread(
        self,
        agent: str,
        cursor_path: Path | str,
        *,
        status: Status = "active",
        source: str = "state",
        participant_gated: bool = True,
    ) -> list[dict[str, Any]]:
        """Return an item for every room with unread messages; nothing is moved or written.

        Only rooms that list the agent, unless `participant_gated` is off. Source `state` asks the
        ledger's index; `canonical` (or `messages`) counts the records themselves, knows titles
        and members from them too, and warns of state files that cannot be read or are not what
        the records make them. Raises ValueError for a cursor file that is another
        agent's or of another schema.
        """
        _check(status, _STATUSES, "status")
        _check(source, _SOURCES, "source")
        with _cursor_errors(), Ledger.open(self.root, read_only=True) as ledger:
            consumer = ledger.consumer(agent, cursor_path)
            if source == "state" and status == "active":
                found = consumer.unread(members_only=participant_gated)
                return [unread_shape(item, []) for item in found]
            rooms = [_listed(ledger, summary) for summary in ledger.rooms(status=status)]
            if source != "state":
                rooms = [room.refolded() for room in rooms]
            if participant_gated:
                rooms = [room for room in rooms if agent in room.listed_members]
            if not rooms:
                consumer.cursor()  # a file that is not the agent's is an error all the same
                return []
            listed = consumer.unread(rooms)
            return [unread_shape(item, warnings_of(item.room)) for item in listed]

    def render_chat_lens(self, ref: str | Path, *, source: str = "canonical") -> dict[str, Any]:
        """Return the room after its policy, from the records alone; changes no file."""
        _check(source, _SOURCES, "source")
        with Ledger.open(self.root, read_only=True) as ledger:
            room = room_of(ledger, ref)
            lens = room.lens()
            return {
                "chat_id": chat_id(room.id),
                "chat_title": room.title,
                "status": room.status,
                "last_message_id": message_id(lens.last) if lens.last else 0,
                "message_count": len(lens.items),
                "raw_message_count": lens.message_count,
                "compile_policy": policy_shape(lens.policy, room.origin),
                "messages": [
                    standin_shape(item, room.origin)
                    if isinstance(item, StandIn)
                    else message_shape(item)
                    for item in lens.items
                ],
                "warnings": warnings_of(room),
            }

    def mark_seen(
        self,
        agent: str,
        cursor_path: Path | str,
        ref: str | Path,
        message_id: int | str | None = None,
        source: str = "state",
    ) -> dict[str, Any]:
        """Acknowledge a room through a message (the last by default) and return the cursor.

        Writes the cursor file, whole and at once, and nothing else. A cursor never moves back.
        Raises ValueError for a message that does not exist, and for a cursor file that is another
        agent's or of another schema, which stays as it is.
        """
        _check(source, _SOURCES, "source")
        with _cursor_errors(), Ledger.open(self.root, read_only=True) as ledger:
            room = room_of(ledger, ref)
            consumer = ledger.consumer(agent, cursor_path)
            consumer.acknowledge(room, None if message_id is None else _through(room, message_id))
            return cursor_shape(ledger, consumer.cursor().document)

    def verify(self) -> dict[str, Any]:
        """Check everything: logs, projections, commits, objects of git, cursors in the ledger."""
        with Ledger.open(self.root, read_only=True) as ledger:
            report = ledger.verify()
            return {
                "ok": report.ok,
                "error_count": report.error_count,
                "issues": [issue.as_dict() for issue in report.issues],
                "chats": len(ledger.rooms(status="all")),
            }

    def _chat(self, room: Room) -> dict[str, Any]:
        """Return a room in the shape of load_chat."""
        folder = room.ledger.root / room.path
        visible, position = room.visible_path, room.last_position()

        def messages() -> list[dict[str, Any]]:
            with Ledger.open(self.root, read_only=True) as ledger:
                said = ledger.room(room.id).messages()
            # Logs only grow: what is past the position was said after this room was loaded.
            return [message_shape(one) for one in said if one.n <= position.get(one.origin, 0)]

        return LoadedChat(
            messages,
            state=state_shape(room),
            visible_path=None if visible is None else str(visible),
            state_path=str(folder / "room.json"),
            messages_dir=str(folder / "messages"),
        )


def _listed(ledger: Ledger, found: RoomSummary) -> Room:
    """Return the room of a summary: an archived one by its id, since its path may be taken."""
    return ledger.room(found.id if found.status == "archived" else found.path)


def _refuse_blank(text: str, field: str) -> None:
    if not text.strip():
        raise InvalidInput(f"{field} must not be blank", field=field)


def _check(value: str, known: Sequence[str], field: str) -> None:
    if value not in known:
        raise InvalidInput(f"{field} is one of {', '.join(known)}, not {value[:80]!r}", field=field)


@contextmanager
def _cursor_errors() -> Iterator[None]:
    """Give a damaged cursor file as the ValueError that the earlier interface promises."""
    try:
        yield
    except Corrupt as error:
        if not error.code.startswith("cursor"):
            raise
        raise InvalidInput(error.message, code=error.code, **error.fields) from error


def _through(room: Room, message_id: int | str) -> int | str | dict[str, int]:
    """Return the position that a message id stands for: all before it in the room are seen too."""
    if len(room.last_position()) <= 1:
        return message_id
    position: dict[str, int] = {}
    wanted = room.message(message_id)
    for message in room.messages():
        position[message.origin] = message.n
        if message.full_ref == wanted.full_ref:
            break
    return position
