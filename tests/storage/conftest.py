"""Fixtures of the storage tests: a fresh ledger, and no failpoint left armed."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from agent_chatroom_ledger.storage import failpoints, repository
from agent_chatroom_ledger.storage.objects import Objects
from agent_chatroom_ledger.storage.writer import Writer
from tests.storage.samples import ORIGIN

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from agent_chatroom_ledger.storage.layout import Layout


@pytest.fixture(autouse=True)
def disarmed() -> Iterator[None]:
    """Forget what a test has armed."""
    yield
    failpoints.disarm()


@pytest.fixture
def layout(tmp_path: Path) -> Layout:
    """Give a new ledger without rooms."""
    return repository.create(tmp_path / "ledger", origin=ORIGIN)


@pytest.fixture
def objects(layout: Layout) -> Iterator[Objects]:
    """Give the git objects of the ledger."""
    found = Objects(layout)
    yield found
    found.close()


@pytest.fixture
def writer(layout: Layout) -> Iterator[Writer]:
    """Give a writer in sync mode."""
    made = Writer(layout)
    yield made
    made.close()
