"""What a commit says: a subject that reads like a transcript, and trailers that name its records.

The message is a pure function of the frame (invariant 5), at most 72 characters in its subject.
Every value stands on its own line with the control characters gone, so no body and no name can
forge a trailer or a second line.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

from agent_chatroom_ledger.domain.display import one_line
from agent_chatroom_ledger.domain.records import OPERATIONS, Record
from agent_chatroom_ledger.limits import REASON_CHARS_MAX, SUBJECT_CHARS_MAX

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from agent_chatroom_ledger.domain.frames import Frame

# Room and author may take this much of a subject, so that something of what was said is left.
_ROOM_CHARS_MAX: Final = 28
_AUTHOR_CHARS_MAX: Final = 20
_LEDGER: Final = "ledger"
_POLICY: Final = "policy"
_VERSIONS: Final = "versions"
_MEMBERS: Final = "members"
_MESSAGES: Final = "messages"
# Records of the ledger's own log that are about one whole room.
_WHOLE_ROOM: Final = ("room.archive", "room.restore")
_CREATE: Final = "create"


@lru_cache(maxsize=4096)
def _place(log: str) -> tuple[str, str, str, bool]:
    """Return the room's short name, its path, the origin, and whether the log is of operations.

    The ledger's own log, ``operations/<origin>``, has no room.
    """
    room, _, origin = log.rpartition("/")
    room, _, kind = room.rpartition("/")
    name = one_line(room.rpartition("/")[2], _ROOM_CHARS_MAX) if room else _LEDGER
    return name, room, origin, kind == OPERATIONS


@lru_cache(maxsize=4096)
def _author(author: str) -> str:
    return one_line(author, _AUTHOR_CHARS_MAX)


def _refs(data: Mapping[str, Any]) -> str:
    """Return the messages that an operation on them names, without their origins: ``#1-3 #9``."""
    named: object = data.get("messages")
    standin = data.get("standin")
    if isinstance(standin, dict):
        named = standin.get("replaces")
    if not isinstance(named, list):
        return ""
    return " ".join(f"#{str(ref).partition('@')[0]}" for ref in named)


def _operation_text(record: Record) -> str:
    """Return what an operation does, in the words of its kind and its data."""
    data = record.data or {}
    area, _, verb = record.kind.rpartition(".")
    if area in (_POLICY, _VERSIONS):
        return f"{area}: {verb} {_refs(data)}"
    source = data.get("source")
    if area == _MESSAGES and isinstance(source, dict):
        return f"{verb}: {_refs(data)} of {str(source.get('path')).rpartition('/')[2]}"
    if verb == _CREATE or record.kind in _WHOLE_ROOM:
        return f"{verb}: {data.get('title', '')}"
    members = data.get("members")
    if area == _MEMBERS and isinstance(members, list):
        return f"{area}: {verb} {', '.join(map(str, members))}"
    return f"{area}: {verb} {record.body}" if area else f"{verb}: {record.body}"


def _room_named(log: str, record: Record) -> tuple[str, str]:
    """Return the short name and the path of the room that a record is about."""
    name, room, _, _ = _place(log)
    path = (record.data or {}).get("path")
    if not room and record.kind in _WHOLE_ROOM and isinstance(path, str):
        return one_line(path.rpartition("/")[2], _ROOM_CHARS_MAX), one_line(path, len(path) + 1)
    return name, room


def _subject(log: str, record: Record) -> str:
    operation = _place(log)[3]
    name = _room_named(log, record)[0]
    if not operation:
        head = f"{name} #{record.n} {_author(record.author)}: "
        return head + one_line(record.body or f"({record.kind})", SUBJECT_CHARS_MAX - len(head))
    tail = f" ({_author(record.author)})"
    room = SUBJECT_CHARS_MAX - len(tail) - len(name) - 1
    return f"{name} {one_line(_operation_text(record), room)}{tail}"


def _record_trailers(log: str, record: Record) -> str:
    """Return the trailers of one record; the room's line only when there is a room."""
    _, _, origin, operation = _place(log)
    room = _room_named(log, record)[1]
    return (
        (f"Room: {room}\n" if room else "")
        + f"{'Operation' if operation else 'Message'}: {record.n}@{origin}\n"
        + f"Kind: {record.kind}\nRecord: {one_line(record.id, len(record.id) + 1)}\n"
    )


def _request_trailers(requested_by: str, reason: str) -> str:
    by = f"Requested-by: {one_line(requested_by, REASON_CHARS_MAX)}\n" if requested_by else ""
    return by + (f"Reason: {one_line(reason, REASON_CHARS_MAX)}\n" if reason else "")


def record_message(
    log: str,
    record: Record,
    frame: int,
    requested_by: str = "",
    reason: str = "",
) -> str:
    """Return the commit message of a frame that holds one record.

    ``log`` is the path of the record's log, ``rooms/design-review/messages/mbp-3f2a``, and
    ``frame`` the number of the frame.
    """
    message = f"{_subject(log, record)}\n\n{_record_trailers(log, record)}Frame: {frame}\n"
    if requested_by or reason:
        message += _request_trailers(requested_by, reason)
    return message


def frame_message(frame: Frame, records: Sequence[tuple[str, Record]]) -> str:
    """Return the commit message of a frame of records, given with the paths of their logs.

    The subject speaks of the first operation of a room, else of the first record of a room, else of
    the first; a number in brackets says how many more there are. The trailers name all of them in
    their order.
    """
    if len(records) == 1:
        log, record = records[0]
        return record_message(log, record, frame.frame, frame.requested_by, frame.reason)
    in_rooms = [entry for entry in records if _place(entry[0])[1]]
    operations = [entry for entry in in_rooms if _place(entry[0])[3]]
    subject = _subject(*(operations or in_rooms or records)[0])
    more = f" (+{len(records) - 1})"
    return (
        f"{one_line(subject, SUBJECT_CHARS_MAX - len(more))}{more}\n\n"
        + "".join(_record_trailers(log, record) for log, record in records)
        + f"Frame: {frame.frame}\n"
        + _request_trailers(frame.requested_by, frame.reason)
    )


def view_message(frame: Frame, pages: Mapping[str, int]) -> str:
    """Return the commit message of a view frame.

    ``pages`` says how many pages of which room changed.
    """
    if len(pages) == 1:
        ((room, count),) = pages.items()
        name = one_line(room.rpartition("/")[2], _ROOM_CHARS_MAX)
        subject = f"{name} view: {count} page{'' if count == 1 else 's'}"
    else:
        subject = f"views: {len(pages)} rooms"
    rooms = "".join(f"Room: {room}\n" for room in pages)
    return f"{subject}\n\n{rooms}Frame: {frame.frame}\n"
