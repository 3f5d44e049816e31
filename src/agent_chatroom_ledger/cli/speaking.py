"""Who speaks on the command line, and what became of what was said."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agent_chatroom_ledger.cli.shapes import message_shape, room_shape
from agent_chatroom_ledger.cli.terminal import plain

if TYPE_CHECKING:
    from collections.abc import Iterator

    from agent_chatroom_ledger.agents import Agent
    from agent_chatroom_ledger.cli.session import Session
    from agent_chatroom_ledger.ledger import Ledger
    from agent_chatroom_ledger.sending import Recipient, Sent


def speaker(ledger: Ledger, name: str) -> Agent:
    """Return the agent that a command acts as, in the session of the client that started it."""
    return ledger.agent(name, session=_session_here(ledger), door="cli")


def _session_here(ledger: Ledger) -> str | None:
    """Return the session of the client that runs this command; None for a person's shell.

    The table of processes is looked at only where it matters: when a client says that there is a
    session, or when the ledger limits what a session may send.
    """
    from agent_chatroom_ledger.domain.clientprograms import KNOWN
    from agent_chatroom_ledger.domain.identities import session_of

    named = any(session_of(os.environ, client) for client in KNOWN)
    if not named and ledger.settings.max_sends_per_session is None:
        return None
    from agent_chatroom_ledger.identity import acting_client

    return acting_client(ledger, os.environ, Path.cwd()).session


def show_sent(session: Session, sent: Sent, *, recipients: bool) -> None:
    """Show a message that was sent by its place; `recipients` says whether to list them too.

    What the sender should know goes to stderr, where a room has members who could answer.
    """
    session.show(sent_shape(sent), _lines(sent, recipients=recipients))
    if sent.recipients and not session.json:
        for note in sent.notes:
            session.say(plain(note))


def sent_shape(sent: Sent) -> dict[str, Any]:
    """Give a message with its room, whom it goes to, and what the sender should know."""
    return {
        "room": room_shape(sent.room),
        "message": message_shape(sent.message),
        "recipients": [_recipient_shape(recipient) for recipient in sent.recipients],
        "notes": list(sent.notes),
    }


def _recipient_shape(recipient: Recipient) -> dict[str, Any]:
    return {
        "name": recipient.name,
        "reach": recipient.reach,
        "live": recipient.live,
        "note": recipient.note,
    }


def _lines(sent: Sent, *, recipients: bool) -> Iterator[str]:
    yield f"{plain(sent.room.path.removeprefix('rooms/'))} #{sent.message.ref}"
    if recipients:
        for recipient in sent.recipients:
            note = f" ({recipient.note})" if recipient.note else ""
            yield f"  {plain(recipient.name)}: {recipient.reach}{note}"
