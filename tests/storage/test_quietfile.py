"""A ledger that has not changed since nothing waited need not be asked again."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from agent_chatroom_ledger.limits import NUDGE_FILES_MAX
from agent_chatroom_ledger.storage import nudgefile, quietfile

if TYPE_CHECKING:
    from agent_chatroom_ledger import Ledger
    from tests.conftest import Git


def test_the_same_state_is_remembered(ledger: Ledger) -> None:
    layout = ledger.layout
    stamp = quietfile.stamp(layout, ("facts",))
    assert not quietfile.is_remembered(layout, "1-2.5", stamp)
    quietfile.remember(layout, "1-2.5", stamp, "bob-0.json")
    assert quietfile.is_remembered(layout, "1-2.5", quietfile.stamp(layout, ("facts",)))
    assert not quietfile.is_remembered(layout, "1-2.5", quietfile.stamp(layout, ("other",)))
    assert not quietfile.is_remembered(layout, "3-2.5", stamp)


def test_everything_that_may_bring_a_message_changes_the_stamp(ledger: Ledger, git: Git) -> None:
    layout = ledger.layout
    room = ledger.create_room("Room")
    stamps = [quietfile.stamp(layout, ())]
    room.post("alice", "hello")
    stamps.append(quietfile.stamp(layout, ()))
    ledger.flush()
    layout.config.write_text("auto_join = true\n")
    stamps.append(quietfile.stamp(layout, ()))
    layout.pins.write_text("{}")
    stamps.append(quietfile.stamp(layout, ()))
    (layout.root / "notes.txt").write_text("mine")
    git(layout.root, "add", "notes.txt")
    git(layout.root, "commit", "-q", "-m", "By hand")
    stamps.append(quietfile.stamp(layout, ()))
    assert len(set(stamps)) == len(stamps)


def test_looking_changes_nothing(ledger: Ledger) -> None:
    assert quietfile.stamp(ledger.layout, ()) == quietfile.stamp(ledger.layout, ())


def test_who_works_is_not_woken(ledger: Ledger) -> None:
    layout = ledger.layout
    stamp = quietfile.stamp(layout, ())
    quietfile.remember(layout, "k", stamp, nudgefile.watch_file("bob"))
    nudgefile.claim_watch(layout, "bob", "token")
    assert quietfile.is_remembered(layout, "k", stamp)
    assert not nudgefile.holds_watch(layout, "bob", "token")


@pytest.mark.parametrize("content", [b"", b"\xff\xfe", b"x", b"\n\n", b"stamp\n../../HEAD\n"])
def test_a_damaged_file_says_nothing_and_deletes_nothing(ledger: Ledger, content: bytes) -> None:
    layout = ledger.layout
    quietfile.remember(layout, "k", "stamp", "bob-0.json")
    quietfile._path(layout, "k").write_bytes(content)
    assert not quietfile.is_remembered(layout, "k", "stamp")
    assert (layout.git / "HEAD").exists()


def test_the_oldest_files_go(ledger: Ledger) -> None:
    for number in range(NUDGE_FILES_MAX + 3):
        quietfile.remember(ledger.layout, f"{number}-1.0", "stamp", "bob-0.json")
    folder = ledger.layout.private / "agenthook" / "quiet"
    assert len(list(folder.iterdir())) == NUDGE_FILES_MAX
