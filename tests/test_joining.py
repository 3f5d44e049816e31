"""Joining and leaving are one commit each; creating a room joins the one that is there."""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING

import pytest

from agent_chatroom_ledger import Busy, Conflict, Corrupt, InvalidInput, Ledger, NotFound
from agent_chatroom_ledger.domain.attendance import attendance
from agent_chatroom_ledger.domain.rooms import fold_room
from agent_chatroom_ledger.limits import MEMBERS_MAX
from tests.commits import record_commits
from tests.racing import race

if TYPE_CHECKING:
    from pathlib import Path

    from agent_chatroom_ledger import Room
    from tests.conftest import Git


@pytest.fixture
def room(ledger: Ledger) -> Room:
    return ledger.create_room("Design review", members=["Ana"])


def commits(ledger: Ledger) -> int:
    return len(record_commits(ledger))


# --- joining and leaving -------------------------------------------------------------------------


def test_joining_is_one_commit_with_an_operation_and_an_event(ledger: Ledger, room: Room) -> None:
    before = commits(ledger)
    done = ledger.agent("Ben").join(room)
    assert (done.joined, room.members) == (True, ("Ana", "Ben"))
    operation = next(room.reader().descending(log="operations"))
    event = room.messages()[-1]
    assert done.event == event
    assert (event.n, event.kind, event.author, event.to) == (1, "event", "Ben", ())
    assert event.body == "Ben joined the room"
    assert event.cause == operation.id
    assert (operation.kind, operation.author) == ("members.add", "Ben")
    entries = record_commits(ledger)
    assert len(entries) == before + 1
    assert (entries[0].messages, entries[0].operations) == (
        (event.full_ref,),
        (operation.full_ref,),
    )


def test_leaving_is_the_same_the_other_way(ledger: Ledger, room: Room) -> None:
    before = commits(ledger)
    done = ledger.agent("Ana").leave(room)
    assert (done.left, room.members) == (True, ())
    assert done.event is not None
    assert done.event.body == "Ana left the room"
    assert done.event.data == {"event": "left", "member": "Ana"}
    assert commits(ledger) == before + 1


def test_a_subject_in_gits_log_reads_as_a_sentence(ledger: Ledger, room: Room, git: Git) -> None:
    ledger.agent("Ben").join(room)
    ledger.agent("Ben").leave(room)
    ledger.flush()
    subjects = git(ledger.root, "log", "--format=%s", "--", f"{room.path}/operations").splitlines()
    assert subjects[:2] == [
        "design-review members: remove Ben (Ben) (+1)",
        "design-review members: add Ben (Ben) (+1)",
    ]


def test_what_is_so_already_leaves_no_line(ledger: Ledger, room: Room) -> None:
    before = commits(ledger)
    assert not ledger.agent("Ana").join(room).joined
    assert ledger.agent("Ana").join(room).event is None
    gone = ledger.agent("Ben").leave(room)
    assert (gone.left, gone.event) == (False, None)
    assert commits(ledger) == before
    assert room.messages() == []


def test_events_have_numbers_of_the_same_sequence(ledger: Ledger, room: Room) -> None:
    ana, ben = ledger.agent("Ana"), ledger.agent("Ben")
    ana.post(room, "one")
    ben.join(room)
    ben.post(room, "three")
    ben.leave(room)
    assert [(m.n, m.kind) for m in room.messages()] == [
        (1, "message"),
        (2, "event"),
        (3, "message"),
        (4, "event"),
    ]
    assert [m.n for m in room.messages(since=2)] == [3, 4]


def test_events_are_never_unread(ledger: Ledger, room: Room) -> None:
    ledger.agent("Ben").join(room)
    ledger.agent("Ben").leave(room)
    assert ledger.consumer("Ana").unread() == []
    ledger.agent("Ben").post(room, "hi")
    assert [item.count for item in ledger.consumer("Ana").unread()] == [1]


def test_a_room_that_everybody_left_is_there_to_be_read_and_joined(
    ledger: Ledger, room: Room
) -> None:
    ana = ledger.agent("Ana")
    ana.post(room, "I was here")
    ana.leave(room)
    assert room.members == ()
    assert [m.body for m in room.messages()] == ["I was here", "Ana left the room"]
    assert ledger.agent("Ben").join("design-review").joined
    assert room.members == ("Ben",)


