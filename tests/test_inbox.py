"""The inbox: each message handed over once, oldest first, and never marked when it was not."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest

from agent_chatroom_ledger import Ledger, queuewalk
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
from tests.bodies import looked, taken
from tests.clientlike import claim

if TYPE_CHECKING:
    from pathlib import Path

    from agent_chatroom_ledger import Room
    from tests.clientlike import Program
    from tests.conftest import MakeLedger


@pytest.fixture(params=["sync", "group"])
def ledger(request: pytest.FixtureRequest, make_ledger: MakeLedger) -> Ledger:
    return make_ledger(commit=request.param)


@pytest.fixture
def room(ledger: Ledger) -> Room:
    return ledger.create_room("Review", members=["Ana", "Ben"])


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


def test_what_was_discarded_while_it_was_handed_over_counts_no_more(
    ledger: Ledger, room: Room
) -> None:
    room.post("Ana", "to all")
    room.post("Ana", "to Ben", to=["Ben"])
    with take(ledger, "Ben", addressed_only=True) as handover:
        assert discard(ledger, "Ben", room) == 2
        handover.confirm()
    assert waiting_count(ledger, "Ben") == 0
    for number in range(1, 3):
        room.post("Ana", str(number))
        assert waiting_count(ledger, "Ben") == len(looked(ledger, "Ben")) == number


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


def test_a_renamed_agent_gets_what_came_to_its_old_name(
    ledger: Ledger, room: Room, core: Path, one: Program
) -> None:
    room.post("Ana", "to the old name", to=["Old"])
    room.post("Ana", "to the new name", to=["New"])
    for name in ("Old", "New"):
        assert claim(ledger, one.client(core), ROOMS_NAME=name).name == name
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
