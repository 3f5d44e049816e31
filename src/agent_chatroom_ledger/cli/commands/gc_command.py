"""`rooms gc`: packs merged, git's commit-graph written, derived files brought up to date."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from agent_chatroom_ledger.cli.options import common

if TYPE_CHECKING:
    from agent_chatroom_ledger.cli.session import Session
    from agent_chatroom_ledger.storage.space import Space

_GRAPH = {
    "git": "commit-graph written by git, with its filters of changed paths",
    "ledger": "commit-graph written",
    "none": "no commit-graph: git keeps none for such a history",
}


@click.command("gc")
@common
@click.pass_obj
def command(session: Session) -> None:
    """Tidy the ledger up.

    Merges small packs, writes git's commit-graph (through git when there is one, which makes `git
    log` of one room fast) and brings the derived files up to date. It is never needed, loses
    nothing, and may be stopped at any moment.
    """
    import msgspec

    from agent_chatroom_ledger.upkeep import collect

    with session.write() as ledger:
        found = collect(ledger)
    before, after = found.before, found.after
    lines = [
        f"packs: {_size(before)}, now {_size(after)}",
        _GRAPH[found.commit_graph],
    ]
    session.show(msgspec.to_builtins(found), lines)


def _size(space: Space) -> str:
    return f"{space.packs} ({space.pack_bytes} bytes)"