def test_membership_as_the_operations_have_it(ledger: Ledger, room: Room) -> None:
    """Invariant 2: what is committed is the fold, and so are the times of coming and going."""
    ben = ledger.agent("Ben")
    ben.join(room)
    ben.leave(room)
    ben.join(room)
    ledger.flush()
    operations = list(room.reader().after(log="operations"))
    assert fold_room(operations).members == room.state(at="main").members == ("Ana", "Ben")
    assert [one.left_at is None for one in attendance(operations) if one.name == "Ben"] == [
        False,
        True,
    ]


def test_a_direct_room_is_neither_joined_nor_left(ledger: Ledger) -> None:
    direct = ledger.agent("Ana").dm(["Ben"], "hi").room
    for act in (ledger.agent("Eve").join, ledger.agent("Ben").leave):
        with pytest.raises(Conflict) as refused:
            act(direct)
        assert refused.value.code == "direct_room"
    assert direct.members == ("Ana", "Ben")


def test_an_archived_room_is_neither_joined_nor_left(ledger: Ledger, room: Room) -> None:
    ledger.archive_room(room)
    for act in (ledger.agent("Ben").join, ledger.agent("Ana").leave):
        with pytest.raises(Conflict) as refused:
            act("design-review")
        assert refused.value.code == "archived"


def test_a_room_that_is_not_there_is_named_with_the_nearest(ledger: Ledger, room: Room) -> None:
    with pytest.raises(NotFound) as missing:
        ledger.agent("Ben").join("design-reviw")
    assert missing.value.fields["candidates"] == [room.path.removeprefix("rooms/")]


def test_a_full_room_takes_nobody(ledger: Ledger) -> None:
    full = ledger.create_room("Full", members=[f"M{n}" for n in range(MEMBERS_MAX)])
    with pytest.raises(InvalidInput) as refused:
        ledger.agent("One more").join(full)
    assert refused.value.fields["limit"] == MEMBERS_MAX
    assert full.messages() == []


def test_many_who_join_and_leave_at_once(room: Room, tmp_path: Path) -> None:
    def come_and_go(number: int) -> bool:
        with Ledger.open(tmp_path / "ledger") as mine:
            agent = mine.agent(f"A{number % 4}")
            joined = agent.join("design-review").joined
            if number % 2:
                agent.leave("design-review")
            return joined

    joined = race(8, come_and_go)
    events = [m for m in room.messages() if m.kind == "event"]
    assert sum(joined) == sum("joined" in m.body for m in events)
    here: set[str] = {"Ana"}
    for event in events:
        # Between two events of one name there is always the opposite one.
        assert ("joined" in event.body) is (event.author not in here)
        here ^= {event.author}
    assert set(room.members) == here


# --- a server and the hooks ----------------------------------------------------------------------


def test_a_server_takes_coming_and_going(ledger: Ledger, room: Room) -> None:
    from agent_chatroom_ledger.storage.objects import NO_OBJECT
    from agent_chatroom_ledger.storage.push import PushedObjects
    from agent_chatroom_ledger.storage.pushcheck import PushCheck, Rules

    ledger.agent("Ben").join(room)
    ledger.agent("Ben").leave(room)
    ledger.flush()
    objects = PushedObjects(ledger.root / ".git")
    try:
        report = PushCheck(objects, Rules()).run(NO_OBJECT, ledger.commit_at("main"))
    finally:
        objects.close()
    assert report.ok, report.issues


def test_a_person_may_commit_beside_them(ledger: Ledger, room: Room, git: Git) -> None:
    """The pre-commit check looks at a ledger with events as at any other."""
    ledger.agent("Ben").join(room)
    ledger.flush()
    (ledger.root / "note.txt").write_text("mine\n")
    git(ledger.root, "add", "note.txt")
    git(ledger.root, "commit", "-q", "-m", "A note")
    ledger.agent("Ben").leave(room)
    assert [m.body for m in room.messages()] == ["Ben joined the room", "Ben left the room"]


# --- creating ------------------------------------------------------------------------------------


def test_creating_makes_a_room_with_its_maker_and_no_event(ledger: Ledger) -> None:
    made = ledger.agent("Ana").create("Design review", members=["Ben", "Ana"])
    assert (made.created, made.joined, made.notes) == (True, True, ())
    assert made.room.members == ("Ana", "Ben")
    assert made.room.messages() == []


