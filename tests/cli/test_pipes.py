"""A signal ends a command that waits, wherever in its code it comes."""

from __future__ import annotations

import signal
import subprocess
import sys

import pytest

from tests.cli.conftest import environment

# The signal comes where Python drops an exception: while an object goes away.
PROGRAM = """
import os, sys, time, weakref
from agent_chatroom_ledger.cli.pipes import end_on_terminate

def die():
    os.kill(os.getpid(), int(sys.argv[1]))
    for _ in range(1000):
        pass

class Ends:
    def __del__(self):
        die()

class Thing:
    pass

class Slow(weakref.ref):
    armed = False
    def __hash__(self):
        if self.armed:
            die()
        return 1

end_on_terminate()
known = weakref.WeakSet()
try:
    if sys.argv[2] == "del":
        Ends()
    else:
        thing = Thing()
        known.data.add(Slow(thing, known._remove))
        Slow.armed = True
        del thing
    time.sleep(60)
except BaseException as error:
    print(type(error).__name__)
"""


@pytest.mark.parametrize(
    ("number", "name"), [(signal.SIGTERM, "Terminated"), (signal.SIGINT, "KeyboardInterrupt")]
)
@pytest.mark.parametrize("where", ["del", "weak"])
def test_a_signal_is_heard_while_an_object_goes_away(
    number: signal.Signals, name: str, where: str
) -> None:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(int(number)), where],
        env=environment(), capture_output=True, text=True, timeout=30, check=False,
    )  # fmt: skip
    assert (done.stdout, done.stderr, done.returncode) == (f"{name}\n", "", 0)
