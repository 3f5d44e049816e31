"""What a benchmark does in a process of its own; prints JSON lines on standard output."""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

from tests.benchmarks.measure import BODY, children_peak_bytes, each, peak_bytes


def logstream(packages: str, folder: str, count: str) -> None:
    """Append events to mempalace's log."""
    # The package takes PYTHONPATH out of sys.path when it is imported; this entry stays.
    sys.path.insert(0, packages)
    from mempalace.logstream import Logstream

    with Logstream(db_path=f"{folder}/logstream.sqlite3") as log:

        def post() -> None:
            log.append_event(
                type="message", stream="review", room="review", from_agent="analyst", body=BODY
            )

        spent = each(int(count), post)
    say({"seconds_each": spent})


def posts(root: str, room: str, author: str, count: str) -> None:
    """Open a ledger, say so, wait for a line, post in sync mode, say how long it took."""
    from agent_chatroom_ledger import Ledger

    with Ledger.open(root) as ledger:
        target = ledger.room(room)
        say({"ready": True})
        sys.stdin.readline()
        spent = each(int(count), lambda: target.post(author, BODY))
        say({"seconds_each": spent})


def import_logs(root: str, *logs: str) -> None:
    """Import channel logs into a new ledger; say the peaks of memory, the committer's added."""
    from agent_chatroom_ledger import Ledger
    from agent_chatroom_ledger.adapters.irc import import_irc

    begin = time.perf_counter()
    # As `rooms import` opens it.
    with Ledger.open(root, create=True, commit="group") as ledger:
        room = ledger.create_room("Channel")
        report = import_irc(ledger, room, [Path(log) for log in logs])
    say(
        {
            "seconds": time.perf_counter() - begin,
            "lines": report.lines,
            "peak_bytes": peak_bytes() + children_peak_bytes(),
        }
    )


def say(found: dict[str, object]) -> None:
    """Print one JSON line at once."""
    print(json.dumps(found), flush=True)  # noqa: T201 - the parent reads it


COMMANDS = {"logstream": logstream, "posts": posts, "import": import_logs}

if __name__ == "__main__":
    COMMANDS[sys.argv[1]](*sys.argv[2:])
