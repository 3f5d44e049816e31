"""The walkthrough prints what its spec says, offline, and leaves nothing behind."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]


def test_the_walkthrough() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "examples.walkthrough"],
        cwd=REPOSITORY, capture_output=True, text=True, check=True, timeout=120,
    )  # fmt: skip
    assert done.stderr == ""
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
