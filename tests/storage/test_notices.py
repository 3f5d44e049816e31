"""Notices: a write wakes at once, silence lasts as long as was said, and what cannot be told is."""

from __future__ import annotations

import sys
import threading
from typing import TYPE_CHECKING

import pytest

from agent_chatroom_ledger.storage.notices import Notices

if TYPE_CHECKING:
    from pathlib import Path

linux = pytest.mark.skipif(sys.platform != "linux", reason="notices are inotify's")


@linux
@pytest.mark.parametrize("how", ["append", "create", "rename"])
def test_a_write_wakes(tmp_path: Path, how: str) -> None:
    watched, beside = tmp_path / "watched", tmp_path / "beside"
    watched.mkdir()
    (watched / "file").write_bytes(b"")
    beside.write_bytes(b"")
    notices = Notices([watched])
    assert notices.available

    def write() -> None:
        if how == "rename":
            beside.rename(watched / "other")
        else:
            with (watched / ("file" if how == "append" else "new")).open("ab") as file:
                file.write(b"x")

    timer = threading.Timer(0.05, write)
    timer.start()
    # As long as the test may take, and no longer than the write lets it.
    notices.wait(600)
    timer.join()
    notices.close()


@linux
def test_silence_lasts_as_long_as_was_said(tmp_path: Path) -> None:
    notices = Notices([tmp_path])
    notices.wait(0.02)
    notices.wait(0)
    notices.close()
    notices.close()
    assert not notices.available
    notices.wait(60)


def test_a_directory_that_is_not_there_is_not_told_of(tmp_path: Path) -> None:
    assert not Notices([tmp_path / "missing"]).available


def test_other_systems_have_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "elsewhere")
    assert not Notices([tmp_path]).available
