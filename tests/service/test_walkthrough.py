"""The walkthrough prints what its spec says, offline, and leaves nothing behind."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]
# The walkthrough, in a process in which whoever asks for a connection or a name is stopped.
OFFLINE = """
import runpy, sys
def refuse(event, args):
    if event.startswith(("socket.connect", "socket.getaddrinfo", "urllib.Request")):
        raise RuntimeError(f"the walkthrough is offline: {event}")
sys.addaudithook(refuse)
runpy.run_module("examples.walkthrough", run_name="__main__")
"""


def test_the_walkthrough(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", OFFLINE],
        cwd=REPOSITORY, capture_output=True, text=True, check=True, timeout=120,
        env={**os.environ, "TMPDIR": str(tmp_path)},
    )  # fmt: skip
    assert done.stderr == ""
    assert list(tmp_path.iterdir()) == [], "it leaves nothing behind"
    lines = [line.strip() for line in done.stdout.splitlines()]
    steps = [
        "unread: {'Analyst': 2, 'Reviewer': 2}",
        "unread: {'Analyst': 0, 'Reviewer': 2}",
        "visible: [2], canonical: [1, 2]",
        "visible: [], lens: [2]",
        "visible: [2], unread: {'Analyst': 0, 'Reviewer': 2}",
        "unread: {'Analyst': 0, 'Reviewer': 0}",
        "ok: True, errors: 0, issues: []",
    ]
    assert [line for line in lines if line in steps] == steps
    log = "\n".join(lines[lines.index("The room's git log, newest first:") :])
    assert "#2 Operator: 18 synthetic checks passed." in log
    assert "exclude #1" in log