@pytest.mark.parametrize("title", ["Design review", "design  REVIEW", "\uff24esign review"])
def test_two_who_are_told_the_same_sentence_meet(ledger: Ledger, title: str) -> None:
    first = ledger.agent("Ana").create("Design review")
    second = ledger.agent("Ben").create(title, members=["Ana", "Cy"])
    assert (second.created, second.joined) == (False, True)
    assert second.room == first.room
    assert first.room.members == ("Ana", "Ben")
    assert [m.body for m in first.room.messages()] == ["Ben joined the room"]
    assert "does not list Cy" in second.notes[0]


def test_members_are_a_list_of_names(ledger: Ledger) -> None:
    for members in ("Ben", ["*"], ["a\nb"]):
        with pytest.raises(InvalidInput):
            ledger.agent("Ana").create("Review", members=members)
    assert ledger.rooms() == []


def test_who_creates_again_is_in_already(ledger: Ledger) -> None:
    first = ledger.agent("Ana").create("Design review")
    again = ledger.agent("Ana").create("Design review")
    assert (again.room, again.created, again.joined, again.notes) == (first.room, False, False, ())


def test_another_room_of_the_title_is_made_when_asked_for(ledger: Ledger) -> None:
    ledger.agent("Ana").create("Design review")
    other = ledger.agent("Ben").create("Design review", new=True)
    assert other.created
    assert other.room.path == "rooms/design-review_2"


def test_titles_that_only_look_alike_as_paths_are_two(ledger: Ledger) -> None:
    ledger.agent("Ana").create("C++")
    assert ledger.agent("Ben").create("C").created


def test_without_a_folder_the_room_may_lie_in_any(ledger: Ledger) -> None:
    there = ledger.create_room("Design review", folder="team")
    assert ledger.agent("Ana").create("Design review").room == there
    assert ledger.agent("Ana").create("Design review", folder="other").created
    with pytest.raises(Conflict) as refused:
        ledger.agent("Ben").create("Design review")
    assert refused.value.code == "ambiguous"
    assert refused.value.fields["candidates"] == ["other/design-review", "team/design-review"]
    assert ledger.agent("Ana").create("Design review", new=True).created
    assert ledger.agent("Ben").create("Design review").room.folder == ""


def test_neither_an_archived_room_nor_a_direct_one_is_joined(ledger: Ledger) -> None:
    old = ledger.agent("Ana").create("Old").room
    ledger.archive_room(old)
    assert ledger.agent("Ben").create("Old").created
    ledger.agent("Ana").dm(["Ben"], "hi")
    assert ledger.agent("Eve").create("Ana, Ben").created


def test_of_fifty_who_create_one_title_one_makes_it(ledger: Ledger, tmp_path: Path) -> None:
    ledger.flush()

    def create(number: int) -> tuple[bool, bool, str]:
        with Ledger.open(tmp_path / "ledger") as mine:
            done = mine.agent(f"A{number:02}").create("Race to the room")
            return done.created, done.joined, done.room.id

    found = race(50, create)
    assert [created for created, _, _ in found].count(True) == 1
    assert all(joined for _, joined, _ in found)
    assert len({room_id for _, _, room_id in found}) == 1
    (room,) = ledger.rooms()
    assert set(room.members) == {f"A{number:02}" for number in range(50)}
    assert len(ledger.room(room.path).messages()) == 49


def test_names_that_could_do_harm_come_and_go_like_others(ledger: Ledger, room: Room) -> None:
    for name in ("../../etc", "<b>x</b>", "a; rm -rf /", "--apply", "名前", "A\u00a0B", "'\"`$(x)"):
        agent = ledger.agent(name)
        assert agent.join(room).joined
        assert name in room.members
        assert agent.leave(room).left
    ledger.flush()
    done = subprocess.run(
        ["git", "-C", str(ledger.root), "fsck", "--strict"], capture_output=True, check=False
    )
    assert done.returncode == 0, done.stderr


# --- what waits of a room that is left -----------------------------------------------------------


def waiting(ledger: Ledger, name: str) -> list[str]:
    return [item.message.body for item in ledger.agent(name).inbox(max=50, peek=True)]


