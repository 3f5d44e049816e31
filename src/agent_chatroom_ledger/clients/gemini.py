"""Gemini CLI: server and hooks in `settings.json`, which may hold comments.

Read off 0.61.0. Its variables reach a server by themselves.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from agent_chatroom_ledger.agenthook import entries
from agent_chatroom_ledger.clients.diskfile import read
from agent_chatroom_ledger.clients.hookforms import fault_for_gemini
from agent_chatroom_ledger.clients.jsondocument import JsonDocument
from agent_chatroom_ledger.clients.jsonfile import JsonText
from agent_chatroom_ledger.clients.refusals import Place
from agent_chatroom_ledger.clients.surroundings import Surroundings, Wiring

if TYPE_CHECKING:
    from pathlib import Path

NAME: Final = "Gemini CLI"
BINARY: Final = "gemini"


def wiring(around: Surroundings) -> Wiring:
    """Return the file of Gemini CLI and what it is to hold."""
    words = around.launcher.words
    server: dict[str, Any] = {"command": words[0], "args": [*words[1:], "mcp"]}
    if around.allow_tools:
        server["trust"] = True
    document = JsonDocument(
        place=Place(NAME, _folder(around) / "settings.json"),
        comments=True,
        server=server,
        hooks=entries.documents("gemini", around.launcher.command),
        fault=fault_for_gemini,
    )
    note = "In a folder that is not trusted Gemini CLI starts no server, not even the user's own."
    return Wiring(documents=(document,), notes=(note,))


def trust(around: Surroundings) -> tuple[str, list[str]]:
    """Return whether Gemini CLI runs what is set up in this directory, as far as its files say."""
    folder = (around.named("GEMINI_CLI_HOME") or around.home) / ".gemini"
    settings = _read(folder / "settings.json")
    notes = []
    hooks = settings.get("hooksConfig")
    if isinstance(hooks, dict) and hooks.get("enabled") is False:
        notes.append("hooksConfig.enabled is false: no hook runs.")
    named = around.named("GEMINI_CLI_TRUSTED_FOLDERS_PATH")
    directory = around.project or around.directory
    verdict = _verdict(_read(named or folder / "trustedFolders.json"), directory)
    if verdict == "DO_NOT_TRUST":
        notes.append(f"{directory} is marked as not trusted.")
    if notes:
        return "untrusted", notes
    if verdict is not None:
        return "trusted", []
    return "unknown", [f"Whether {directory} is trusted, Gemini CLI asks when it starts there."]


def _verdict(folders: dict[str, Any], directory: Path) -> str | None:
    """Return what the nearest rule says of a directory."""
    for parent in (directory, *directory.parents):
        rule = folders.get(str(parent))
        if isinstance(rule, str):
            return rule
    return None


def _folder(around: Surroundings) -> Path:
    if around.project is not None:
        return around.project / ".gemini"
    return (around.named("GEMINI_CLI_HOME") or around.home) / ".gemini"


def _read(path: Path) -> dict[str, Any]:
    """Return what a file holds; nothing where it cannot be read, which its own state says."""
    from agent_chatroom_ledger.errors import LedgerError

    place = Place(NAME, path)
    try:
        return JsonText(place, read(place) or "", comments=True).data
    except LedgerError:
        return {}
