"""What each tool does: one call into the ledger, and its answer as a result.

Every function may block, and runs in a thread. The rules are the ledger's; nothing is decided here.
`rooms_inbox` is in `inbox`, because it waits and hands over.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from agent_chatroom_ledger.domain.clock import to_datetime
from agent_chatroom_ledger.domain.positions import encode_position
from agent_chatroom_ledger.errors import InvalidInput
from agent_chatroom_ledger.inbox import waiting_count, waiting_counts
from agent_chatroom_ledger.limits import MCP_ANSWER_BYTES_MAX
from agent_chatroom_ledger.mcp import results

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from datetime import datetime

    from agent_chatroom_ledger.agents import Agent
    from agent_chatroom_ledger.domain.records import Message
    from agent_chatroom_ledger.mcp import parameters
    from agent_chatroom_ledger.presence import Presence
    from agent_chatroom_ledger.receipts import Receipt
    from agent_chatroom_ledger.room import Room
    from agent_chatroom_ledger.sending import Sent


def short(path: str) -> str:
    """Return a room's path as people write it."""
    return path.removeprefix("rooms/")


def said(room: Room, message: Message) -> dict[str, Any]:
    """Return the fields of a message that a model reads."""
    return {
        "room": short(room.path),
        "ref": message.ref,
        "id": message.id,
        "at": _time(message.at),
        "author": message.author,
        "kind": message.kind,
        "body": message.body,
        "to": list(message.to),
        "reply_to": message.reply_to,
        "correlation": message.correlation,
        "cause": message.cause,
    }


def who(agent: Agent, given: parameters.Who) -> results.WhoResult:
    """rooms_who: those who are here, and with ``all`` the members of rooms who are not."""
    from agent_chatroom_ledger import presence

    ledger = agent.ledger
    here = {one.name: one for one in presence.who(ledger) if one.name != agent.name}
    others = [_present(agent, name, one) for name, one in here.items()]
    if given.all:
        members = {member for room in ledger.rooms() for member in room.members}
        absent = sorted(members - here.keys() - {agent.name})
        others += [_present(agent, name, None) for name in absent]
    return results.WhoResult(you=agent.name, others=others)


def _present(agent: Agent, name: str, one: Presence | None) -> results.Present:
    waiting = waiting_count(agent.ledger, name)
    if one is None:
        return results.Present(name=name, live=False, reach="queued", waiting=waiting)
    since = None if one.since is None else _time(one.since)
    return results.Present(
        name=name,
        live=one.live,
        reach=one.reach,
        waiting=waiting,
        client=one.client or None,
        directory=one.directory or None,
        model=one.model,
        since=since,
    )


def list_rooms(agent: Agent, given: parameters.List) -> results.ListResult:
    """rooms_list."""
    found = agent.rooms(
        mine=given.mine, archived=given.archived, after=given.after, limit=given.limit + 1
    )
    waiting = waiting_counts(agent.ledger, agent.name)
    page = found[: given.limit]
    rooms = [
        results.ListedRoom(
            room=short(room.path),
            title=room.title,
            members=list(room.members),
            last=room.last,
            waiting=waiting.get(room.path, 0),
            member=agent.name in room.members,
        )
        for room in page
    ]
    more = len(found) > given.limit
    return results.ListResult(rooms=rooms, next=short(page[-1].path) if more else None)


def create(agent: Agent, given: parameters.Create) -> results.CreateResult:
    """rooms_create."""
    done = agent.create(given.title, members=given.members, folder=given.folder, new=given.new)
    return results.CreateResult(
        room=short(done.room.path),
        title=done.room.title,
        created=done.created,
        joined=done.joined,
        members=list(done.room.members),
        notes=list(done.notes),
    )


def join(agent: Agent, given: parameters.Join) -> results.JoinResult:
    """rooms_join."""
    done = agent.join(given.room)
    last = done.room.last_position().get(done.room.origin, 0)
    return results.JoinResult(room=short(done.room.path), joined=done.joined, last=last)


def leave(agent: Agent, given: parameters.Leave) -> results.LeaveResult:
    """rooms_leave."""
    done = agent.leave(given.room, keep_queued=given.keep_queued)
    return results.LeaveResult(room=short(done.room.path), left=done.left, discarded=done.discarded)


def post(agent: Agent, given: parameters.Post) -> results.SentResult:
    """rooms_post."""
    return _sent(
        agent.post(
            given.room,
            given.body,
            to=given.to,
            reply_to=given.reply_to,
            kind=given.kind,
            correlation=given.correlation,
            key=given.key,
        )
    )


def dm(agent: Agent, given: parameters.Dm) -> results.SentResult:
    """rooms_dm."""
    return _sent(agent.dm(given.to, given.body, correlation=given.correlation, key=given.key))


def reply_all(agent: Agent, given: parameters.ReplyAll) -> results.SentResult:
    """rooms_reply_all."""
    return _sent(agent.reply_all(given.id, given.body, key=given.key))


