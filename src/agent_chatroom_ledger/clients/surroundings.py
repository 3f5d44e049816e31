"""Where a set-up happens: the user's home, the project, the environment, and how we are started."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Mapping

    from agent_chatroom_ledger.clients.jsondocument import State
    from agent_chatroom_ledger.clients.launcher import Launcher
    from agent_chatroom_ledger.clients.refusals import Place


@dataclass(frozen=True, kw_only=True)
class Surroundings:
    """What an entry point hands in; ``project`` is None where the user's own files are meant."""

    environment: Mapping[str, str]
    directory: Path
    launcher: Launcher
    project: Path | None = None
    allow_tools: bool = False

    @property
    def home(self) -> Path:
        """The user's home directory."""
        named = self.environment.get("HOME") or self.environment.get("USERPROFILE")
        return Path(named) if named else Path.home()

    def named(self, variable: str) -> Path | None:
        """Return the directory that a variable names, None where it is not set."""
        value = self.environment.get(variable)
        return self.directory / value if value else None


class Document(Protocol):
    """One file of a client and what it is to hold of ours."""

    @property
    def place(self) -> Place:
        """The file."""

    def connected(self, text: str | None) -> str:
        """Return the file's text with what is ours."""

    def disconnected(self, text: str | None) -> str | None:
        """Return the text without what is ours; None for no file."""

    def states(self, text: str | None) -> dict[str, State]:
        """Return what there is of each part."""


@dataclass(frozen=True, kw_only=True)
class Wiring:
    """The files of one client in the order in which they are written, and what to tell the user."""

    documents: tuple[Document, ...]
    notes: tuple[str, ...] = ()
