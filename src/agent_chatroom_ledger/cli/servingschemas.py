"""The JSON documents of `rooms mcp` and `rooms tokens`."""

from __future__ import annotations

from typing import Annotated

import msgspec

from agent_chatroom_ledger.cli.schemabase import Shape, Time


class McpDocument(Shape):
    """Where the server over HTTP is reached; written when it answers."""

    url: str


class TokenShape(Shape):
    """A token, without what lets somebody speak."""

    id: str
    name: Annotated[str, msgspec.Meta(description="whom the token speaks as")]
    at: Time


class TokenDocument(TokenShape):
    """A token that was just made; `token` is not shown again."""

    token: str


class TokensDocument(Shape):
    """All tokens, oldest first."""

    tokens: list[TokenShape]


class RevokedDocument(Shape):
    """The tokens that were taken away."""

    revoked: list[TokenShape]