def test_leaving_discards_what_waits_of_that_room_and_of_no_other(
    ledger: Ledger, room: Room
) -> None:
    other = ledger.create_room("Other", members=["Ana"])
    ben = ledger.agent("Ben")
    for body in ("1", "2", "3"):
        ben.post(room, body)
    ben.post(other, "elsewhere")
    ben.dm(["Ana"], "to you")
    ana = ledger.agent("Ana")
    (handed,) = ana.inbox(max=1)
    assert ana.leave(room).discarded == 2
    assert waiting(ledger, "Ana") == ["elsewhere", "to you"]
    assert [m.body for m in room.messages()] == ["1", "2", "3", "Ana left the room"]
    assert ana.receipts(handed.message.id).receipts[0].handed_at is not None


def test_what_waits_is_kept_when_asked_for(ledger: Ledger, room: Room) -> None:
    ledger.agent("Ben").post(room, "1")
    done = ledger.agent("Ana").leave(room, keep_queued=True)
    assert (done.left, done.discarded) == (True, 0)
    assert waiting(ledger, "Ana") == ["1"]
    later = ledger.agent("Ana").leave(room)
    assert (later.left, later.discarded) == (False, 1)
    assert waiting(ledger, "Ana") == []


def test_a_post_comes_to_the_other_members_and_to_nobody_else(ledger: Ledger, room: Room) -> None:
    ledger.agent("Ben").join(room)
    ledger.agent("Ana").post(room, "1")
    assert waiting(ledger, "Ben") == ["1"]
    assert waiting(ledger, "Ana") == []
    assert waiting(ledger, "Eve") == []


def test_events_come_to_nobody(ledger: Ledger, room: Room) -> None:
    ledger.agent("Ben").join(room)
    ledger.agent("Cy").join(room)
    ledger.agent("Ben").leave(room)
    assert [waiting(ledger, name) for name in ("Ana", "Ben", "Cy")] == [[], [], []]


def test_who_joins_again_is_not_given_what_was_said_meanwhile(ledger: Ledger, room: Room) -> None:
    ana, ben = ledger.agent("Ana"), ledger.agent("Ben")
    ben.post(room, "before")
    ana.leave(room)
    ben.post(room, "while out")
    ana.join(room)
    ben.post(room, "after")
    assert waiting(ledger, "Ana") == ["after"]


def test_who_left_is_still_reached_by_name(ledger: Ledger, room: Room) -> None:
    ana, ben = ledger.agent("Ana"), ledger.agent("Ben")
    ana.leave(room)
    ben.post(room, "for the others")
    ben.post(room, "for you", to=["Ana"])
    ben.dm(["Ana"], "and directly")
    assert waiting(ledger, "Ana") == ["for you", "and directly"]


def test_a_room_is_left_in_the_middle_of_a_hand_over(ledger: Ledger, room: Room) -> None:
    ledger.agent("Ben").post(room, "1")
    ledger.agent("Ben").post(room, "2")
    ana = ledger.agent("Ana")
    with ana.take(1) as handover:
        assert ana.leave(room).discarded == 2
        handover.confirm()
    assert waiting(ledger, "Ana") == []


@pytest.mark.broken_on_purpose
def test_damaged_receipts_are_named_before_a_room_is_left(ledger: Ledger, room: Room) -> None:
    ledger.agent("Ben").post(room, "1")
    ledger.agent("Ana").inbox()
    ledger.receipts.close()
    for path in ledger.layout.receipts.parent.iterdir():
        path.write_bytes(b"no database, whatever its name says" * 200)
    with pytest.raises(Corrupt):
        ledger.agent("Ana").leave(room)
    assert room.members == ("Ana",)
    assert ledger.agent("Ana").leave(room, keep_queued=True).left


def test_who_has_left_is_told_so_when_the_backlog_could_not_be_discarded(
    ledger: Ledger, room: Room, monkeypatch: pytest.MonkeyPatch
) -> None:
    ledger.agent("Ben").post(room, "1")
    with monkeypatch.context() as patch:
        patch.setattr(type(ledger.receipts), "drop", refuse)
        with pytest.raises(
            Busy, match=r"^Ana has left design-review, .* leave again for that\. In use\.$"
        ):
            ledger.agent("Ana").leave(room)
    assert room.members == ()
    assert waiting(ledger, "Ana") == ["1"]
    assert ledger.agent("Ana").leave(room).discarded == 1


def refuse(*_: object) -> None:
    raise Busy("In use.")
