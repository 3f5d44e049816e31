"""The journal: what was synced stays, what was torn goes, what is rotten is refused, and told."""

from __future__ import annotations

import errno
import os
from typing import TYPE_CHECKING

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from agent_chatroom_ledger import limits
from agent_chatroom_ledger.domain.frames import Header, encode_frame, encode_header
from agent_chatroom_ledger.errors import Busy, Corrupt
from agent_chatroom_ledger.storage import failpoints, journal
from agent_chatroom_ledger.storage.journal import Follower, Journal
from tests.storage.samples import AT, ORIGIN, empty_place, history

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from agent_chatroom_ledger.domain.frames import Frame
    from agent_chatroom_ledger.storage.layout import Layout

FRAMES = history(40)


def header(generation: int = 1, last_frame: int = 0) -> Header:
    return Header(
        generation=generation,
        base="0" * 40,
        newest_at=AT,
        last_frame=last_frame,
        commit_format=1,
        origin=ORIGIN,
    )


def lines(frames: list[Frame]) -> list[bytes]:
    return [encode_frame(frame) for frame in frames]


@pytest.fixture
def place(tmp_path: Path) -> Layout:
    layout = empty_place(tmp_path / "place")
    layout.journal.mkdir()
    return layout


@pytest.fixture
def own(place: Layout) -> Iterator[Journal]:
    """A journal with a first generation, its lock held."""
    found = Journal(place)
    with found.lock:
        found.start(header(), ())
        yield found
    found.close()


@pytest.fixture
def follower(place: Layout) -> Iterator[Follower]:
    found = Follower(place)
    yield found
    found.close()


def path_of(place: Layout, generation: int = 1) -> Path:
    return journal.generation_path(place, generation)


def append(own: Journal, frames: list[Frame]) -> None:
    own.append(own.size(), b"".join(lines(frames)))


def test_there_may_be_no_journal_yet(tmp_path: Path) -> None:
    place = empty_place(tmp_path / "place")
    assert journal.generations(place) == []
    assert Follower(place).new_frames() == []
    assert list(journal.read_frames(place)) == []
    own = Journal(place)
    assert not own.settle()
    own.close()


def test_frames_come_back_in_order_and_once(place: Layout, own: Journal) -> None:
    append(own, FRAMES[:3])
    append(own, FRAMES[3:4])
    own.sync()
    assert list(journal.read_frames(place)) == FRAMES[:4]
    own.start(header(2, last_frame=2), lines(FRAMES[2:4]))
    append(own, FRAMES[4:6])
    assert list(journal.read_frames(place)) == FRAMES[:6]


WHOLE = encode_header(header()) + b"".join(lines(FRAMES[:6]))


@given(st.integers(0, len(WHOLE)))
def test_a_journal_cut_anywhere_holds_every_whole_frame_before(cut: int) -> None:
    found = journal.scan(WHOLE[:cut], 0, None)
    assert WHOLE[:cut] == WHOLE[: found.end] + found.rest
    assert found.frames == FRAMES[: len(found.frames)]
    following = len(found.frames)
    if found.header is not None and following < 6:
        assert len(found.rest) < len(encode_frame(FRAMES[following]))
    assert not journal.holds_valid_frame(found.rest)


@given(st.integers(0, len(WHOLE) - 1), st.integers(1, 255))
@example(len(encode_header(header())) - 1, 1)
@example(len(encode_header(header())) + len(encode_frame(FRAMES[0])) - 1, 1)
def test_a_changed_byte_is_noticed_and_what_stands_after_it_is_known(spot: int, flip: int) -> None:
    data = bytearray(WHOLE)
    data[spot] ^= flip
    found = journal.scan(bytes(data), 0, None)
    assert found.end <= spot
    assert found.frames == FRAMES[: len(found.frames)]
    last = len(WHOLE) - len(encode_frame(FRAMES[5]))
    # Only damage in the last line, or to the end of the line before it, can be a torn tail.
    if spot < last - 1:
        assert journal.holds_valid_frame(found.rest)
    assert [frame for frame in FRAMES[:6] if frame not in journal.salvage(bytes(data))] == [
        frame for frame in FRAMES[:6] if encode_frame(frame) not in bytes(data)
    ]


