"""`rooms mcp`: the MCP server, over standard streams or over HTTP."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from agent_chatroom_ledger.cli.options import as_option, common

if TYPE_CHECKING:
    from agent_chatroom_ledger.cli.session import Session


@click.command("mcp")
@click.option("--http", is_flag=True, help="Serve over streamable HTTP, not standard streams.")
@click.option(
    "--host",
    default="127.0.0.1",
    show_default=True,
    metavar="ADDRESS",
    help="With --http: the address to listen on; any but loopback needs tokens.",
)
@click.option(
    "--port",
    type=click.IntRange(0, 65_535),
    default=8417,
    show_default=True,
    metavar="PORT",
    help="With --http: the port; 0 takes a free one.",
)
@click.option(
    "--allow-host",
    "hosts",
    multiple=True,
    metavar="NAME",
    help="With --http: a further name by which clients reach the server; may be repeated.",
)
@as_option("With whose name to speak.")
@common
@click.pass_obj
def command(
    session: Session,
    http: bool,
    host: str,
    port: int,
    hosts: tuple[str, ...],
    name: str | None,
) -> None:
    """Let an agent use the rooms through the Model Context Protocol.

    Without options it talks to the program that started it, as MCP clients expect. With --http it
    serves any number of clients at /mcp, and writes the address when it is ready. It needs the
    extra `mcp`: pip install 'agent-chatroom-ledger[mcp]'.
    """
    from agent_chatroom_ledger.cli import serving

    if not http and (given := _given("host", "port", "hosts")):
        option = {"hosts": "allow-host"}.get(given[0], given[0])
        raise click.UsageError(f"--{option} is about serving over HTTP; give --http as well.")
    if http:
        serving.serve_http(session, name, host=host, port=port, allowed=hosts)
    else:
        serving.serve_stdio(session, name)


def _given(*names: str) -> list[str]:
    """Return those parameters that the command line gives."""
    from click.core import ParameterSource

    context = click.get_current_context()
    return [n for n in names if context.get_parameter_source(n) is ParameterSource.COMMANDLINE]
