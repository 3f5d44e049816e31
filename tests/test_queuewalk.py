"""Walking the queue: it agrees with a fold of everything, whatever becomes of the index."""

from __future__ import annotations

import shutil
from datetime import UTC, datetime
from random import Random
from typing import TYPE_CHECKING, Literal

import pytest

from agent_chatroom_ledger import Ledger
from agent_chatroom_ledger.domain.attendance import attendance
from agent_chatroom_ledger.domain.delivery import is_for
from agent_chatroom_ledger.inbox import discard, take, waiting_count
from agent_chatroom_ledger.storage.reading import OPERATIONS
from tests.bodies import looked, taken

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
