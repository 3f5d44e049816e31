"""`rooms config`: the settings of a ledger on this machine."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from agent_chatroom_ledger.cli.options import common
from agent_chatroom_ledger.cli.output import path_text
from agent_chatroom_ledger.cli.terminal import plain, table
from agent_chatroom_ledger.domain.numerals import decimal

if TYPE_CHECKING:
    from collections.abc import Iterator

    from agent_chatroom_ledger.cli.session import Session
    from agent_chatroom_ledger.ledger import Ledger


@click.group("config", invoke_without_command=True)
@common
@click.pass_context
def command(ctx: click.Context) -> None:
    """Show and change the settings of this ledger on this machine.

    They are kept in `.git/ledger/config.toml`, which is not versioned; one that the file does not
    set has its default. Without a command they are shown.
    """
    if ctx.invoked_subcommand is None:
        ctx.invoke(show_command)


@command.command("show")
@common
@click.pass_obj
def show_command(session: Session) -> None:
    """Show the settings, and which of them the file sets."""
    with session.read() as ledger:
        _show(session, ledger)


@command.command("set")
@click.argument("key")
@click.argument("value")
@common
@click.pass_obj
def set_command(session: Session, key: str, value: str) -> None:
    """Set KEY to VALUE; comments and other settings of the file stay."""
    with session.read() as ledger:
        ledger.set_setting(key, _value(value))
        _show(session, ledger)


@command.command("unset")
@click.argument("key")
@common
@click.pass_obj
def unset_command(session: Session, key: str) -> None:
    """Let KEY have its default again."""
    with session.read() as ledger:
        ledger.set_setting(key, None)
        _show(session, ledger)


def _value(text: str) -> bool | int | str:
    """Read a value as TOML has it, but for the quotes of a word."""
    if text in {"true", "false"}:
        return text == "true"
    number = decimal(text.removeprefix("-"))
    return text if number is None else -number if text.startswith("-") else number


def _show(session: Session, ledger: Ledger) -> None:
    import msgspec

    settings, default, given = ledger.settings, type(ledger.settings)(), ledger.settings_set()
    found: list[dict[str, Any]] = [
        {"key": key, "value": value, "set": key in given, "default": getattr(default, key)}
        for key, value in msgspec.structs.asdict(settings).items()
    ]
    path = path_text(ledger.layout.config)
    session.show({"path": path, "settings": found}, _lines(path, found))


def _lines(path: str, found: list[dict[str, Any]]) -> Iterator[str]:
    yield plain(path)
    rows = [(item["key"], _text(item["value"]), "" if item["set"] else "default") for item in found]
    yield from table(("setting", "value", ""), rows)


def _text(value: bool | int | str | None) -> str:
    if value is None:
        return "no limit"
    return str(value).lower() if isinstance(value, bool) else str(value)
