"""`rooms place`: copy messages into another room, with where they came from."""

from __future__ import annotations

from agent_chatroom_ledger.cli.placing import placing_command

command = placing_command(
    "place",
    """Copy messages N to M of SOURCE into TARGET.

    A copy keeps speaker, kind, text and mentions, and says where it came from and why; all of them
    are one commit in both rooms. What stands in TARGET for the same reason already is skipped.
    Prints the plan and writes only with --apply.
    """,
    again=False,
)
