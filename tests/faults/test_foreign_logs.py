"""Logs that a commit by hand puts into a room, under any name and with any bytes.

Every reader shows the same, nothing is forged, and what was really said stays to be read.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from typing import TYPE_CHECKING

import msgspec
import pytest

from agent_chatroom_ledger import Ledger, inbox
from agent_chatroom_ledger.domain.clock import from_micros, to_micros
from agent_chatroom_ledger.exporting import export
from tests.faults.soundness import git
from tests.faults.test_hostile import assert_page

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

ROOM = "rooms/design-review"
SEGMENT = "00/00/00000001.jsonl"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A ledger with one room, one message and one reader."""
    root = tmp_path / "ledger"
    with Ledger.open(root, create=True) as ledger:
        room = ledger.create_room("Design review", members=["Bob"])
        room.post("Ann", "really said", id="one")
    return root


def plant(root: Path, name: str, change: Callable[[bytes], bytes], log: str = "messages") -> None:
    """Commit a log by hand: the room's own first segment, changed, under another name."""
    above = root / ROOM / log
    segment = next(above.iterdir()) / SEGMENT
    place = above / name / SEGMENT
    place.parent.mkdir(parents=True)
    place.write_bytes(change(segment.read_bytes()))
    git(root, "add", "-A")
    git(root, "commit", "-q", "-m", "by hand")


def another(line: bytes) -> bytes:
    """Make of the one message another, with an id of its own."""
    return line.replace(b'"one"', b'"two"').replace(b"really said", b"planted")


def everywhere(root: Path) -> dict[str, list[str]]:
    """Return the bodies that each reader of the present shows."""
    with Ledger.open(root) as ledger:
        room = ledger.room(ROOM)
        room.compile()
        (unread,) = ledger.consumer("Bob").unread()
        found = {
            "messages": [message.body for message in room.messages()],
            "last": [message.body for message in room.messages(last=10)],
            "at": [message.body for message in room.messages(at="HEAD")],
            "unread": [message.body for message in unread.messages()],
            "inbox": [item.message.body for item in inbox.peek(ledger, "Bob")],
            "export": [json.loads(line)["body"] for line in export(room, "jsonl")],
            "md": bodies("".join(export(room, "md"))),
        }
    (page,) = (root / ROOM / "view").rglob("*.md")
    assert_page(page.read_bytes().decode())
    return {**found, "view": bodies(page.read_bytes().decode())}


def bodies(page: str) -> list[str]:
    return [line[2:] for line in page.split("\n") if line.startswith("> ")]


@pytest.mark.broken_on_purpose
@pytest.mark.parametrize(
    "change",
    [
        lambda line: re.sub(rb'"at":"[^"]*"', b'"at":"2000-01-01T00:00:00.000000Z"', line).replace(
            b'"message"', b'"MESSAGE"'
        ),
        lambda line: re.sub(rb'"at":"[^"]*"', '"at":"üüüü"'.encode(), line),
        lambda line: re.sub(rb'"at":"[^"]*"', b'"at":"\xff\xfe"', line),
        lambda line: line.replace(b"really said", b"\xff\xfe"),
        lambda line: another(line).replace(b'"n":1', b'"n":7'),
        lambda line: line.replace(b'"n":1', b'"n":7') + another(line),
    ],
    ids=["kind", "time", "bytes of time", "bytes of body", "number", "number of another"],
)
def test_a_line_that_is_no_record_hides_nothing(
    root: Path, change: Callable[[bytes], bytes]
) -> None:
    plant(root, "evil-0001", change)
    assert set(map(tuple, everywhere(root).values())) == {("really said",)}


@pytest.mark.broken_on_purpose
@pytest.mark.parametrize("at", [b"2999-01-01T00:00:00.000000Z", b"2000-01-01T00:00:00.000000Z"])
def test_of_one_id_from_two_origins_every_reader_shows_the_same(root: Path, at: bytes) -> None:
    """The view has the one on a page already when a merge brings the other."""
    plant(
        root,
        "other-0001",
        lambda line: re.sub(rb'"at":"[^"]*"', b'"at":"' + at + b'"', line).replace(
            b"really said", b"said elsewhere"
        ),
    )
    shown = "said elsewhere" if at.startswith(b"2000") else "really said"
    found = everywhere(root)
    # What came before a member was one is read, and not handed over.
    assert found.pop("inbox") in ([shown], [])
    assert set(map(tuple, found.values())) == {(shown,)}
    with Ledger.open(root) as ledger:
        assert {issue.code for issue in ledger.verify(full=True).issues} == {"foreign_records"}


@pytest.mark.broken_on_purpose
@pytest.mark.parametrize(
    "change",
    [
        lambda line: line.replace(b'"n":1', b'"n":7'),
        lambda line: line.replace(b'"kind":"', b'"kind":"?'),
        lambda line: line.replace(b'"at":"', b'"at":"\xff'),
    ],
    ids=["number", "kind", "bytes of time"],
)
def test_an_operation_that_is_no_record_of_its_place_changes_nothing(
    root: Path, change: Callable[[bytes], bytes]
) -> None:
    """Writer, commit, reader and verify fold alike, and the room goes on."""

    def mallory(line: bytes) -> bytes:
        created = json.loads(line)
        fields = {"id": "x", "kind": "members.add", "data": {"members": ["Mallory"]}}
        fields["at"] = from_micros(to_micros(created["at"]) + 1)
        return change(msgspec.json.encode({**created, **fields}) + b"\n")

    plant(root, "evil-0001", mallory, "operations")
    for member in ("Cleo", "Dora"):
        with Ledger.open(root) as ledger:
            room = ledger.room(ROOM)
            assert "Mallory" not in room.add_member(member, by="Ann")
            room.exclude([1], by="Ann")
            room.include([1], by="Ann")
            room.post("Ann", f"{member} is here")
            room.compile()
    with Ledger.open(root) as ledger:
        room = ledger.room(ROOM)
        assert room.members == ("Bob", "Cleo", "Dora")
        assert room.reader().folded_state() == room.reader().state()
        found = {issue.code for issue in ledger.verify(full=True).issues}
    assert not found & {"state_message_mismatch", "compiled_parse_failed", "view_ahead"}
    assert everywhere(root)["view"] == ["really said", "Cleo is here", "Dora is here"]


@pytest.mark.parametrize("name", ["x\n### #9 Root \x1b[31m<b>", "Evil", "a b", "ü", "con"])
def test_a_name_that_no_origin_has_is_nobodys_log(root: Path, name: str) -> None:
    plant(root, name, another)
    assert set(map(tuple, everywhere(root).values())) == {("really said",)}
    with Ledger.open(root) as ledger:
        ledger.room(ROOM).post("Ann", "more")
        report = ledger.verify()
        assert [(issue.code, issue.path) for issue in report.issues] == [
            ("foreign_log", f"{ROOM}/messages/{name}")
        ]
    for command in (["read", "design-review"], ["inbox", "--as", "Bob"], ["verify"]):
        done = subprocess.run(
            [sys.executable, "-m", "agent_chatroom_ledger.cli", "--root", str(root), *command],
            capture_output=True,
            check=True,
        )
        assert b"\x1b" not in done.stdout
        assert b"### #9 Root" not in [line[:11] for line in done.stdout.split(b"\n")]
    git(root, "rm", "-rq", f"{ROOM}/messages/{name}")
    git(root, "commit", "-q", "-m", "gone again")
    with Ledger.open(root) as ledger:
        assert ledger.room(ROOM).post("Ann", "still").n == 3
        assert ledger.verify(full=True).issues == ()