def test_a_frame_that_does_not_follow_ends_what_is_valid() -> None:
    data = encode_header(header()) + b"".join(lines([FRAMES[0], FRAMES[2]]))
    found = journal.scan(data, 0, None)
    assert found.frames == [FRAMES[0]]
    assert found.rest == encode_frame(FRAMES[2])


def test_a_torn_tail_goes_to_quarantine_and_off(place: Layout, own: Journal) -> None:
    """It was never acknowledged; what comes next stands where it stood."""
    append(own, FRAMES[:2])
    end = own.size()
    torn = encode_frame(FRAMES[2])[:-20]
    with path_of(place).open("ab") as stream:
        stream.write(torn)
    assert own.append(end, encode_frame(FRAMES[2])) == own.size()
    assert list(journal.read_frames(place)) == FRAMES[:3]
    (kept,) = place.quarantine.iterdir()
    assert kept.read_bytes() == torn


def test_zeros_after_a_power_cut_are_a_torn_tail(place: Layout, own: Journal) -> None:
    append(own, FRAMES[:2])
    end = own.size()
    os.truncate(path_of(place), end + 5000)
    own.append(end, encode_frame(FRAMES[2]))
    assert list(journal.read_frames(place)) == FRAMES[:3]


def test_damage_before_valid_frames_is_rot_and_nothing_is_changed(
    place: Layout, own: Journal
) -> None:
    append(own, FRAMES[:4])
    data = bytearray(path_of(place).read_bytes())
    start = data.index(encode_frame(FRAMES[1]))
    data[start + 30] ^= 1
    path_of(place).write_bytes(data)
    with pytest.raises(Corrupt) as caught:
        own.append(start, encode_frame(FRAMES[1]))
    assert caught.value.code == "journal_rot"
    assert caught.value.fields["offset"] == start
    assert path_of(place).read_bytes() == data
    assert list(journal.read_frames(place)) == FRAMES[:1]
    assert journal.salvage(bytes(data)) == [FRAMES[0], FRAMES[2], FRAMES[3]]


@pytest.mark.parametrize("point", ["files.write", "journal.append", "journal.appended"])
def test_all_of_an_append_or_nothing(place: Layout, own: Journal, point: str) -> None:
    append(own, FRAMES[:1])
    before = path_of(place).read_bytes()

    def full(_: str) -> None:
        raise OSError(errno.ENOSPC, "full")

    failpoints.arm(point, full)
    with pytest.raises(OSError, match="full"):
        append(own, FRAMES[1:4])
    failpoints.disarm()
    assert path_of(place).read_bytes() == before
    append(own, FRAMES[1:4])
    assert list(journal.read_frames(place)) == FRAMES[:4]


def test_what_an_interrupted_append_has_shown_stays(place: Layout, own: Journal) -> None:
    """A committer reads without the lock, and commits what is whole."""
    data, start = b"".join(lines(FRAMES[:2])), own.size()

    def interrupt(_: str) -> None:
        os.pwrite(own._descriptor, data[:-10], start)
        raise KeyboardInterrupt

    failpoints.arm("files.write", interrupt)
    with pytest.raises(KeyboardInterrupt):
        append(own, FRAMES[:2])
    failpoints.disarm()
    assert list(journal.read_frames(place)) == FRAMES[:1]
    append(own, FRAMES[1:2])
    assert list(journal.read_frames(place)) == FRAMES[:2]


