"""Who speaks: one client process is one agent, and a name is what the others call it.

A session id is only an alias of the process: it goes stale when the client clears or forks its
session. Pure values and rules; what the machine says comes in as arguments.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec

if TYPE_CHECKING:
    from collections.abc import Mapping

# A name from the environment, the strongest first; `--as` is stronger than all of them.
NAME_VARIABLES: Final = ("ROOMS_NAME", "PI_ROOMS_NAME", "PI_AGENT_NAME")
OPTION: Final = "option"
DERIVED: Final = "derived"
# What said a name, the strongest first.
SOURCES: Final = (OPTION, *NAME_VARIABLES, "session", "pane", "cwd", DERIVED)
# Those that no pin overrides.
SPOKEN: Final = frozenset((OPTION, *NAME_VARIABLES))

# Where a client tells the programs that it starts which session they belong to. Only the
# client's own variable counts: one client may have been started by another's tool.
_SESSION_VARIABLES: Final = {
    "claude-code": "CLAUDE_CODE_SESSION_ID",
    "codex": "CODEX_THREAD_ID",
    "gemini-cli": "GEMINI_SESSION_ID",
    "opencode": "OPENCODE_SESSION_ID",
}
# Multiplexers before terminals: what runs in one sees the variables of both.
_PANE_VARIABLES: Final = (
    ("zellij", "ZELLIJ_PANE_ID", "ZELLIJ_SESSION_NAME"),
    ("herdr", "HERDR_PANE_ID", ""),
    ("wezterm", "WEZTERM_PANE", ""),
    ("kitty", "KITTY_WINDOW_ID", "KITTY_PID"),
    ("iterm", "ITERM_SESSION_ID", ""),
    ("windows-terminal", "WT_SESSION", ""),
)


class ProcessId(msgspec.Struct, frozen=True):
    """One process and no other: a number is used again, a start time with it is not.

    ``started`` is in seconds: since the boot ``boot`` where the system names its boots, else since
    1970.
    """

    pid: int
    started: float
    boot: str = ""


class Client(msgspec.Struct, frozen=True, kw_only=True):
    """The program that an agent lives in, as one of our doors sees it.

    ``name`` is ``claude-code``, ``codex`` … or the executable's name; ``directory`` is where it
    works, absolute; ``door`` is ``cli``, ``mcp`` or ``hook``. ``seat`` tells agents apart that one
    process hosts (the callers of an HTTP server); it is empty for a process of its own.
    """

    process: ProcessId | None = None
    name: str = ""
    session: str | None = None
    pane: str | None = None
    directory: str = ""
    model: str | None = None
    door: str = "cli"
    seat: str = ""


class Identity(msgspec.Struct, frozen=True, kw_only=True):
    """The name that somebody acts under, and what said so.

    ``base`` is the name that was asked for; ``name`` is that or, where a live other holds it, one
    with a suffix. ``held`` tells whether presence is registered under the name for this client.
    ``warnings`` say which pins were not followed, and why.
    """

    name: str
    base: str
    source: str
    warnings: tuple[str, ...] = ()
    held: bool = False


def spoken_name(environment: Mapping[str, str]) -> tuple[str, str] | None:
    """Return the strongest name of the environment and its variable; an empty one is none."""
    for variable in NAME_VARIABLES:
        if name := environment.get(variable):
            return name, variable
    return None


def session_of(environment: Mapping[str, str], client_name: str) -> str | None:
    """Return the session that a client says it is in, if it says so."""
    variable = _SESSION_VARIABLES.get(client_name)
    return (environment.get(variable) or None) if variable else None


def pane_of(environment: Mapping[str, str]) -> str | None:
    """Return the pane of the terminal or multiplexer, such as ``tmux:%3``; None where none is."""
    if pane := environment.get("TMUX_PANE"):
        socket = environment.get("TMUX", "").partition(",")[0].rpartition("/")[2]
        return f"tmux:{pane}" if socket in {"", "default"} else f"tmux:{socket}:{pane}"
    for program, variable, scope in _PANE_VARIABLES:
        if pane := environment.get(variable):
            owner = environment.get(scope, "") if scope else ""
            return f"{program}:{owner}:{pane}" if owner else f"{program}:{pane}"
    return None
