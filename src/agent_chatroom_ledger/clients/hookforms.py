"""What in a file of hooks makes a client drop all of them without a word, as the programs do it.

Claude Code 2.1.197 drops every hook for one group that is out of form (2.1.332 only that one), and
Codex 0.171.0 the whole file besides for a byte order mark, a key that stands twice, or a key beside
``hooks`` and ``description``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from agent_chatroom_ledger.clients.jsonfile import JsonText, Path

_CODEX_KEYS: Final = frozenset({"hooks", "description"})
Fault = tuple["Path", str]


def fault_for_claude(found: JsonText) -> Fault | None:
    """Return where and why Claude Code would drop the hooks; None when it would not."""
    return _misshapen(found, needs_hooks=True)


def fault_for_codex(found: JsonText) -> Fault | None:
    """Return where and why Codex would drop the file; None when it would not."""
    if found.bom:
        return (), "a byte order mark"
    if found.repeated is not None:
        return (), f"{found.repeated!r} stands twice in one object"
    for key in found.data:
        if key not in _CODEX_KEYS:
            return (key,), f"{key!r} beside 'hooks'"
    if "hooks" in found.data and not isinstance(found.data["hooks"], dict):
        return ("hooks",), "hooks is not an object"
    return _misshapen(found, needs_hooks=False)


def fault_for_gemini(found: JsonText) -> Fault | None:
    """Return why Gemini CLI would not start; None when it would."""
    return ((), "a byte order mark") if found.bom else None


def _misshapen(found: JsonText, *, needs_hooks: bool) -> Fault | None:
    for event in found.keys(("hooks",)):
        groups = found.get(("hooks", event))
        for place, group in enumerate(groups if isinstance(groups, list) else ()):
            path: Path = ("hooks", event, place)
            if not isinstance(group, dict):
                return path, "a group of hooks that is not an object"
            hooks = group.get("hooks", None if needs_hooks else [])
            if not isinstance(hooks, list):
                return path, "a group without its array of hooks"
            matcher = group.get("matcher")
            if not isinstance(matcher, str) and ("matcher" in group if needs_hooks else matcher):
                return path, "a matcher that is not text"
            for inner, hook in enumerate(hooks):
                if _is_faulty(hook):
                    return (*path, "hooks", inner), "a hook that is out of form"
    return None


def _is_faulty(hook: Any) -> bool:  # noqa: ANN401 - whatever the file holds
    """Judge a hook that is a command; of other types each version knows more."""
    if not isinstance(hook, dict) or not isinstance(hook.get("type"), str):
        return True
    if hook["type"] != "command":
        return False
    timeout = hook.get("timeout", 0)
    is_number = isinstance(timeout, int | float) and not isinstance(timeout, bool)
    return not isinstance(hook.get("command"), str) or not is_number
