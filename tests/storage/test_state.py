"""The hint: what was written last is read back, and anything else is no hint at all."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from agent_chatroom_ledger.storage import state
from agent_chatroom_ledger.storage.state import State, StateFile
from tests.storage.samples import empty_place

if TYPE_CHECKING:
    from pathlib import Path

    from agent_chatroom_ledger.storage.layout import Layout

BOOT = "0ad5e0c2-1f2c-4d40-8b4e-7a6f1f0b7b11"


@pytest.fixture
def place(tmp_path: Path) -> Layout:
    return empty_place(tmp_path / "place")


def a_state(frame: int = 1) -> State:
    return State(f"{frame:040x}", frame, BOOT)


def test_what_was_written_last_is_read(place: Layout) -> None:
    assert state.read_state(place) is None
    for frame in (0, 9, 10, 123_456_789_012):
        state.write_state(place, a_state(frame))
        assert state.read_state(place) == a_state(frame)


def test_readers_that_keep_it_open_see_every_write(place: Layout) -> None:
    one, two = StateFile(place), StateFile(place)
    assert two.read() is None
    one.write(a_state(1))
    assert two.read() == a_state(1)
    two.write(a_state(2))
    assert one.read() == a_state(2)
    for keeper in (one, two, one):
        keeper.close()
    assert one.read() == a_state(2)
    one.close()


def test_every_damaged_byte_is_noticed(place: Layout) -> None:
    state.write_state(place, a_state(77))
    whole = place.state.read_bytes()
    for spot in range(len(whole) - 1):
        data = bytearray(whole)
        data[spot] ^= 1
        place.state.write_bytes(data)
        assert state.read_state(place) is None, spot


@pytest.mark.parametrize(
    "data", [b"", b"\0" * 100, b"\n", b"a b c d\n", b"a 1 b\n", b"\xff 1 x y\n"]
)
def test_what_is_no_state_is_none(place: Layout, data: bytes) -> None:
    place.state.write_bytes(data)
    assert state.read_state(place) is None


def test_a_torn_write_is_none(place: Layout) -> None:
    state.write_state(place, a_state(77))
    whole = place.state.read_bytes()
    for length in range(len(whole) - 1):
        place.state.write_bytes(whole[:length])
        assert state.read_state(place) is None


def test_a_forgotten_state_asks_for_the_full_check(place: Layout) -> None:
    state.write_state(place, a_state())
    state.forget_state(place)
    state.forget_state(place)
    assert state.read_state(place) is None
