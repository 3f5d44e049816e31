"""Which events of which client call the hook: what a client's own file has to say.

The forms are those of Claude Code 2.1, Codex 0.171, Gemini CLI 0.61 and, by its documentation,
Cursor; docs/agent-hooks.md says what was read off the programs themselves.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any, Final, NamedTuple

from agent_chatroom_ledger.limits import HOOK_TIMEOUT_SECONDS, WAKE_SECONDS_MAX

CLIENTS: Final = ("claude", "codex", "gemini", "cursor")
# What follows the name of our command, wherever that lies.
WORDS: Final = "hook agent"
WAKE: Final = "--wake"
# A client that reads seconds ends the wait a little after it should have ended by itself.
_WAKE_TIMEOUT_SECONDS: Final = WAKE_SECONDS_MAX + 60
# Gemini CLI reads milliseconds, the others seconds.
_MILLISECONDS: Final = frozenset({"gemini"})
_FLAT: Final = frozenset({"cursor"})


class Entry(NamedTuple):
    """One event that calls the hook.

    `options` follow the words of the command. `matcher` is there where the event has one.
    `rewake` lets the client go on at once, and wakes it when the command exits with 2.
    """

    event: str
    options: tuple[str, ...] = ()
    matcher: str | None = None
    timeout_seconds: int = HOOK_TIMEOUT_SECONDS
    rewake: bool = False


ENTRIES: Final[dict[str, tuple[Entry, ...]]] = {
    "claude": (
        Entry("SessionStart"),
        Entry("UserPromptSubmit"),
        Entry("PostToolUse", matcher="*"),
        Entry("Stop"),
        Entry("Stop", (WAKE,), timeout_seconds=_WAKE_TIMEOUT_SECONDS, rewake=True),
    ),
    "codex": (
        Entry("SessionStart", ("--client", "codex")),
        Entry("UserPromptSubmit", ("--client", "codex")),
        Entry("PostToolUse", ("--client", "codex"), matcher="*"),
        Entry("Stop", ("--client", "codex")),
    ),
    "gemini": (
        Entry("SessionStart", ("--client", "gemini")),
        Entry("BeforeAgent", ("--client", "gemini")),
        Entry("AfterTool", ("--client", "gemini"), matcher="*"),
        Entry("AfterAgent", ("--client", "gemini")),
    ),
    "cursor": (
        Entry("sessionStart", ("--client", "cursor")),
        Entry("beforeSubmitPrompt", ("--client", "cursor")),
        Entry("postToolUse", ("--client", "cursor")),
        Entry("stop", ("--client", "cursor")),
    ),
}


def command_line(entry: Entry, command: str = "rooms") -> str:
    """Return the shell command of an entry; `command` is ours, quoted for a shell already."""
    return " ".join((command, WORDS, *entry.options))


def is_own(command_text: str) -> bool:
    """Tell whether a hook's command is ours, wherever our command lies and with any options."""
    words = command_text.replace('"', " ").replace("'", " ").split()
    return ("hook", "agent") in pairwise(words) and any(
        word.replace("\\", "/").rpartition("/")[2]
        in {"rooms", "rooms.exe", "agent-chatroom-ledger", "agent-chatroom-ledger.exe"}
        for word in words
    )


def document(client: str, entry: Entry, command: str = "rooms") -> dict[str, Any]:
    """Return an entry as the client writes it: an item of the list of its event.

    Cursor's are flat; the others' are groups, `{"matcher", "hooks": [{"type", "command", …}]}`.
    """
    line = command_line(entry, command)
    timeout = entry.timeout_seconds * (1_000 if client in _MILLISECONDS else 1)
    if client in _FLAT:
        flat: dict[str, Any] = {"command": line, "timeout": timeout}
        if entry.event == "stop":
            # How often an answer of ours may follow another before the user says something.
            flat["loop_limit"] = 3
        return flat
    hook: dict[str, Any] = {"type": "command", "command": line, "timeout": timeout}
    if entry.rewake:
        hook["asyncRewake"] = True
    if entry.matcher is None:
        return {"hooks": [hook]}
    return {"matcher": entry.matcher, "hooks": [hook]}


def documents(client: str, command: str = "rooms") -> dict[str, list[dict[str, Any]]]:
    """Return what a client's `hooks` table holds of ours: a list of items for each event."""
    found: dict[str, list[dict[str, Any]]] = {}
    for entry in ENTRIES[client]:
        found.setdefault(entry.event, []).append(document(client, entry, command))
    return found
