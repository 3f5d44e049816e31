"""`rooms completion`: the script that completes commands, options and room names in a shell."""

from __future__ import annotations

import click

from agent_chatroom_ledger.cli.options import common
from agent_chatroom_ledger.cli.session import Session

SHELLS = ("bash", "zsh", "fish")


@click.command("completion")
@click.argument("shell", type=click.Choice(SHELLS))
@common
@click.pass_context
def command(ctx: click.Context, shell: str) -> None:
    """Print the completion script of a shell.

    For bash 4.4 or newer, zsh and fish.

    \b
    bash:  eval "$(rooms completion bash)"      in ~/.bashrc
    zsh:   eval "$(rooms completion zsh)"       in ~/.zshrc
    fish:  rooms completion fish > ~/.config/fish/completions/rooms.fish
    """  # noqa: D301 - \b is click's mark for a paragraph that keeps its lines
    from click.shell_completion import get_completion_class

    from agent_chatroom_ledger.cli.program import complete_variable

    session = ctx.ensure_object(Session)
    family = get_completion_class(shell)
    if family is None:
        raise click.UsageError(f"click knows no completion for {shell}.")
    root = ctx.find_root()
    maker = family(root.command, {}, session.program, complete_variable(session.program))
    # Not maker.source(): for bash it would start a bash to ask for its version.
    script = maker.source_template % maker.source_vars()
    session.show({"shell": shell, "script": script}, [script.rstrip("\n")])
