"""What of ours is in a client's JSON file: a server, hooks, a permission; put in and taken out."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from agent_chatroom_ledger.clients.jsonfile import JsonText, Path
from agent_chatroom_ledger.clients.ownership import (
    SERVER,
    is_own_group,
    is_own_server,
    own_hooks,
)
from agent_chatroom_ledger.clients.refusals import taken, uneditable, unreadable

if TYPE_CHECKING:
    from collections.abc import Callable

    from agent_chatroom_ledger.clients.hookforms import Fault
    from agent_chatroom_ledger.clients.refusals import Place

State = Literal["absent", "current", "drifted"]


@dataclass(frozen=True, kw_only=True)
class JsonDocument:
    """One JSON file of a client and what it is to hold of ours.

    ``server`` is the entry below ``mcpServers``; keys that somebody added to it stay. ``hooks``
    are the items of each event below ``hooks``. ``allowed`` is an element of the array at
    ``allow``, put in when ``allowing``; one that is there stays until everything goes.
    ``version`` is what a file of hooks that we begin has to say of its format. ``fault`` says why
    the client would use nothing of a file.
    """

    place: Place
    comments: bool = False
    server: dict[str, Any] | None = None
    hooks: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    allow: Path | None = None
    allowed: str = ""
    allowing: bool = False
    fault: Callable[[JsonText], Fault | None] | None = None
    version: int | None = None

    def connected(self, text: str | None) -> str:
        """Return the file's text with what is ours; raises for a file that is left alone."""
        before = self._usable(text)
        found = self._with_server(before)
        begins = self.version is not None and not {"hooks", "version"} & set(found.data)
        found = self._with_hooks(found)
        if begins:
            found = found.set_member((), "version", self.version)
        if self.allow is not None and self.allowing and self.allowed not in self._allowed(found):
            found = found.append(self.allow, self.allowed)
        self._check(before, found)
        return found.whole + ("\n" if text is None else "")

    def disconnected(self, text: str | None) -> str | None:
        """Return the text without what is ours; None when the file came with it, or is not there.

        The inverse of `connected`: what was put in last comes out first.
        """
        if text is None:
            return None
        before = JsonText(self.place, text, comments=self.comments)
        found: JsonText | None = before
        if self.allow is not None and self.allowed in self._allowed(before):
            found = before.remove((*self.allow, self._allowed(before).index(self.allowed)))
        if found is not None and self.hooks:
            found = self._without_hooks(found)
        if found is None:
            return None
        if self.server is not None and is_own_server(found.get(("mcpServers", SERVER))):
            found = found.remove(("mcpServers", SERVER))
        if found is None:
            return None
        self._check(before, found)
        return found.whole

    def states(self, text: str | None) -> dict[str, State]:
        """Return what there is of each part: server, hooks, permission."""
        found = self._usable(text)
        states: dict[str, State] = {}
        if self.server is not None:
            entry = found.get(("mcpServers", SERVER))
            states["server"] = "absent"
            if entry is not None:
                states["server"] = "current" if self._serves(entry) else "drifted"
        if self.hooks:
            there = any(_own_items(found, event) for event in found.keys(("hooks",)))
            same = self._hooked(found)
            states["hooks"] = "current" if same else "drifted" if there else "absent"
        if self.allow is not None:
            states["permission"] = "current" if self.allowed in self._allowed(found) else "absent"
        return states

    def _usable(self, text: str | None) -> JsonText:
        """Read the file and refuse one that its client drops, whole or in silence."""
        found = JsonText(self.place, text or "", comments=self.comments)
        fault = self.fault(found) if self.fault is not None else None
        if fault is not None:
            path, why = fault
            raise unreadable(self.place, why, line=found.line_of(path))
        return found

    # The server.

    def _serves(self, entry: object) -> bool:
        wanted = self.server or {}
        return isinstance(entry, dict) and all(entry.get(key) == wanted[key] for key in wanted)

    def _with_server(self, found: JsonText) -> JsonText:
        if self.server is None:
            return found
        path: Path = ("mcpServers", SERVER)
        entry = found.get(path)
        if entry is None:
            return found.set_member(path[:1], SERVER, self.server)
        if not is_own_server(entry):
            raise taken(self.place, f"a server called {SERVER!r}", line=found.line_of(path))
        for key, value in self.server.items():
            if entry.get(key) != value:
                found = found.set_member(path, key, value)
        return found

    # The hooks.

    def _hooked(self, found: JsonText) -> bool:
        """Tell whether our hooks are there as wanted, and none of ours besides."""
        events = {*self.hooks, *found.keys(("hooks",))}
        return all(
            _flat(self.hooks.get(event, ())) == _flat(_own_items(found, event)) for event in events
        )

    def _with_hooks(self, found: JsonText) -> JsonText:
        if not self.hooks or self._hooked(found):
            return found
        if found.get(("hooks",)) is not None and not isinstance(found.get(("hooks",)), dict):
            raise unreadable(self.place, "hooks is not an object", line=found.line_of(("hooks",)))
        # New ones first, so that nothing that was there is empty in between.
        for event, items in self.hooks.items():
            if _flat(items) == _flat(_own_items(found, event)):
                continue
            old = self._items(found, event)
            for item in items:
                found = found.append(("hooks", event), item)
            found = self._without_items(found, event, len(old)) or found
        for event in reversed(found.keys(("hooks",))):
            if event not in self.hooks:
                found = self._without_items(found, event) or found
        return found

    def _without_hooks(self, found: JsonText) -> JsonText | None:
        """Take our hooks out, last first."""
        keys = found.keys(())
        for event in reversed(found.keys(("hooks",))):
            kept = self._without_items(found, event)
            if kept is None:
                return None
            found = kept
        # Behind hooks that came with us stands what we said of the format.
        begun = self.version is not None and found.get(("version",)) == self.version
        if begun and (keys[-2:], found.keys(())) == (["hooks", "version"], [*keys[:-2], "version"]):
            return found.remove(("version",))
        return found

    def _without_items(
        self, found: JsonText, event: str, count: int | None = None
    ) -> JsonText | None:
        """Take our hooks of an event out, of the first ``count`` items or of all."""
        items = found.get(("hooks", event))
        items = items[:count] if isinstance(items, list) else []
        for place in reversed(range(len(items))):
            path: Path = ("hooks", event, place)
            inner = [] if is_own_group(items[place]) else own_hooks(items[place])
            for cut in [(*path, "hooks", n) for n in reversed(inner)] if inner else [path]:
                if inner or is_own_group(items[place]):
                    kept = found.remove(cut)
                    if kept is None:
                        return None
                    found = kept
        return found

    def _items(self, found: JsonText, event: str) -> list[Any]:
        items = found.get(("hooks", event))
        if items is not None and not isinstance(items, list):
            line = found.line_of(("hooks", event))
            raise unreadable(self.place, f"hooks.{event} is not an array", line=line)
        return items or []

    # The permission.

    def _allowed(self, found: JsonText) -> list[Any]:
        assert self.allow is not None
        there = found.get(self.allow)
        if there is not None and not isinstance(there, list):
            if not self.allowing:
                return []
            where = ".".join(str(step) for step in self.allow)
            line = found.line_of(self.allow)
            raise unreadable(self.place, f"{where} is not an array", line=line)
        return there or []

    def _check(self, before: JsonText, after: JsonText) -> None:
        """Refuse an edit that touched anything but ours; no known file gets here."""
        try:
            same = self._others(before.data) == self._others(after.data)
        except RecursionError:
            raise unreadable(self.place, "it is nested too deeply") from None
        if not same:
            raise uneditable(self.place, "what it holds")

    def _others(self, value: Any) -> Any:  # noqa: ANN401 - any value of a document
        """Return data without what is ours and without containers that are empty then."""
        if isinstance(value, dict):
            kept = {
                key: self._others(inner)
                for key, inner in value.items()
                if not (key == SERVER and is_own_server(inner))
                and not (key == "version" and inner == self.version)
            }
            return {key: inner for key, inner in kept.items() if inner not in ({}, [])}
        if isinstance(value, list):
            items = [self._others(item) for item in value if not is_own_group(item)]
            return [item for item in items if item not in ({}, []) and item != self.allowed]
        return value


def _own_items(found: JsonText, event: str) -> list[dict[str, Any]]:
    items = found.get(("hooks", event))
    if not isinstance(items, list):
        return []
    return [item for item in items if is_own_group(item) or own_hooks(item)]


def _flat(items: Any) -> list[tuple[Any, dict[str, Any]]]:  # noqa: ANN401 - a file's own content
    """Return our hooks of some items, each with its matcher, however they are grouped."""
    flat = []
    for item in items:
        if "hooks" in item:
            hooks = [item["hooks"][place] for place in own_hooks(item)]
            flat += [(item.get("matcher"), hook) for hook in hooks]
        else:
            flat.append((item.get("matcher"), item))
    return flat
