"""The inbox: each message handed over once, oldest first, and never marked when it was not."""

from __future__ import annotations

import shutil
from datetime import UTC, datetime, timedelta
from random import Random
from typing import TYPE_CHECKING, Any, Literal

import pytest

from agent_chatroom_ledger import Ledger, queuewalk
from agent_chatroom_ledger.domain.attendance import attendance
from agent_chatroom_ledger.domain.delivery import is_for
from agent_chatroom_ledger.errors import Busy, Corrupt, InvalidInput
from agent_chatroom_ledger.inbox import (
    discard,
    is_waiting,
    peek,
    take,
    waiting_count,
    waiting_counts,
)
from agent_chatroom_ledger.limits import DELIVER_MAX
from agent_chatroom_ledger.storage.reading import OPERATIONS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from agent_chatroom_ledger import Room
    from tests.conftest import Git, MakeLedger


@pytest.fixture(params=["sync", "group"])
def ledger(request: pytest.FixtureRequest, make_ledger: MakeLedger) -> Ledger:
    return make_ledger(commit=request.param)


@pytest.fixture
def room(ledger: Ledger) -> Room:
    return ledger.create_room("Review", members=["Ana", "Ben"])


def taken(ledger: Ledger, name: str, **options: Any) -> list[str]:
    """Hand over, and return the bodies."""
    with take(ledger, name, **options) as handover:
        handover.confirm()
        return [item.message.body for item in handover]


def looked(ledger: Ledger, name: str, **options: Any) -> list[str]:
    return [item.message.body for item in peek(ledger, name, **options)]


def test_a_member_gets_what_others_say_and_only_once(ledger: Ledger, room: Room) -> None:
    room.post("Ana", "hello")
    room.post("Ben", "my own")
    room.post("Ana", "joined", kind="event")
    assert taken(ledger, "Ben") == ["hello"]
    assert taken(ledger, "Ben") == []
    assert taken(ledger, "Ana") == ["my own"]
    assert taken(ledger, "Cleo") == []


def test_who_is_addressed_gets_it_wherever_it_was_said(ledger: Ledger, room: Room) -> None:
    room.post("Ana", "to one", to=["Cleo"])
    room.post("Ana", "to all", to=["*"])
    (item,) = peek(ledger, "Cleo")
    assert (item.message.body, item.addressed, item.room) == ("to one", True, room)
    assert looked(ledger, "Ben") == ["to one", "to all"]
    assert [item.addressed for item in peek(ledger, "Ben")] == [False, False]


def test_only_what_was_said_while_one_was_a_member(ledger: Ledger, room: Room) -> None:
    room.post("Ana", "before")
    room.add_member("Cleo")
    room.post("Ana", "during")
    room.remove_member("Cleo")
    room.post("Ana", "between")
    room.add_member("Cleo")
    room.post("Ana", "again")
    assert looked(ledger, "Cleo") == ["during", "again"]


def test_joining_again_replays_nothing(ledger: Ledger, room: Room) -> None:
    room.post("Ana", "one")
    assert taken(ledger, "Ben") == ["one"]
    room.remove_member("Ben")
    room.add_member("Ben")
    assert taken(ledger, "Ben") == []
    room.post("Ana", "two")
    assert taken(ledger, "Ben") == ["two"]


def test_oldest_first_over_all_rooms_and_five_at_a_time(ledger: Ledger, room: Room) -> None:
    other = ledger.create_room("Other", members=["Ben"])
    for n in range(6):
        (room, other)[n % 2].post("Ana", str(n))
    with take(ledger, "Ben") as handover:
        assert [item.message.body for item in handover] == ["0", "1", "2", "3", "4"]
        assert handover.more
        assert handover.waiting() == 1
        handover.confirm()
    with take(ledger, "Ben") as handover:
        assert ([item.message.body for item in handover], handover.more) == (["5"], False)
        assert handover.waiting() == 0
        handover.confirm()


