"""What people do to a ledger with git: look back, rewind, clean, pack, lock, and delete."""

from __future__ import annotations

import os
import shutil
import subprocess
import threading
import time
from functools import partial
from typing import TYPE_CHECKING

import pytest

from agent_chatroom_ledger import Ledger
from agent_chatroom_ledger.errors import Busy, Conflict, NotFound, NotYetCommitted
from agent_chatroom_ledger.storage import packmerge
from tests.faults import children, workload
from tests.faults.soundness import Acknowledged, Notebook, assert_sound, git, noted

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

MESSAGES = 12


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A closed ledger with one room of a dozen messages, a policy, a view and a cursor."""
    with Ledger.open(tmp_path / "ledger", create=True) as ledger:
        room = ledger.create_room("Design review", members=["Reviewer"])
        for number in range(1, MESSAGES + 1):
            room.post("Analyst", f"message {number}")
        room.exclude("2", by="Reviewer")
        room.compile()
        ledger.consumer("Reviewer").acknowledge(room, through=5)
    return tmp_path / "ledger"


@pytest.fixture
def told(root: Path) -> list[Acknowledged]:
    """What was acknowledged before the fault."""
    with Ledger.open(root, read_only=True) as ledger:
        room = ledger.room("design-review")
        return [Acknowledged.of(room.path, message) for message in room.messages()]


def post(root: Path, body: str) -> Acknowledged:
    with Ledger.open(root) as ledger:
        room = ledger.room("design-review")
        return Acknowledged.of(room.path, room.post("Analyst", body))


def test_nothing_is_written_on_an_old_checkout(root: Path, told: list[Acknowledged]) -> None:
    """Numbers would be given twice; back on main, writing goes on."""
    git(root, "checkout", "-q", "HEAD~5")
    with Ledger.open(root) as ledger, pytest.raises(Conflict) as refused:
        ledger.room("design-review").post("Analyst", "too early")
    assert refused.value.code == "not_on_main"
    git(root, "switch", "-q", "main")
    told.append(post(root, "back again"))
    assert told[-1].n == MESSAGES + 1
    assert_sound(root, told)


def test_an_old_checkout_beside_an_open_ledger_is_noticed(
    root: Path, told: list[Acknowledged]
) -> None:
    """The process that was writing refuses too, and goes on after the return."""
    with Ledger.open(root) as ledger:
        room = ledger.room("design-review")
        told.append(Acknowledged.of(room.path, room.post("Analyst", "before")))
        ledger.flush()
        git(root, "checkout", "-q", "HEAD~5")
        with pytest.raises(Conflict) as refused:
            room.post("Analyst", "too early")
        assert refused.value.code == "not_on_main"
        git(root, "switch", "-q", "main")
        told.append(Acknowledged.of(room.path, room.post("Analyst", "after")))
    assert told[-1].n == MESSAGES + 2
    assert_sound(root, told)


@pytest.mark.parametrize("is_open", [False, True])
def test_a_rewound_main_is_refused_and_reunited(
    root: Path, told: list[Acknowledged], *, is_open: bool
) -> None:
    """After `reset --hard` nothing is written until the repair, which brings everything back."""
    ledger = Ledger.open(root) if is_open else None
    if ledger is not None:
        room = ledger.room("design-review")
        told.append(Acknowledged.of(room.path, room.post("Analyst", "before")))
        ledger.flush()
    git(root, "reset", "-q", "--hard", "HEAD~3")
    if ledger is None:
        with pytest.warns(UserWarning, match="can only be read"):
            ledger = Ledger.open(root)
    with ledger:
        with pytest.raises(Conflict) as refused:
            ledger.room("design-review").post("Analyst", "numbered twice")
        assert refused.value.code == "rewound"
        assert not ledger.verify().ok
        assert ledger.verify(repair=True).ok
    told.append(post(root, "after the repair"))
    assert told[-1].n == len(told)
    assert_sound(root, told)


def test_cleaning_deletes_nothing_of_ours(root: Path, told: list[Acknowledged]) -> None:
    """`git clean -fdx` spares the journal and the cursors, which lie in .git."""
    with Ledger.open(root, commit="group") as ledger:
        room = ledger.room("design-review")
        told.append(Acknowledged.of(room.path, room.post("Analyst", "not yet committed")))
        git(root, "clean", "-q", "-f", "-d", "-x")
        told.append(Acknowledged.of(room.path, room.post("Analyst", "and on")))
    with Ledger.open(root) as ledger:
        room = ledger.room("design-review")
        assert ledger.consumer("Reviewer").position(room) == {room.origin: 5}
    assert_sound(root, told)


@pytest.mark.parametrize(
    "command",
    [
        ("pack-refs", "--all"),
        ("gc", "-q", "--prune=now"),
        ("repack", "-q", "-a", "-d", "-f"),
        ("repack", "-q", "-a", "-d", "--write-midx"),
        ("multi-pack-index", "write"),
        ("commit-graph", "write"),
        ("update-index", "--index-version", "4"),
        ("update-index", "--split-index"),
        ("read-tree", "HEAD"),
    ],
    ids=" ".join,
)
def test_what_git_rearranges_is_read_and_written_on(
    root: Path, told: list[Acknowledged], command: tuple[str, ...]
) -> None:
    """By a process that had the ledger open, and by a fresh one."""
    with Ledger.open(root) as ledger:
        room = ledger.room("design-review")
        told.append(Acknowledged.of(room.path, room.post("Analyst", "before")))
        ledger.flush()
        git(root, *command)
        assert len(room.messages(at="main")) == len(told)
        told += [Acknowledged.of(room.path, room.post("Analyst", f"{n}")) for n in range(3)]
        ledger.flush()
        git(root, *command)
        told.append(Acknowledged.of(room.path, room.post("Analyst", "last")))
    told.append(post(root, "fresh"))
    assert_sound(root, told)


def in_a_loop(root: Path, stop: threading.Event, *commands: list[str]) -> None:
    while not stop.is_set():
        for command in commands:
            # A loop that meets itself or us may be refused; what matters is what it deletes.
            subprocess.run(["git", *command], cwd=root, capture_output=True, check=False)


def test_gc_and_repack_in_a_loop_beside_writers_and_readers(root: Path, tmp_path: Path) -> None:
    """Nothing that main or the journal needs is ever pruned, and readers never fail."""
    notebooks = [tmp_path / f"{place}.notes" for place in range(2)]

    def write(notes: Path) -> None:
        workload.merge_early()
        notebook = Notebook(notes)
        ends = time.monotonic() + 4
        while time.monotonic() < ends:
            with Ledger.open(root) as ledger:
                room = ledger.room("design-review")
                for number in range(30):
                    notebook.note(room.path, room.post("Writer", f"{number}"))

    def read() -> None:
        ends = time.monotonic() + 4
        last = 0
        with Ledger.open(root, read_only=True) as ledger:
            room = ledger.room("design-review")
            while time.monotonic() < ends:
                messages = room.messages()
                assert [m.n for m in messages] == list(range(1, len(messages) + 1))
                assert len(messages) >= last
                last = len(messages)
                assert len(room.messages(at="main")) >= MESSAGES

    running = [children.fork(partial(write, notes)) for notes in notebooks]
    running.append(children.fork(read))
    stop = threading.Event()
    gc = ["gc", "-q", "--prune=now"]
    loop = threading.Thread(target=in_a_loop, args=(root, stop, gc, ["repack", "-q", "-a", "-d"]))
    loop.start()
    ends = [children.end_of(child) for child in running]
    stop.set()
    loop.join()
    assert ends == [0, 0, 0]
    git(root, "gc", "-q", "--prune=now")
    assert_sound(root, noted(*notebooks))


def test_a_pack_that_is_taken_away_while_it_is_merged_stops_nothing(
    root: Path, told: list[Acknowledged], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A merge is given up for a repack that is faster, and no call fails because of it."""
    for name, value in (("SINGLES_MAX", 4), ("GROWN_MAX", 3), ("_GROWN_COMMITS", 4)):
        monkeypatch.setattr(packmerge, name, value)
    count = packmerge.object_count
    repacked = []

    def count_and_lose(path: str) -> int:
        found = count(path)
        git(root, "repack", "-q", "-a", "-d")
        repacked.append(path)
        return found

    monkeypatch.setattr(packmerge, "object_count", count_and_lose)
    with Ledger.open(root) as ledger:
        room = ledger.room("design-review")
        told += [Acknowledged.of(room.path, room.post("A", f"{n}")) for n in range(30)]
        ledger.flush()
    assert repacked, "nothing was ever merged"
    assert_sound(root, told)


