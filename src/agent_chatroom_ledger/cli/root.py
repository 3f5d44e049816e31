"""Which ledger a command works on."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from agent_chatroom_ledger.errors import NotFound
from agent_chatroom_ledger.ledger import Ledger
from agent_chatroom_ledger.roots import named_root

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

ROOT_VARIABLE: Final = "ROOMS_ROOT"
APPLICATION: Final = "agent-chatroom-ledger"


class Root(NamedTuple):
    """A ledger's directory, and what named it: option, environment, directory or default."""

    path: Path
    source: str
    exists: bool


def find(option: str | None, environment: Mapping[str, str], directory: Path) -> Root:
    """Find the ledger: `--root`, `ROOMS_ROOT`, the nearest directory upwards, the user's own.

    A directory that was named is taken as it is; only an unnamed one is looked for upwards. The
    answer says whether a ledger is there.
    """
    named = option or environment.get(ROOT_VARIABLE) or None
    if named is not None:
        path = named_root(named)
        return Root(path, "option" if option else "environment", _holds_ledger(path))
    nearest = Ledger.find(directory)
    if nearest is not None:
        return Root(nearest, "directory", exists=True)
    path = default_path()
    return Root(path, "default", _holds_ledger(path))


def default_path() -> Path:
    """Return the directory of the user's own ledger, in the platform's data directory."""
    from platformdirs import user_data_path

    return user_data_path(APPLICATION, appauthor=False)


def missing(root: Root) -> NotFound:
    """Describe a root that holds no ledger, and the way out for the way it was named."""
    path = str(root.path)
    if root.source == "default":
        return NotFound(
            "There is no ledger in this directory or above it, and none of your own yet at "
            f"{path}. `rooms init` makes one here; `rooms post --create` begins your own.",
            root=path,
        )
    named = {"option": "--root", "environment": ROOT_VARIABLE}[root.source]
    what = "is not a ledger" if root.path.is_dir() else "does not exist"
    return NotFound(
        f"{path} (named by {named}) {what}. `rooms init {_quoted(path)}` makes a ledger there.",
        root=path,
    )


def _holds_ledger(path: Path) -> bool:
    return Ledger.find(path) == path


def _quoted(path: str) -> str:
    import shlex

    return shlex.quote(path)
