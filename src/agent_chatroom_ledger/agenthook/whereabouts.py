"""Which ledger an event is about, and where failures are written down.

The ledger is the one that every command finds: `--root`, ROOMS_ROOT, the nearest upwards from where
the client works, the user's own. Where there is none, nothing is made.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final

from agent_chatroom_ledger.roots import find_root, is_root

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
        path = Path(os.path.abspath(os.path.expanduser(named)))  # noqa: PTH100, PTH111 - as typed
        return path if is_root(path) else None
    if directory is not None and os.path.isabs(directory):  # noqa: PTH117 - a text, no path yet
        nearest = find_root(Path(directory))
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
    base = environment.get("XDG_DATA_HOME", "")
    if not base.strip():
        base = os.path.expanduser("~/.local/share")  # noqa: PTH111 - a home need not be there
    return Path(base) / APPLICATION if os.path.isabs(base) else None  # noqa: PTH117


def log_paths(root: Path | None, environment: Mapping[str, str]) -> tuple[Path, ...]:
    """Return where a failure may be written down, the best place first."""
    state = environment.get("XDG_STATE_HOME", "")
    if not state.strip():
        state = os.path.expanduser("~/.local/state")  # noqa: PTH111 - a home need not be there
    own = (Path(state) / APPLICATION / LOG,) if os.path.isabs(state) else ()  # noqa: PTH117
    return own if root is None else (root / ".git" / "ledger" / LOG, *own)
