"""A watch: every append, new generation and foreign commit is told, and nothing else."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from agent_chatroom_ledger.storage import foreign, journal
from agent_chatroom_ledger.storage.layout import Layout
from agent_chatroom_ledger.storage.watching import Watch

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

    from agent_chatroom_ledger import Ledger
    from tests.conftest import MakeLedger


def test_an_append_is_told_once(ledger: Ledger) -> None:
    room = ledger.create_room("Review")
    watch = Watch(ledger.layout, 0.01)
    assert not watch.changed()
    room.post("Ana", "hello")
    assert watch.changed()
    ledger.flush()
    watch.changed()
    assert not watch.changed()


def test_generations_that_come_and_go_unseen(make_ledger: MakeLedger) -> None:
    ledger = make_ledger()
    room = ledger.create_room("Review")
    watch = Watch(ledger.layout, 0.01)
    for n in range(3):
        room.post("Ana", str(n))
        ledger.flush()
    assert watch.changed()
    # The one that it saw last is gone, and so is the one after it.
    kept = journal.generations(ledger.layout)
    for generation in kept[:-1]:
        journal.generation_path(ledger.layout, generation).unlink()
    watch._current = f"{ledger.layout.journal}/{kept[0]:016d}"
    watch._next = f"{ledger.layout.journal}/{kept[0] + 1:016d}"
    room.post("Ana", "later")
    assert watch.changed()


def test_a_ledger_without_a_journal_is_watched_until_it_has_one(tmp_path: Path) -> None:
    watch = Watch(Layout(tmp_path), 0.01)
    assert not watch.changed()
    (tmp_path / ".git/ledger/journal").mkdir(parents=True)
    (tmp_path / ".git/ledger/journal/0000000000000001").write_bytes(b"x")
    assert watch.changed()


def test_a_foreign_commit_is_told(ledger: Ledger) -> None:
    ledger.create_room("Review")
    watch = Watch(ledger.layout, 0.01)
    foreign.mark(ledger.layout, "0" * 40, 0)
    assert watch.changed()


def test_waiting_ends_with_the_time_that_was_given(ledger: Ledger) -> None:
    watch = Watch(ledger.layout, 0.01)
    assert not watch.wait(time.monotonic() - 1)
    assert not watch.wait(time.monotonic() + 0.03)
    ledger.create_room("Review")
    assert watch.wait(time.monotonic() + 60)


def test_without_notices_of_the_system_it_looks_often(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.platform", "elsewhere")
    watch = Watch(ledger.layout, 0.01)
    assert not watch.wait(time.monotonic() + 0.05)
    ledger.create_room("Review")
    assert watch.wait(time.monotonic() + 60)
