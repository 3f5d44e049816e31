"""The newest generation in memory: what is new is taken once, and told to who derives from it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from agent_chatroom_ledger.domain.frames import encode_frame
from agent_chatroom_ledger.errors import Corrupt
from agent_chatroom_ledger.storage import journal
from agent_chatroom_ledger.storage.intake import Intake
from agent_chatroom_ledger.storage.journal import Journal
from tests.storage.samples import empty_place, history
from tests.storage.test_journal import append, header, lines

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from agent_chatroom_ledger.storage.layout import Layout

FRAMES = history(20)


@pytest.fixture
def place(tmp_path: Path) -> Layout:
    layout = empty_place(tmp_path / "place")
    layout.journal.mkdir()
    return layout


@pytest.fixture
def own(place: Layout) -> Iterator[Journal]:
    found = Journal(place)
    found.start(header(), ())
    yield found
    found.close()


@pytest.fixture
def told() -> list[object]:
    return []


@pytest.fixture
def intake(place: Layout, told: list[object]) -> Iterator[Intake]:
    found = Intake(place)
    found.on_reset = lambda h, frames: told.append((h.generation, list(frames)))
    found.on_take = lambda frame: told.append(frame.frame)
    yield found
    found.close()
    found.close()


def test_without_a_journal_there_is_nothing_to_take_in(intake: Intake) -> None:
    assert not intake.refresh()
    with pytest.raises(Corrupt):
        _ = intake.header
    assert intake.after(0) == []


@pytest.mark.usefixtures("own")
def test_an_empty_generation_has_the_frame_number_before_it(intake: Intake) -> None:
    assert intake.refresh()
    assert intake.last_frame == 0
    assert intake.header == header()
    assert intake.generation == 1


def test_frames_of_others_are_told_one_by_one(
    own: Journal, intake: Intake, told: list[object]
) -> None:
    append(own, FRAMES[:2])
    intake.refresh()
    append(own, FRAMES[2:4])
    intake.refresh()
    intake.refresh()
    assert told == [(1, FRAMES[:2]), 3, 4]
    assert intake.last_frame == 4
    assert intake.frames == FRAMES[:4]
    assert intake.offset == own.size()


def test_a_new_generation_resets_and_only_what_it_carries_stays(
    own: Journal, intake: Intake, told: list[object]
) -> None:
    append(own, FRAMES[:4])
    intake.refresh()
    own.start(header(2, last_frame=3), lines(FRAMES[3:4]))
    own.start(header(3, last_frame=4), ())
    intake.refresh()
    assert told == [(1, FRAMES[:4]), (3, [])]
    assert intake.generation == 3
    assert intake.last_frame == 4
    assert intake.frames == []


def test_what_was_appended_here_is_not_read_again(
    own: Journal, intake: Intake, told: list[object]
) -> None:
    intake.refresh()
    end = own.append(intake.offset, encode_frame(FRAMES[0]))
    intake.accept(FRAMES[:1], end)
    intake.refresh()
    assert told == [(1, [])]
    assert intake.last_frame == 1


def test_a_torn_frame_waits_until_it_is_whole(place: Layout, own: Journal, intake: Intake) -> None:
    append(own, FRAMES[:1])
    line = encode_frame(FRAMES[1])
    path = journal.generation_path(place, 1)
    with path.open("ab") as stream:
        stream.write(line[:9])
        stream.flush()
        intake.refresh()
        assert intake.last_frame == 1
        stream.write(line[9:])
    intake.refresh()
    assert intake.last_frame == 2


def test_a_frame_that_does_not_follow_is_not_taken(
    place: Layout, own: Journal, intake: Intake
) -> None:
    append(own, FRAMES[:1])
    intake.refresh()
    with journal.generation_path(place, 1).open("ab") as stream:
        stream.write(encode_frame(FRAMES[5]))
    intake.refresh()
    assert intake.last_frame == 1


@pytest.mark.usefixtures("own")
def test_a_damaged_header_is_rot(place: Layout, intake: Intake) -> None:
    path = journal.generation_path(place, 1)
    data = bytearray(path.read_bytes())
    data[12] ^= 1
    path.write_bytes(data)
    with pytest.raises(Corrupt) as caught:
        intake.refresh()
    assert caught.value.code == "journal_rot"


@pytest.mark.parametrize("carried", [0, 4])
def test_frames_after_a_number(own: Journal, intake: Intake, carried: int) -> None:
    own.start(header(2, last_frame=carried), lines(FRAMES[carried:10]))
    intake.refresh()
    assert intake.after(0) == FRAMES[carried:10]
    assert intake.after(carried) == FRAMES[carried:10]
    assert intake.after(7) == FRAMES[7:10]
    assert intake.after(10) == []
    assert intake.after(99) == []
