"""Where the text of a message comes from: an argument, a file, or standard input."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, TypeVar

import click

from agent_chatroom_ledger.errors import InvalidInput
from agent_chatroom_ledger.limits import BODY_BYTES_MAX

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, BinaryIO

F = TypeVar("F", bound="Callable[..., Any]")


def file_option(function: F) -> F:
    """Add `--file FILE`; see `body_of`."""
    return click.option(
        "--file",
        "file",
        metavar="FILE",
        help="Take the text from FILE, byte for byte; - is standard input.",
    )(function)


def body_of(text: str | None, file: str | None) -> str:
    """Return what is to be said: the argument, the file byte for byte, or standard input."""
    if text is not None and file is not None:
        raise click.UsageError("TEXT and --file exclude each other.")
    if text is not None:
        return text
    if file is not None and file != "-":
        with open(file, "rb") as stream:  # noqa: PTH123 - a Path would drop a slash at the end, which names no file
            return _decoded(stream, file)
    if sys.stdin is None:
        raise click.UsageError("Give TEXT, --file FILE, or standard input.")
    if sys.stdin.isatty():
        sys.stderr.write("The text, then Ctrl-D:\n")
    return _decoded(sys.stdin.buffer, "standard input")


def _decoded(stream: BinaryIO, source: str) -> str:
    """Read a body; a stream that is too long is not read to its end."""
    content = stream.read(BODY_BYTES_MAX + 1)
    if len(content) > BODY_BYTES_MAX:
        raise InvalidInput(
            f"{source} is longer than a message may be (BODY_BYTES_MAX, {BODY_BYTES_MAX} bytes); "
            "post it in parts, or name the file in the text.",
            field="body",
            limit=BODY_BYTES_MAX,
        )
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError as error:
        raise InvalidInput(
            f"{source} is not UTF-8: byte {content[error.start]:#04x} at offset {error.start}.",
            field="body",
            offset=error.start,
        ) from None
