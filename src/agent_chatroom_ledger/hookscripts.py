"""Git's hooks as they are installed: a few lines of shell, the user's own kept and run first."""

from __future__ import annotations

import os
import re
import shlex
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from agent_chatroom_ledger.errors import Conflict, NotFound
from agent_chatroom_ledger.storage.layout import Layout
from agent_chatroom_ledger.storage.push import GitDirectory
from agent_chatroom_ledger.storage.repository import setting

if TYPE_CHECKING:
    from pathlib import Path

CLONE_HOOKS: Final = ("pre-commit", "post-merge", "post-checkout", "post-rewrite", "pre-push")
SERVER_HOOKS: Final = ("pre-receive",)
# Ready, but not installed beside pre-receive, which judges the whole push before anything moves.
ALL_HOOKS: Final = (*CLONE_HOOKS, *SERVER_HOOKS, "update")
_READS_INPUT: Final = frozenset({"post-rewrite", "pre-push", "pre-receive"})
USERS: Final = ".before-rooms"
_MARK: Final = "# A hook of the Agent Chatroom Ledger: "
_OWN: Final = re.compile(rf"^{re.escape(_MARK)}", re.MULTILINE)

_HEAD: Final = """\
#!/bin/sh
# A hook of the Agent Chatroom Ledger: put here by `rooms hooks install`, see docs/hooks.md.
# A hook that was here before is called {name}{users} now, and runs first.
own=$0{users}
rooms={command}
"""
_PLAIN: Final = """\
if [ -x "$own" ]; then "$own" "$@" || exit $?; fi
exec "${{ROOMS_COMMAND:-$rooms}}" hook {name} "$@"
"""
# Both read what git says, so it is kept; an x at its end keeps the last line's end.
_WITH_INPUT: Final = """\
said=$(cat; echo x)
if [ -x "$own" ]; then printf '%s' "${{said%x}}" | "$own" "$@" || exit $?; fi
printf '%s' "${{said%x}}" | "${{ROOMS_COMMAND:-$rooms}}" hook {name} "$@"
"""


def script(name: str, command: str = "rooms") -> str:
    """Return the shell script of one hook, which calls ``command``."""
    body = _WITH_INPUT if name in _READS_INPUT else _PLAIN
    return (_HEAD + body).format(name=name, users=USERS, command=shlex.quote(command))


@dataclass(frozen=True, kw_only=True)
class Installed:
    """Where hooks were put or taken away: which, and which of the user's run before them."""

    directory: Path
    hooks: tuple[str, ...]
    chained: tuple[str, ...]


def directory_of(root: Path, *, server: bool) -> Path:
    """Return where git looks for the hooks of a ledger, or of a server's bare repository.

    Raises NotFound when there is no repository, and Conflict when its configuration says that
    hooks lie outside of it: such a directory serves other repositories as well.
    """
    bare = all((root / name).exists() for name in ("HEAD", "objects", "refs"))
    git = root if bare else root / ".git"
    if not (git / "HEAD").is_file():
        what = "a git repository" if server else "the root of a ledger"
        raise NotFound(f"{root} is not {what}", root=str(root))
    named = setting(GitDirectory(git) if bare else Layout(root), "core", "hookspath")
    if not named:
        return git / "hooks"
    place = (root / os.path.expanduser(named)).resolve()  # noqa: PTH111 - the text may be no path
    if not place.is_relative_to(root.resolve()):
        raise Conflict(
            f"core.hooksPath is {place}, outside of this repository; copy the hooks there yourself "
            "(docs/hooks.md), or unset it",
            code="hooks_elsewhere",
            path=str(place),
        )
    return place


def install(root: Path, *, server: bool, command: str) -> Installed:
    """Put the hooks of a clone, or of a server, in their place; doing it again changes nothing.

    A hook that is there already is kept under another name and runs first. Raises Conflict when
    both are there: ours was replaced after it was installed.
    """
    directory = directory_of(root, server=server)
    directory.mkdir(parents=True, exist_ok=True)
    hooks = SERVER_HOOKS if server else CLONE_HOOKS
    for name in hooks:
        path, users = directory / name, directory / f"{name}{USERS}"
        if os.path.lexists(path) and not is_own(path) and os.path.lexists(users):
            raise Conflict(
                f"{path} and {users} are both not ours: join the two, then install again",
                code="hook_taken",
                path=str(path),
            )
    for name in hooks:
        path, users = directory / name, directory / f"{name}{USERS}"
        if os.path.lexists(path) and not is_own(path):
            path.rename(users)
        fresh = directory / f".{name}.new"
        fresh.write_text(script(name, command), encoding="utf-8")
        fresh.chmod(0o755)
        fresh.replace(path)
    return _state(directory, hooks)


def uninstall(root: Path, *, server: bool) -> Installed:
    """Take our hooks away and give the user's their names back; a hook that is not ours stays."""
    directory = directory_of(root, server=server)
    taken = []
    for name in SERVER_HOOKS if server else CLONE_HOOKS:
        path, users = directory / name, directory / f"{name}{USERS}"
        if not is_own(path):
            continue
        taken.append(name)
        if os.path.lexists(users):
            users.replace(path)
        else:
            path.unlink()
    return Installed(directory=directory, hooks=tuple(taken), chained=())


def is_own(path: Path) -> bool:
    """Tell whether a file is one of our hooks."""
    try:
        return _OWN.search(path.read_text(encoding="utf-8", errors="replace")) is not None
    except OSError:
        return False


def _state(directory: Path, hooks: tuple[str, ...]) -> Installed:
    chained = tuple(name for name in hooks if os.path.lexists(directory / f"{name}{USERS}"))
    return Installed(directory=directory, hooks=hooks, chained=chained)
