"""Where the nearest ledger is: found without importing what opens one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agent_chatroom_ledger.storage import layout

if TYPE_CHECKING:
    from pathlib import Path


def find_root(directory: Path) -> Path | None:
    """Return the root of the nearest ledger, from a directory upwards as git looks; or None."""
    return layout.find_root(directory)


def is_root(directory: Path) -> bool:
    """Tell whether a directory is the root of a ledger."""
    return layout.is_ledger(directory)
