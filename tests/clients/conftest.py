"""A user's home in a temporary directory, and the four clients' files in it."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from agent_chatroom_ledger.clients import setup
from agent_chatroom_ledger.clients.launcher import Launcher
from agent_chatroom_ledger.clients.surroundings import Surroundings

if TYPE_CHECKING:
    from pathlib import Path

    from agent_chatroom_ledger.clients.setup import SetupPlan

CLIENTS = tuple(setup.CLIENTS)


class Home:
    """What the tests do in a home: plan, apply, remove, look."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.around = Surroundings(
            environment={"HOME": str(path), "PATH": ""},
            directory=path,
            launcher=Launcher(("rooms",)),
        )

    def put(self, name: str, text: str | bytes) -> Path:
        path = self.path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return path

    def files(self) -> dict[str, bytes]:
        found = (path for path in sorted(self.path.rglob("*")) if path.is_file())
        return {str(path.relative_to(self.path)): path.read_bytes() for path in found}

    def apply(self, client: str, **changes: object) -> SetupPlan:
        plan = setup.plan(client, replace(self.around, **changes))  # type: ignore[arg-type] # any field
        plan.apply()
        return plan

    def remove(self, client: str, **changes: object) -> SetupPlan:
        plan = setup.removal(client, replace(self.around, **changes))  # type: ignore[arg-type] # any field
        plan.apply()
        return plan

    def status(self, client: str) -> setup.ClientState:
        return setup.status(client, self.around)


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path)
