"""Rooms as folds of their operations, and the operations that somebody may ask for.

An operation is a record of the room's operations log. Its ``data`` says what it does, its ``body``
says the same in words. The fold is pure, and every replica runs it alike: an operation that breaks
a rule keeps its bytes and is skipped.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import msgspec

from agent_chatroom_ledger.domain.clock import from_datetime
from agent_chatroom_ledger.domain.drafts import (
    Draft,
    check_body,
    check_draft,
    check_kind,
    check_text,
)
from agent_chatroom_ledger.domain.names import check_author, check_room_path, check_title
from agent_chatroom_ledger.domain.order import order_key
from agent_chatroom_ledger.domain.policy import Policy
from agent_chatroom_ledger.domain.policyforms import (
    parts_of,
    restored,
    standin_of,
    text_of,
    texts_of,
)
from agent_chatroom_ledger.domain.projections import (
    policy_json,
    refs_of,
    room_json,
    state_from_projections,
)
from agent_chatroom_ledger.domain.references import full_ref, parse_ranges
from agent_chatroom_ledger.domain.roomstate import RoomState
from agent_chatroom_ledger.domain.tombstones import ROOM_MOVE
from agent_chatroom_ledger.errors import Conflict, InvalidInput, NotFound
from agent_chatroom_ledger.limits import ID_CHARS_MAX, MEMBERS_MAX, REASON_CHARS_MAX

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from agent_chatroom_ledger.domain.records import Message

__all__ = [
    "RoomState",
    "applied",
    "apply_operation",
    "check_members",
    "clear_draft",
    "create_draft",
    "exclude_draft",
    "fold_room",
    "include_draft",
    "members_draft",
    "members_restore_draft",
    "policy_json",
    "policy_restore_drafts",
    "room_json",
    "standin_draft",
    "state_from_projections",
]

ROOM_CREATE: Final = "room.create"
POLICY_EXCLUDE: Final = "policy.exclude"
POLICY_INCLUDE: Final = "policy.include"
POLICY_STANDIN: Final = "policy.standin"
POLICY_CLEAR: Final = "policy.clear"
MEMBERS_ADD: Final = "members.add"
MEMBERS_REMOVE: Final = "members.remove"
POLICY_RESTORE: Final = "policy.restore"
MEMBERS_RESTORE: Final = "members.restore"


def apply_operation(state: RoomState | None, message: Message) -> RoomState:
    """Return the state after one more operation; one that breaks a rule changes nothing.

    Without a state the operation must create the room. Raises NotFound when it does not, because
    there is no room then.
    """
    try:
        return applied(state, message)
    except (InvalidInput, Conflict):
        if state is None:
            raise NotFound(
                f"no room is created by {message.full_ref}", ref=message.full_ref
            ) from None
        return state


def applied(state: RoomState | None, message: Message) -> RoomState:
    """Return the state after one more operation.

    Raises InvalidInput or Conflict, saying why, for one that breaks a rule; a writer asks here
    before it writes. A kind that this version does not know changes nothing.
    """
    data = message.data or {}
    if state is None:
        return _created(message, data)
    if message.kind == ROOM_CREATE:
        raise Conflict(f"the room {state.path} exists already", room=state.path)
    change = _CHANGES.get(message.kind)
    return state if change is None else change(state, message, data)


def fold_room(operations: Iterable[Message]) -> RoomState:
    """Return the state that a room's operations, in any order, leave it in.

    They are applied in canonical order; what comes before the room's creation is skipped. Raises
    NotFound when none of them creates the room.
    """
    state: RoomState | None = None
    for message in sorted(operations, key=order_key):
        try:
            state = applied(state, message)
        except (InvalidInput, Conflict):
            continue
    if state is None:
        raise NotFound("there is no room: no operation in its log creates one")
    return state


def check_members(names: Iterable[str]) -> tuple[str, ...]:
    """Return the names of members, each once, in the order given.

    Raises InvalidInput for a name that no author may have and for more than 1,000.
    """
    members = tuple(dict.fromkeys(check_author(name, "members") for name in names))
    if len(members) > MEMBERS_MAX:
        raise InvalidInput(
            f"a room has at most {MEMBERS_MAX} members, not {len(members)}",
            field="members",
            limit=MEMBERS_MAX,
        )
    return members


def _created(message: Message, data: dict[str, Any]) -> RoomState:
    if message.kind != ROOM_CREATE:
        raise InvalidInput("a room's first operation must create it", field="kind")
    path = text_of(data, "path")
    folder, slug = check_room_path(path)
    return RoomState(
        id=check_text(text_of(data, "id"), "id", ID_CHARS_MAX),
        title=check_title(text_of(data, "title")),
        path=path,
        folder=folder,
        slug=slug,
        members=check_members(texts_of(data, "members") if "members" in data else ()),
        created_at=from_datetime(message.at),
        created_by=message.author,
        origin=message.origin,
    )


def _with_policy(state: RoomState, policy: Policy) -> RoomState:
    return msgspec.structs.replace(state, policy=policy)


def _excluded(state: RoomState, _: Message, data: dict[str, Any]) -> RoomState:
    ranges = parse_ranges(texts_of(data, "messages"), state.origin)
    return _with_policy(state, state.policy.excluding(ranges))


def _included(state: RoomState, _: Message, data: dict[str, Any]) -> RoomState:
    ranges = parse_ranges(texts_of(data, "messages"), state.origin)
    return _with_policy(state, state.policy.including(ranges))


def _cleared(state: RoomState, _: Message, __: dict[str, Any]) -> RoomState:
    return _with_policy(state, Policy())


def _stood_in(state: RoomState, message: Message, data: dict[str, Any]) -> RoomState:
    standin = standin_of(data.get("standin"), state.origin, from_datetime(message.at))
    return _with_policy(state, state.policy.standing_in(standin))


def _policy_restored(state: RoomState, _: Message, data: dict[str, Any]) -> RoomState:
    return _with_policy(state, restored(state.policy, data, state.origin))


def _members_restored(state: RoomState, _: Message, data: dict[str, Any]) -> RoomState:
    return msgspec.structs.replace(state, members=check_members(texts_of(data, "members")))


def _joined(state: RoomState, _: Message, data: dict[str, Any]) -> RoomState:
    members = check_members((*state.members, *texts_of(data, "members")))
    return msgspec.structs.replace(state, members=members)


def _left(state: RoomState, _: Message, data: dict[str, Any]) -> RoomState:
    gone = set(texts_of(data, "members"))
    members = tuple(name for name in state.members if name not in gone)
    return msgspec.structs.replace(state, members=members)


def _moved(state: RoomState, _: Message, data: dict[str, Any]) -> RoomState:
    path = text_of(data, "path")
    folder, slug = check_room_path(path)
    return msgspec.structs.replace(state, path=path, folder=folder, slug=slug)


_CHANGES: Final[dict[str, Callable[[RoomState, Message, dict[str, Any]], RoomState]]] = {
    POLICY_EXCLUDE: _excluded,
    POLICY_INCLUDE: _included,
    POLICY_STANDIN: _stood_in,
    POLICY_CLEAR: _cleared,
    POLICY_RESTORE: _policy_restored,
    MEMBERS_ADD: _joined,
    MEMBERS_REMOVE: _left,
    MEMBERS_RESTORE: _members_restored,
    ROOM_MOVE: _moved,
}


def check_reason(reason: str) -> str:
    """Return why an operation is asked for: one line of at most 1,000 characters, or nothing."""
    return check_text(reason, "reason", REASON_CHARS_MAX) if reason else ""


def _operation(kind: str, by: str, reason: str, body: str, data: dict[str, Any]) -> Draft:
    if check_reason(reason):
        data["reason"] = reason
    return check_draft(Draft(author=by, kind=kind, body=body, data=data))


def create_draft(
    *,
    room_id: str,
    title: str,
    path: str,
    members: Iterable[str] = (),
    by: str,
    reason: str = "",
) -> Draft:
    """Return the operation that creates a room at ``path`` (names.room_directory)."""
    folder, slug = check_room_path(path)
    data: dict[str, Any] = {
        "id": check_text(room_id, "id", ID_CHARS_MAX),
        "title": check_title(title),
        "path": path,
        "folder": folder,
        "slug": slug,
        "members": list(check_members(members)),
    }
    return _operation(ROOM_CREATE, by, reason, f"Created the room {title}", data)


def _messages_draft(
    kind: str, verb: str, messages: Iterable[tuple[str, int]], by: str, reason: str
) -> Draft:
    refs = refs_of(tuple(messages))
    if not refs:
        raise InvalidInput("name at least one message", field="refs")
    body = f"{verb} {len(refs)} ranges of messages" if len(refs) > 1 else f"{verb} {refs[0]}"
    return _operation(kind, by, reason, body, {"messages": refs})


def exclude_draft(messages: Iterable[tuple[str, int]], *, by: str, reason: str = "") -> Draft:
    """Return the operation that leaves messages, given as origin and number, out of the view.

    Whether they exist is for the caller to check.
    """
    return _messages_draft(POLICY_EXCLUDE, "Excluded", messages, by, reason)


def include_draft(messages: Iterable[tuple[str, int]], *, by: str, reason: str = "") -> Draft:
    """Return the operation that shows messages again."""
    return _messages_draft(POLICY_INCLUDE, "Included", messages, by, reason)


def standin_draft(
    *,
    standin_id: str,
    replaces: Iterable[tuple[str, int]],
    body: str,
    insert_after: tuple[str, int] | None = None,
    speaker: str = "System",
    kind: str = "system",
    by: str,
    reason: str = "",
) -> Draft:
    """Return the operation that shows a text in the place of messages.

    Without ``insert_after`` it appears after the replaced message of the highest number; a caller
    that replaces messages of several origins names the place itself.
    """
    replaced = tuple(replaces)
    if not replaced:
        raise InvalidInput("a stand-in replaces at least one message", field="replaces")
    anchor = insert_after or max(replaced, key=lambda message: (message[1], message[0]))
    standin = {
        "id": check_text(standin_id, "id", ID_CHARS_MAX),
        "replaces": refs_of(replaced),
        "insert_after": full_ref(*anchor),
        "speaker": check_author(speaker, "speaker"),
        "kind": check_kind(kind),
        "body": check_body(body),
    }
    summary = f"Added the stand-in {standin_id}"
    return _operation(POLICY_STANDIN, by, reason, summary, {"standin": standin})


def clear_draft(*, by: str, reason: str = "") -> Draft:
    """Return the operation that takes back every exclusion and every stand-in."""
    return _operation(POLICY_CLEAR, by, reason, "Cleared the policy", {})


def members_draft(names: Iterable[str], *, add: bool, by: str, reason: str = "") -> Draft:
    """Return the operation that adds members to a room, or removes them from it."""
    members = check_members(names)
    if not members:
        raise InvalidInput("name at least one member", field="members")
    kind, verb = (MEMBERS_ADD, "Added") if add else (MEMBERS_REMOVE, "Removed")
    body = f"{verb} {len(members)} members" if len(members) > 1 else f"{verb} {members[0]}"
    return _operation(kind, by, reason, body, {"members": list(members)})


def policy_restore_drafts(policy: Policy, commit: str, *, by: str, reason: str = "") -> list[Draft]:
    """Return the operations that put a policy back as it stood in a commit.

    They are several for a policy that one operation cannot hold, and belong into one transaction.
    """
    return [
        _operation(
            POLICY_RESTORE,
            by,
            reason,
            f"Restored the policy as of {commit[:12]}",
            {**part, "from": commit},
        )
        for part in parts_of(policy)
    ]


def members_restore_draft(
    members: Iterable[str], commit: str, *, by: str, reason: str = ""
) -> Draft:
    """Return the operation that puts a member list back as it stood in a commit."""
    data = {"members": list(check_members(members)), "from": commit}
    body = f"Restored the members as of {commit[:12]}"
    return _operation(MEMBERS_RESTORE, by, reason, body, data)
