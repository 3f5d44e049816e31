"""`rooms stats`: what the ledger holds, and the room it takes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from agent_chatroom_ledger.cli.options import common
from agent_chatroom_ledger.cli.terminal import plain

if TYPE_CHECKING:
    from collections.abc import Iterator

    from agent_chatroom_ledger.cli.session import Session

_AUTHORS_SHOWN = 10


@click.command("stats")
@common
@click.pass_obj
def command(session: Session) -> None:
    """Count rooms, messages and authors, and measure packs and journal.

    Bytes per message are all of git's objects, views and commits included, divided by messages.
    """
    import msgspec

    from agent_chatroom_ledger.upkeep import stats

    with session.read() as ledger:
        document = msgspec.to_builtins(stats(ledger))
    session.show(document, _lines(document))


def _lines(found: dict[str, Any]) -> Iterator[str]:
    space = found["space"]
    authors = [f"{plain(name)} {n}" for name, n in list(found["authors"].items())[:_AUTHORS_SHOWN]]
    more = len(found["authors"]) - len(authors)
    rows = {
        "rooms": f"{found['rooms']} ({found['archived']} archived beside them)",
        "messages": f"{found['messages']} ({found['record_bytes']} bytes of records)",
        "operations": str(found["operations"]),
        "authors": f"{', '.join(authors) or 'none'}{f' and {more} more' if more else ''}",
        "on disk": f"{found['bytes_per_message']} bytes a message",
        "packs": f"{space['packs']} ({space['pack_bytes']} bytes)",
        "loose objects": f"{space['loose_objects']} ({space['loose_bytes']} bytes)",
        "journal": f"{space['generations']} generations ({space['journal_bytes']} bytes)",
        "derived": f"{space['derived_bytes']} bytes",
    }
    width = max(map(len, rows))
    for name, value in rows.items():
        yield f"{name.ljust(width)}  {value}"
