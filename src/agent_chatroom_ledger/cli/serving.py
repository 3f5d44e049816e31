"""Starting the MCP server: what it takes from this process, and what it may not do without."""

from __future__ import annotations

import gc
import os
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
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
    gc.collect()
    gc.freeze()
    gc.enable()
