"""Options and arguments that several commands share."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import click

from agent_chatroom_ledger.cli.output import write_lines
from agent_chatroom_ledger.cli.session import Session

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from click.shell_completion import CompletionItem

    from agent_chatroom_ledger.domain.identities import Identity

F = TypeVar("F", bound="Callable[..., Any]")


def common(function: F) -> F:
    """Add `--root`, `--json` and `--debug`, which may stand before or after a command's name.

    And `--help`: click's own would load the message catalogues for one sentence, in every command.
    """
    for option in (
        click.option(
            "-h",
            "--help",
            is_flag=True,
            is_eager=True,
            expose_value=False,
            callback=_show_help,
            help="Show this message and exit.",
        ),
        click.option(
            "--debug",
            is_flag=True,
            expose_value=False,
            callback=_set_debug,
            help="Show the traceback of an error.",
        ),
        click.option(
            "--json",
            is_flag=True,
            expose_value=False,
            callback=_set_json,
            help="Write one JSON document instead of text.",
        ),
        click.option(
            "--root",
            metavar="DIR",
            expose_value=False,
            callback=_set_root,
            help="The ledger's directory.",
        ),
    ):
        function = option(function)
    return function


def _session(ctx: click.Context) -> Session:
    return ctx.ensure_object(Session)


def _show_help(ctx: click.Context, _param: click.Parameter, value: bool) -> None:
    if value and not ctx.resilient_parsing:
        write_lines([ctx.get_help()])
        ctx.exit()


def _set_root(ctx: click.Context, _param: click.Parameter, value: str | None) -> None:
    if value is None:
        return
    if not value:
        raise click.BadParameter("names no directory", ctx, _param)
    _session(ctx).root_option = value


def _set_json(ctx: click.Context, _param: click.Parameter, value: bool) -> None:
    if value:
        _session(ctx).json = True


def _set_debug(ctx: click.Context, _param: click.Parameter, value: bool) -> None:
    if value:
        _session(ctx).debug = True


class RoomName(click.ParamType[str]):
    """A room named by path, slug, title or id; the shell completes its path."""

    name = "room"

    def shell_complete(
        self,
        ctx: click.Context,
        param: click.Parameter,
        incomplete: str,
    ) -> list[CompletionItem[str]]:
        """Offer the paths of rooms that begin with what is typed; none when there is no ledger."""
        from click.shell_completion import CompletionItem

        del param
        try:
            with _session(ctx).read() as ledger:
                paths = [room.path.removeprefix("rooms/") for room in ledger.rooms()]
        except Exception:  # noqa: BLE001 - a shell waits for words; an error would garble its line
            return []
        return [CompletionItem(path) for path in paths if path.startswith(incomplete)]


ROOM = RoomName()


def room_argument(function: F) -> F:
    """Add the required argument ROOM."""
    return click.argument("room_name", metavar="ROOM", type=ROOM)(function)


def at_option(function: F) -> F:
    """Add `--at WHEN`; what it means is `moment_of`."""
    return click.option(
        "--at", metavar="WHEN", help="As of a commit or a time (an ISO time, 2h, yesterday)."
    )(function)


def moment_of(at: str | None) -> str | None:
    """Return what `--at` means to the ledger: a revision, or a full UTC time."""
    if at is None:
        return None
    # Imported only where it is asked for: commands must start quickly.
    from agent_chatroom_ledger.cli.moments import moment

    return moment(at)


def as_option(text: str) -> Callable[[F], F]:
    """Add `--as NAME`, whose default is one's own name; see `named`."""
    return click.option("--as", "name", metavar="NAME", help=f"{text} [default: your own name]")


def apply_option(function: F) -> F:
    """Add `--apply`, without which an administrative command only prints its plan."""
    return click.option("--apply", is_flag=True, help="Write; without it the plan is printed.")(
        function
    )


def requester_options(function: F) -> F:
    """Add `--as` and `--reason`, which an administrative operation records."""
    function = click.option(
        "--reason", default="", metavar="TEXT", help="Why; kept with the operation."
    )(function)
    return as_option("Who asks for it.")(function)


def named(name: str | None) -> str:
    """Return who acts: `--as`, else the environment's name, a pin's, or one of the directory.

    An empty `--as`, such as that of a shell's unset variable, is a usage error.
    """
    return identity_here().name if name is None else _said(name)


def requester(name: str | None) -> str:
    """Return who asks for an administrative operation; "Ledger" when nobody is named.

    A name that was only derived names nobody, unless an agent lives under it.
    """
    if name is not None:
        return _said(name)
    found = identity_here()
    return found.name if found.held or found.source != "derived" else "Ledger"


def _said(name: str) -> str:
    if not name:
        raise click.UsageError("--as names nobody.", click.get_current_context())
    return name


def identity_here() -> Identity:
    """Return under which name this run acts when no `--as` was given."""
    from agent_chatroom_ledger.identity import whoami

    root = _session(click.get_current_context()).root()
    return whoami(root.path if root.exists else None, os.environ, Path.cwd())
