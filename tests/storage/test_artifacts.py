"""Artifacts: durable before the frame that names them, committed with it, and then let go of."""

from __future__ import annotations

import os
from hashlib import sha256
from typing import TYPE_CHECKING

import pytest

from agent_chatroom_ledger import InvalidInput, Ledger
from agent_chatroom_ledger.domain.drafts import Draft
from agent_chatroom_ledger.errors import Corrupt
from agent_chatroom_ledger.storage import artifacts, files
from agent_chatroom_ledger.storage.source import WorkTree
from tests.storage.samples import git, write, write_room

if TYPE_CHECKING:
    from agent_chatroom_ledger.storage.layout import Layout
    from agent_chatroom_ledger.storage.writer import Writer

DATA = b"what is too large for a record\n" * 100


def named(name: str, body: str = "see there") -> Draft:
    return Draft(author="Analyst", body=body, artifacts=(name,))


def test_it_is_committed_with_the_first_record_that_names_it(
    layout: Layout, writer: Writer
) -> None:
    write_room(writer)
    name = artifacts.stage(layout, DATA)
    assert name == sha256(DATA).hexdigest()
    assert artifacts.staged(layout, name) == DATA
    write(writer, named(name), named(name, "again"))
    path = artifacts.artifact_path(name)
    assert git(layout.root, "log", "--format=%s", "--", path).count(b"\n") == 1
    assert git(layout.root, "show", f"HEAD:{path}") == DATA
    writer.flush()
    assert artifacts.staged(layout, name) is None
    assert artifacts.read(layout, WorkTree(layout.root), name) == DATA


def test_a_record_whose_artifact_is_gone_is_not_committed_until_it_is_back(
    layout: Layout, writer: Writer
) -> None:
    write_room(writer)
    name = artifacts.stage(layout, DATA)
    (layout.artifacts / name).unlink()
    with pytest.raises(Corrupt) as refused:
        artifacts.required(layout, name)
    assert refused.value.code == "artifact_missing"
    with pytest.raises(Exception, match="put it back"):
        write(writer, named(name))
    artifacts.stage(layout, DATA)
    writer.flush()
    assert git(layout.root, "show", f"HEAD:{artifacts.artifact_path(name)}") == DATA


def test_what_no_frame_came_to_name_goes_after_an_hour(layout: Layout, writer: Writer) -> None:
    write_room(writer)
    fresh, old = artifacts.stage(layout, b"fresh"), artifacts.stage(layout, b"old")
    long_ago = (layout.artifacts / old).stat().st_mtime - files.TEMPORARY_SECONDS_MAX - 60
    os.utime(layout.artifacts / old, (long_ago, long_ago))
    writer.flush()
    assert artifacts.is_staged(layout, fresh)
    assert not artifacts.is_staged(layout, old)


def test_staging_again_makes_it_young_and_mends_damage(layout: Layout) -> None:
    name = artifacts.stage(layout, DATA)
    os.utime(layout.artifacts / name, (0, 0))
    artifacts.stage(layout, DATA)
    assert (layout.artifacts / name).stat().st_mtime > 0
    (layout.artifacts / name).write_bytes(b"damaged")
    assert artifacts.staged(layout, name) is None
    artifacts.stage(layout, DATA)
    assert artifacts.staged(layout, name) == DATA


@pytest.mark.parametrize("name", ["", "..", "../../config", "A" * 64, "0" * 63])
def test_no_name_leads_out_of_the_directory(layout: Layout, name: str) -> None:
    assert artifacts.staged(layout, name) is None
    assert not artifacts.is_staged(layout, name)
    assert artifacts.committed(WorkTree(layout.root), name) is None


def test_a_message_may_name_one_that_waits_or_is_committed(layout: Layout) -> None:
    with Ledger.open(layout.root) as ledger:
        room = ledger.create_room("Room")
        with pytest.raises(InvalidInput):
            room.post("A", "no", artifacts=["0" * 64])
        name = artifacts.stage(layout, DATA)
        room.post("A", "yes", artifacts=[name])
        ledger.flush()
        room.post("A", "still", artifacts=[name])
        assert [m.artifacts for m in room.messages()] == [(name,), (name,)]


@pytest.mark.broken_on_purpose
def test_verify_names_a_damaged_artifact_and_repair_puts_it_back(
    layout: Layout, writer: Writer
) -> None:
    write_room(writer)
    name = artifacts.stage(layout, DATA)
    write(writer, named(name))
    writer.close()
    path = layout.root / artifacts.artifact_path(name)
    path.write_bytes(b"other")
    git(layout.root, "commit", "-q", "-a", "-m", "by hand")
    with Ledger.open(layout.root) as ledger:
        found = {issue.code for issue in ledger.verify(full=True).issues}
        assert "artifact_missing" in found
        assert ledger.verify(repair=True, full=True).ok
    assert path.read_bytes() == DATA
    assert git(layout.root, "show", f"HEAD:{artifacts.artifact_path(name)}") == DATA