def test_a_number_of_ones_own_within_bounds(ledger: Ledger, room: Room) -> None:
    for n in range(DELIVER_MAX + 1):
        room.post("Ana", str(n))
    assert len(peek(ledger, "Ben", max=DELIVER_MAX)) == DELIVER_MAX
    assert looked(ledger, "Ben", max=1) == ["0"]
    for wrong in (0, DELIVER_MAX + 1, True):
        with pytest.raises(InvalidInput, match=f"1 to {DELIVER_MAX}"):
            peek(ledger, "Ben", max=wrong)


def test_what_is_not_confirmed_comes_again(ledger: Ledger, room: Room) -> None:
    room.post("Ana", "hello")
    with take(ledger, "Ben") as handover:
        assert len(handover) == 1
    assert not ledger.layout.receipts.exists()
    assert taken(ledger, "Ben") == ["hello"]


def test_a_door_that_fails_has_handed_nothing_over(ledger: Ledger, room: Room) -> None:
    message = room.post("Ana", "hello")
    with pytest.raises(BrokenPipeError), take(ledger, "Ben"):
        raise BrokenPipeError
    assert ledger.receipts.of_record(message.id) == []
    assert looked(ledger, "Ben") == ["hello"]


def test_a_closed_hand_over_cannot_be_confirmed(ledger: Ledger, room: Room) -> None:
    room.post("Ana", "hello")
    handover = take(ledger, "Ben")
    handover.close()
    handover.close()
    with pytest.raises(InvalidInput, match="closed"):
        handover.confirm()


def test_two_doors_of_one_name_take_turns(ledger: Ledger, room: Room) -> None:
    room.post("Ana", "hello")
    with take(ledger, "Ben"):
        with pytest.raises(Busy, match="inbox-"):
            take(ledger, "Ben", lock_seconds=0)
        with take(ledger, "Ana", lock_seconds=0) as other:
            assert len(other) == 0
    handover = take(ledger, "Ben")
    del handover  # forgotten, and let go of all the same
    assert taken(ledger, "Ben") == ["hello"]


def test_looking_writes_nothing(ledger: Ledger, room: Room) -> None:
    room.post("Ana", "hello")
    ledger.flush()
    ledger.index.follow()
    before = sorted(path.name for path in ledger.layout.locks.iterdir())
    assert looked(ledger, "Ben") == ["hello"]
    assert waiting_count(ledger, "Ben") == 1
    assert sorted(path.name for path in ledger.layout.locks.iterdir()) == before
    assert not ledger.layout.receipts.parent.exists()


def test_one_room_only_leaves_the_others(ledger: Ledger, room: Room) -> None:
    other = ledger.create_room("Other", members=["Ben"])
    room.post("Ana", "one")
    other.post("Ana", "two")
    room.post("Ana", "three")
    assert taken(ledger, "Ben", room=other) == ["two"]
    assert taken(ledger, "Ben") == ["one", "three"]


def test_only_what_names_the_receiver_leaves_the_rest(ledger: Ledger, room: Room) -> None:
    room.post("Ana", "one")
    room.post("Ana", "two", to=["Ben"])
    room.post("Ana", "three")
    room.post("Ana", "four", to=["Ben"])
    assert taken(ledger, "Ben", addressed_only=True, max=1) == ["two"]
    assert waiting_count(ledger, "Ben") == 3
    assert taken(ledger, "Ben", max=2) == ["one", "three"]
    assert taken(ledger, "Ben") == ["four"]
    assert ledger.receipts.beyond("Ben") == set()
    assert waiting_count(ledger, "Ben") == 0


def test_what_was_handed_over_and_not_seen_is_offered_again(ledger: Ledger, room: Room) -> None:
    for n in range(1, 8):
        room.post("Ana", str(n))
    assert taken(ledger, "Ben", max=6) == ["1", "2", "3", "4", "5", "6"]
    ledger.consumer("Ben").acknowledge(room, 4)
    with take(ledger, "Ben", again=True) as handover:
        assert [(item.message.body, item.again) for item in handover] == [
            ("5", True),
            ("6", True),
            ("7", False),
        ]
        handover.confirm()
    (receipt,) = ledger.receipts.of_record(room.message(5).id)
    assert receipt.times == 2
    # The newest of them, where there are more than may be given; then what is new waits.
    assert taken(ledger, "Ben", again=True, max=2) == ["6", "7"]
    ledger.consumer("Ben").acknowledge(room)
    assert taken(ledger, "Ben", again=True) == []


