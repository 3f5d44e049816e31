"""Claude Code: a server in `.claude.json` or a project's `.mcp.json`, hooks in `settings.json`.

Read off 2.1.197 and 2.1.332.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from agent_chatroom_ledger.agenthook import entries
from agent_chatroom_ledger.clients.diskfile import read
from agent_chatroom_ledger.clients.hookforms import fault_for_claude
from agent_chatroom_ledger.clients.jsondocument import JsonDocument
from agent_chatroom_ledger.clients.jsonfile import JsonText
from agent_chatroom_ledger.clients.ownership import SERVER
from agent_chatroom_ledger.clients.refusals import Place
from agent_chatroom_ledger.clients.surroundings import Surroundings, Wiring

if TYPE_CHECKING:
    from pathlib import Path

NAME: Final = "Claude Code"
BINARY: Final = "claude"
ALLOWED: Final = f"mcp__{SERVER}"


def wiring(around: Surroundings) -> Wiring:
    """Return the files of Claude Code and what they are to hold."""
    notes: tuple[str, ...] = ()
    if around.project is None:
        servers, settings = global_file(around), _own_directory(around) / "settings.json"
    else:
        servers, settings = around.project / ".mcp.json", around.project / ".claude/settings.json"
        asks = "whether to trust the folder and to start the server of .mcp.json"
        notes = (f"Claude Code asks once, in this project, {asks}.",)
    words = around.launcher.words
    server = {"type": "stdio", "command": words[0], "args": [*words[1:], "mcp"]}
    return Wiring(
        documents=(
            JsonDocument(
                place=Place(NAME, settings),
                hooks=entries.documents("claude", around.launcher.command),
                fault=fault_for_claude,
                allow=("permissions", "allow"),
                allowed=ALLOWED,
                allowing=around.allow_tools,
            ),
            JsonDocument(place=Place(NAME, servers), server=server),
        ),
        notes=notes,
    )


def trust(around: Surroundings) -> tuple[str, list[str]]:
    """Return whether Claude Code runs what is set up, as far as its files say, and why not."""
    notes = []
    own = _read(_own_directory(around) / "settings.json")
    layers = [own]
    if around.project is not None:
        layers += [
            _read(around.project / ".claude" / name)
            for name in ("settings.json", "settings.local.json")
        ]
    if any(layer.get("disableAllHooks") is True for layer in layers):
        notes.append("disableAllHooks is set: no hook runs.")
    if around.project is None:
        return ("untrusted" if notes else "trusted"), notes
    state = _read(global_file(around)).get("projects")
    entry = state.get(str(around.project)) if isinstance(state, dict) else None
    known = entry if isinstance(entry, dict) else {}
    if known.get("hasTrustDialogAccepted") is not True:
        notes.append("The folder is not trusted yet: start `claude` here once and accept.")
    approving = [*layers, known]
    if any(SERVER in _names(layer, "disabledMcpjsonServers") for layer in approving):
        notes.append(f"The server {SERVER!r} of .mcp.json was rejected.")
    elif not any(
        layer.get("enableAllProjectMcpServers") is True
        or SERVER in _names(layer, "enabledMcpjsonServers")
        for layer in approving
    ):
        notes.append(f"The server {SERVER!r} of .mcp.json is pending approval.")
    return ("untrusted" if notes else "trusted"), notes


def global_file(around: Surroundings) -> Path:
    """Return the file that holds the user's own servers and what is known of each project."""
    older = _own_directory(around) / ".config.json"
    if older.exists():
        return older
    return (around.named("CLAUDE_CONFIG_DIR") or around.home) / ".claude.json"


def _own_directory(around: Surroundings) -> Path:
    return around.named("CLAUDE_CONFIG_DIR") or around.home / ".claude"


def _read(path: Path) -> dict[str, Any]:
    """Return what a file holds; nothing where it cannot be read, which its own state says."""
    from agent_chatroom_ledger.errors import LedgerError

    place = Place(NAME, path)
    try:
        return JsonText(place, read(place) or "").data
    except LedgerError:
        return {}


def _names(layer: dict[str, Any], key: str) -> list[Any]:
    found = layer.get(key)
    return found if isinstance(found, list) else []
