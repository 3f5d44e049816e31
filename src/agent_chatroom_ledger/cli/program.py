"""The `rooms` command: a group that imports a command when it is asked for, and not before."""

from __future__ import annotations

import os
import sys
import warnings
from importlib import import_module
from typing import TYPE_CHECKING, Any, NoReturn, TextIO

import click

from agent_chatroom_ledger.cli import INTERRUPTED, TERMINATED, Terminated, output
from agent_chatroom_ledger.cli.options import common
from agent_chatroom_ledger.cli.session import Session

if TYPE_CHECKING:
    from collections.abc import Sequence

PROGRAM = "rooms"

# The sections of the help text, in the order in which somebody new needs them; each name is a
# module of `cli.commands` (with `_` where Python keeps the word for itself).
SECTIONS: tuple[tuple[str, tuple[str, ...]], ...] = (
    (
        "Talk",
        (
            "post",
            "dm",
            "reply-all",
            "inbox",
            "wait",
            "receipts",
            "read",
            "tail",
            "unread",
            "seen",
            "join",
            "leave",
            "who",
        ),
    ),
    ("Look", ("list", "show", "lens", "log", "diff", "export")),
    (
        "Run a room",
        (
            "create",
            "members",
            "coverage",
            "place",
            "duplicate",
            "policy",
            "versions",
            "compile",
            "archive",
            "restore",
        ),
    ),
    ("Run a ledger", ("init", "operations", "verify", "stats", "gc", "import", "root")),
    ("Work with git", ("hooks", "hook")),
    ("Serve agents", ("pins", "config", "mcp", "tokens")),
    ("Begin", ("demo", "setup", "completion")),
)
COMMANDS: tuple[str, ...] = tuple(name for _, names in SECTIONS for name in names)
# What the earlier chatroom called its commands: hidden, and made by `cli.originals`.
ORIGINALS = frozenset(
    {
        "add-participant",
        "add-standin",
        "apply-compile-policy",
        "archive-room",
        "clear-compile-policy",
        "compile-policy",
        "consumer-state",
        "create-room",
        "duplicate-message",
        "duplicate-range",
        "exclude-messages",
        "include-messages",
        "mark-seen",
        "mark-version-prepped",
        "operation-log",
        "participant-coverage",
        "place-message",
        "place-range",
        "remove-participant",
        "render-consumer-lens",
        "render-lens",
        "restore-room",
        "scan",
        "update-message-versions",
        "version-audit",
    }
)


class LazyGroup(click.Group):
    """A group whose commands are imported by name when they are first looked up."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Name every command, in the order of the help text."""
        del ctx
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import and return one command; None when there is no such command."""
        del ctx
        if cmd_name in ORIGINALS:
            from agent_chatroom_ledger.cli.originals import command_of

            return command_of(cmd_name)
        if cmd_name not in COMMANDS:
            return None
        name = cmd_name.replace("-", "_")
        module = import_module(f"agent_chatroom_ledger.cli.commands.{name}_command")
        command = module.command
        if not isinstance(command, click.Command):
            raise TypeError(f"{module.__name__}.command is not a click command")
        return command

    def resolve_command(
        self,
        ctx: click.Context,
        args: list[str],
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Resolve the command, naming near ones when it does not exist."""
        name = args[0]
        known = name in COMMANDS or name in ORIGINALS
        if not known and not name.startswith("-") and not ctx.resilient_parsing:
            import difflib

            near = difflib.get_close_matches(name, COMMANDS, 3)
            hint = f" Did you mean {', '.join(near)}?" if near else ""
            raise click.UsageError(f"There is no command {name!r}.{hint}", ctx)
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the commands in their sections."""
        for title, names in SECTIONS:
            rows = []
            for name in names:
                command = self.get_command(ctx, name)
                if command is not None:
                    rows.append((name, command.get_short_help_str(limit=70)))
            with formatter.section(title):
                formatter.write_dl(rows)

    def main(  # type: ignore[override]  # ours takes less than click's
        self,
        args: Sequence[str] | None = None,
        prog_name: str | None = None,
        **extra: Any,  # noqa: ANN401 - click's own signature; what a caller may add to a context
    ) -> NoReturn:
        """Run with our own error mapping, which click's would otherwise come before."""
        del extra
        arguments = sys.argv[1:] if args is None else list(args)
        sys.exit(run(arguments, prog_name or PROGRAM))


def _show_version(ctx: click.Context, _param: click.Parameter, value: bool) -> None:
    if not value or ctx.resilient_parsing:
        return
    from agent_chatroom_ledger import __version__

    output.write_lines([f"{PROGRAM} {__version__}"])
    ctx.exit()