@pytest.mark.parametrize("name", ["index.lock", "refs/heads/main.lock"])
def test_our_own_stale_lock_is_taken_over(root: Path, told: list[Acknowledged], name: str) -> None:
    """A lock that a killed process of ours left stops nobody."""
    os.link(root / ".git/ledger/locks/own", root / ".git" / name)
    told.append(post(root, "goes on"))
    assert_sound(root, told)


@pytest.mark.parametrize("name", ["index.lock", "refs/heads/main.lock"])
def test_a_foreign_lock_is_respected_and_nothing_is_lost(
    root: Path, told: list[Acknowledged], name: str
) -> None:
    """The record is safe, the call says so and names the lock; without it all is committed."""
    lock = root / ".git" / name
    lock.write_bytes(b"")
    with Ledger.open(root) as ledger:
        room = ledger.room("design-review")
        with pytest.raises(NotYetCommitted) as waiting:
            room.post("Analyst", "safe")
        assert str(lock) in waiting.value.message
        (record,) = waiting.value.records
        told.append(Acknowledged(room.path, record.n, record.id, record.body))
        assert room.messages(last=1)[0].body == "safe"
        with pytest.raises(Busy):
            ledger.flush()
        assert lock.read_bytes() == b""
        lock.unlink()
        told.append(Acknowledged.of(room.path, room.post("Analyst", "and on")))
    assert_sound(root, told)


