"""Pushes that are taken or refused, and records that no writer makes."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec

from agent_chatroom_ledger import Ledger
from agent_chatroom_ledger.domain.clock import from_datetime
from agent_chatroom_ledger.domain.frames import Frame, FrameRecord
from agent_chatroom_ledger.domain.records import Record, encode_record
from agent_chatroom_ledger.storage import reading, refs
from agent_chatroom_ledger.storage.commits import CommitBuilder
from agent_chatroom_ledger.storage.layout import Layout
from agent_chatroom_ledger.storage.objects import Objects
from agent_chatroom_ledger.storage.packs import PackBuilder
from tests.hooks.conftest import Pair, git


def refused(pair: Pair, code: str, *args: str) -> str:
    """Push, and check that the server names a reason and stays where it is."""
    before = pair.main()
    done = pair.push(*args)
    assert done.returncode != 0
    assert f"rooms: {code}:" in done.stderr, done.stderr
    assert pair.main() == before
    return done.stderr


def taken(pair: Pair, *args: str) -> None:
    done = pair.push(*args)
    assert done.returncode == 0, done.stderr
    assert pair.main() == git(pair.copy, "rev-parse", "main")


def write_records(pair: Pair, *records: dict[str, Any], log: str = "", origin: str = "") -> None:
    """Commit records to a log as the ledger does, but check none of them.

    The log is that of the room's messages unless named; ``{}`` in its name is the ledger's origin.
    """
    layout = Layout(pair.ledger)
    with Ledger.open(pair.ledger) as ledger:
        mine = ledger.origin
    objects = Objects(layout)
    builder = CommitBuilder(objects, origin or mine)
    builder.start(refs.read_main(layout))
    pack = PackBuilder()
    path = (log or "rooms/review/messages/{}").format(mine)
    last = reading.last_number(builder.editor, path)
    for k, fields in enumerate(records, 1):
        at = from_datetime(datetime.now(UTC) + timedelta(seconds=k))
        values = {"n": last + k, "id": f"id-{k}", "at": at, "author": "Analyst", "kind": "message"}
        raw = msgspec.Raw(encode_record(Record(**{**values, **fields})))
        builder.add(Frame(frame=900 + k, records=(FrameRecord(path, raw),)), pack)
    name, data, index = pack.finish()
    directory = pair.copy / ".git" / "objects" / "pack"
    directory.mkdir(exist_ok=True)
    (directory / f"pack-{name}.pack").write_bytes(data)
    (directory / f"pack-{name}.idx").write_bytes(index)
    objects.close()
    git(pair.copy, "reset", "-q", "--hard", builder.tip)
