"""Whether a client's hook may stay silent without asking: nothing has changed since it last asked.

A hook runs after every tool of every agent, and mostly there is nothing new. Then a few looks at
files say so, and no ledger is opened.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from agent_chatroom_ledger.domain.identities import NAME_VARIABLES, pane_of
from agent_chatroom_ledger.storage import processes, quietfile
from agent_chatroom_ledger.storage.layout import Layout

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path


class Quiet:
    """How things stand for the client that started this process, at the moment of its making."""

    def __init__(self, root: Path, environment: Mapping[str, str], *facts: str | None) -> None:
        """Look; ``facts`` are what else the answer depends on."""
        self._layout = Layout(root)
        found = processes.client_of(processes.ancestors(os.getpid()))
        names = tuple(environment.get(variable) for variable in NAME_VARIABLES)
        self._key = f"{found.id.pid}-{found.id.started}" if found is not None else ""
        self._stamp = quietfile.stamp(
            self._layout, (found and found.id, names, pane_of(environment), facts)
        )

    def holds(self) -> bool:
        """Tell whether nothing waited when things stood like this, and note the client's work."""
        return self._key != "" and quietfile.is_remembered(self._layout, self._key, self._stamp)

    def remember(self, name: str) -> None:
        """Keep that nothing waits for the client, which lives under a name."""
        from agent_chatroom_ledger.storage.nudgefile import watch_file

        if self._key:
            quietfile.remember(self._layout, self._key, self._stamp, watch_file(name))
