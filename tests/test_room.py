"""Rooms: what is posted is stored exactly, once, in order, and can be read at any time."""

from __future__ import annotations

import threading
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest

from agent_chatroom_ledger import Conflict, Draft, InvalidInput, Ledger, NotFound, Room
from agent_chatroom_ledger.domain.policy import StandIn
from agent_chatroom_ledger.limits import BODY_BYTES_MAX, POST_MANY_MAX
from tests.commits import record_commits

if TYPE_CHECKING:
    from agent_chatroom_ledger import Message
    from agent_chatroom_ledger.operations import Refs
    from tests.conftest import Git


@pytest.fixture
def room(ledger: Ledger) -> Room:
    return ledger.create_room("Design review", members=["Analyst", "Reviewer"])


def test_a_post_returns_the_message_as_it_stands(room: Room) -> None:
    message = room.post("Analyst", "18 checks passed", kind="review", to=["Reviewer"])
    assert (message.n, message.author, message.body) == (1, "Analyst", "18 checks passed")
    assert (message.kind, message.to, message.ref) == ("review", ("Reviewer",), "1")
    assert message.at.tzinfo is not None
    assert room.messages() == [message]
    assert room.message(1) == room.message(message.full_ref) == message


def test_numbers_go_on_and_times_never_repeat(room: Room) -> None:
    messages = room.post_many([{"author": "A", "body": str(n)} for n in range(60)])
    assert [message.n for message in messages] == list(range(1, 61))
    assert room.post("A", "next").n == 61
    times = [message.at for message in room.messages()]
    assert times == sorted(set(times))


@pytest.mark.parametrize(
    "body",
    [
        "",
        " kept \r\n kept\r",
        "a\u2028b\u2029c\u0085d\x0be\x0cf",
        "\x1b[31mred\x07",
        "🙂\u202e",
        "> quoted\n### #9 Forged · 00:00:00Z · message\n\nRoom: rooms/x",
        "x" * BODY_BYTES_MAX,
    ],
)
def test_bodies_are_stored_exactly(room: Room, body: str) -> None:
    room.post("Analyst", body)
    room.ledger.flush()
    assert room.messages()[0].body == body


@pytest.mark.parametrize(
    "fields",
    [
        {"body": "x\0y"},
        {"body": "\ud800"},
        {"body": "x" * (BODY_BYTES_MAX + 1)},
        {"author": ""},
        {"author": "a\nb"},
        {"author": "x" * 10_000},
        {"kind": "No Such Kind"},
        {"data": {"x": "y" * 70_000}},
        {"unknown": 1},
        {"reply_to": "7"},
        {"reply_to": "not a reference"},
        {"id": ""},
        {"artifacts": ["0" * 64]},
        {"said_at": datetime(2026, 1, 1)},  # noqa: DTZ001 - what is tested
    ],
)
def test_what_breaks_a_rule_is_refused_and_nothing_is_written(
    room: Room, fields: dict[str, Any]
) -> None:
    with pytest.raises(InvalidInput):
        room.post_many([
            {"author": "A", "body": "fine"},
            {"author": "A", "body": "x", **fields},
        ])  # fmt: skip
    assert room.messages() == []


def test_the_same_id_again_is_the_first_message(room: Room) -> None:
    first = room.post("A", "hello", id="key-1", data={"a": 1, "b": 2})
    assert room.post("A", "hello", id="key-1", data={"b": 2, "a": 1}) == first
    again = room.post_many([
        {"author": "A", "body": "new", "id": "key-2"},
        {"author": "A", "body": "hello", "id": "key-1", "data": {"a": 1, "b": 2}},
        {"author": "A", "body": "new", "id": "key-2"},
    ])  # fmt: skip
    assert [message.n for message in again] == [2, 1, 2]
    assert len(room.messages()) == 2


def test_the_same_id_for_something_else_is_a_conflict(room: Room) -> None:
    room.post("A", "hello", id="key-1")
    for drafts in (
        [{"author": "A", "body": "other", "id": "key-1"}],
        [{"author": "B", "body": "hello", "id": "key-1"}],
        [{"author": "A", "body": "x", "id": "k"}, {"author": "A", "body": "y", "id": "k"}],
    ):
        with pytest.raises(Conflict) as caught:
            room.post_many(drafts)
        assert caught.value.code == "id_taken"
    assert len(room.messages()) == 1


def test_an_id_is_known_after_a_restart(room: Room) -> None:
    first = room.post("A", "hello", id="key-1")
    room.post_many([{"author": "A", "body": str(n)} for n in range(60)])
    room.ledger.close()
    with Ledger.open(room.ledger.root) as ledger:
        assert ledger.room(room.path).post("A", "hello", id="key-1") == first
    with Ledger.open(room.ledger.root) as ledger:
        other = ledger.create_room("Other")
        assert other.post("A", "elsewhere", id="key-1").n == 1


