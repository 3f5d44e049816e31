"""How a client is to start us: by the bare name where its PATH leads here, else by the path."""

from __future__ import annotations

import os
import shlex
import shutil
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

PROGRAM: Final = "rooms"


@dataclass(frozen=True)
class Launcher:
    """The words that start us, and a warning where they are not the bare name."""

    words: tuple[str, ...]
    warning: str | None = None

    @property
    def command(self) -> str:
        """The words as a shell takes them."""
        return shlex.join(self.words)


def launcher(environment: Mapping[str, str], started_as: str) -> Launcher:
    """Find out what a client has to write; ``started_as`` is the script that is running.

    The bare name serves when a PATH without the active virtual environment, which agents are
    seldom started in, resolves to this installation. Otherwise the absolute script is named.
    """
    own = _own_script(environment, started_as)
    outside = os.pathsep.join(_outside_path(environment))
    found = shutil.which(PROGRAM, path=outside) if outside else None
    if own is None:
        words = (sys.executable, "-m", "agent_chatroom_ledger.cli")
        return Launcher(words, _warning(shlex.join(words), found))
    if found is not None and _same(Path(found), own):
        return Launcher((PROGRAM,))
    return Launcher((str(own),), _warning(str(own), found))


def _warning(written: str, found: str | None) -> str:
    what = f"leads to another installation ({found})" if found else f"has no `{PROGRAM}`"
    return (
        f"Outside of this virtual environment the PATH {what}, so clients are told {written}. That "
        f"path ends with this installation: install {PROGRAM} where agents start (`pipx install` "
        "or `uv tool install`) and run this again."
    )


def _outside_path(environment: Mapping[str, str]) -> list[str]:
    """Return the directories of PATH without those of the active virtual environment."""
    named = (environment.get(name) for name in ("VIRTUAL_ENV", "CONDA_PREFIX"))
    inside = {prefix for prefix in named if prefix}
    if sys.prefix != sys.base_prefix:
        inside.add(sys.prefix)
    hidden = {os.path.realpath(Path(prefix) / part) for prefix in inside for part in _SCRIPTS}
    parts = environment.get("PATH", os.defpath).split(os.pathsep)
    # A relative directory is another one wherever a client starts.
    return [
        part for part in parts if Path(part).is_absolute() and os.path.realpath(part) not in hidden
    ]


_SCRIPTS: Final = ("bin", "Scripts")


def _own_script(environment: Mapping[str, str], started_as: str) -> Path | None:
    """Return the script of this installation: the running one, else that beside the interpreter."""
    if Path(started_as).stem == PROGRAM:
        found = shutil.which(started_as, path=environment.get("PATH"))
        if found is not None:
            return Path(os.path.abspath(found))  # noqa: PTH100 - as named: links are followed later
    for part in _SCRIPTS:
        beside = shutil.which(PROGRAM, path=str(Path(sys.prefix) / part))
        if beside is not None:
            return Path(beside)
    return None


def _same(one: Path, other: Path) -> bool:
    return os.path.realpath(one) == os.path.realpath(other)
