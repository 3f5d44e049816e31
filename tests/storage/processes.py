"""Other processes of the storage tests: a forked child, and a writer that posts when told."""

from __future__ import annotations

import os
import subprocess
import sys
import traceback
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from agent_chatroom_ledger.storage.layout import Layout

_PROGRAM = """\
import sys; from pathlib import Path
from agent_chatroom_ledger.domain.drafts import Draft
from agent_chatroom_ledger.storage.repository import open_layout
from agent_chatroom_ledger.storage.writer import Writer
from tests.storage.samples import write
writer = Writer(open_layout(Path(sys.argv[1])), commit=sys.argv[2])
print("ready", flush=True)
for line in sys.stdin:
    (stored,) = write(writer, Draft(author="Other", body=line.strip()))
    print(stored.record.n, flush=True)
writer.close()
"""


def in_child(action: Callable[[], object]) -> int:
    """Run a function in a forked child to its end; 0 when it returns, 1 when it raises."""
    child = os.fork()
    if not child:
        status = 1
        try:
            action()
            status = 0
        except BaseException:  # noqa: BLE001 - the parent is told by the status
            traceback.print_exc()
        finally:
            os._exit(status)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


class Silent:
    """A background that does nothing, as one that has died."""

    def wake(self) -> None:
        """Do nothing."""

    def stop(self) -> None:
        """Do nothing."""


class Other:
    """A writer in another process, which posts the lines that it is told."""

    def __init__(self, layout: Layout, mode: str = "sync") -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-c", _PROGRAM, str(layout.root), mode],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert self.answer() == "ready"

    def answer(self) -> str:
        """Return what it printed: the number of the message."""
        assert self.process.stdout is not None
        return self.process.stdout.readline().strip()

    def tell(self, *lines: str) -> None:
        """Let it post, without waiting."""
        assert self.process.stdin is not None
        self.process.stdin.write("".join(f"{line}\n" for line in lines))
        self.process.stdin.flush()

    def end(self) -> None:
        """Let it close its ledger and end."""
        self.process.communicate()
        assert self.process.returncode == 0