def test_what_the_policy_leaves_out_is_not_handed_over(ledger: Ledger, room: Room) -> None:
    for n in range(1, 4):
        room.post("Ana", str(n))
    room.exclude([1, 3])
    assert waiting_counts(ledger, "Ben") == {room.path: 1}
    assert taken(ledger, "Ben") == ["2"]
    room.include([1, 3])
    # Their turn has come and gone.
    assert taken(ledger, "Ben") == []
    room.post("Ana", "4")
    assert taken(ledger, "Ben") == ["4"]
    room.exclude([4])
    assert taken(ledger, "Ben", again=True) == ["2"]


def test_what_waits_in_an_archived_room_waits_until_it_is_back(ledger: Ledger, room: Room) -> None:
    other = ledger.create_room("Other", members=["Ben"])
    room.post("Ana", "archived")
    ledger.archive_room(room)
    other.post("Ana", "later")
    assert taken(ledger, "Ben") == ["later"]
    assert taken(ledger, "Ben") == []
    ledger.restore_room("review")
    assert taken(ledger, "Ben") == ["archived"]


def test_a_copy_that_was_placed_waits_as_what_it_is(ledger: Ledger, room: Room) -> None:
    target = ledger.create_room("Target", members=["Cleo"])
    room.post("Ana", "worth keeping")
    room.place([1], target, reason="for the record")
    assert taken(ledger, "Ben") == ["worth keeping"]
    assert taken(ledger, "Cleo") == ["worth keeping"]


def test_an_age_stands_before_what_has_waited(
    ledger: Ledger, room: Room, monkeypatch: pytest.MonkeyPatch
) -> None:
    room.post("Ana", "hello")

    class Later(datetime):
        @classmethod
        def now(cls, tz: Any = None) -> datetime:
            return datetime.now(tz) + timedelta(hours=2, minutes=5)

    monkeypatch.setattr(queuewalk, "datetime", Later)
    (item,) = peek(ledger, "Ben")
    assert item.prefix == "[2 h old] "
    assert 7_500 <= item.age_seconds < 8_000


def test_the_settings_say_how_many_and_what_is_old(ledger: Ledger, room: Room) -> None:
    for n in range(4):
        room.post("Ana", str(n))
    ledger.set_setting("max_deliver_per_flush", 3)
    assert taken(ledger, "Ben") == ["0", "1", "2"]


def test_discarding_leaves_receipts_history_and_other_rooms(ledger: Ledger, room: Room) -> None:
    other = ledger.create_room("Other", members=["Ben"])
    given = room.post("Ana", "given")
    assert taken(ledger, "Ben") == ["given"]
    room.post("Ana", "one")
    room.post("Cleo", "two", to=["Ben"])
    other.post("Ana", "elsewhere")
    assert discard(ledger, "Ben", room) == 2
    assert discard(ledger, "Ben", room) == 0
    assert taken(ledger, "Ben") == ["elsewhere"]
    assert len(ledger.receipts.of_record(given.id)) == 1
    assert len(room.messages()) == 3
    room.post("Ana", "three")
    assert taken(ledger, "Ben") == ["three"]


@pytest.mark.broken_on_purpose
def test_damaged_receipts_stop_the_inbox_and_change_nothing(ledger: Ledger, room: Room) -> None:
    room.post("Ana", "hello")
    assert taken(ledger, "Ben") == ["hello"]
    ledger.receipts.close()
    ledger.layout.receipts.write_bytes(b"")
    for call in (taken, looked, waiting_count, discard):
        with pytest.raises(Corrupt, match="receipts"):
            call(ledger, "Ben", **({"room": room} if call is discard else {}))