def read(agent: Agent, given: parameters.Read) -> results.ReadResult:
    """rooms_read: of a room a page, or the messages that bear an id or a correlation."""
    if given.id is not None:
        from agent_chatroom_ledger.lookup import find_message

        room, message = find_message(agent.ledger, given.id, agent.name)
        return results.ReadResult(messages=[results.Said(**said(room, message))])
    if given.room is None:
        if given.correlation is None:
            raise InvalidInput("Give room, id or correlation.", field="room")
        return _correlated(agent, given.correlation, given.limit)
    room = agent.ledger.room(given.room)
    at = None
    if given.at is not None:
        from agent_chatroom_ledger.cli.moments import moment

        at = moment(given.at)
    wanted = given.last if given.last is not None else given.limit
    newest = given.last is not None
    if given.correlation is None:
        # One more tells whether any follow.
        limit, last = (None, wanted) if newest else (wanted + 1, None)
        messages = room.messages(since=given.since or 0, limit=limit, last=last, at=at)
    else:
        messages = room.messages(since=given.since or 0, at=at)
        messages = [one for one in messages if one.correlation == given.correlation]
        messages = messages[-wanted:] if newest else messages[: wanted + 1]
    return _page(room, messages, wanted, newest=newest, since=given.since)


def _page(
    room: Room, messages: list[Message], wanted: int, *, newest: bool, since: str | int | None
) -> results.ReadResult:
    """Return as many messages as one answer holds, and where the next page begins.

    Of the newest ones the last are kept. One message is given whole, however long it is.
    """
    kept = within(reversed(messages) if newest else messages, wanted)
    if newest:
        kept.reverse()
    shown = [results.Said(**said(room, message)) for message in kept]
    if newest or len(kept) == len(messages) or not kept:
        return results.ReadResult(messages=shown)
    from agent_chatroom_ledger.domain.positions import advance, position_of

    reached = position_of(since or 0, room.origin)
    for message in kept:
        reached = advance(reached, message.origin, message.n)
    alone = set(reached) == {room.origin}
    after = str(reached[room.origin]) if alone else encode_position(reached)
    return results.ReadResult(messages=shown, next=after)


def within(messages: Iterable[Message], count: int) -> list[Message]:
    """Return the first messages, at most so many and so long; the first whatever its length."""
    kept: list[Message] = []
    left = MCP_ANSWER_BYTES_MAX
    for message in messages:
        left -= len(message.line)
        if len(kept) == count or (kept and left < 0):
            break
        kept.append(message)
    return kept


def _correlated(agent: Agent, correlation: str, limit: int) -> results.ReadResult:
    """Return the messages of every room that bear a correlation, oldest first."""
    from agent_chatroom_ledger.lookup import correlated

    found = correlated(agent.ledger, correlation)
    kept = set(map(id, within((message for _, message in found), limit)))
    return results.ReadResult(
        messages=[results.Said(**said(*pair)) for pair in found if id(pair[1]) in kept]
    )


def seen(agent: Agent, given: parameters.Seen) -> results.SeenResult:
    """rooms_seen."""
    position = agent.seen(given.room, given.through)
    room = agent.ledger.room(given.room)
    alone = set(position) <= {room.origin}
    reached = str(position.get(room.origin, 0)) if alone else encode_position(position)
    return results.SeenResult(room=short(room.path), through=reached)


def receipts(agent: Agent, given: parameters.Receipts) -> results.ReceiptsResult:
    """rooms_receipts."""
    found = agent.receipts(given.id)
    return results.ReceiptsResult(
        id=found.message.id,
        room=short(found.room.path),
        recipients=[_receipt(one) for one in found.receipts],
    )


def _receipt(one: Receipt) -> results.Receipt:
    return results.Receipt(
        name=one.name,
        handed_over=_shown(one.handed_at),
        seen=one.seen,
        seen_at=_shown(one.seen_at),
        answered=_time(one.answers[0].message.at) if one.answers else None,
        answers=[answer.message.id for answer in one.answers],
    )


def _shown(stored: str | None) -> str | None:
    return None if stored is None else _time(to_datetime(stored))


def _time(at: datetime) -> str:
    return at.isoformat(timespec="seconds").replace("+00:00", "Z")


def _sent(done: Sent) -> results.SentResult:
    return results.SentResult(
        room=short(done.room.path),
        ref=done.message.ref,
        id=done.message.id,
        recipients=[
            results.Recipient(name=one.name, reach=one.reach, note=one.note or None)
            for one in done.recipients
        ],
        notes=list(done.notes),
    )


CALLS: dict[str, Callable[[Agent, Any], object]] = {
    "rooms_who": who,
    "rooms_list": list_rooms,
    "rooms_create": create,
    "rooms_join": join,
    "rooms_leave": leave,
    "rooms_post": post,
    "rooms_dm": dm,
    "rooms_reply_all": reply_all,
    "rooms_read": read,
    "rooms_seen": seen,
    "rooms_receipts": receipts,
}
