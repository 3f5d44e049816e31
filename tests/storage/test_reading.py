"""Logs are read by segment names, from the work tree and from commits, under the journal."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, NamedTuple

import pytest

from agent_chatroom_ledger.domain.segments import segment_path, starts_new_segment
from agent_chatroom_ledger.errors import Corrupt
from agent_chatroom_ledger.storage import reading
from agent_chatroom_ledger.storage.overlay import Overlay, number_of
from agent_chatroom_ledger.storage.source import WorkTree

if TYPE_CHECKING:
    from pathlib import Path

LOG = "rooms/a/messages/mbp-3f2a"


def line(n: int, body: str = "hello") -> bytes:
    record = {"n": n, "id": f"id-{n}", "at": "2026-11-29T21:27:42.123456Z", "author": "Ann"}
    return json.dumps({**record, "kind": "message", "body": body}, ensure_ascii=False).encode()


def write_log(root: Path, last: int, log: str = LOG, body: str = "hello") -> None:
    first = count = size = 0
    pieces: dict[int, list[bytes]] = {}
    for n in range(1, last + 1):
        if not first or starts_new_segment(first, count, size, n):
            first, count, size = n, 0, 0
        pieces.setdefault(first, []).append(line(n, body))
        count += 1
        size += len(pieces[first][-1]) + 1
    for start, lines in pieces.items():
        path = root / log / segment_path(start)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"".join(one + b"\n" for one in lines))


class Entry(NamedTuple):
    log: str
    record: bytes


class FakeFrame(NamedTuple):
    records: tuple[Entry, ...]


def overlay_of(*numbers: int, log: str = LOG, body: str = "journal") -> Overlay:
    return Overlay(FakeFrame((Entry(log, line(n, body)),)) for n in numbers)


class CountingTree(WorkTree):
    """A work tree that counts what is read."""

    __slots__ = ("reads",)

    def __init__(self, root: Path) -> None:
        super().__init__(root)
        self.reads: list[str] = []

    def read(self, path: str) -> bytes | None:
        self.reads.append(path)
        return super().read(path)


def test_only_what_an_origin_may_be_called_is_an_origin(tmp_path: Path) -> None:
    above = LOG.rpartition("/")[0]
    for name in ("mbp-3f2a", "ci", "Evil", "a b", "x\n### #9 Root \x1b[31m<b>", "é", "con", "-a"):
        write_log(tmp_path, 1, f"{above}/{name}")
    waiting = overlay_of(1, log=f"{above}/late")
    assert reading.origins(WorkTree(tmp_path), "rooms/a", "messages", waiting) == [
        "ci",
        "late",
        "mbp-3f2a",
    ]


def test_names_that_only_look_like_numbers_are_passed_over(tmp_path: Path) -> None:
    write_log(tmp_path, 120)
    for name in ("²", "00/²", "٣", "0", "9" * 200, "00/00/" + "9" * 100):
        (tmp_path / LOG / name).mkdir()
    for name in ("0000000².jsonl", "0000005\u0661.jsonl", "00000000.jsonl", "-0000001.jsonl"):
        (tmp_path / LOG / "00/00" / name).write_bytes(line(1))
    tree = WorkTree(tmp_path)
    assert [n for n, _ in reading.records(tree, LOG)] == list(range(1, 121))
    assert reading.segments(tree, LOG) == [1, 51, 101]
    assert reading.last_number(tree, LOG) == 120
    assert reading.record(tree, LOG, 1) == line(1)
    assert [n for n, _ in reading.last_records(tree, LOG, 2)] == [119, 120]


@pytest.mark.parametrize("last", [0, 1, 49, 50, 51, 999, 1000, 1049, 2500])
def test_every_record_is_read_in_order(tmp_path: Path, last: int) -> None:
    write_log(tmp_path, last)
    tree = WorkTree(tmp_path)
    assert [n for n, _ in reading.records(tree, LOG)] == list(range(1, last + 1))
    assert reading.last_number(tree, LOG) == last
    assert [n for n, _ in reading.records_descending(tree, LOG)] == list(range(last, 0, -1))
    assert all(number_of(text) == n for n, text in reading.records(tree, LOG))


@pytest.mark.parametrize(("after", "through"), [(0, 0), (0, 1), (49, 51), (998, 1001), (700, None)])
def test_a_stretch_is_exactly_what_was_asked_for(
    tmp_path: Path, after: int, through: int | None
) -> None:
    write_log(tmp_path, 1200)
    found = [n for n, _ in reading.records(WorkTree(tmp_path), LOG, after, through)]
    assert found == list(range(after + 1, (1200 if through is None else through) + 1))


def test_one_record_is_found_by_name_alone(tmp_path: Path) -> None:
    write_log(tmp_path, 1200)
    tree = CountingTree(tmp_path)
    for n in (1, 50, 51, 999, 1000, 1001, 1200):
        assert reading.record(tree, LOG, n) == line(n)
    assert len(tree.reads) == 7
    assert reading.record(tree, LOG, 1201) is None
    assert reading.record(tree, LOG, 0) is None
    assert reading.record(tree, "rooms/none/messages/mbp-3f2a", 1) is None


def test_some_records_cost_each_segment_once(tmp_path: Path) -> None:
    write_log(tmp_path, 1200)
    tree = CountingTree(tmp_path)
    wanted = {1, 2, 50, 51, 999, 1000, 1001, 1002, 1200, 1201, 5000}
    found = list(reading.some_records(tree, LOG, wanted))
    assert found == [(n, line(n)) for n in sorted(wanted - {1201, 5000})]
    assert len(tree.reads) == 5
    assert list(reading.some_records(tree, "rooms/none/messages/mbp-3f2a", [0, 1])) == []


def test_the_newest_records_cost_the_last_segments_only(tmp_path: Path) -> None:
    write_log(tmp_path, 1230)
    tree = CountingTree(tmp_path)
    assert [n for n, _ in reading.last_records(tree, LOG, 50)] == list(range(1181, 1231))
    assert len(tree.reads) == 2
    assert reading.last_records(tree, LOG, 0) == []
    assert len(reading.last_records(tree, LOG, 5000)) == 1230


def test_a_write_in_progress_is_not_read(tmp_path: Path) -> None:
    write_log(tmp_path, 3)
    path = tmp_path / LOG / segment_path(1)
    path.write_bytes(path.read_bytes() + b'{"n":4,"id":"half')
    tree = WorkTree(tmp_path)
    assert reading.last_number(tree, LOG) == 3
    assert [n for n, _ in reading.records(tree, LOG)] == [1, 2, 3]
    (tmp_path / LOG / "00/00/00000004.jsonl").write_bytes(b"")
    assert reading.last_number(tree, LOG) == 3


def test_lines_end_at_newline_only(tmp_path: Path) -> None:
    write_log(tmp_path, 3, body="a\u2028b\u2029c\u0085d\x0be\x0cf\x1cg")
    assert len(list(reading.records(WorkTree(tmp_path), LOG))) == 3


def test_the_journal_wins_for_the_numbers_it_holds(tmp_path: Path) -> None:
    write_log(tmp_path, 60)
    path = tmp_path / LOG / segment_path(51)
    path.write_bytes(b"\0" * 10 + b"\n" + b"\0" * 100)
    tree, overlay = WorkTree(tmp_path), overlay_of(*range(51, 64))
    found = list(reading.records(tree, LOG, overlay=overlay))
    assert [n for n, _ in found] == list(range(1, 64))
    assert found[49][1] == line(50)
    assert found[50][1] == line(51, "journal")
    assert reading.last_number(tree, LOG, overlay) == 63
    assert reading.record(tree, LOG, 55, overlay) == line(55, "journal")
    descending = [n for n, _ in reading.records_descending(tree, LOG, overlay)]
    assert descending == list(range(63, 0, -1))
    assert [n for n, _ in reading.records(tree, LOG, 61, 62, overlay)] == [62]
    assert [n for n, _ in reading.records(tree, LOG, 10, 12, overlay)] == [11, 12]


def test_files_may_be_newer_than_the_journal_that_was_read(tmp_path: Path) -> None:
    write_log(tmp_path, 60)
    tree, overlay = WorkTree(tmp_path), overlay_of(10, 11)
    assert [n for n, _ in reading.records(tree, LOG, overlay=overlay)] == list(range(1, 61))
    descending = [n for n, _ in reading.records_descending(tree, LOG, overlay)]
    assert descending == list(range(60, 0, -1))
    assert reading.last_number(tree, LOG, overlay) == 60


def test_a_log_that_only_the_journal_has(tmp_path: Path) -> None:
    overlay = overlay_of(1, 2, 3)
    tree = WorkTree(tmp_path)
    assert [n for n, _ in reading.records(tree, LOG, overlay=overlay)] == [1, 2, 3]
    assert reading.origins(tree, "rooms/a", "messages", overlay) == ["mbp-3f2a"]
    assert reading.rooms(tree, overlay) == ["rooms/a"]
    assert reading.is_room(tree, "rooms/a", overlay)
    assert not reading.is_room(tree, "rooms/b", overlay)


def test_a_missing_number_is_an_error_that_names_it(tmp_path: Path) -> None:
    write_log(tmp_path, 160)
    (tmp_path / LOG / segment_path(51)).unlink()
    tree = WorkTree(tmp_path)
    with pytest.raises(Corrupt, match="Record 51 of"):
        list(reading.records(tree, LOG))
    with pytest.raises(Corrupt, match="Record 100 of"):
        list(reading.records_descending(tree, LOG))
    with pytest.raises(Corrupt, match="Record 161 of"):
        list(reading.records(tree, LOG, after=120, overlay=overlay_of(170)))


def test_rooms_are_found_in_folders_and_crowded_folders(tmp_path: Path) -> None:
    for room in ("rooms/a", "rooms/team/b", "rooms/team/~3f/c"):
        write_log(tmp_path, 1, f"{room}/operations/mbp-3f2a")
    (tmp_path / "rooms/empty").mkdir()
    assert reading.rooms(WorkTree(tmp_path)) == ["rooms/a", "rooms/team/b", "rooms/team/~3f/c"]


def test_a_link_is_never_followed(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    write_log(outside, 3)
    root = tmp_path / "root"
    (root / "rooms").mkdir(parents=True)
    (root / "rooms/a").symlink_to(outside / "rooms/a", target_is_directory=True)
    tree = WorkTree(root)
    assert tree.names("rooms") == []
    assert tree.names("rooms/a/messages") == []
    assert reading.last_number(tree, LOG) == 0
    (root / "rooms/b").mkdir()
    (root / "rooms/b/room.json").symlink_to("/etc/passwd")
    os.mkfifo(root / "rooms/b/policy.json")
    assert tree.read("rooms/b/room.json") is None
    assert tree.read("rooms/b/policy.json") is None
    assert tree.names("rooms/b") == []


@pytest.mark.parametrize("path", ["../secret", "rooms/../../secret", "/etc/passwd", "a\0b", "./x"])
def test_no_name_leads_out_of_the_root(tmp_path: Path, path: str) -> None:
    (tmp_path / "secret").write_text("x")
    root = tmp_path / "root"
    root.mkdir()
    assert WorkTree(root).read(path) is None
    assert WorkTree(root).names(path) == []
