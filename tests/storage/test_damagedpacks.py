"""Packs that a power cut has damaged are found, whatever it has taken beside them."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from agent_chatroom_ledger.storage import damagedpacks, journal, packlist, packs, refs
from agent_chatroom_ledger.storage.state import State, read_state, write_state
from agent_chatroom_ledger.storage.writer import Writer
from tests.storage.kills import killed_after
from tests.storage.samples import bodies, git, say, write

if TYPE_CHECKING:
    from collections.abc import Callable

    from agent_chatroom_ledger.storage.layout import Layout

BODIES = ["0", "1", "2", "3", "4"]


@pytest.fixture
def killed(layout: Layout) -> Layout:
    """A ledger whose writer was killed after five messages, two of them before a checkpoint."""
    return killed_after(layout, BODIES)


def fresh(layout: Layout) -> list[str]:
    return [pack.name for pack in packlist.read(layout) if not pack.synced]


def pack(layout: Layout, name: str, suffix: str = "pack") -> Path:
    return layout.packs / f"pack-{name}.{suffix}"


def spoil(path: Path, data: bytes = b"") -> None:
    path.chmod(0o644)
    status = path.stat()
    path.write_bytes(data)
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))


def let_time_pass(layout: Layout) -> None:
    """Let it be later, a while after the checkpoint, and the newest frame be of this moment."""
    now = time.time() + 1_000
    new = fresh(layout)
    for path in layout.packs.iterdir():
        ago = 100 if any(name in path.name for name in new) else 1_000_000
        os.utime(path, (now - ago, now - ago))
    os.utime(journal.generation_path(layout, journal.generations(layout)[-1]), (now, now))


def copy_without_times(layout: Layout) -> None:
    """Let every file be of when a slow copy came to it: packs come before refs."""
    now = time.time()
    for path in layout.packs.iterdir():
        os.utime(path, (now + 100, now + 100))
    os.utime(layout.git / refs.TIP, (now + 200, now + 200))


def run_ahead(layout: Layout) -> None:
    """Let the ledger's time be ahead of the clock, as after a merge with who was."""
    let_time_pass(layout)
    for path in (*layout.packs.iterdir(), layout.git / refs.TIP):
        times = (path.stat().st_mtime - 10_000,) * 2
        os.utime(path, times)


def lose_the_end_of_the_list(layout: Layout) -> None:
    text = layout.own_packs.read_bytes()
    layout.own_packs.write_bytes(text[: text.rindex(b"\n-\n") + 3])
    assert not fresh(layout)


def pack_refs(layout: Layout) -> None:
    """Let git pack our anchor with the other refs: its file is gone."""
    git(layout.root, "pack-refs", "--all")
    assert not (layout.git / refs.TIP).exists()


def reboot(layout: Layout) -> None:
    state = read_state(layout)
    assert state is not None
    write_state(layout, State(state.main, state.frame, "0" * len(state.boot)))


def test_only_packs_that_no_checkpoint_covered_are_looked_at(
    killed: Layout, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A ledger of years has thousands of packs that a power cut cannot touch."""
    looked: list[str] = []
    read = damagedpacks._is_whole
    let_time_pass(killed)
    new = {f"pack-{name}.pack" for name in fresh(killed)}

    def spy(path: str) -> bool:
        looked.append(Path(path).name)
        return read(path)

    monkeypatch.setattr(damagedpacks, "_is_whole", spy)
    assert damagedpacks.set_aside(killed) == []
    assert set(looked) == new
    lose_the_end_of_the_list(killed)
    looked.clear()
    assert damagedpacks.set_aside(killed) == []
    assert set(looked) == new


@pytest.mark.parametrize("data", [b"", bytes(2_000), b"PACK" + bytes(200)])
@pytest.mark.parametrize("suffix", ["pack", "idx"])
def test_damaged_packs_go_to_quarantine_whole(killed: Layout, suffix: str, data: bytes) -> None:
    name = fresh(killed)[-1]
    spoil(pack(killed, name, suffix), data)
    packs.mark(killed, name)
    assert damagedpacks.set_aside(killed) == [name]
    assert not list(killed.packs.glob(f"pack-{name}*"))
    assert len([path for path in killed.quarantine.iterdir() if name in path.name]) == 2
    reboot(killed)
    Writer(killed).close()
    assert bodies(killed) == BODIES


def test_a_pack_of_which_the_cut_took_the_index_or_its_twin_is_damaged(killed: Layout) -> None:
    first, second, *_ = fresh(killed)
    pack(killed, first, "idx").unlink()
    index = pack(killed, second, "idx")
    spoil(index, pack(killed, fresh(killed)[-1], "idx").read_bytes())
    assert damagedpacks.set_aside(killed) == sorted([first, second])
    reboot(killed)


@pytest.mark.parametrize("also", [let_time_pass, pack_refs, copy_without_times, run_ahead])
def test_the_cut_that_damages_packs_may_take_the_end_of_their_list(
    killed: Layout, also: Callable[[Layout], object]
) -> None:
    """The list is not synced, and between two checkpoints of a busy ledger there are seconds."""
    new = fresh(killed)
    also(killed)
    lose_the_end_of_the_list(killed)
    spoil(pack(killed, new[0], "idx"))
    spoil(pack(killed, new[1]), bytes(3_000))
    reboot(killed)
    writer = Writer(killed)
    write(writer, say("after"))
    writer.close()
    assert bodies(killed) == [*BODIES, "after"]
    assert git(killed.root, "status", "--porcelain") == b""
    git(killed.root, "fsck", "--full", "--strict")


def test_without_list_and_anchor_every_pack_is_looked_at(killed: Layout) -> None:
    new = fresh(killed)
    pack_refs(killed)
    for path in (*killed.packs.iterdir(), *killed.journal.iterdir()):
        os.utime(path, (1_600_000_000, 1_600_000_000))
    killed.own_packs.unlink()
    spoil(pack(killed, new[0], "idx"))
    assert damagedpacks.set_aside(killed) == [new[0]]
    reboot(killed)
