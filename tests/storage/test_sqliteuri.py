"""URIs of SQLite files: the very file, whatever its path holds, in the mode that was asked for."""

from __future__ import annotations

import os
import sqlite3
from typing import TYPE_CHECKING

import pytest

from agent_chatroom_ledger.storage.sqliteuri import sqlite_uri

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize(
    "name",
    ["plain", "a b", "50%?mode=memory#x", "é\u4e2d", os.fsdecode(b"not \xff utf-8"), "a&b=c"],
)
def test_the_very_file_is_opened(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    for mode in ("mode=rwc", "mode=ro"):
        link = sqlite3.connect(sqlite_uri(path, mode), uri=True)
        if mode == "mode=rwc":
            link.execute("CREATE TABLE found (x)")
        assert link.execute("SELECT name FROM sqlite_master").fetchall() == [("found",)]
        link.close()
    assert [os.fsencode(found) for found in os.listdir(tmp_path)] == [os.fsencode(name)]  # noqa: PTH208 - bytes


def test_a_file_that_is_not_there_is_not_made(tmp_path: Path) -> None:
    with pytest.raises(sqlite3.OperationalError):
        sqlite3.connect(sqlite_uri(tmp_path / "missing", "mode=rw"), uri=True)
    assert not list(tmp_path.iterdir())
