"""`rooms tokens`: bearer tokens for agents that speak over HTTP."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from agent_chatroom_ledger.cli.options import common
from agent_chatroom_ledger.cli.terminal import plain

if TYPE_CHECKING:
    from agent_chatroom_ledger.cli.session import Session
    from agent_chatroom_ledger.tokens import Token


@click.group("tokens")
@common
def command() -> None:
    """Let agents speak over HTTP: make, list and revoke bearer tokens.

    A token binds one name. Only its hash is kept, outside version control, so it is shown once.
    """


@command.command("create")
@click.argument("name", metavar="NAME")
@common
@click.pass_obj
def create(session: Session, name: str) -> None:
    """Make a token that speaks as NAME, and show it; it is not shown again."""
    from agent_chatroom_ledger.tokens import create_token

    with session.write() as ledger:
        made = create_token(ledger, name)
    session.show({"token": made.secret, **_shape(made.token)}, [made.secret])
    session.say(
        f"It speaks as {plain(name)}. Keep it: it is not shown again. "
        f"`rooms tokens revoke {made.token.id}` takes it away."
    )


@command.command("list")
@common
@click.pass_obj
def list_(session: Session) -> None:
    """List the tokens: id, name, and when each was made."""
    from agent_chatroom_ledger.tokens import list_tokens

    with session.read() as ledger:
        tokens = list_tokens(ledger)
    lines = [_line(token) for token in tokens] or ["No tokens."]
    session.show({"tokens": [_shape(token) for token in tokens]}, lines)


@command.command("revoke")
@click.argument("which", metavar="ID|NAME")
@common
@click.pass_obj
def revoke(session: Session, which: str) -> None:
    """Take away the token with this ID, or every token of NAME, from the next request on."""
    from agent_chatroom_ledger.tokens import revoke_token

    with session.write() as ledger:
        gone = revoke_token(ledger, which)
    document = {"revoked": [_shape(token) for token in gone]}
    session.show(document, [f"Revoked: {_line(token)}" for token in gone])


def _shape(token: Token) -> dict[str, Any]:
    return {"id": token.id, "name": token.name, "at": token.at}


def _line(token: Token) -> str:
    return f"{token.id}  {plain(token.name)}  {token.at}"