def test_the_index_may_be_deleted_at_any_time(ledger: Ledger, room: Room) -> None:
    for n in range(3):
        room.post("Ana", str(n))
    assert taken(ledger, "Ben", max=1) == ["0"]
    ledger.index.close()
    ledger.layout.index_db.unlink()
    assert taken(ledger, "Ben", max=1) == ["1"]
    ledger.index.rebuild()
    assert taken(ledger, "Ben") == ["2"]


@pytest.mark.parametrize("file", ["no file", "a file that is up to date", "a file that lags"])
def test_a_reader_of_the_ledger_hands_over_too(
    ledger: Ledger, room: Room, file: Literal["no file", "a file that lags"]
) -> None:
    room.post("Ana", "one")
    if file == "no file":
        ledger.index.close()
        ledger.layout.index_db.unlink(missing_ok=True)
    else:
        ledger.index.follow()
    if file == "a file that lags":
        room.add_member("Cleo")
        ledger.create_room("New", members=["Ben"]).post("Ana", "new")
    room.post("Ana", "two")
    room.post("Ana", "three", to=["Dan"])
    with Ledger.open(ledger.root, read_only=True) as reader:
        extra = ["new"] if file == "a file that lags" else []
        assert taken(reader, "Ben") == ["one", *extra, "two", "three"]
        assert taken(reader, "Dan") == ["three"]
        assert taken(reader, "Cleo") == (["two", "three"] if extra else [])
        room.post("Ana", "four")
        assert taken(reader, "Ben") == ["four"]
        assert waiting_count(reader, "Ben") == 0
    assert taken(ledger, "Ben") == []


def test_a_file_that_others_bring_up_meanwhile_gives_nothing_twice(
    ledger: Ledger, room: Room
) -> None:
    """A reader knows new records from the journal, and finds them in the file below as well."""
    room.post("Ana", "one")
    ledger.index.follow()
    with Ledger.open(ledger.root, read_only=True) as reader:
        assert looked(reader, "Ben") == ["one"]
        room.post("Ana", "two", to=["Ben", "Dan"])
        assert looked(reader, "Ben") == ["one", "two"]
        ledger.index.follow()
        assert looked(reader, "Ben") == ["one", "two"]
        assert looked(reader, "Dan") == ["two"]
        assert (waiting_count(reader, "Ben"), waiting_count(reader, "Dan")) == (2, 1)


def test_a_renamed_agent_gets_what_came_to_its_old_name(
    ledger: Ledger, room: Room, monkeypatch: pytest.MonkeyPatch
) -> None:
    room.post("Ana", "to the old name", to=["Old"])
    room.post("Ana", "to the new name", to=["New"])
    monkeypatch.setattr(
        "agent_chatroom_ledger.presence.former_names",
        lambda _, name: ("Old",) if name == "New" else (),
    )
    assert is_waiting(ledger, "New", ledger.create_room("Empty")) == (False, None)
    with take(ledger, "New", max=1) as handover:
        assert [(item.message.body, item.name) for item in handover] == [("to the old name", "Old")]
        assert handover.more
        assert handover.waiting() == 1
        handover.confirm()
    assert [receipt.name for receipt in ledger.receipts.of_record(room.message(1).id)] == ["Old"]
    with take(ledger, "Old"):
        # The old name's own door comes first.
        assert taken(ledger, "New", lock_seconds=1) == ["to the new name"]


@pytest.mark.broken_on_purpose  # a commit by hand adds what only a merge may
def test_of_one_id_from_two_origins_the_earlier_is_handed_over(
    make_ledger: MakeLedger, git: Git
) -> None:
    one = make_ledger("one")
    room = one.create_room("Review", members=["Ben"])
    one.flush()
    git(one.root.parent, "clone", "-q", str(one.root), "two")
    with Ledger.open(one.root.parent / "two") as two:
        room.post("Ana", "the same", id="key")
        two.room("review").post("Ana", "the same", id="key")
        two.room("review").post("Ana", "from the other")
        one.flush()
        two.flush()
        theirs, origin = two.root, two.origin
    assert taken(one, "Ben") == ["the same"]
    one.close()
    # As a merge unites them: each origin's log under its own name.
    shutil.copytree(
        theirs / "rooms/review/messages" / origin, one.root / "rooms/review/messages" / origin
    )
    git(one.root, "add", "-A")
    git(one.root, "commit", "-q", "-m", "What another machine wrote")
    with Ledger.open(one.root) as again:
        again.room("review").post("Ana", "afterwards")
        # The clone's clock began a second ahead of the last commit, so the order is open.
        assert sorted(taken(again, "Ben")) == ["afterwards", "from the other"]
        assert taken(again, "Ben") == []
        again.room("review").post("Ana", "at once")
        assert taken(again, "Ben") == ["at once"]
        assert waiting_count(again, "Ben") == 0


