"""`rooms export`: a room written out for others."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import click

from agent_chatroom_ledger.cli.indexed import timed
from agent_chatroom_ledger.cli.options import at_option, common, moment_of, room_argument
from agent_chatroom_ledger.cli.output import path_text, write_text
from agent_chatroom_ledger.cli.shapes import room_shape
from agent_chatroom_ledger.cli.terminal import plain

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from agent_chatroom_ledger.cli.session import Session

_BLOCK_CHARS = 65_536


@click.command("export")
@room_argument
@click.option(
    "--format",
    "form",
    type=click.Choice(["md", "json", "jsonl", "html"]),
    default="md",
    show_default=True,
    help="Markdown, one JSON document, a JSON line a message, or one HTML page.",
)
@at_option
@click.option("--lens", is_flag=True, help="What the policy shows, rather than all that was said.")
@click.option("--output", metavar="FILE", help="Write to FILE, whole or not at all.")
@common
@click.pass_obj
def command(
    session: Session,
    room_name: str,
    form: str,
    at: str | None,
    lens: bool,
    output: str | None,
) -> None:
    """Write ROOM out, to standard output or a file.

    As it is, or with --at as it was at any commit or time. The HTML page needs no other file and
    no script, and nothing in it can run. With --json (and --output) it is said what was written.
    """
    from agent_chatroom_ledger.exporting import export

    if session.json and output is None:
        raise click.UsageError("--json goes with --output; the room as JSON is --format json.")
    when = moment_of(at)
    with timed(session, when) as ledger:
        room = ledger.room(room_name, at=when)
        parts = export(room, form, at=when, shown=lens)
        if output is None:
            for block in _blocks(parts):
                write_text(block)
            return
        written = _write(Path(output), parts)
        document = {
            "room": room_shape(room),
            "format": form,
            "output": path_text(Path(output).absolute()),
            "bytes": written,
        }
    session.show(document, [f"{plain(output)}: {written} bytes"])


def _blocks(parts: Iterable[str]) -> Iterator[str]:
    """Lay small parts together: each block is a write of its own."""
    waiting: list[str] = []
    chars = 0
    for part in parts:
        waiting.append(part)
        chars += len(part)
        if chars >= _BLOCK_CHARS:
            yield "".join(waiting)
            waiting, chars = [], 0
    yield "".join(waiting)


def _write(output: Path, parts: Iterable[str]) -> int:
    """Write a file beside the one that is named, and put it in its place when it is whole."""
    import tempfile

    place = output.resolve()
    if place.exists() and not place.is_file():
        # A pipe or a device is written to as it is.
        with place.open("wb") as stream:
            return sum(stream.write(part.encode()) for part in parts)
    descriptor, name = tempfile.mkstemp(dir=place.parent, prefix=f".{place.name[:50]}.")
    temporary = Path(name)
    try:
        with os.fdopen(descriptor, "wb") as stream:
            written = sum(stream.write(part.encode()) for part in parts)
        mask = os.umask(0)
        os.umask(mask)
        temporary.chmod(0o666 & ~mask)
        temporary.replace(place)
    except BaseException:
        temporary.unlink()
        raise
    return written
