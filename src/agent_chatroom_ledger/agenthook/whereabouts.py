"""Which ledger an event is about, and where failures are written down.

The ledger is the one that every command finds: `--root`, ROOMS_ROOT, the nearest upwards from where
the client works, the user's own. Where there is none, nothing is made.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final

from agent_chatroom_ledger.roots import find_root, is_root, named_root

if TYPE_CHECKING:
    from collections.abc import Mapping

APPLICATION: Final = "agent-chatroom-ledger"
LOG: Final = "hook.log"


def ledger_root(
    option: str | None, environment: Mapping[str, str], directory: str | None
) -> Path | None:
    """Return the root of the ledger; None where there is none."""
    named = option or environment.get("ROOMS_ROOT")
    if named:
        path = named_root(named)
        return path if is_root(path) else None
    if directory and (start := Path(directory)).is_absolute():
        nearest = find_root(start)
        if nearest is not None:
            return nearest
    own = _data_directory(environment)
    return own if own is not None and is_root(own) else None


def _data_directory(environment: Mapping[str, str]) -> Path | None:
    """Return where the user's own ledger would be.

    On Linux by hand: the library that knows the other platforms takes as long as a whole look.
    """
    if sys.platform != "linux":  # pragma: no cover - other platforms
        from platformdirs import user_data_path

        return user_data_path(APPLICATION, appauthor=False)
    base = _directory(environment, "XDG_DATA_HOME", "~/.local/share")
    return None if base is None else base / APPLICATION


def log_paths(root: Path | None, environment: Mapping[str, str]) -> tuple[Path, ...]:
    """Return where a failure may be written down, the best place first."""
    state = _directory(environment, "XDG_STATE_HOME", "~/.local/state")
    own = () if state is None else (state / APPLICATION / LOG,)
    return own if root is None else (root / ".git" / "ledger" / LOG, *own)


def _directory(environment: Mapping[str, str], variable: str, default: str) -> Path | None:
    """Return the directory that a variable names, else the default; None without a home."""
    named = environment.get(variable, "")
    try:
        path = Path(named) if named.strip() else Path(default).expanduser()
    except RuntimeError:  # there is no home
        return None
    return path if path.is_absolute() else None
