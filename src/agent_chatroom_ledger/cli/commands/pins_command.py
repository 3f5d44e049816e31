"""`rooms pins`: which names sessions, panes and directories have."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from agent_chatroom_ledger.cli.options import common, identity_here
from agent_chatroom_ledger.cli.output import path_text
from agent_chatroom_ledger.cli.shapes import time_text
from agent_chatroom_ledger.cli.terminal import plain, table

if TYPE_CHECKING:
    from collections.abc import Iterator

    from agent_chatroom_ledger.cli.session import Session
    from agent_chatroom_ledger.ledger import Ledger
    from agent_chatroom_ledger.pinning import Pinned, PinState

_force = click.option("--force", is_flag=True, help="Also where that leaves rooms behind.")


@click.group("pins")
@common
def command() -> None:
    """Give a session, a pane or a directory a name.

    A name from --as or the environment comes before every pin; then comes the pin of the session,
    of the pane, of the directory. KEY is session:ID, pane:ID or cwd:DIRECTORY; the bare words
    session, pane and cwd mean your own. Pins are read at every call. A pane's or a directory's
    belongs to the client that follows it first, and a directory's is followed only while exactly
    one client is live there.
    """


@command.command("list")
@common
@click.pass_obj
def list_(session: Session) -> None:
    """List the pins, and what each does now."""
    from agent_chatroom_ledger import pinning

    with session.read() as ledger:
        found = pinning.list_pins(ledger)
    session.show({"pins": [_shape(pin) for pin in found]}, _table(found))


@command.command("set")
@click.argument("key")
@click.argument("name")
@_force
@common
@click.pass_obj
def set_(session: Session, key: str, name: str, force: bool) -> None:
    """Pin NAME to KEY, from its next call on.

    Refused when that renames a member of rooms: they list members by name. --force proceeds and
    names the rooms that are left.
    """
    from agent_chatroom_ledger import identity, pinning

    me = identity_here().name
    with _opened(session) as ledger:
        client = identity.acting_client(ledger, os.environ, Path.cwd())
        done = pinning.set_pin(
            ledger, pinning.own_key(key, client), name, force=force, by=me, client=client
        )
    _show(session, done)


@command.command("remove")
@click.argument("key")
@_force
@common
@click.pass_obj
def remove(session: Session, key: str, force: bool) -> None:
    """Take the pin of KEY away.

    Refused when its name is a member of rooms; --force proceeds and names them.
    """
    from agent_chatroom_ledger import identity, pinning

    with _opened(session) as ledger:
        client = identity.acting_client(ledger, os.environ, Path.cwd())
        done = pinning.remove_pin(ledger, pinning.own_key(key, client), force=force)
    _show(session, done)


def _opened(session: Session) -> Ledger:
    """Open the ledger for reading, which starts faster: only a file beside it is written.

    A fresh clone has no place for that file yet; opening it for writing makes one.
    """
    ledger = session.read()
    if ledger.layout.private.is_dir():
        return ledger
    ledger.close()
    return session.write()


def _show(session: Session, done: Pinned) -> None:
    document = {
        "key": path_text(done.key),
        "pin": None if done.pin is None else _shape(done.pin),
        "changed": done.changed,
        "before": done.before,
        "left": list(done.left),
    }
    session.show(document, _done(done))


def _done(done: Pinned) -> Iterator[str]:
    key = plain(path_text(done.key))
    if done.pin is None:
        yield f"{key} has no name any more; it was {plain(done.before)}"
    elif done.changed:
        before = "" if done.before in {None, done.pin.name} else f", no longer {done.before}"
        yield plain(f"{path_text(done.key)} is {done.pin.name}{before}")
    else:
        yield plain(f"{path_text(done.key)} was {done.pin.name} already")
    if done.pin is not None and done.pin.state not in {"followed", "waiting"}:
        yield plain(f"It is not followed now: {done.pin.note}.")
    if done.left:
        yield plain(f"These rooms list a name that was given up: {', '.join(done.left)}")


def _table(found: list[PinState]) -> Iterator[str]:
    if not found:
        yield "No pins."
        return
    rows = ((path_text(pin.key), pin.name, pin.state, pin.note) for pin in found)
    yield from table(("key", "name", "state", ""), rows)


def _shape(pin: PinState) -> dict[str, Any]:
    return {
        "key": path_text(pin.key),
        "name": pin.name,
        "set_at": time_text(pin.set_at),
        "set_by": pin.set_by,
        "state": pin.state,
        "note": pin.note,
        "process": pin.process,
    }
