"""What of ours is in Codex's config.toml: a server, and hooks where hooks stand there already."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from agent_chatroom_ledger.clients import tomlfile
from agent_chatroom_ledger.clients.ownership import (
    SERVER,
    is_own_group,
    is_own_server,
    own_hooks,
)
from agent_chatroom_ledger.clients.refusals import taken, uneditable
from agent_chatroom_ledger.clients.tomlfile import TomlText

if TYPE_CHECKING:
    from agent_chatroom_ledger.clients.jsondocument import State
    from agent_chatroom_ledger.clients.refusals import Place

_TABLE = ("mcp_servers", SERVER)
APPROVAL = "default_tools_approval_mode"


@dataclass(frozen=True, kw_only=True)
class CodexDocument:
    """Codex's config.toml and what it is to hold of ours.

    Keys that somebody added to our server stay, as do the tables below it in which Codex keeps
    what its user allowed. ``hooks`` is empty where they belong into hooks.json.
    """

    place: Place
    server: dict[str, Any]
    hooks: dict[str, list[dict[str, Any]]] = field(default_factory=dict)

    def connected(self, text: str | None) -> str:
        """Return the file's text with what is ours; raises for a file that is left alone."""
        found = tomlfile.created(self.place) if text is None else TomlText(self.place, text)
        entry = found.get(_TABLE)
        if entry is None:
            found = found.add_table(_TABLE, self.server)
        elif not is_own_server(entry):
            raise taken(self.place, f"a server called {SERVER!r}", line=found.line_of(_TABLE))
        else:
            changed = {key: value for key, value in self.server.items() if entry.get(key) != value}
            found = found.set_values(_TABLE, changed) if changed else found
        if self.hooks and not self._hooked(found):
            found = self._without_hooks(found) or found
            for event, groups in self.hooks.items():
                for group in groups:
                    found = found.add_hook(event, group)
        return found.whole

    def disconnected(self, text: str | None) -> str | None:
        """Return the text without what is ours; None when the file came with it, or is not there.

        What Codex keeps of hooks that its user trusted stays: it names them by place and hash.
        """
        if text is None:
            return None
        found = self._without_hooks(TomlText(self.place, text))
        if found is not None and is_own_server(found.get(_TABLE)):
            found = found.remove_table(_TABLE)
        return None if found is None else found.whole

    def states(self, text: str | None) -> dict[str, State]:
        """Return what there is of each part: server, hooks, permission."""
        found = TomlText(self.place, text or "")
        entry = found.get(_TABLE)
        same = isinstance(entry, dict) and all(
            entry.get(key) == value for key, value in self.server.items()
        )
        states: dict[str, State] = {
            "server": "absent" if entry is None else "current" if same else "drifted"
        }
        if self.hooks:
            there = any(own_groups(found, event) for event in events_of(found.data))
            same = self._hooked(found)
            states["hooks"] = "current" if same else "drifted" if there else "absent"
        allowed = isinstance(entry, dict) and entry.get(APPROVAL) == "approve"
        states["permission"] = "current" if allowed else "absent"
        return states

    def _hooked(self, found: TomlText) -> bool:
        events = {*self.hooks, *events_of(found.data)}
        return all(
            self.hooks.get(event, []) == [group for _, group in own_groups(found, event)]
            for event in events
        )

    def _without_hooks(self, found: TomlText) -> TomlText | None:
        kept: TomlText | None = found
        for event in reversed(events_of(found.data)):
            for place, group in reversed(own_groups(found, event)):
                if not is_own_group(group):
                    raise uneditable(self.place, f"hooks.{event}")
                kept = kept.remove_hook(event, place) if kept is not None else None
        return kept


def events_of(data: dict[str, Any]) -> list[str]:
    """Return the events for which a configuration holds hooks."""
    hooks = data.get("hooks")
    if not isinstance(hooks, dict):
        return []
    return [event for event, groups in hooks.items() if isinstance(groups, list) and groups]


def own_groups(found: TomlText, event: str) -> list[tuple[int, dict[str, Any]]]:
    """Return the groups of an event in which a hook of ours is, each with its place."""
    groups = found.get(("hooks", event)) or []
    return [(place, group) for place, group in enumerate(groups) if own_hooks(group)]
