"""Starting the MCP server: what it takes from this process, and what it may not do without."""

from __future__ import annotations

import gc
import os
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

import click

from agent_chatroom_ledger.cli import output

if TYPE_CHECKING:
    import socket
    from collections.abc import Callable

    from agent_chatroom_ledger.cli.session import Session
    from agent_chatroom_ledger.ledger import Ledger


def serve_stdio(session: Session, name: str | None) -> None:
    """Serve the program that started this one, over standard streams, until it closes them."""
    _require_sdk()
    # The wire is answered before anything heavy is loaded.
    from agent_chatroom_ledger import __version__
    from agent_chatroom_ledger.mcp.greeting import Wire

    wire = Wire.of_standard_streams(__version__)
    wire.start()
    from agent_chatroom_ledger.mcp.speakers import House, OwnSpeaker
    from agent_chatroom_ledger.mcp.stdio import serve

    _loaded()
    house = House(_opener(session))
    speaker = OwnSpeaker(house, os.environ, str(Path.cwd()), explicit=name)
    serve(wire, house, speaker, lambda: os._exit(0))


def serve_http(
    session: Session, name: str | None, *, host: str, port: int, allowed: tuple[str, ...]
) -> None:
    """Serve clients over HTTP until a signal asks for the end."""
    _require_sdk()
    from agent_chatroom_ledger.mcp.guard import Guard

    guard = Guard(host, allowed)
    if not guard.is_loopback:
        _require_tokens(session, host)
    # From here on clients can connect; they are answered when the rest is loaded.
    listening = _listen(host, port)
    from agent_chatroom_ledger.mcp.http import PATH, serve
    from agent_chatroom_ledger.mcp.speakers import House, OwnSpeaker

    _loaded()
    shown = f"[{host}]" if ":" in host else host
    url = f"http://{shown}:{listening.getsockname()[1]}{PATH}"

    def ready() -> None:
        session.show({"url": url}, [url])
        output.flush()

    house = House(_opener(session))
    speaker = OwnSpeaker(house, os.environ, str(Path.cwd()), explicit=name, of_client=False)
    serve(listening, house, speaker, guard, ready)


def _require_tokens(session: Session, host: str) -> None:
    from agent_chatroom_ledger.errors import Conflict
    from agent_chatroom_ledger.tokens import list_tokens

    with session.read() as ledger:
        if not list_tokens(ledger):
            raise Conflict(
                f"{host} can be reached from other machines, where every client needs a token, and "
                "this ledger has none: `rooms tokens create NAME` makes one.",
                code="no_tokens",
                host=host,
            )


def _listen(host: str, port: int) -> socket.socket:
    import socket

    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
        return socket.create_server((host, port), family=family)
    except OSError as error:
        raise click.ClickException(
            f"Cannot listen on {host} port {port}: {error.strerror or error}. Another --port, "
            "or 0 for a free one, may do."
        ) from error


def _opener(session: Session) -> Callable[[], Ledger]:
    def opened() -> Ledger:
        return session.write()

    return opened


def _require_sdk() -> None:
    if find_spec("mcp") is None:
        raise click.ClickException(
            "The MCP server needs the extra `mcp`, which is not installed here: "
            f"{sys.executable} -m pip install 'agent-chatroom-ledger[mcp]'"
        )


def _loaded() -> None:
    """Let what was loaded so far be: it lives as long as the process does."""
    gc.freeze()
    gc.enable()
