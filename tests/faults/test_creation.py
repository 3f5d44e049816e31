"""A ledger comes into being in one step, whoever is killed, and however many make it at once."""

from __future__ import annotations

import shutil
import signal
from typing import TYPE_CHECKING

import pytest

from agent_chatroom_ledger import Ledger
from agent_chatroom_ledger.errors import Busy, LedgerError
from agent_chatroom_ledger.storage import failpoints, repository
from tests.faults import children, workload
from tests.faults.life import full
from tests.faults.soundness import Acknowledged, assert_sound, git

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


def create_until(root: Path, event: int, strike: Callable[[str], None]) -> int:
    """Create a ledger in a child and strike at one of its events."""

    def create() -> None:
        reached = 0

        def at(point: str) -> None:
            nonlocal reached
            reached += 1
            if reached == event:
                strike(point)

        failpoints.observe(at)
        try:
            repository.create(root)
        except Busy:
            failpoints.disarm()
            repository.create(root)

    return children.run(create)


def test_a_kill_at_any_moment_of_creation_leaves_nothing_or_a_ledger(tmp_path: Path) -> None:
    """Creating again finishes it, and no half of the first attempt stays behind."""
    killed = 0
    for event in range(1, 1000):
        root = tmp_path / f"{event}"
        status = create_until(root, event, lambda _: children.die())
        if status == 0:
            break
        assert status == -signal.SIGKILL
        killed += 1
        Ledger.open(root, create=True).close()
        assert_sound(root, [])
        assert sorted(path.name for path in root.iterdir()) == [
            ".git",
            ".gitattributes",
            "ledger.json",
        ]
        shutil.rmtree(root)
    assert killed > 15


def test_a_full_disk_at_any_moment_of_creation_is_told_and_passes(tmp_path: Path) -> None:
    """The error is one of the ledger's; creating again in the same process succeeds."""
    for event in range(1, 1000):
        root = tmp_path / f"{event}"

        def strike(point: str) -> None:
            (tmp_path / "struck").touch()
            full(point)

        (tmp_path / "struck").unlink(missing_ok=True)
        assert create_until(root, event, strike) == 0
        assert_sound(root, [])
        shutil.rmtree(root)
        if not (tmp_path / "struck").exists():
            break
    assert event > 15


def test_several_processes_create_one_ledger(tmp_path: Path) -> None:
    """All of them open the same one, and what they write is all there."""

    def create(place: int) -> None:
        with Ledger.open(tmp_path / "ledger", create=True) as ledger:
            ledger.create_room(f"Room {place}").post("A", "hello")

    running = [children.fork(lambda place=place: create(place)) for place in range(6)]
    assert [children.end_of(child) for child in running] == [0] * 6
    rooms = assert_sound(tmp_path / "ledger", [])
    assert sorted(rooms) == [f"rooms/room-{place}" for place in range(6)]
    first = git(tmp_path / "ledger", "rev-list", "--max-parents=0", "main").split()
    assert len(first) == 1


def test_a_directory_that_is_not_a_ledger_is_refused(tmp_path: Path) -> None:
    """Whatever is there stays as it is: an empty directory, a file, somebody else's repository."""
    (tmp_path / "empty").mkdir()
    (tmp_path / "file").write_text("words", encoding="utf-8")
    (tmp_path / "foreign").mkdir()
    git(tmp_path / "foreign", "init", "-q")
    before = sorted(str(path) for path in tmp_path.rglob("*"))
    for name in ("empty", "file", "foreign", "missing"):
        with pytest.raises(LedgerError) as refused:
            Ledger.open(tmp_path / name)
        assert refused.value.code == "not_found"
        assert str(tmp_path / name) in refused.value.message
    for name in ("file", "foreign"):
        with pytest.raises(LedgerError):
            Ledger.open(tmp_path / name, create=True)
    assert sorted(str(path) for path in tmp_path.rglob("*")) == before


def test_a_kill_at_any_moment_of_a_clones_first_write_is_made_good(
    tmp_path: Path,
) -> None:
    """A fresh clone mints its origin, lays out its directories and begins a journal, or anew."""
    first, killed = tmp_path / "first", 0
    with Ledger.open(first, create=True) as ledger:
        ledger.create_room("Design review").post("A", "from the first")
    for event in range(1, 1000):
        root = tmp_path / f"{event}"
        git(tmp_path, "clone", "-q", str(first), str(root))

        def write(event: int = event, root: Path = root) -> None:
            reached = 0

            def at(_: str) -> None:
                nonlocal reached
                reached += 1
                if reached == event:
                    children.die()

            workload.without_background()
            failpoints.observe(at)
            with Ledger.open(root) as ledger:
                ledger.room("design-review").post("B", "from the clone")

        status = children.run(write)
        with Ledger.open(root) as ledger:
            room = ledger.room("design-review")
            assert ledger.origin
            assert ledger.origin != room.origin
            said = room.post("C", "afterwards")
        assert said.n <= 2
        assert not (root / ".git" / "config.lock").exists()
        assert_sound(root, [Acknowledged.of("rooms/design-review", said)])
        shutil.rmtree(root)
        if status == 0:
            break
        killed += 1
    assert killed > 15