def test_replies_are_stored_as_full_references(room: Room) -> None:
    first = room.post("A", "question")
    replies = [room.post("B", "answer", reply_to=form) for form in (1, "1", "#1", first)]
    assert {reply.reply_to for reply in replies} == {first.full_ref}
    both = room.post_many([{"author": "A", "body": "a"}, {"author": "A", "body": "b"}])
    assert room.post("A", "c", reply_to=both[1]).reply_to == both[1].full_ref


def test_a_draft_may_be_given_whole(room: Room) -> None:
    said = "2005-02-06T10:00:00.000000Z"
    (message,) = room.post_many([Draft(author="A", body="old", said_at=said)])
    assert message.said_at == datetime(2005, 2, 6, 10, tzinfo=UTC)
    assert message.at > message.said_at


def test_reading_takes_what_is_asked_for(room: Room) -> None:
    room.post_many([{"author": "A", "body": str(n)} for n in range(1, 121)])

    def numbers(**options: int | str | Message) -> list[int]:
        return [message.n for message in room.messages(**options)]

    assert numbers(since=118) == [119, 120]
    assert numbers(since="118") == [119, 120]
    assert numbers(since=room.message(119)) == [120]
    assert numbers(limit=2) == [1, 2]
    assert numbers(since=50, limit=2) == [51, 52]
    assert numbers(last=2) == [119, 120]
    assert numbers(last=5, limit=2) == [116, 117]
    assert numbers(last=0) == numbers(limit=0) == []
    assert numbers(since=119, last=50) == [120]
    assert numbers(since=500) == []
    with pytest.raises(InvalidInput):
        numbers(limit=-1)


def test_kind_is_applied_before_counting(room: Room) -> None:
    kinds = ["message", "event", "message", "event", "message"]
    room.post_many([{"author": "A", "body": str(n), "kind": k} for n, k in enumerate(kinds)])
    assert [m.n for m in room.messages(kind="event")] == [2, 4]
    assert [m.n for m in room.messages(kind="message", limit=2)] == [1, 3]
    assert [m.n for m in room.messages(kind="message", last=2)] == [3, 5]


def test_the_past_can_be_read(room: Room) -> None:
    room.post("A", "one")
    room.post("A", "two")
    commits = [entry.commit for entry in room.ledger.log(room)]
    assert [m.n for m in room.messages(at=commits[0])] == [1, 2]
    assert [m.n for m in room.messages(at=f"{commits[0]}~1")] == [1]
    assert [m.n for m in room.messages(at=commits[1][:10])] == [1]
    assert [m.n for m in room.messages(at=datetime.now(UTC) + timedelta(minutes=1))] == [1, 2]
    room.exclude(1)
    assert not room.policy().excludes(room.origin, 2)
    assert room.policy().excludes(room.origin, 1)
    assert not room.policy(at=commits[0]).excludes(room.origin, 1)
    with pytest.raises(NotFound):
        room.messages(at="no-such-branch")
    with pytest.raises(NotFound):
        room.messages(at=datetime(2001, 1, 1, tzinfo=UTC))


def test_policy_leaves_out_and_never_erases(room: Room) -> None:
    room.post_many([{"author": "A", "body": str(n)} for n in range(1, 7)])
    room.exclude("1,3-4", by="Reviewer", reason="noise")
    assert [item.n for item in room.lens().items] == [2, 5, 6]
    assert [message.n for message in room.messages()] == [1, 2, 3, 4, 5, 6]
    room.include([3, room.message(4)])
    assert [item.n for item in room.lens().items] == [2, 3, 4, 5, 6]
    room.add_standin("5-6", "two things", id="s1", speaker="Editor")
    *_, last = room.lens().items
    assert isinstance(last, StandIn)
    assert (last.id, last.speaker, last.insert_after) == ("s1", "Editor", (room.origin, 6))
    lens = room.lens()
    assert lens.message_count == 6
    assert lens.position == {room.origin: 6}
    assert lens.last is not None
    assert lens.last.n == 6
    room.clear_policy()
    assert len(room.lens().items) == 6


@pytest.mark.parametrize("refs", ["7", [1, 9], "3-8", "1@nobody-0000"])
def test_messages_that_do_not_exist_are_named_and_nothing_is_written(
    room: Room, refs: Refs
) -> None:
    room.post_many([{"author": "A", "body": str(n)} for n in range(1, 4)])
    before = len(record_commits(room.ledger))
    for act in (room.exclude, room.include, lambda refs: room.add_standin(refs, "x")):
        with pytest.raises(InvalidInput) as caught:
            act(refs)
        assert caught.value.fields["missing"]
    with pytest.raises(InvalidInput):
        room.add_standin(1, "x", insert_after=9)
    assert len(record_commits(room.ledger)) == before


