"""Which ancestor of a process is an agent's client: no shell, and nothing that only starts others.

A command is judged by its name and its words, since clients are often scripts of an interpreter.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Sequence

_SHELLS: Final = frozenset(
    (
        *("sh", "bash", "dash", "zsh", "fish", "ksh", "mksh", "ash", "busybox", "tcsh", "csh"),
        *("nu", "elvish", "xonsh", "cmd", "powershell", "pwsh"),
    )
)
# They run another program in their place or as their only child.
_LAUNCHERS: Final = frozenset(
    (
        *("env", "timeout", "gtimeout", "nice", "ionice", "nohup", "setsid", "stdbuf", "time"),
        *("chrt", "taskset", "uv", "uvx", "pipx"),
    )
)
# They adopt whoever lost his parent, and so are nobody's client.
_INITS: Final = frozenset(("init", "systemd", "launchd", "tini", "dumb-init", "docker-init"))
_OURS: Final = frozenset(("rooms", "agent-chatroom-ledger"))
_PACKAGE: Final = "agent_chatroom_ledger"
_INTERPRETER: Final = r"(python[\d.]*w?|pypy[\d.]*|node|nodejs|bun|deno)\Z"
# Options of Python and node that take the next word.
_TAKES_A_WORD: Final = frozenset(("-X", "-W", "-r", "--require", "--import", "--loader"))
_BY_COMMAND: Final = {
    "claude": "claude-code",
    "claude-code": "claude-code",
    "codex": "codex",
    "gemini": "gemini-cli",
    "gemini-cli": "gemini-cli",
    "cursor-agent": "cursor",
    "opencode": "opencode",
    "pi": "pi",
}
_BY_PACKAGE: Final = {
    "@anthropic-ai/claude-code": "claude-code",
    "@openai/codex": "codex",
    "@google/gemini-cli": "gemini-cli",
    "opencode-ai": "opencode",
    "pi-coding-agent": "pi",
}
KNOWN: Final = frozenset(_BY_COMMAND.values())


def is_passed_over(name: str, words: Sequence[str]) -> bool:
    """Tell whether a process is a shell, a launcher or our own command, and so nobody's client."""
    command = _command(name, words)
    if command in _SHELLS or command in _LAUNCHERS or command in _OURS:
        return True
    script = _script(command, words)
    if script is None:
        return False
    return _base(script) in _OURS or script.split(".")[0] == _PACKAGE


def is_init(name: str, words: Sequence[str]) -> bool:
    """Tell whether a process is the system's first, which adopts orphans."""
    return _command(name, words) in _INITS


def client_name(name: str, words: Sequence[str]) -> str:
    """Return what a client is called: ``claude-code``, ``codex`` …, else the program's name."""
    command = _command(name, words)
    if command in _BY_COMMAND:
        return _BY_COMMAND[command]
    script = _script(command, words)
    path = (script or (words[0] if words else "")).replace("\\", "/")
    for package, known in _BY_PACKAGE.items():
        if f"/{package}/" in path:
            return known
    if script is not None:
        base = _base(script)
        return _BY_COMMAND.get(base, base) or command
    return command


def _command(name: str, words: Sequence[str]) -> str:
    """Return the name of the program: by its first word, since a name is cut at 15 characters."""
    first = _base(words[0].split(" ")[0]) if words and words[0] else ""
    return first or _base(name)


def _base(path: str) -> str:
    """Return a program's bare name; a login shell's hyphen and Windows' extensions go."""
    base = path.replace("\\", "/").rpartition("/")[2].removeprefix("-").lower()
    return re.sub(r"\.(exe|cmd|com|bat|[cm]?js|py)\Z", "", base)


def _script(command: str, words: Sequence[str]) -> str | None:
    """Return the script or module that an interpreter runs; None when it runs none by name."""
    if not re.match(_INTERPRETER, command):
        return None
    rest = iter(words[1:])
    for word in rest:
        if word == "-m":
            return next(rest, None)
        if word in {"-c", "-e", "-"}:
            return None
        if word in _TAKES_A_WORD:
            next(rest, None)
        elif not word.startswith("-"):
            return word
    return None
