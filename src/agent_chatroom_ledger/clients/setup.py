"""Setting clients up: what would change in whose file, and what there is already."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from importlib.util import find_spec
from typing import TYPE_CHECKING, Final, Literal

from agent_chatroom_ledger.clients import claude, codex, cursor, gemini
from agent_chatroom_ledger.clients.diskfile import FileChange, check_writable, read
from agent_chatroom_ledger.errors import LedgerError

if TYPE_CHECKING:
    from types import ModuleType

    from agent_chatroom_ledger.clients.jsondocument import State
    from agent_chatroom_ledger.clients.surroundings import Surroundings, Wiring

CLIENTS: Final[dict[str, ModuleType]] = {
    "claude": claude,
    "codex": codex,
    "cursor": cursor,
    "gemini": gemini,
}


@dataclass(frozen=True, kw_only=True)
class SetupPlan:
    """What would change in a client's files; nothing has been written yet."""

    client: str
    changes: tuple[FileChange, ...]
    warnings: tuple[str, ...]
    notes: tuple[str, ...]

    @property
    def changed(self) -> bool:
        """Tell whether there is anything to write."""
        return any(change.action != "none" for change in self.changes)

    def apply(self) -> None:
        """Write the files one after the other; each is replaced whole."""
        for change in self.changes:
            change.write()


@dataclass(frozen=True, kw_only=True)
class FileState:
    """What one file holds of ours; ``problem`` says why that cannot be told."""

    path: str
    exists: bool
    parts: dict[str, State]
    problem: str | None = None


@dataclass(frozen=True, kw_only=True)
class ClientState:
    """Whether a client is set up, and whether it runs what is set up."""

    client: str
    installed: bool
    state: Literal["absent", "current", "drifted", "unreadable"]
    trust: str
    files: tuple[FileState, ...]
    notes: tuple[str, ...]


def plan(client: str, around: Surroundings) -> SetupPlan:
    """Plan to set a client up; what is there already is not written again.

    Raises InvalidInput, Conflict or Forbidden for a file that has to be left alone; then no file
    of that client is touched.
    """
    wiring = _wiring(client, around)
    changes = []
    for document in wiring.documents:
        before = read(document.place)
        change = FileChange(document.place, before, document.connected(before))
        if change.action != "none":
            check_writable(document.place)
        changes.append(change)
    return SetupPlan(
        client=client, changes=tuple(changes), warnings=warnings(around), notes=wiring.notes
    )


def warnings(around: Surroundings) -> tuple[str, ...]:
    """Return what would keep a client from starting what is written."""
    found = [around.launcher.warning] if around.launcher.warning else []
    if find_spec("mcp") is None:
        found.append(
            "This installation has no MCP server; install it with its extra: "
            "`pipx install 'agent-chatroom-ledger[mcp]'`."
        )
    return tuple(found)


def removal(client: str, around: Surroundings) -> SetupPlan:
    """Plan to take everything of ours out of a client's files."""
    changes = []
    # The other way round than they were written: the server goes before the hooks.
    for document in reversed(_wiring(client, around).documents):
        before = read(document.place)
        change = FileChange(document.place, before, document.disconnected(before))
        if change.action != "none":
            check_writable(document.place)
        changes.append(change)
    return SetupPlan(client=client, changes=tuple(changes), warnings=(), notes=())


def status(client: str, around: Surroundings) -> ClientState:
    """Look at what there is; nothing is written."""
    module = CLIENTS[client]
    installed = shutil.which(module.BINARY, path=around.environment.get("PATH")) is not None
    try:
        documents = _wiring(client, around).documents
    except LedgerError as error:
        return ClientState(
            client=client,
            installed=installed,
            state="unreadable",
            trust="unknown",
            files=(),
            notes=(error.message,),
        )
    files = []
    for document in documents:
        try:
            text = read(document.place)
            parts, problem = document.states(text), None
        except LedgerError as error:
            text, parts, problem = "", {}, error.message
        files.append(
            FileState(
                path=str(document.place.path), exists=text is not None, parts=parts, problem=problem
            )
        )
    state = _together(files)
    trust, notes = "unknown", list[str]()
    if state in {"current", "drifted"}:
        trust, notes = module.trust(around)
    return ClientState(
        client=client,
        installed=installed,
        state=state,
        trust=trust,
        files=tuple(files),
        notes=tuple(notes),
    )


def _together(files: list[FileState]) -> Literal["absent", "current", "drifted", "unreadable"]:
    if any(file.problem for file in files):
        return "unreadable"
    # A permission is a choice; that it is not there is no drift.
    states = {state for file in files for part, state in file.parts.items() if part != "permission"}
    if states == {"current"}:
        return "current"
    return "absent" if states == {"absent"} else "drifted"


def _wiring(client: str, around: Surroundings) -> Wiring:
    found: Wiring = CLIENTS[client].wiring(around)
    return found
