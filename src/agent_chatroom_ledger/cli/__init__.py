"""The command line: `rooms`, and the same under its long name `agent-chatroom-ledger`.

Importing this package imports nothing else: a command line is started for every message an agent
posts or reads, so each command pays only for what it uses.
"""

from __future__ import annotations

INTERRUPTED = 130
# Nothing came in the time that was given, as `timeout` has it.
TIMED_OUT = 124
# Ended by SIGTERM.
TERMINATED = 143


class Terminated(BaseException):
    """SIGTERM; no ``Exception``, so that nobody takes it for one of the errors he looks out for."""


def main() -> None:
    """Run the command line on the arguments of this process and exit with its status.

    The status is 0 ok, 1 failure, 2 usage, 3 not found, 4 conflict, 5 busy, 6 corrupt, 124
    when the time was up, and 130 after an interrupt. No traceback reaches the user unless
    `--debug` asks for it.
    """
    import gc
    import os
    import sys

    # Collecting while modules are loaded finds nothing and takes a twentieth of a short command;
    # a command that opens a ledger turns it on again.
    gc.disable()
    if "hook" in sys.argv and "agent" in sys.argv:
        # Before the command line is read: its usage errors end with 2, which in an agents' client
        # erases a prompt or keeps an agent from stopping.
        from agent_chatroom_ledger.agenthook import arguments_of

        arguments = arguments_of(sys.argv[1:])
        if arguments is not None:
            from agent_chatroom_ledger.agenthook.process import main as hook_main

            hook_main(arguments)
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
