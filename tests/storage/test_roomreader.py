"""One room read from logs of several origins: order, repeated ids, lines that break the rules."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from agent_chatroom_ledger.domain.projections import policy_json, room_json
from agent_chatroom_ledger.domain.records import Record, encode_record
from agent_chatroom_ledger.domain.segments import segment_path
from agent_chatroom_ledger.errors import Corrupt, NotFound
from agent_chatroom_ledger.storage.roomreader import RoomReader
from agent_chatroom_ledger.storage.source import WorkTree

if TYPE_CHECKING:
    from pathlib import Path

ROOM = "rooms/a"
DATA = {"id": "room-id", "title": "A", "path": ROOM, "folder": "", "slug": "a", "members": ["X"]}


def record(n: int, at: int, record_id: str = "", **fields: Any) -> bytes:
    when = f"2026-11-29T21:27:{at:02d}.000000Z"
    fields = {"author": "Ann", "kind": "message", "body": f"at {at}", **fields}
    return encode_record(Record(n=n, id=record_id or f"id-{at}-{n}", at=when, **fields))


def write(root: Path, log: str, *lines: bytes) -> None:
    path = root / ROOM / log / segment_path(1)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"".join(line + b"\n" for line in lines))


@pytest.fixture
def root(tmp_path: Path) -> Path:
    create = record(1, 0, "create", kind="room.create", body="Created", data=DATA)
    write(tmp_path, "operations/mbp", create)
    write(tmp_path, "messages/mbp", record(1, 1), record(2, 4, "same"), record(3, 6))
    write(tmp_path, "messages/ci", record(1, 2), record(2, 3), record(3, 5, "same"))
    return tmp_path


def reader(root: Path) -> RoomReader:
    return RoomReader(WorkTree(root), None, ROOM)


def refs(messages: Any) -> list[str]:
    return [message.ref for message in messages]


def test_origins_are_merged_in_canonical_order(root: Path) -> None:
    # 3@ci bears the id of message 2, which is earlier: it is folded away.
    order = ["1", "1@ci", "2@ci", "2", "3"]
    assert refs(reader(root).messages()) == order
    assert refs(reader(root).descending()) == order[::-1]
    for count in range(6):
        assert refs(reader(root).messages(last=count)) == order[len(order) - count :]
        assert refs(reader(root).messages(limit=count)) == order[:count]


def test_a_position_is_a_number_for_each_origin(root: Path) -> None:
    found = reader(root)
    assert found.positions() == {"ci": 3, "mbp": 3}
    assert refs(found.messages({"mbp": 2})) == ["1@ci", "2@ci", "3"]
    assert refs(found.messages({"mbp": 3, "ci": 1})) == ["2@ci"]
    assert refs(found.messages({"mbp": 2}, last=1)) == ["3"]
    assert refs(found.newest_of_each()) == ["3@ci", "3"]


def test_the_state_comes_from_projections_and_without_them_from_the_fold(root: Path) -> None:
    state = reader(root).state()
    assert (state.id, state.origin, state.members) == ("room-id", "mbp", ("X",))
    (root / ROOM / "room.json").write_bytes(room_json(state).replace(b'"A"', b'"B"'))
    (root / ROOM / "policy.json").write_bytes(policy_json(state))
    assert reader(root).state().title == "B"
    assert reader(root).folded_state() == state
    (root / ROOM / "room.json").write_bytes(b"broken")
    assert reader(root).state() == state
    newer = room_json(state).replace(b'"format": 1', b'"format": 2')
    (root / ROOM / "room.json").write_bytes(newer)
    with pytest.raises(Corrupt) as caught:
        reader(root).state()
    assert caught.value.code == "newer_format"


def test_a_line_that_breaks_the_rules_is_skipped_and_a_gap_is_not(root: Path) -> None:
    write(
        root,
        "messages/mbp",
        record(1, 1),
        b"no record",
        record(7, 6),
        record(4, 8).replace(b"}", b',"later":{"x":1}}'),
    )
    found = reader(root)
    assert refs(found.messages()) == ["1", "1@ci", "2@ci", "3@ci", "4"]
    assert found.messages(last=1)[0].as_dict()["later"] == {"x": 1}
    assert found.find("mbp", 2) is None
    with pytest.raises(NotFound):
        found.message("mbp", 2)
    with pytest.raises(NotFound):
        found.message("nobody", 1)
    path = root / ROOM / "messages/mbp" / segment_path(1)
    path.rename(path.with_name("00000002.jsonl"))
    with pytest.raises(Corrupt):
        reader(root).messages()


@pytest.mark.parametrize(
    "change",
    [
        (b'"kind":"message"', b'"kind":"MESSAGE"'),
        (b'"n":1', b'"n":9'),
        (b'"at":"2026-11-29T21:27:00.000000Z"', '"at":"2026-11-29T21:27:0é"'.encode()),
        (b'"at":"2026-11-29T21:27:00.000000Z"', b'"at":"2026-11-29T21:27:0\xff"'),
        (b'"at":"2026', b'"at":"0000'),
        (b'"body":"at 0"', b'"body":"\xff"'),
        (b'"body":"at 0"', b'"data":' + b"[" * 100_000),
        (b'"at":', b'"at":7,"at":'),
        (b"}", b""),
    ],
)
def test_what_is_no_record_hides_none_of_the_same_id(
    root: Path, change: tuple[bytes, bytes]
) -> None:
    line = record(1, 0, "same")
    write(root, "messages/evil", line.replace(*change))
    assert line.replace(*change) != line
    found = reader(root)
    assert refs(found.messages()) == ["1", "1@ci", "2@ci", "2", "3"]
    assert refs(found.messages(last=3)) == ["2@ci", "2", "3"]
    assert refs(found.after({"mbp": 1, "ci": 3})) == ["2", "3"]


def test_the_last_of_two_ids_in_a_line_is_its_id(root: Path) -> None:
    twice = record(1, 0, "other").replace(b'"id":"other"', b'"id":"same","id":"other"')
    write(root, "messages/ab", twice)
    write(root, "messages/yz", record(1, 7, "x").replace(b'"id":"x"', b'"id":"x","id":"same"'))
    assert refs(reader(root).messages()) == ["1@ab", "1", "1@ci", "2@ci", "2", "3"]


def test_there_is_no_room_without_an_operation(tmp_path: Path) -> None:
    with pytest.raises(NotFound):
        reader(tmp_path).state()
    assert reader(tmp_path).messages() == []
    assert reader(tmp_path).newest_page() is None
    assert reader(tmp_path).pages() == []


def test_pages_are_in_the_order_of_days_and_numbers(root: Path) -> None:
    names = [
        "2025/12-31.0.md",
        "2026/01-02.².md",
        "2026/01-02.0.md",
        "2026/01-02.2.md",
        "2026/01-02.10.md",
    ]
    for name in names:
        path = root / ROOM / "view" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(name)
    assert reader(root).pages() == names
    assert reader(root).newest_page() == (names[-1], names[-1].encode())
