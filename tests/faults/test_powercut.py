"""Simulated power cuts at random moments: what was acknowledged survives them (invariant 3)."""

from __future__ import annotations

import shutil
from functools import partial
from random import Random
from typing import TYPE_CHECKING

import pytest

from agent_chatroom_ledger import Ledger
from agent_chatroom_ledger.errors import Corrupt
from agent_chatroom_ledger.storage import failpoints, files
from tests.faults import children, workload
from tests.faults.life import Life
from tests.faults.powercut import Shadow, remove
from tests.faults.soundness import Notebook, assert_sound, noted, seen_in

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.faults.workload import Mode

SEED = 11
CUTS = 40
MODES: tuple[Mode, ...] = ("sync", "group")


def cut_at_random(
    folder: Path, seed: int, chance: float, act: Callable[[], None], *, durable: bool
) -> int:
    """Let a child act on `folder/ledger`, and build what cuts at some of its steps leave.

    Each cut is a folder with the ledger, and the notes as they were at that moment.
    """

    def run() -> None:
        workload.without_background()
        workload.merge_early()
        workload.few_slots()
        random = Random(seed)
        shadow = Shadow(folder / "ledger")
        if durable:
            shadow.all_is_durable()
        shadow.listen()
        number = 0

        def at(_: str) -> None:
            nonlocal number
            with shadow.guard:
                if random.random() < chance and (folder / "ledger").exists():
                    number += 1
                    cut = folder / f"cut-{number}"
                    cut.mkdir()
                    shadow.cut(cut / "ledger", random)
                    for name in ("notes", "notes.seen"):
                        if (folder / name).exists():
                            shutil.copy(folder / name, cut / name)

        failpoints.observe(at)
        act()

    return children.run(run)


def check(cut: Path) -> None:
    """Reopen after the cut; a ledger that nobody was told of may be missing."""
    told = noted(cut / "notes")
    create = not told
    with Ledger.open(cut / "ledger", create=create) as ledger:
        rooms = ledger.rooms()
        if rooms:
            room = ledger.room(rooms[0].path)
            position = ledger.consumer("Reviewer").position(room).get(room.origin, 0)
            assert position >= seen_in(cut / "notes"), "the cursor went back"
    assert_sound(cut / "ledger", told)


def check_all(folder: Path) -> int:
    """Check every cut, name those that came out badly, and return how many there were."""
    failures, number = [], 0
    for number, cut in enumerate(sorted(folder.glob("cut-*")), 1):  # noqa: B007 - the count is used
        try:
            check(cut)
        except Exception as error:  # noqa: BLE001 - every cut is to be named
            failures.append(f"{cut}: {type(error).__name__}: {str(error)[:600]}")
        else:
            remove(cut)
    assert not failures, f"{len(failures)} of {number}:\n" + "\n".join(failures)
    return number


@pytest.mark.parametrize("mode", MODES)
def test_a_power_cut_loses_nothing_that_was_acknowledged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mode: Mode, *, thorough: bool
) -> None:
    """Whatever of the unsynced bytes and names has survived, in any mixture."""
    life = Life(tmp_path / "ledger", tmp_path / "notes", mode)
    steps = 900 if mode == "sync" else 500
    chance = CUTS / steps * (5 if thorough else 1)
    assert cut_at_random(tmp_path, SEED, chance, life.live, durable=False) == 0
    monkeypatch.setattr(files, "boot_id", lambda: "the boot after the cut")
    assert check_all(tmp_path) > CUTS / 2


def test_a_power_cut_during_the_recovery_from_one_loses_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Recovering is cut short again and again, and the next boot begins it anew."""
    life = Life(tmp_path / "ledger", tmp_path / "notes", "sync")
    assert cut_at_random(tmp_path, SEED + 1, 12 / 900, life.live, durable=False) == 0
    first = sorted(tmp_path.glob("cut-*"))
    again = [cut for cut in first if noted(cut / "notes")]
    boots = iter(range(1000))

    def recover(cut: Path, boot: str) -> None:
        files.boot_id = lambda: boot
        Ledger.open(cut / "ledger").close()

    number = 0
    for cut in again:
        act = partial(recover, cut, f"boot {next(boots)}")
        assert cut_at_random(cut, SEED, 0.06, act, durable=True) == 0
        monkeypatch.setattr(files, "boot_id", lambda: f"boot {next(boots)}")
        number += check_all(cut)
        check(cut)
    for cut in first:
        remove(cut)  # those that nobody was told of, too: this boot is not theirs
    assert number > 10


def test_a_hole_in_what_nobody_had_synced_is_no_damage(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of an append of many pages any may be on the disk; none of it was acknowledged."""

    def act() -> None:
        workload.without_background()
        random, number = Random(SEED), 0
        shadow = Shadow(tmp_path / "ledger")
        shadow.listen()
        notes = Notebook(tmp_path / "notes")
        with Ledger.open(tmp_path / "ledger", create=True) as ledger:
            room = ledger.create_room("Design review")
            notes.note(room.path, room.post("A", "acknowledged"))

            def at(_: str) -> None:
                nonlocal number
                for number in range(24):
                    (tmp_path / f"cut-{number}").mkdir()
                    shutil.copy(notes.path, tmp_path / f"cut-{number}")
                    shadow.cut(tmp_path / f"cut-{number}" / "ledger", random)

            failpoints.arm("writer.appended", at)
            room.post_many([{"author": "A", "body": "many" * 200} for _ in range(24)])

    assert children.run(act) == 0
    monkeypatch.setattr(files, "boot_id", lambda: "the boot after the cut")
    assert check_all(tmp_path) == 24


def test_damage_before_frames_that_main_has_is_not_taken_for_a_hole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Then the disk has rotted: nothing is written until the repair, which loses nothing."""
    root = tmp_path / "ledger"

    def act() -> None:
        workload.without_background()
        notes = Notebook(tmp_path / "notes")
        ledger = Ledger.open(root, create=True)
        room = ledger.create_room("Design review")
        for number in range(6):
            notes.note(room.path, room.post("A", f"message {number}"))
        children.die()

    children.run(act)
    (newest,) = (root / ".git" / "ledger" / "journal").iterdir()
    data = newest.read_bytes()
    place = data.index(b"message 2")
    newest.write_bytes(data[:place] + bytes(20) + data[place + 20 :])
    monkeypatch.setattr(files, "boot_id", lambda: "another boot")
    with pytest.warns(UserWarning, match="damaged"):
        ledger = Ledger.open(root)
    with ledger:
        with pytest.raises(Corrupt):
            ledger.room("design-review").post("A", "not yet")
        assert ledger.verify(repair=True).ok
        ledger.room("design-review").post("A", "now")
    assert len(assert_sound(root, noted(tmp_path / "notes"))["rooms/design-review"]) == 7
