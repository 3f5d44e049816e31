"""Asking Codex about its hooks: a server that does not answer ends, with all that it started."""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING

import psutil

from agent_chatroom_ledger.clients import appserver

if TYPE_CHECKING:
    from pathlib import Path

    import pytest


def test_a_launcher_whose_program_does_not_answer_ends_with_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The launcher that npm puts in place waits for the program, which holds the pipes."""
    program = tmp_path / "codex"
    program.write_text('#!/bin/sh\nsleep 600 &\necho $! > "$STARTED"\nwait\n')
    program.chmod(0o755)
    started = tmp_path / "started"
    monkeypatch.setattr(appserver, "SECONDS_MAX", 0.5)
    environment = {**os.environ, "STARTED": str(started)}
    assert appserver.listed_hooks(str(program), environment, tmp_path) is None
    pid = int(started.read_text())
    deadline = time.monotonic() + 60
    while _runs(pid):
        assert time.monotonic() < deadline
        time.sleep(0.01)


def _runs(pid: int) -> bool:
    try:
        # Nobody may have waited for it yet.
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False
