"""How results reach stdout: one JSON document, JSON Lines, or lines of text."""

from __future__ import annotations

import os
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

_DELETE = 0x7F


class ReaderGone(Exception):
    """Whoever reads our stdout has read enough."""


def json_text(document: object, *, indent: int | None = None) -> str:
    r"""Encode a document as JSON that is safe to show on a terminal.

    JSON escapes C0 controls by itself; DEL, the C1 controls, the line separators and the
    characters that turn the direction of text are escaped as well, as `\uXXXX`, which reads back
    as the same text.
    """
    import msgspec

    data = msgspec.json.encode(document)
    if indent is not None:
        data = msgspec.json.format(data, indent=indent)
    text = data.decode()
    if data.isascii() and _DELETE not in data:
        return text
    import re

    hidden = "[\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff]"
    return re.sub(hidden, lambda found: f"\\u{ord(found[0]):04x}", text)


def write_json(document: dict[str, Any]) -> None:
    """Write one document, indented where a person looks at it and on one line in a pipe."""
    _write(json_text(document, indent=2 if sys.stdout.isatty() else None) + "\n")


def write_json_line(document: dict[str, Any]) -> None:
    """Write one line of JSON Lines and flush it, because somebody may be waiting for it."""
    _write(json_text(document) + "\n")


def write_lines(lines: Iterable[str], *, flush: bool = False) -> None:
    """Write lines of text, each of which must be safe for a terminal already.

    With `flush` each is written at once, because somebody may be waiting for it.
    """
    for line in lines:
        with _to_reader():
            sys.stdout.write(line + "\n")
            if flush:
                sys.stdout.flush()


def write_text(text: str) -> None:
    """Write text that is a document of its own, in UTF-8, as it is."""
    _write(text)


def flush() -> None:
    """Write what is still held back."""
    with _to_reader():
        sys.stdout.flush()


def _write(text: str) -> None:
    """Write UTF-8 whatever the terminal's encoding is: JSON knows no other."""
    binary = getattr(sys.stdout, "buffer", None)
    with _to_reader():
        if binary is None:
            sys.stdout.write(text)
        else:
            sys.stdout.flush()
            binary.write(text.encode())
            binary.flush()
        sys.stdout.flush()


def deliver() -> None:
    """Write what is still held back; raises ReaderGone as well where there never was a reader.

    A stdout that was closed before this process began has been opened on nothing (program.py).
    """
    flush()
    if getattr(sys.stdout, "name", None) == os.devnull:
        raise ReaderGone


@contextmanager
def _to_reader() -> Iterator[None]:
    """Tell a pipe of ours that its reader left from any other that may break."""
    try:
        yield
    except BrokenPipeError as error:
        raise ReaderGone from error


def path_text(path: object) -> str:
    """Show a path as text; bytes that are no text become escapes, since JSON cannot hold them."""
    return os.fsencode(str(path)).decode("utf-8", "backslashreplace")
