"""Where the nearest ledger is: found without importing what opens one."""

from __future__ import annotations

import os
from pathlib import Path

from agent_chatroom_ledger.storage import layout


def named_root(text: str) -> Path:
    """Return the directory that a person has named: absolute, `~` being their home.

    `..` is taken by the text and not through links, and a `~` that is nobody's stays as it is.
    """
    # Path.expanduser raises where a `~` is nobody's, and Path.absolute leaves `..` in.
    return Path(os.path.abspath(os.path.expanduser(text)))  # noqa: PTH100, PTH111 - see above it


def find_root(directory: Path) -> Path | None:
    """Return the root of the nearest ledger, from a directory upwards as git looks; or None."""
    return layout.find_root(directory)


def is_root(directory: Path) -> bool:
    """Tell whether a directory is the root of a ledger."""
    return layout.is_ledger(directory)
