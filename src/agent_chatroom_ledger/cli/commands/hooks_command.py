"""`rooms hooks`: let git call the ledger's hooks."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from agent_chatroom_ledger.cli.options import common
from agent_chatroom_ledger.cli.output import path_text
from agent_chatroom_ledger.cli.terminal import plain

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import TypeVar

    from agent_chatroom_ledger.cli.session import Session
    from agent_chatroom_ledger.hookscripts import Installed

    F = TypeVar("F", bound=Callable[..., Any])


@click.group("hooks")
@common
def command() -> None:
    """Install git's hooks in a clone or on a server, or take them away.

    A hook that is there already is kept and runs first.
    """


def _server_option(function: F) -> F:
    """Add `--server`."""
    return click.option(
        "--server",
        is_flag=True,
        help="The hook of a bare repository: --root or this directory.",
    )(function)


@command.command("install")
@_server_option
@click.option(
    "--command", "called", metavar="PATH", help="What the hooks call. [default: this `rooms`]"
)
@common
@click.pass_obj
def install(session: Session, server: bool, called: str | None) -> None:
    """Let git call the ledger: before a commit and a push, and after a merge or a checkout.

    With --server, the hook that judges every push to a bare repository. Installing again brings
    the hooks up to date and changes nothing else.
    """
    from agent_chatroom_ledger import hookscripts

    found = hookscripts.install(
        _root(session, server=server), server=server, command=called or _own_command()
    )
    _show(session, found, "Installed")


@command.command("uninstall")
@_server_option
@common
@click.pass_obj
def uninstall(session: Session, server: bool) -> None:
    """Take the ledger's hooks away; a hook that was there before has its name again."""
    from agent_chatroom_ledger import hookscripts

    found = hookscripts.uninstall(_root(session, server=server), server=server)
    _show(session, found, "Took away")


def _root(session: Session, *, server: bool) -> Path:
    if server:
        return Path(session.root_option or ".").absolute()
    root = session.root()
    if not root.exists:
        from agent_chatroom_ledger.cli.root import missing

        raise missing(root)
    return root.path


def _own_command() -> str:
    """Return the path of the command that is running, for git's PATH may be another."""
    name = Path(sys.argv[0])
    if name.name in {"rooms", "agent-chatroom-ledger"}:
        found = shutil.which(str(name))
        if found is not None:
            return str(Path(found).absolute())
    return shutil.which("rooms") or "rooms"


def _show(session: Session, found: Installed, verb: str) -> None:
    document = {
        "directory": path_text(found.directory),
        "hooks": list(found.hooks),
        "chained": list(found.chained),
    }
    lines = [f"{verb}: {', '.join(found.hooks) or 'nothing'} ({plain(document['directory'])})"]
    lines += [f"Kept, and run first: {name}" for name in found.chained]
    session.show(document, lines)