class Model:
    """What should wait for everybody, from all messages and all operations, by brute force."""

    def __init__(self, ledger: Ledger, names: tuple[str, ...]) -> None:
        self.ledger = ledger
        self.handed: dict[str, set[tuple[str, int]]] = {name: set() for name in names}

    def waiting(self, name: str) -> Iterator[tuple[str, int]]:
        found = []
        for summary in self.ledger.rooms():
            reader = self.ledger.room(summary.path).reader()
            intervals = attendance(reader.after(log=OPERATIONS))
            found += [
                (message.at, summary.path, message.n)
                for message in reader.after()
                if is_for(message, name, intervals)
                and (summary.path, message.n) not in self.handed[name]
            ]
        return ((path, n) for _, path, n in sorted(found))


@pytest.mark.parametrize("seed", range(8))
def test_it_agrees_with_a_fold_of_everything(make_ledger: MakeLedger, seed: int) -> None:
    random, names = Random(seed), ("Ana", "Ben", "Cleo")
    ledger = make_ledger(commit=random.choice(["sync", "group"]))
    rooms = [ledger.create_room(f"Room {n}", members=["Ana"]) for n in range(3)]
    model = Model(ledger, names)
    for step in range(60):
        room, name = random.choice(rooms), random.choice(names)
        choice = random.random()
        if choice < 0.45:
            to = random.sample(names, random.randint(0, 2))
            kind = random.choice(["message", "message", "status", "event"])
            room.post(name, str(step), to=[] if kind == "event" else to, kind=kind)
        elif choice < 0.55:
            room.add_member(name)
        elif choice < 0.65:
            room.remove_member(name)
        elif choice < 0.7:
            # To the end of the room: nothing of it waits any more.
            gone = {(path, n) for path, n in model.waiting(name) if path == room.path}
            assert discard(ledger, name, room) == len(gone)
            model.handed[name] |= gone
        elif choice < 0.73:
            ledger.index.rebuild()
        else:
            only = room if random.random() < 0.2 else None
            addressed = random.random() < 0.2
            count = random.randint(1, 4)
            expected = [
                (path, n)
                for path, n in model.waiting(name)
                if (only is None or path == only.path)
                and (not addressed or name in ledger.room(path).message(n).to)
            ]
            with take(ledger, name, max=count, room=only, addressed_only=addressed) as handover:
                given = [(item.room.path, item.message.n) for item in handover]
                assert given == expected[:count]
                if random.random() < 0.7:
                    handover.confirm()
                    model.handed[name] |= set(given)
        assert waiting_count(ledger, name) == len(list(model.waiting(name)))
    with Ledger.open(ledger.root, read_only=True) as reader:
        for name in names:
            assert waiting_count(reader, name) == len(list(model.waiting(name)))


def test_a_low_water_mark_does_not_hide_what_comes(ledger: Ledger, room: Room) -> None:
    """An empty call over much traffic of others notes how far it has looked, and no further."""
    other = ledger.create_room("Other")
    for _ in range(3):
        other.post_many([{"author": "Ana", "body": "for nobody"}] * 300)
        assert taken(ledger, "Ben") == []
    low = ledger.receipts.low_water("Ben")
    assert low is not None
    assert datetime.fromtimestamp(low.at / 1e6, UTC) <= other.messages(last=1)[0].at
    room.post("Ana", "hello")
    assert taken(ledger, "Ben") == ["hello"]
