"""Which server entries and which hooks in a client's file are ours, wherever our command lies."""

from __future__ import annotations

from typing import Any, Final

from agent_chatroom_ledger.agenthook.entries import WORDS, is_own

SERVER: Final = "rooms"
PACKAGE: Final = "agent_chatroom_ledger"
_NAMES: Final = frozenset(
    {"rooms", "rooms.exe", "agent-chatroom-ledger", "agent-chatroom-ledger.exe"}
)


def is_own_server(entry: object) -> bool:
    """Tell whether a server entry starts `rooms mcp`."""
    if not isinstance(entry, dict):
        return False
    words = [entry.get("command"), *_list(entry.get("args"))]
    texts = [word for word in words if isinstance(word, str)]
    ours = any(word.replace("\\", "/").rpartition("/")[2] in _NAMES for word in texts)
    return "mcp" in texts and (ours or any(PACKAGE in word for word in texts))


def is_own_hook(hook: object) -> bool:
    """Tell whether one hook, an object with a command, is ours."""
    command = hook.get("command") if isinstance(hook, dict) else None
    if not isinstance(command, str):
        return False
    # Started by an interpreter, where there is no script of ours.
    return is_own(command) or f"{PACKAGE}.cli {WORDS}" in command


def own_hooks(group: object) -> list[int]:
    """Return which hooks of a group are ours, by their place in it."""
    hooks = group.get("hooks") if isinstance(group, dict) else None
    return [place for place, hook in enumerate(_list(hooks)) if is_own_hook(hook)]


def is_own_group(group: object) -> bool:
    """Tell whether an item of an event is ours as a whole: a flat hook, or all in the group."""
    if isinstance(group, dict) and "hooks" in group:
        return 0 < len(own_hooks(group)) == len(_list(group["hooks"]))
    return is_own_hook(group)


def _list(value: object) -> list[Any]:
    return value if isinstance(value, list) else []