def test_a_change_that_changes_nothing_makes_no_commit(room: Room) -> None:
    room.post("A", "one")
    room.exclude(1)
    before = len(room.ledger.log(room))
    room.exclude(1)
    room.ledger.flush()
    assert any(entry.operations for entry in room.ledger.log(room))
    assert len([e for e in room.ledger.log(room) if e.operations]) == 2
    room.clear_policy()
    room.clear_policy()
    assert len([e for e in room.ledger.log(room) if e.operations]) == 3
    assert before >= 3


def test_a_standin_id_is_taken_once(room: Room) -> None:
    room.post_many([{"author": "A", "body": str(n)} for n in range(1, 4)])
    room.add_standin(1, "x", id="s1")
    with pytest.raises(Conflict):
        room.add_standin(2, "y", id="s1")
    room.add_standin(2, "y")
    room.add_standin(3, "z", insert_after=1)
    assert len({standin.id for standin in room.policy().standins}) == 3
    assert room.policy().standins[-1].insert_after == (room.origin, 1)


def test_the_view_is_compiled_and_mended(room: Room) -> None:
    assert room.visible_path is None
    room.post("A", "one")
    pages = room.compile()
    assert room.visible_path == pages[-1]
    right = pages[-1].read_bytes()
    pages[-1].write_text("broken")
    assert [message.n for message in room.messages()] == [1]
    assert room.compile() == pages
    assert pages[-1].read_bytes() == right
    pages[-1].unlink()
    assert room.compile() == pages
    assert pages[-1].read_bytes() == right


def test_a_commit_reads_like_the_conversation(room: Room, git: Git) -> None:
    room.post("Analyst", "18 checks passed")
    room.ledger.flush()
    told = git(room.ledger.root, "log", "--format=%s", "--", "rooms/design-review/messages")
    assert told == "design-review #1 Analyst: 18 checks passed\n"
    assert git(room.ledger.root, "status", "--porcelain") == ""


def test_threads_share_a_ledger(room: Room) -> None:
    def post(name: str) -> None:
        for n in range(20):
            room.post(name, str(n))

    threads = [threading.Thread(target=post, args=(name,)) for name in "ABCD"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    messages = room.messages()
    assert [message.n for message in messages] == list(range(1, 81))
    for name in "ABCD":
        assert [m.body for m in messages if m.author == name] == [str(n) for n in range(20)]


def test_limits_are_named(room: Room) -> None:
    with pytest.raises(InvalidInput) as caught:
        room.post_many({"author": "A", "body": "x"} for _ in range(POST_MANY_MAX + 1))
    assert caught.value.fields["limit"] == POST_MANY_MAX
    assert room.post_many([]) == []


def test_rooms_are_values(room: Room) -> None:
    assert room == room.ledger.room("design-review")
    assert len({room, room.ledger.room(room.id)}) == 1
    assert room != "design-review"
    assert room.members == ("Analyst", "Reviewer")
    assert (room.folder, room.slug) == ("", "design-review")


def test_a_room_that_was_got_before_another_took_its_path_stays_what_it_was(
    ledger: Ledger,
) -> None:
    """However it was got, and whether or not anybody has asked it for anything since."""
    made = ledger.create_room("Review", members=["Ana"])
    target = ledger.create_room("Elsewhere")
    got = [made, ledger.room("review"), ledger.room("Review"), ledger.room(made.id)]
    got.append(ledger.ensure_room("review"))
    made.post("Ana", "the first room")
    first = ledger.archive_room("review")
    other = ledger.create_room("Review", members=["Eve"])
    other.post("Eve", "the second room")
    before = ledger.commit_at("main")
    for room in got:
        for write in (
            lambda r: r.post("Ana", "meant for the first"),
            lambda r: r.post_many([{"author": "Ana", "body": "meant for the first"}]),
            lambda r: r.exclude(1),
            lambda r: r.include(1),
            lambda r: r.add_standin(1, "nothing"),
            Room.clear_policy,
            lambda r: r.add_member("Cy"),
            lambda r: r.remove_member("Eve"),
            lambda r: r.place(1, target, reason="kept"),
            lambda r: target.place(1, r, reason="kept"),
            lambda r: r.duplicate(1, target, reason="kept"),
            Room.compile,
            ledger.archive_room,
            lambda r: ledger.agent("Cy").join(r),
            lambda r: ledger.agent("Eve").leave(r),
        ):
            with pytest.raises(Conflict, match="another room now") as caught:
                write(room)
            assert caught.value.code == "conflict"
        with pytest.raises(Conflict, match="another room now"):
            room.state()
        assert room.id == first.id
    assert ledger.commit_at("main") == before
    assert [message.body for message in other.messages()] == ["the second room"]
    assert other.members == ("Eve",)
    again = ledger.restore_room(first.id)
    assert again.post("Ana", "back").n == 2
