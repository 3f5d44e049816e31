"""Codex: a server in `config.toml`, hooks in `hooks.json` or where the user keeps them.

Read off 0.171.0. Codex hands a server next to nothing of its environment, so the names of our
variables are listed; and it runs no hook that its user has not looked at and trusted.
"""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING, Any, Final

from agent_chatroom_ledger.agenthook import entries
from agent_chatroom_ledger.clients.codexdocument import (
    APPROVAL,
    CodexDocument,
    events_of,
    own_groups,
)
from agent_chatroom_ledger.clients.diskfile import read
from agent_chatroom_ledger.clients.hookforms import fault_for_codex
from agent_chatroom_ledger.clients.jsondocument import JsonDocument
from agent_chatroom_ledger.clients.jsonfile import JsonText
from agent_chatroom_ledger.clients.ownership import is_own_hook, own_hooks
from agent_chatroom_ledger.clients.refusals import Place
from agent_chatroom_ledger.clients.surroundings import Document, Surroundings, Wiring
from agent_chatroom_ledger.clients.tomlfile import TomlText

if TYPE_CHECKING:
    from pathlib import Path

NAME: Final = "Codex"
BINARY: Final = "codex"
PASSED: Final = ("ROOMS_NAME", "ROOMS_ROOT")


def wiring(around: Surroundings) -> Wiring:
    """Return the files of Codex and what they are to hold."""
    folder = _folder(around)
    config, hooks = Place(NAME, folder / "config.toml"), Place(NAME, folder / "hooks.json")
    words = around.launcher.words
    server: dict[str, Any] = {
        "command": words[0],
        "args": [*words[1:], "mcp"],
        "env_vars": list(PASSED),
    }
    if around.allow_tools:
        server[APPROVAL] = "approve"
    wanted = entries.documents("codex", around.launcher.command)
    documents: tuple[Document, ...]
    if _hooks_in_toml(config, hooks):
        documents = (CodexDocument(place=config, server=server, hooks=wanted),)
    else:
        documents = (
            JsonDocument(place=hooks, hooks=wanted, fault=fault_for_codex),
            CodexDocument(place=config, server=server),
        )
    notes = ["Codex runs a new hook only when you have trusted it: start `codex` and say `/hooks`."]
    if around.project is not None:
        notes.append("Codex reads a project's .codex only when the project is trusted.")
    return Wiring(documents=documents, notes=tuple(notes))


def trust(around: Surroundings) -> tuple[str, list[str]]:
    """Return whether Codex runs our hooks: as Codex itself says where it is there, else unknown."""
    binary = shutil.which(BINARY, path=around.environment.get("PATH"))
    if binary is None:
        return _recorded(around)
    from agent_chatroom_ledger.clients.appserver import listed_hooks

    directory = around.project or around.directory
    listed = listed_hooks(binary, around.environment, directory)
    if listed is None:
        state, notes = _recorded(around)
        return state, ["`codex app-server` did not answer.", *notes]
    ours = [hook for hook in listed if is_own_hook(hook)]
    states = {str(hook.get("trustStatus")) for hook in ours}
    off = [hook for hook in ours if hook.get("enabled") is False]
    notes = [f"{len(off)} of our hooks are switched off in Codex."] if off else []
    if not states:
        return "unknown", ["Codex lists none of our hooks.", *notes]
    if states <= {"trusted", "managed"}:
        return "trusted", notes
    word = "modified" if "modified" in states else "untrusted"
    return word, ["Start `codex`, say `/hooks` and trust them; until then they do not run.", *notes]


def _recorded(around: Surroundings) -> tuple[str, list[str]]:
    """Return what config.toml keeps of trust, which names hooks by file, event and place."""
    from agent_chatroom_ledger.errors import LedgerError

    folder = around.named("CODEX_HOME") or around.home / ".codex"
    place = Place(NAME, folder / "config.toml")
    try:
        data = TomlText(place, read(place) or "").data
    except LedgerError:
        return "unknown", []
    hooks = data.get("hooks")
    state = hooks.get("state") if isinstance(hooks, dict) else None
    keys = [key for key in state or () if str(key).startswith(str(_folder(around)))]
    if not keys:
        return "untrusted", ["Start `codex`, say `/hooks` and trust them."]
    return "unknown", ["Codex keeps trust for hooks of this file; only `codex` can tell for which."]


def _folder(around: Surroundings) -> Path:
    if around.project is not None:
        return around.project / ".codex"
    return around.named("CODEX_HOME") or around.home / ".codex"


def _hooks_in_toml(config: Place, hooks: Place) -> bool:
    """Tell where our hooks belong: where they are, else where the user's are, else hooks.json.

    Codex runs those of both files and warns of it, so a second file is not begun.
    """
    table = TomlText(config, read(config) or "")
    if any(own_groups(table, event) for event in events_of(table.data)):
        return True
    document = JsonText(hooks, read(hooks) or "")
    found = document.get(("hooks",))
    groups = [group for items in found.values() for group in items] if _is_table(found) else []
    if any(own_hooks(group) for group in groups):
        return False
    return not groups and bool(events_of(table.data))


def _is_table(found: object) -> bool:
    return isinstance(found, dict) and all(isinstance(items, list) for items in found.values())
