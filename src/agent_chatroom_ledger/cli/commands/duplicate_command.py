"""`rooms duplicate`: copy messages into another room, those too that are there already."""

from __future__ import annotations

from agent_chatroom_ledger.cli.placing import placing_command

command = placing_command(
    "duplicate",
    """Copy messages N to M of SOURCE into TARGET, even where they stand already.

    Otherwise as `rooms place`. Prints the plan and writes only with --apply.
    """,
    again=True,
)
