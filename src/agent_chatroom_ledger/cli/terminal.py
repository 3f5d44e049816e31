"""What a terminal is shown: colours, tables and progress, and nothing that could drive it."""

from __future__ import annotations

import os
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING, NamedTuple, TextIO

from agent_chatroom_ledger.domain.display import terminal_safe

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence


class Paint(NamedTuple):
    """Colours for a stream; without `enabled` every text comes back as it went in."""

    enabled: bool

    @classmethod
    def of(cls, stream: TextIO) -> Paint:
        """Return the colours of a stream: only a terminal has some, and NO_COLOR takes them."""
        return cls(
            stream.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
        )

    def faint(self, text: str) -> str:
        """Step back: numbers, times, days."""
        return f"\x1b[2m{text}\x1b[22m" if self.enabled else text

    def strong(self, text: str) -> str:
        """Stand out: who speaks, what it is about."""
        return f"\x1b[1m{text}\x1b[22m" if self.enabled else text

    def good(self, text: str) -> str:
        """Say that all is well."""
        return f"\x1b[32m{text}\x1b[39m" if self.enabled else text

    def bad(self, text: str) -> str:
        """Say that something is wrong."""
        return f"\x1b[31m{text}\x1b[39m" if self.enabled else text


def plain(text: object) -> str:
    """Make one line of foreign text safe: every control character is shown escaped."""
    return terminal_safe(str(text), lines=False)


def table(headings: Sequence[str], rows: Iterable[Sequence[object]]) -> Iterator[str]:
    """Lay out rows under headings: through rich on a terminal, else in plain columns.

    Cells are made safe here. A row whose last cell is long is cut by nothing: in a pipe the whole
    text is wanted, and on a terminal rich folds it.
    """
    safe = [[plain(cell) for cell in row] for row in rows]
    if sys.stdout.isatty():
        yield from _rich_table(headings, safe)
        return
    widths = [
        max(len(heading), *(len(row[column]) for row in safe)) if safe else len(heading)
        for column, heading in enumerate(headings)
    ]
    for row in [list(headings), *safe]:
        cells = [cell.ljust(width) for cell, width in zip(row, widths, strict=True)]
        yield "  ".join(cells).rstrip()


def _rich_table(headings: Sequence[str], rows: list[list[str]]) -> Iterator[str]:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    console = Console(file=sys.stdout, highlight=False, no_color=not Paint.of(sys.stdout).enabled)
    sheet = Table(box=None, pad_edge=False, header_style="dim")
    for heading in headings:
        sheet.add_column(heading, overflow="fold")
    for row in rows:
        # Text, not markup: a title such as "[bold]" is a title.
        sheet.add_row(*(Text(cell) for cell in row))
    with console.capture() as capture:
        console.print(sheet)
    yield from capture.get().rstrip("\n").split("\n")


@contextmanager
def progress(label: str, *, in_bytes: bool = False) -> Iterator[Callable[[int, int], None]]:
    """Show on stderr that work is going on; yields a call that takes (done, of all).

    With `in_bytes` it shows how much of all is done, otherwise how long it has taken. Without a
    terminal nothing is shown and nothing is imported.
    """
    if not sys.stderr.isatty():
        yield lambda _done, _total: None
        return
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        DownloadColumn,
        Progress,
        ProgressColumn,
        TextColumn,
        TimeElapsedColumn,
    )

    columns: list[ProgressColumn] = [TextColumn("{task.description}"), BarColumn()]
    if in_bytes:
        columns.append(DownloadColumn())
    columns.append(TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(label, total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)