def without(*names: str) -> Callable[[Path], None]:
    def delete(root: Path) -> None:
        for name in names:
            path = root / name
            shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)

    return delete


def without_work_tree(root: Path) -> None:
    for path in root.iterdir():
        if path.name != ".git":
            without(path.name)(root)


DELETED = {
    "index": without(".git/index"),
    "view": without("rooms/design-review/view"),
    "sqlite": without(".git/ledger/index.sqlite3"),
    "state": without(".git/ledger/state"),
    "pack list": without(".git/ledger/packs"),
    "room": without("rooms/design-review"),
    "log": without("rooms/design-review/messages"),
    "projections": without("rooms/design-review/room.json", "rooms/design-review/policy.json"),
    "work tree": without_work_tree,
    "locks": without(".git/ledger/locks"),
    "tmp": without(".git/ledger/tmp", ".git/ledger/quarantine"),
    "anchor": without(".git/refs/ledger"),
}


@pytest.mark.parametrize("delete", DELETED.values(), ids=DELETED.keys())
def test_what_was_deleted_is_brought_back_by_the_repair(
    root: Path, told: list[Acknowledged], delete: Callable[[Path], None]
) -> None:
    """Whatever can be derived may go: nothing observable changes (8)."""
    if not (root / ".git/ledger/index.sqlite3").exists():
        with Ledger.open(root) as ledger:
            ledger.rooms()
    delete(root)
    with Ledger.open(root) as ledger:
        assert ledger.verify(repair=True).ok
        room = ledger.room("design-review")
        assert ledger.consumer("Reviewer").position(room) == {room.origin: 5}
        assert room.policy().excludes(room.origin, 2)
    told.append(post(root, "after it"))
    assert told[-1].n == MESSAGES + 1
    assert_sound(root, told)


@pytest.mark.parametrize("name", [name for name in DELETED if name not in {"room", "work tree"}])
def test_writing_goes_on_after_a_deletion_without_a_repair(
    root: Path, told: list[Acknowledged], name: str
) -> None:
    """A write gives the next number and loses nothing; the repair afterwards finds the rest."""
    DELETED[name](root)
    with Ledger.open(root) as ledger:
        room = ledger.room("rooms/design-review")
        told.append(Acknowledged.of(room.path, room.post("Analyst", "after it")))
        assert told[-1].n == MESSAGES + 1
        assert ledger.verify(repair=True).ok
    assert_sound(root, told)


@pytest.mark.parametrize("name", ["room", "work tree"])
def test_a_room_without_its_files_is_not_made_anew(
    root: Path, told: list[Acknowledged], name: str
) -> None:
    """Readers miss it until the repair, but its name and its numbers stay taken."""
    DELETED[name](root)
    with Ledger.open(root) as ledger:
        with pytest.raises(NotFound):
            ledger.room("rooms/design-review")
        assert ledger.create_room("Design review").slug == "design-review_2"
        assert ledger.verify(repair=True).ok
    assert_sound(root, told)


def test_a_deleted_private_directory_costs_only_what_was_private(
    root: Path, told: list[Acknowledged]
) -> None:
    """Main holds everything that was committed; cursors begin anew."""
    shutil.rmtree(root / ".git" / "ledger")
    told.append(post(root, "after it"))
    assert told[-1].n == MESSAGES + 1
    with Ledger.open(root) as ledger:
        room = ledger.room("design-review")
        assert ledger.consumer("Reviewer").position(room) == {}
    assert_sound(root, told)
