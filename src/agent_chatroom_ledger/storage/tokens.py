"""The file of bearer tokens: ``.git/ledger/tokens.json``, outside version control.

Only the SHA-256 of a token is stored. A token is 256 random bits, so there is nothing that a slow
hash would protect it from. The file is replaced whole and durably, under a lock, and is readable
by its owner alone. One that cannot be read is an error, never taken for a file without tokens.
"""

from __future__ import annotations

import os
from contextlib import contextmanager
from typing import TYPE_CHECKING

import msgspec

from agent_chatroom_ledger.errors import Corrupt, Forbidden, InvalidInput
from agent_chatroom_ledger.storage import files
from agent_chatroom_ledger.storage.locks import holding

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from agent_chatroom_ledger.storage.layout import Layout

FORMAT = 1
SCHEMA = "agent-chatroom-ledger/tokens"
_MODE = 0o600


class StoredToken(msgspec.Struct, frozen=True, kw_only=True):
    """One token: its public id, the name that it binds, its hash in hex, and when it was made."""

    id: str
    name: str
    sha256: str
    at: str


class _File(msgspec.Struct, kw_only=True):
    schema: str
    format: int
    tokens: list[StoredToken]


_decoder = msgspec.json.Decoder(_File)


def tokens_path(layout: Layout) -> Path:
    """Return where the tokens of a ledger are kept."""
    return layout.private / "tokens.json"


def load_tokens(layout: Layout) -> tuple[StoredToken, ...]:
    """Return the stored tokens, oldest first; a missing file holds none.

    Raises Forbidden for a file that cannot be read, and Corrupt (code ``tokens_damaged``) for one
    that is none of ours; both name the file and the way out.
    """
    path = tokens_path(layout)
    try:
        content = files.read_bytes(path)
    except OSError as error:
        raise Forbidden(
            f"The file of tokens {path} cannot be read: {error}.", path=str(path)
        ) from error
    if content is None:
        return ()
    try:
        found = _decoder.decode(content)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise _damaged(path, str(error)) from error
    if found.schema != SCHEMA:
        raise _damaged(path, f"its schema is {found.schema[:80]!r}")
    if found.format != FORMAT:
        raise InvalidInput(
            f"The file of tokens {path} has format {found.format}; this version knows {FORMAT}: "
            "use the newer version.",
            code="tokens_format",
            path=str(path),
        )
    return tuple(found.tokens)


@contextmanager
def changed_tokens(layout: Layout) -> Iterator[list[StoredToken]]:
    """Give the tokens to change in place; what is in the list at the end is stored durably.

    No other process can come between. Nothing is written when nothing changed, or when the block
    raises.
    """
    with files.clear_errors("writing the tokens"), holding(layout.locks / "tokens.lock"):
        before = load_tokens(layout)
        tokens = list(before)
        yield tokens
        if tuple(tokens) != before:
            _store(layout, tokens)


def _store(layout: Layout, tokens: list[StoredToken]) -> None:
    document = _File(schema=SCHEMA, format=FORMAT, tokens=tokens)
    content = msgspec.json.format(msgspec.json.encode(document), indent=1) + b"\n"
    path = tokens_path(layout)
    temporary = files.write_temporary(layout, "tokens", content, mode=_MODE, sync=True)
    try:
        os.replace(temporary, path)
    except BaseException:
        os.unlink(temporary)
        raise
    files.sync_directory(path.parent)


def _damaged(path: Path, why: str) -> Corrupt:
    return Corrupt(
        f"The file of tokens {path} is damaged: {why}. Put back a copy of it, or move it away and "
        "make new tokens with `rooms tokens create NAME`.",
        code="tokens_damaged",
        path=str(path),
    )
