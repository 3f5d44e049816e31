"""A full disk in the middle of anything: a clear error, nothing lost, and it works again (9)."""

from __future__ import annotations

import errno
import os
import shutil
import subprocess
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest

from agent_chatroom_ledger import Ledger
from agent_chatroom_ledger.errors import Busy, LedgerError, NotYetCommitted
from agent_chatroom_ledger.storage import failpoints
from tests.faults import children, workload
from tests.faults.life import Life
from tests.faults.soundness import Acknowledged, assert_sound, noted, seen_in

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.faults.workload import Mode

MODES: tuple[Mode, ...] = ("sync", "group")
SMALL_BYTES = 1 << 20


class Disk:
    """Is full at the k-th write of this process, and for some writes more."""

    def __init__(self, first: int, writes: int, bytes_left: int) -> None:
        self._first = first
        self._last = first + writes - 1
        self._left = bytes_left
        self._write, self._pwrite = os.write, os.pwrite
        self.number = 0

    def is_full(self) -> bool:
        return self._first <= self.number <= self._last

    def listen(self) -> None:
        def count(point: str) -> None:
            self.number += point == "files.write"

        def write(descriptor: int, data: memoryview) -> int:
            return self._write(descriptor, self._what_fits(data))

        def pwrite(descriptor: int, data: memoryview, offset: int) -> int:
            return self._pwrite(descriptor, self._what_fits(data), offset)

        failpoints.observe(count)
        os.write, os.pwrite = write, pwrite

    def _what_fits(self, data: memoryview) -> memoryview:
        if not self.is_full():
            return data
        fits, self._left = data[: self._left], 0
        if not fits:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return fits


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("bytes_left", [0, 37])
def test_a_write_that_finds_no_room_is_told_and_made_again(
    tmp_path: Path, mode: Mode, bytes_left: int
) -> None:
    """At the k-th write for every k: journal, pack, ref, projection, index, cursor, all of them.

    With bytes left, the write gets so far and no further.
    """
    step = 3 if (mode, bytes_left) == ("sync", 37) else 9
    refusals = 0
    for first in range(1, 10_000, step):
        folder = tmp_path / f"{first}"
        folder.mkdir()

        def live(first: int = first, folder: Path = folder) -> None:
            workload.without_background()
            workload.merge_early()
            disk = Disk(first, 1, bytes_left)
            disk.listen()
            life = Life(folder / "ledger", folder / "notes", mode)
            life.live()
            (folder / "end").write_text(f"{disk.number} {len(life.refused)}", encoding="ascii")

        assert children.run(live) == 0, f"write {first}"
        assert_sound(folder / "ledger", noted(folder / "notes"))
        with Ledger.open(folder / "ledger") as ledger:
            room = ledger.room("design-review")
            position = ledger.consumer("Reviewer").position(room)
            assert position == {room.origin: seen_in(folder / "notes")}
        writes, refused = map(int, (folder / "end").read_text(encoding="ascii").split())
        shutil.rmtree(folder)
        refusals += bool(refused)
        if writes < first:
            break
    assert refusals > 5


@contextmanager
def small_disk(place: Path) -> Iterator[Path]:
    """Mount a file system with room for a megabyte."""
    place.mkdir()
    options = ["mount", "-t", "tmpfs", "-o", f"size={SMALL_BYTES}", "small", str(place)]
    if os.geteuid() or subprocess.run(options, capture_output=True, check=False).returncode:
        pytest.skip("mounting a small file system takes root, and a system that lets it")
    try:
        yield place
    finally:
        subprocess.run(["umount", "-l", str(place)], check=True)


@pytest.mark.parametrize("mode", MODES)
def test_a_real_disk_fills_up_and_is_enlarged(tmp_path: Path, mode: Mode) -> None:
    """Posts go on until the disk is full, are refused, and go on when it has grown."""
    with small_disk(tmp_path / "small") as disk:
        root, told, refused = disk / "ledger", [], 0
        ledger = Ledger.open(root, create=True, commit=mode)
        room = ledger.create_room("Design review")
        body = os.urandom(6000).hex()
        while refused < 5:
            try:
                told.append(Acknowledged.of(room.path, room.post("Analyst", body)))
            except NotYetCommitted as error:
                refused += 1
                told += [Acknowledged(room.path, r.n, r.id, r.body) for r in error.records]
            except Busy as error:
                refused += 1
                if error.code not in {"disk_full", "sync_failed"}:
                    raise
        assert len(told) > 3
        # What is read does not suffer, and leaving now is possible, if with a word about it.
        assert len(room.messages()) == len(told)
        subprocess.run(["mount", "-o", "remount,size=64m", str(disk)], check=True)
        told.append(Acknowledged.of(room.path, room.post("Analyst", "there is room again")))
        ledger.close()
        children.wait_for_committers(root)
        assert_sound(root, told)


def test_a_ledger_left_on_a_full_disk_is_whole_when_there_is_room(tmp_path: Path) -> None:
    """The process is killed while the disk is full; opening finishes what it began."""
    with small_disk(tmp_path / "small") as disk:
        root, notes = disk / "ledger", tmp_path / "notes"

        def fill() -> None:
            life = Life(root, notes, "sync")
            ledger = Ledger.open(root, create=True)
            room = ledger.create_room("Design review")
            while True:
                try:
                    life.note(room.post("Analyst", os.urandom(3000).hex()))
                except LedgerError:
                    children.die()

        assert children.run(fill) < 0
        subprocess.run(["mount", "-o", "remount,size=64m", str(disk)], check=True)
        assert_sound(root, noted(notes))
