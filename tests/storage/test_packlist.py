"""The list of our own packs: order, what is durable, and damage that costs nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from agent_chatroom_ledger.storage import packlist
from agent_chatroom_ledger.storage.packlist import Notes, OwnPack
from tests.storage.samples import empty_place

if TYPE_CHECKING:
    from pathlib import Path

    from agent_chatroom_ledger.storage.layout import Layout


@pytest.fixture
def place(tmp_path: Path) -> Layout:
    return empty_place(tmp_path / "place")


def name(number: int) -> str:
    return f"{number:040x}"


def test_no_list_is_an_empty_one(place: Layout) -> None:
    assert packlist.read(place) == []


def test_what_a_checkpoint_covered_is_durable(place: Layout) -> None:
    packlist.note(place, name(1), 1)
    packlist.note(place, name(2), 30)
    packlist.note_synced(place)
    packlist.note(place, name(3), 2)
    assert packlist.read(place) == [
        OwnPack(name(1), 1, synced=True),
        OwnPack(name(2), 30, synced=True),
        OwnPack(name(3), 2, synced=False),
    ]


def test_a_list_is_written_anew_with_the_durable_ones_first(place: Layout) -> None:
    mixed = [
        OwnPack(name(1), 1, synced=False),
        OwnPack(name(2), 2, synced=True),
        OwnPack(name(3), 3, synced=False),
        OwnPack(name(4), 4, synced=True),
    ]
    packlist.rewrite(place, mixed)
    assert packlist.read(place) == [mixed[1], mixed[3], mixed[0], mixed[2]]
    packlist.rewrite(place, [])
    assert packlist.read(place) == []


def test_notes_go_to_the_list_that_is_there_now(place: Layout) -> None:
    """A merge puts another file in place while somebody has the old one open."""
    notes = Notes(place)
    notes.note(name(1), 1)
    packlist.rewrite(place, [OwnPack(name(9), 9, synced=True)])
    notes.note(name(2), 1)
    place.own_packs.unlink()
    notes.note(name(3), 1)
    notes.close()
    notes.close()
    assert packlist.read(place) == [OwnPack(name(3), 1, synced=False)]


def test_damaged_lines_are_skipped(place: Layout) -> None:
    place.own_packs.write_bytes(b"\0\0\0\n" + name(1).encode() + b" x\n" + b"short 4\n\xff\n")
    packlist.note(place, name(2), 7)
    with place.own_packs.open("ab") as stream:
        stream.write(name(3).encode())  # torn
    assert packlist.read(place) == [OwnPack(name(2), 7, synced=False)]


def test_a_note_is_not_lost_on_half_of_the_one_before(place: Layout) -> None:
    """A full disk takes as much of a line as there is room for, and then there is room again."""
    notes = Notes(place)

    def tear() -> None:
        with place.own_packs.open("ab") as stream:
            stream.write(b"abc")

    tear()
    notes.note(name(1), 1)
    tear()
    packlist.note(place, name(2), 1)
    tear()
    packlist.note_synced(place)
    tear()
    notes.note(name(3), 1)
    notes.close()
    assert packlist.read(place) == [
        OwnPack(name(1), 1, synced=True),
        OwnPack(name(2), 1, synced=True),
        OwnPack(name(3), 1, synced=False),
    ]


def test_a_pack_that_was_stored_twice_is_listed_once_and_is_as_durable_as_the_last(
    place: Layout,
) -> None:
    """A process was killed after it noted a pack; the next one stores the same pack again."""
    packlist.note(place, name(1), 3)
    packlist.note(place, name(2), 1)
    packlist.note_synced(place)
    packlist.note(place, name(1), 3)
    assert packlist.read(place) == [
        OwnPack(name(2), 1, synced=True),
        OwnPack(name(1), 3, synced=False),
    ]