@click.group(
    cls=LazyGroup,
    invoke_without_command=True,
    subcommand_metavar="COMMAND [ARGS]...",
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog=(
        "Exit status: 0 ok, 1 failure, 2 usage, 3 not found, 4 conflict, 5 busy, 6 corrupt, "
        "124 timed out, 130 interrupted. Administrative commands (create, members, place, "
        "duplicate, policy, archive, restore, verify --repair and others that have --apply) print "
        "their plan and write only with --apply."
    ),
)
@common
@click.option(
    "--version",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_show_version,
    help="Show the version and exit.",
)
@click.pass_context
def rooms(ctx: click.Context) -> None:
    """Chat rooms for people and agents in one git repository.

    Every message is a commit, and every reader keeps a position of its own. The ledger is the one
    of --root, else of ROOMS_ROOT, else the nearest directory upwards that holds one, else the one
    in your data directory; `rooms root` says which.
    """
    if ctx.invoked_subcommand is None:
        output.write_lines([ctx.get_help()])


def run(arguments: Sequence[str], program: str | None = None) -> int:
    """Run one command line and return its exit status; every error is shown, none is raised.

    A closed pipe is an ordinary end: whoever reads has read enough, and what was asked for has
    been done by then. An interrupt gives 130.
    """
    prog = program or _program_name()
    session = Session(program=prog, arguments=tuple(arguments))
    _prepare_streams()
    warnings.showwarning = _show_warning
    instruction = os.environ.get(complete_variable(prog))
    try:
        if instruction:
            from click.shell_completion import shell_complete

            return shell_complete(
                rooms, {"obj": session}, prog, complete_variable(prog), instruction
            )
        with rooms.make_context(prog, list(arguments), obj=session) as ctx:
            rooms.invoke(ctx)
        output.flush()
    except output.ReaderGone:
        _drop_output()
        return 0
    except (KeyboardInterrupt, click.Abort):
        return _end_interrupted()
    except Terminated:
        return _flushed(TERMINATED)
    except click.exceptions.Exit as end:
        return _flushed(end.exit_code)
    except Exception as error:  # noqa: BLE001 - the last door: a traceback never reaches a user
        from agent_chatroom_ledger.cli.failures import show_failure

        try:
            return _flushed(show_failure(session, error))
        except (OSError, output.ReaderGone):
            # Not even the error can be written; the status still says that there was one.
            _drop_output()
            return 1
    return 0


def _program_name() -> str:
    """Tell under which of its names the command was started."""
    name = os.path.basename(sys.argv[0])  # noqa: PTH119 - a name as the shell gives it, before anything else is loaded
    return name if name in {PROGRAM, "agent-chatroom-ledger"} else PROGRAM


def complete_variable(program: str) -> str:
    """Name the variable through which a shell asks for completions."""
    return f"_{program}_COMPLETE".replace("-", "_").upper()


def _prepare_streams() -> None:
    """Let there be streams, and text that an encoding lacks be shown escaped instead of failing."""
    if sys.stdout is None:
        # Closed by whoever started us. The descriptor is taken, lest a file of ours gets it.
        sys.stdout = open(os.devnull, "w", encoding="utf-8")  # noqa: PTH123, SIM115 - it stays open until the process ends
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w", encoding="utf-8")  # noqa: PTH123, SIM115 - it stays open until the process ends
    for stream in (sys.stdout, sys.stderr):
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(errors="backslashreplace")


def _show_warning(
    message: Warning | str,
    category: type[Warning],
    filename: str,
    lineno: int,
    file: TextIO | None = None,
    line: str | None = None,
) -> None:
    """Show a warning as a sentence: where in our code it was raised is nothing to the user."""
    del category, filename, lineno, file, line
    from agent_chatroom_ledger.domain.display import terminal_safe

    sys.stderr.write(f"{PROGRAM}: warning: {terminal_safe(str(message), lines=False)}\n")


def _flushed(status: int) -> int:
    """Write what is held back; output that cannot be written is a failure, an unread one is not."""
    try:
        output.flush()
    except output.ReaderGone:
        _drop_output()
    except OSError:
        _drop_output()
        return status or 1
    return status


def _end_interrupted() -> int:
    _flushed(INTERRUPTED)
    return INTERRUPTED


def _drop_output() -> None:
    """Point stdout at nothing, so that the interpreter's own flush at exit cannot fail."""
    try:
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)
    except (OSError, ValueError):
        # No descriptor behind stdout (a test's buffer): nothing will be flushed into a pipe.
        return
