"""The command line: `rooms`, and the same under its long name `agent-chatroom-ledger`.

Importing this package imports nothing else: a command line is started for every message an agent
posts or reads, so each command pays only for what it uses.
"""

from __future__ import annotations

INTERRUPTED = 130


def main() -> None:
    """Run the command line on the arguments of this process and exit with its status.

    The status is 0 ok, 1 failure, 2 usage, 3 not found, 4 conflict, 5 busy, 6 corrupt, and 130
    after an interrupt. No traceback reaches the user unless `--debug` asks for it.
    """
    import gc
    import os
    import sys

    # Collecting while modules are loaded finds nothing and takes a twentieth of a short command;
    # a command that opens a ledger turns it on again.
    gc.disable()
    try:
        from agent_chatroom_ledger.cli.program import run

        status = run(sys.argv[1:])
    except KeyboardInterrupt:
        status = INTERRUPTED
    # Everything is closed and flushed by now. Taking the interpreter apart module by module would
    # take another tenth.
    try:
        sys.stderr.flush()
    finally:
        os._exit(status)
