"""Samples for the tests of the write side: records, frames, rooms, and the git binary as judge."""

from __future__ import annotations

import contextlib
import subprocess
from typing import TYPE_CHECKING, Any

import msgspec

from agent_chatroom_ledger.domain.drafts import Draft
from agent_chatroom_ledger.domain.frames import Frame, FrameRecord
from agent_chatroom_ledger.domain.records import (
    Record,
    decode_record,
    encode_record,
    record_of,
)
from agent_chatroom_ledger.domain.rooms import create_draft
from agent_chatroom_ledger.storage import reading
from agent_chatroom_ledger.storage.layout import Layout
from agent_chatroom_ledger.storage.objects import Objects
from agent_chatroom_ledger.storage.source import CommitTree
from agent_chatroom_ledger.storage.writer import Entry, Transaction

if TYPE_CHECKING:
    from pathlib import Path

    from agent_chatroom_ledger.storage.packs import PackBuilder
    from agent_chatroom_ledger.storage.present import Present
    from agent_chatroom_ledger.storage.trees import TreeEditor
    from agent_chatroom_ledger.storage.writer import Stored, Writer

ORIGIN = "mbp-3f2a"
ROOM = "rooms/design-review"
MESSAGES = f"{ROOM}/messages/{ORIGIN}"
OPERATIONS = f"{ROOM}/operations/{ORIGIN}"
AT = "2026-11-29T21:27:42.123456Z"
ROOM_ID = "0199c0de-0000-7000-8000-000000000001"


def git(root: Path, *args: str, given: bytes | str = b"", check: bool = True) -> bytes:
    """Run the git binary and return what it printed."""
    data = given.encode() if isinstance(given, str) else given
    done = subprocess.run(["git", *args], cwd=root, input=data, capture_output=True, check=False)
    told = done.stderr.decode() + done.stdout[-2000:].decode(errors="replace")
    assert not check or done.returncode == 0, f"git {' '.join(args)}: {told}"
    return done.stdout


def empty_place(root: Path) -> Layout:
    """Make a repository without any object, and what the storage layer needs beside it."""
    layout = Layout(root)
    for directory in (layout.packs, layout.git / "refs/heads", layout.tmp, layout.locks):
        directory.mkdir(parents=True)
    (layout.git / "HEAD").write_text("ref: refs/heads/main\n")
    (layout.git / "config").write_text("[core]\n\trepositoryformatversion = 0\n\tbare = false\n")
    (layout.locks / "own").write_text("ours\n")
    return layout


def put_pack(layout: Layout, builder: PackBuilder) -> str:
    """Finish a pack and put it beside git's own; return its name."""
    name, pack, index = builder.finish()
    (layout.packs / f"pack-{name}.pack").write_bytes(pack)
    (layout.packs / f"pack-{name}.idx").write_bytes(index)
    return name


def all_objects(root: Path) -> dict[str, tuple[str, bytes]]:
    """Return id -> (kind, bytes) of every object, as git reads them."""
    listed = git(root, "cat-file", "--batch-all-objects", "--batch")
    found: dict[str, tuple[str, bytes]] = {}
    start = 0
    while start < len(listed):
        end = listed.index(b"\n", start)
        oid, kind, size = listed[start:end].decode().split(" ")
        found[oid] = (kind, listed[end + 1 : end + 1 + int(size)])
        start = end + 2 + int(size)
    return found


def at(n: int) -> str:
    """Return the n-th time of a ledger that gets a record every microsecond."""
    return f"2026-11-29T21:27:42.{n:06d}Z"


def message(n: int, body: str = "", **fields: Any) -> Record:
    """Return message `n`, whose id and time follow from its number."""
    given = {"id": f"id-{n}", "at": at(n), "author": "Analyst", "kind": "message", **fields}
    return Record(n=n, body=body or f"body {n}", **given)


def created(path: str = ROOM, **fields: Any) -> Record:
    """Return the operation that creates a room."""
    draft = create_draft(
        room_id=ROOM_ID, title=path.rpartition("/")[2], path=path, members=["Analyst"], by="Ledger"
    )
    return record_of(draft, **{"n": 1, "at": at(0), "record_id": "op-1", **fields})


def frame(number: int, *entries: tuple[str, Record], **fields: Any) -> Frame:
    """Return the frame of one transaction."""
    records = [FrameRecord(log, msgspec.Raw(encode_record(record))) for log, record in entries]
    return Frame(frame=number, records=tuple(records), **fields)


def history(last: int) -> list[Frame]:
    """Return the frames of a room with messages 1 to `last`, numbered from 1."""
    frames = [frame(1, (OPERATIONS, created()))]
    return frames + [frame(n + 1, (MESSAGES, message(n))) for n in range(1, last + 1)]


def write_room(writer: Writer, path: str = ROOM, room_id: str = ROOM_ID) -> Stored:
    """Create a room through a writer."""

    def build(present: Present) -> list[Transaction]:
        draft = create_draft(room_id=room_id, title=path.rpartition("/")[2], path=path, by="Ledger")
        log = f"{path}/operations/{present.origin}"
        return [Transaction((_entry(present, log, draft),))]

    return writer.transact(build)[0]


def write(writer: Writer, *drafts: Draft, path: str = ROOM) -> tuple[Stored, ...]:
    """Post messages through a writer, each a transaction of its own."""

    def build(present: Present) -> list[Transaction]:
        log = f"{path}/messages/{present.origin}"
        return [Transaction((_entry(present, log, draft),)) for draft in drafts]

    return writer.transact(build)


def _entry(present: Present, log: str, draft: Draft) -> Entry:
    n, time = present.next_number(log), present.next_time()
    return Entry(log, record_of(draft, n, time, draft.id or present.new_id()))


def files_of(source: TreeEditor, directory: str = "") -> dict[str, bytes]:
    """Return every file that an editor shows."""
    found: dict[str, bytes] = {}
    for name in source.names(directory):
        path = f"{directory}/{name}" if directory else name
        if name.endswith("/"):
            found |= files_of(source, path[:-1])
        else:
            data = source.read(path)
            assert data is not None, f"{path} is listed and cannot be read"
            found[path] = data
    return found


def say(body: str, **fields: Any) -> Draft:
    """Return what a message of the Analyst is made of."""
    return Draft(author="Analyst", body=body, **fields)


def bodies(layout: Layout) -> list[str]:
    """Return the bodies of the messages that main has, by their numbers."""
    with contextlib.closing(Objects(layout)) as objects:
        source = CommitTree(objects, git(layout.root, "rev-parse", "main").decode().strip())
        found = [decode_record(line) for _, line in reading.records(source, MESSAGES)]
    assert [record.n for record in found] == list(range(1, len(found) + 1))
    return [record.body for record in found]
