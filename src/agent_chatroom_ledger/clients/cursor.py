"""Cursor: a server in `mcp.json`, hooks in `hooks.json`; by its documentation only.

Its list of allowed tools, `permissions.json`, replaces the one in its settings as soon as there is
one, so ours goes in only where somebody keeps that list in the file already.
"""

from __future__ import annotations

from typing import Final

from agent_chatroom_ledger.agenthook import entries
from agent_chatroom_ledger.clients.diskfile import read
from agent_chatroom_ledger.clients.jsondocument import JsonDocument
from agent_chatroom_ledger.clients.jsonfile import JsonText
from agent_chatroom_ledger.clients.ownership import SERVER
from agent_chatroom_ledger.clients.refusals import Place
from agent_chatroom_ledger.clients.surroundings import Document, Surroundings, Wiring

NAME: Final = "Cursor"
BINARY: Final = "cursor-agent"
ALLOWED: Final = f"{SERVER}:*"
_LIST: Final = "mcpAllowlist"


def wiring(around: Surroundings) -> Wiring:
    """Return the files of Cursor and what they are to hold."""
    folder = (around.project or around.home) / ".cursor"
    words = around.launcher.words
    server = {"command": words[0], "args": [*words[1:], "mcp"]}
    documents: list[Document] = [
        JsonDocument(
            place=Place(NAME, folder / "hooks.json"),
            hooks=entries.documents("cursor", around.launcher.command),
            version=1,
        ),
        JsonDocument(place=Place(NAME, folder / "mcp.json"), server=server),
    ]
    notes = []
    place = Place(NAME, around.home / ".cursor" / "permissions.json")
    if isinstance(JsonText(place, read(place) or "", comments=True).get((_LIST,)), list):
        documents.append(
            JsonDocument(
                place=place,
                comments=True,
                allow=(_LIST,),
                allowed=ALLOWED,
                allowing=around.allow_tools,
            )
        )
    elif around.allow_tools:
        notes.append(
            f"Allow {ALLOWED} in Cursor's own settings: a {place.path} of ours would replace the "
            "list that is kept there."
        )
    return Wiring(documents=tuple(documents), notes=tuple(notes))


def trust(around: Surroundings) -> tuple[str, list[str]]:
    """Return what is known: Cursor keeps no word on hooks that we could read."""
    del around
    return "unknown", []
