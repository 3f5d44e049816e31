"""The present state under the journal's lock: numbers, times, ids and rooms as they are now."""

from __future__ import annotations

import re
import time
from typing import TYPE_CHECKING

import pytest

from agent_chatroom_ledger.domain.clock import from_micros, to_micros
from agent_chatroom_ledger.domain.frames import Frame, Header
from agent_chatroom_ledger.domain.rooms import members_draft
from agent_chatroom_ledger.errors import Conflict, Corrupt, InvalidInput
from agent_chatroom_ledger.limits import NUMBER_MAX
from agent_chatroom_ledger.storage.commits import CommitBuilder
from agent_chatroom_ledger.storage.objects import NO_OBJECT, Objects
from agent_chatroom_ledger.storage.packs import PackBuilder
from agent_chatroom_ledger.storage.present import Present
from tests.storage.samples import (
    AT,
    MESSAGES,
    OPERATIONS,
    ORIGIN,
    ROOM,
    ROOM_ID,
    at,
    created,
    empty_place,
    frame,
    history,
    message,
    put_pack,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from agent_chatroom_ledger.storage.layout import Layout

YEARS = 10 * 365 * 24 * 3600 * 1_000_000


def header(base: str = NO_OBJECT, newest_at: str = AT) -> Header:
    return Header(
        generation=1,
        base=base,
        newest_at=newest_at,
        last_frame=0,
        commit_format=1,
        origin=ORIGIN,
    )


@pytest.fixture
def place(tmp_path: Path) -> Layout:
    return empty_place(tmp_path / "place")


@pytest.fixture
def store(place: Layout) -> Iterator[Objects]:
    found = Objects(place)
    yield found
    found.close()


class Index:
    """Stands for the index: it knows the ids of committed messages, and counts the questions."""

    def __init__(self) -> None:
        self.asked: list[list[str]] = []
        self.mistaken: dict[str, tuple[str, int]] = {}

    def __call__(self, room: str, ids: Iterable[str]) -> dict[str, tuple[str, int]]:
        self.asked.append(list(ids))
        known = {f"id-{n}": (MESSAGES, n) for n in range(1, 6)} if room == ROOM else {}
        known |= self.mistaken
        return {i: known[i] for i in self.asked[-1] if i in known}


@pytest.fixture
def index() -> Index:
    return Index()


@pytest.fixture
def base(place: Layout, store: Objects) -> str:
    """A commit of a room with five messages."""
    builder, pack = CommitBuilder(store, ORIGIN), PackBuilder()
    builder.start(NO_OBJECT)
    for one in history(5):
        builder.add(one, pack)
    put_pack(place, pack)
    return builder.tip


@pytest.fixture
def present(store: Objects, base: str, index: Index) -> Present:
    found = Present(store, ORIGIN, index)
    found.reset(header(base), [frame(7, (MESSAGES, message(6)))])
    found.begin()
    return found


def test_an_empty_ledger_begins_with_one(store: Objects) -> None:
    present = Present(store, ORIGIN, Index())
    present.reset(header(), [])
    present.begin()
    assert present.last_number(MESSAGES) == 0
    assert present.room(ROOM) is None
    assert present.names("rooms") == []
    assert present.find_id(ROOM, "id-1") is None
    assert present.origins(ROOM) == []
    assert present.next_number(MESSAGES) == 1


def test_numbers_go_on_after_commit_and_journal(present: Present) -> None:
    assert present.last_number(MESSAGES) == 6
    assert [present.next_number(MESSAGES) for _ in range(3)] == [7, 8, 9]
    assert present.next_number(OPERATIONS) == 2
    assert present.next_number(f"{ROOM}/messages/other") == 1


def test_a_failed_call_gives_back_what_it_took(present: Present) -> None:
    newest = present.newest_at
    present.next_time()
    for _ in range(3):
        present.next_number(MESSAGES)
    present.next_number(OPERATIONS)
    present.rollback()
    assert present.newest_at == newest
    assert present.last_number(MESSAGES) == 6
    assert present.last_number(OPERATIONS) == 1


def test_a_full_log_is_said_with_its_limit(present: Present) -> None:
    present._numbers[MESSAGES] = NUMBER_MAX
    with pytest.raises(InvalidInput) as caught:
        present.next_number(MESSAGES)
    assert caught.value.fields["limit"] == NUMBER_MAX


def test_times_never_repeat_and_never_run_back(present: Present) -> None:
    times = [present.next_time() for _ in range(500)]
    assert times == sorted(set(times))
    ahead = from_micros(time.time_ns() // 1000 + 3600 * 1_000_000)
    present.take(Frame(frame=8, at=ahead))
    assert to_micros(present.next_time()) == to_micros(ahead) + 1


def test_a_ledger_more_than_a_day_ahead_of_this_clock_is_refused(present: Present) -> None:
    """The other way round this machine's time would bind all others."""
    ahead = from_micros(time.time_ns() // 1000 + YEARS)
    present.note(MESSAGES, message(7, at=ahead), b"{}")
    with pytest.raises(Conflict) as caught:
        present.next_time()
    assert caught.value.code == "clock_behind"
    assert caught.value.fields["newest_at"] == ahead


def test_a_new_generation_keeps_the_time(present: Present) -> None:
    present.next_time()
    newest = present.newest_at
    present.reset(header(newest_at=AT), [])
    assert present.newest_at == newest


def test_ids_are_of_the_time_and_differ(present: Present) -> None:
    ids = [present.new_id() for _ in range(50)]
    assert len(set(ids)) == 50
    assert all(re.fullmatch(r"[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[0-9a-f-]{17}", i) for i in ids)


def test_records_are_read_from_the_journal_and_from_the_commit(present: Present) -> None:
    assert present.record(MESSAGES, 6) == message(6)
    assert present.record(MESSAGES, 3) == message(3)
    assert present.record(MESSAGES, 7) is None
    assert (present.line(MESSAGES, 2) or b"").startswith(b'{"n":2,')
    assert (present.line(MESSAGES, 6) or b"").startswith(b'{"n":6,')


def test_an_id_is_found_wherever_it_stands(present: Present, index: Index) -> None:
    assert present.find_id(ROOM, "id-6") == (MESSAGES, message(6))
    assert index.asked == []  # the journal knows it
    assert present.find_id(ROOM, "id-2") == (MESSAGES, message(2))
    assert present.find_id(ROOM, "new") is None
    assert present.find_id("rooms/none", "id-2") is None
    assert index.asked == [["id-2"], ["new"]]


def test_many_ids_are_asked_for_at_once_and_once(present: Present, index: Index) -> None:
    ids = [f"id-{n}" for n in range(1, 10)]
    present.look_up(ROOM, ids)
    found = [present.find_id(ROOM, i) for i in ids]
    assert [hit[1].n if hit else None for hit in found] == [1, 2, 3, 4, 5, 6, None, None, None]
    assert index.asked == [[i for i in ids if i != "id-6"]]
    present.begin()  # another call, for which others may have written
    present.find_id(ROOM, "id-9")
    assert len(index.asked) == 2


def test_ids_in_use_are_those_of_records(present: Present, index: Index) -> None:
    """What the index takes for another's id, since their fingerprints agree, is not in use."""
    index.mistaken = {"like 3": (MESSAGES, 3), "like none": (MESSAGES, 900)}
    ids = ["id-6", "id-2", "like 3", "id-5", "new", "like none"]
    assert present.ids_in_use(ROOM, ids) == {"id-2", "id-5", "id-6"}
    assert index.asked == [ids[1:]]


def test_a_room_is_the_fold_of_commit_and_journal(present: Present) -> None:
    state = present.room(ROOM)
    assert state is not None
    assert (state.id, state.members, state.origin) == (ROOM_ID, ("Analyst",), ORIGIN)
    from agent_chatroom_ledger.domain.records import record_of

    draft = members_draft(["Critic"], add=True, by="Ledger")
    joined = record_of(draft, 2, at(900), "op-2")
    present.take(frame(8, (OPERATIONS, joined)))
    again = present.room(ROOM)
    assert again is not None
    assert again.members == ("Analyst", "Critic")
    assert present.room("rooms/none") is None


def test_a_room_that_only_the_journal_has_is_there(present: Present) -> None:
    path = "rooms/deep/in/new"
    present.take(frame(8, (f"{path}/operations/{ORIGIN}", created(path))))
    state = present.room(path)
    assert state is not None
    assert state.folder == "deep/in"
    assert present.names("rooms") == ["deep/", "design-review/"]
    assert present.names("rooms/deep/in") == ["new/"]
    assert present.origins(path, "operations") == [ORIGIN]
    assert present.origins(ROOM) == [ORIGIN]


@pytest.mark.parametrize("damage", [b"{", b"{}", b"\xff"])
def test_a_damaged_projection_is_folded_again(
    place: Layout, store: Objects, base: str, damage: bytes
) -> None:
    """The logs are the truth; but a newer format is not damage."""
    tips = []
    for data in (damage, b'{"format": 99}'):
        builder, pack = CommitBuilder(store, ORIGIN), PackBuilder()
        builder.start(base)
        builder.editor.write(f"{ROOM}/room.json", data, pack)
        builder.add(frame(7, (MESSAGES, message(6))), pack)
        put_pack(place, pack)
        store.forget()
        tips.append(builder.tip)
    present = Present(store, ORIGIN, Index())
    present.reset(header(tips[0]), [])
    state = present.room(ROOM)
    assert state is not None
    assert state.id == ROOM_ID
    present.reset(header(tips[1]), [])
    with pytest.raises(Corrupt) as caught:
        present.room(ROOM)
    assert caught.value.code == "newer_format"