@pytest.mark.parametrize("number", [errno.EOPNOTSUPP, errno.EINVAL])
def test_a_file_system_that_promises_no_room_is_as_good(
    place: Layout, own: Journal, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    def unknown(*_: object) -> None:
        raise OSError(number, "unknown")

    monkeypatch.setattr(os, "posix_fallocate", unknown)
    append(own, FRAMES[:3])
    assert list(journal.read_frames(place)) == FRAMES[:3]


def test_no_part_of_a_large_append_is_seen_when_the_disk_is_full(
    place: Layout, own: Journal, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Room for all is asked for first, since committers read without the lock."""

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "full")

    monkeypatch.setattr(os, "posix_fallocate", full)
    written: list[str] = []
    failpoints.arm("files.write", written.append)
    with pytest.raises(OSError, match="full"):
        append(own, FRAMES[:3])
    assert not written
    assert path_of(place).read_bytes() == encode_header(header())


def test_after_a_failed_sync_a_generation_takes_no_more_frames(place: Layout, own: Journal) -> None:
    """The system may have dropped its pages, and would say that all is well the next time."""
    append(own, FRAMES[:1])

    def broken(_: str) -> None:
        raise OSError(errno.EIO, "broken")

    failpoints.arm("files.sync", broken)
    with pytest.raises(Busy) as caught:
        own.sync()
    assert caught.value.code == "sync_failed"
    failpoints.disarm()
    with pytest.raises(Busy):
        own.sync()
    other = Journal(place)
    other.settle()
    assert own.failed()
    assert other.failed()
    with pytest.raises(Busy):
        other.sync()
    own.start(header(2), lines(FRAMES[:1]))
    for writer in (own, other):
        writer.sync()
        assert not writer.failed()
    assert other.generation == 2
    assert list(journal.read_frames(place)) == FRAMES[:1]
    other.close()


def test_a_failed_sync_is_remembered_where_its_mark_found_no_room(
    own: Journal, monkeypatch: pytest.MonkeyPatch
) -> None:
    append(own, FRAMES[:1])

    def broken(_: int) -> None:
        raise OSError(errno.EIO, "broken")

    monkeypatch.setattr(journal.files, "sync_descriptor", broken)
    monkeypatch.setattr("pathlib.Path.touch", broken)
    with pytest.raises(Busy):
        own.sync()
    assert own.failed()


def test_a_generation_starts_in_one_step(place: Layout, own: Journal) -> None:
    append(own, FRAMES[:2])

    def die(_: str) -> None:
        raise KeyboardInterrupt

    failpoints.arm("journal.rotate_written", die)
    with pytest.raises(KeyboardInterrupt):
        own.start(header(2, last_frame=1), lines(FRAMES[1:2]))
    assert journal.generations(place) == [1]
    failpoints.disarm()
    steps: list[str] = []
    failpoints.observe(steps.append)
    own.start(header(2, last_frame=1), lines(FRAMES[1:2]))
    assert journal.generations(place) == [1, 2]
    assert steps.index("files.sync") < steps.index("journal.rotate_renamed")
    assert steps[-1] == "files.sync_directory"
    assert own.generation == 2


def test_frames_of_an_unreadable_generation_are_numbered_anew(place: Layout, own: Journal) -> None:
    own.restart(header(2, last_frame=7), [FRAMES[1], FRAMES[4]])
    found = journal.scan(path_of(place, 2).read_bytes(), 0, None)
    assert [frame.frame for frame in found.frames] == [8, 9]
    assert [f.records for f in found.frames] == [FRAMES[1].records, FRAMES[4].records]
    assert found.rest == b""


def test_old_generations_stay_as_a_feed_up_to_a_size(
    place: Layout, own: Journal, monkeypatch: pytest.MonkeyPatch
) -> None:
    append(own, FRAMES[:10])
    for generation in range(2, 7):
        own.start(header(generation, last_frame=10), ())
        own.append(own.size(), b"".join(lines(history(40)[10:20])))
    (place.journal / f"{1:016d}.failed").touch()
    size = path_of(place, 6).stat().st_size
    monkeypatch.setattr(limits, "JOURNAL_KEPT_BYTES", size * 3)
    own.trim()
    assert journal.generations(place) == [4, 5, 6]
    assert not list(place.journal.glob("*.failed"))
    monkeypatch.setattr(limits, "JOURNAL_KEPT_BYTES", 0)
    own.trim()
    assert journal.generations(place) == [6]  # the newest stays whatever its size


def test_a_follower_gets_each_frame_once_and_no_torn_one(
    place: Layout, own: Journal, follower: Follower
) -> None:
    assert follower.new_frames() == []
    append(own, FRAMES[:2])
    assert follower.new_frames() == FRAMES[:2]
    assert follower.new_frames() == []
    line = encode_frame(FRAMES[2])
    end = own.size()
    for cut in (1, 10, len(line) - 1):
        own.append(end, line[:cut])
        assert follower.new_frames() == []
    own.append(end, line)
    assert follower.new_frames() == [FRAMES[2]]
    assert follower.position == (1, path_of(place).stat().st_size)
    assert not follower.lost


def test_what_a_generation_carries_over_is_not_given_twice(
    own: Journal, follower: Follower
) -> None:
    append(own, FRAMES[:5])
    assert follower.new_frames() == FRAMES[:5]
    own.start(header(2, last_frame=2), lines(FRAMES[2:5]))
    append(own, FRAMES[5:6])
    assert follower.new_frames() == FRAMES[5:6]
    for generation in range(3, 6):
        own.start(header(generation, last_frame=6), ())
    append(own, FRAMES[6:8])
    assert follower.new_frames() == FRAMES[6:8]
    assert not follower.lost
    assert follower.header == header(5, last_frame=6)


def test_frames_appended_just_before_a_new_generation_are_not_missed(
    own: Journal, follower: Follower
) -> None:
    append(own, FRAMES[:1])
    assert follower.new_frames() == FRAMES[:1]
    append(own, FRAMES[1:3])
    own.start(header(2, last_frame=3), ())
    append(own, FRAMES[3:4])
    assert follower.new_frames() == FRAMES[1:4]
    assert not follower.lost


def test_a_follower_whose_generations_are_gone_says_so_and_goes_on(
    place: Layout, own: Journal, follower: Follower
) -> None:
    append(own, FRAMES[:2])
    assert follower.new_frames() == FRAMES[:2]
    append(own, FRAMES[2:6])
    for generation in (2, 3):
        own.start(header(generation, last_frame=6), ())
    append(own, FRAMES[6:7])
    follower.close()
    for generation in (1, 2):
        path_of(place, generation).unlink()
    assert follower.new_frames() == FRAMES[6:7]
    assert follower.lost


def test_a_header_beyond_what_was_seen_means_that_frames_were_lost(
    place: Layout, own: Journal
) -> None:
    own.start(header(2, last_frame=6), lines(FRAMES[6:8]))
    path_of(place, 1).unlink()
    late = Follower(place, last_frame=3)
    assert late.new_frames() == FRAMES[6:8]
    assert late.lost
    in_time = Follower(place, last_frame=6)
    assert in_time.new_frames() == FRAMES[6:8]
    assert not in_time.lost


def test_a_remembered_place_is_gone_on_from(place: Layout, own: Journal) -> None:
    append(own, FRAMES[:3])
    first = Follower(place)
    first.new_frames()
    append(own, FRAMES[3:5])
    own.start(header(2, last_frame=4), lines(FRAMES[4:5]))
    append(own, FRAMES[5:6])
    again = Follower(place, *first.position, last_frame=first.last_frame)
    assert again.new_frames() == FRAMES[3:6]
    assert not again.lost


def test_the_newest_generation_alone_can_be_followed(place: Layout, own: Journal) -> None:
    append(own, FRAMES[:3])
    own.start(header(2, last_frame=2), lines(FRAMES[2:3]))
    newest = Follower.newest(place)
    assert newest.new_frames() == FRAMES[2:3]
    assert newest.header == header(2, last_frame=2)


def test_foreign_files_beside_the_generations_are_no_matter(place: Layout, own: Journal) -> None:
    append(own, FRAMES[:1])
    for name in ("notes", "1", "0000000000000001.failed2", "000000000000000x"):
        (place.journal / name).write_text("x")
    assert journal.generations(place) == [1]
    assert list(journal.read_frames(place)) == FRAMES[:1]
