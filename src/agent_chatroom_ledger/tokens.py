"""Bearer tokens: who may speak over HTTP, and under which name.

A token binds one name. It is shown once, when it is made; the ledger keeps only its hash.
"""

from __future__ import annotations

import hmac
import secrets
from datetime import UTC, datetime
from hashlib import sha256
from typing import TYPE_CHECKING, Final, NamedTuple

from agent_chatroom_ledger.domain.agentnames import check_agent_name
from agent_chatroom_ledger.domain.clock import from_datetime
from agent_chatroom_ledger.errors import Conflict, NotFound
from agent_chatroom_ledger.limits import TOKENS_MAX
from agent_chatroom_ledger.storage.tokens import StoredToken, changed_tokens, load_tokens

if TYPE_CHECKING:
    from agent_chatroom_ledger.ledger import Ledger

PREFIX: Final = "rooms_"
_ID_BYTES: Final = 4
_SECRET_BYTES: Final = 32


class Token(NamedTuple):
    """A token as it is listed: nothing of it lets anybody speak."""

    id: str
    name: str
    at: str


class NewToken(NamedTuple):
    """A token that was just made; ``secret`` is what a client sends, and is shown only now."""

    token: Token
    secret: str


def create_token(ledger: Ledger, name: str) -> NewToken:
    """Make a token that speaks as ``name``.

    Raises InvalidInput for a name that no agent may have, and Conflict (code ``too_many_tokens``)
    when the ledger has 1,000 tokens already.
    """
    check_agent_name(name)
    with changed_tokens(ledger.layout) as tokens:
        if len(tokens) >= TOKENS_MAX:
            raise Conflict(
                f"This ledger has {TOKENS_MAX} tokens, and no more are allowed; revoke those that "
                "nobody uses.",
                code="too_many_tokens",
                limit=TOKENS_MAX,
            )
        taken = {token.id for token in tokens}
        identifier = secrets.token_hex(_ID_BYTES)
        while identifier in taken:
            identifier = secrets.token_hex(_ID_BYTES)
        secret = f"{PREFIX}{secrets.token_urlsafe(_SECRET_BYTES)}"
        at = from_datetime(datetime.now(UTC))
        stored = StoredToken(id=identifier, name=name, sha256=_hash(secret), at=at)
        tokens.append(stored)
    return NewToken(_listed(stored), secret)


def list_tokens(ledger: Ledger) -> list[Token]:
    """Return the tokens, oldest first."""
    return [_listed(token) for token in load_tokens(ledger.layout)]


def revoke_token(ledger: Ledger, which: str) -> list[Token]:
    """Take away the token with this id, or every token of this name; return those taken away.

    It takes effect at the next request. Raises NotFound when there is none.
    """
    with changed_tokens(ledger.layout) as tokens:
        gone = [token for token in tokens if which in {token.id, token.name}]
        if not gone:
            raise NotFound(
                f"There is no token with the id or the name {which[:80]!r}; `rooms tokens list` "
                "shows those that there are.",
                code="no_such_token",
                which=which[:80],
            )
        tokens[:] = [token for token in tokens if token not in gone]
    return [_listed(token) for token in gone]


def bound_name(ledger: Ledger, secret: str) -> str | None:
    """Return the name that a token binds, or None for one that is not known (any more).

    The file is read anew, so that a revoked token is refused at once. Every stored hash is
    compared, each in constant time: how long it takes tells nothing about any of them.
    """
    given = _hash(secret)
    name: str | None = None
    for token in load_tokens(ledger.layout):
        if hmac.compare_digest(token.sha256.encode(), given.encode()):
            name = token.name
    return name


def _hash(secret: str) -> str:
    return sha256(secret.encode("utf-8", "surrogatepass")).hexdigest()


def _listed(token: StoredToken) -> Token:
    return Token(token.id, token.name, token.at)
