"""`rooms setup`: tell the clients that agents run in about the ledger, or take that back."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from agent_chatroom_ledger.cli.options import apply_option, common
from agent_chatroom_ledger.cli.output import path_text
from agent_chatroom_ledger.cli.terminal import plain

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import TypeVar

    from agent_chatroom_ledger.cli.session import Session
    from agent_chatroom_ledger.clients.setup import ClientState, SetupPlan
    from agent_chatroom_ledger.clients.surroundings import Surroundings

    F = TypeVar("F", bound=Callable[..., Any])

NAMES = ("claude", "codex", "cursor", "gemini")
_TITLES = {
    "claude": "Claude Code",
    "codex": "Codex",
    "cursor": "Cursor",
    "gemini": "Gemini CLI",
}


@click.group("setup")
@common
def command() -> None:
    """Set up the clients that agents run in: the MCP server and the hooks, in their own files.

    What is in those files already stays as it is. The difference is shown, and written with
    --apply.
    """


def _project_option(function: F) -> F:
    """Add `--project`."""
    return click.option(
        "--project",
        is_flag=True,
        help="The files of this directory instead of your own.",
    )(function)


def _setting_up(client: str) -> click.Command:
    """Make the command of one client."""

    @click.command(
        client,
        help=f"Set up {_TITLES[client]}: the server `rooms mcp` and the hooks `rooms hook agent`.",
    )
    @apply_option
    @click.option(
        "--allow-tools", is_flag=True, help="Let agents use the tools without being asked."
    )
    @_project_option
    @common
    @click.pass_obj
    def set_up(session: Session, apply: bool, allow_tools: bool, project: bool) -> None:
        from agent_chatroom_ledger.clients import setup

        around = _surroundings(project=project, allow_tools=allow_tools)
        _carry_out(session, setup.plan(client, around), apply=apply)

    return set_up


for _name in NAMES:
    command.add_command(_setting_up(_name))


@command.command("remove")
@click.argument("client", type=click.Choice(NAMES))
@apply_option
@_project_option
@common
@click.pass_obj
def remove(session: Session, client: str, apply: bool, project: bool) -> None:
    """Take everything of ours out of a client's files, and leave the rest as it is.

    A file that came with the set-up goes with it.
    """
    from agent_chatroom_ledger.clients import setup

    _carry_out(session, setup.removal(client, _surroundings(project=project)), apply=apply)


@command.command("status")
@_project_option
@common
@click.pass_obj
def status(session: Session, project: bool) -> None:
    """Show which clients are set up, whether something differs, and whether they trust it."""
    from agent_chatroom_ledger.clients import setup

    around = _surroundings(project=project)
    states = [setup.status(client, around) for client in setup.CLIENTS]
    warnings = setup.warnings(around)
    document = {
        "command": list(around.launcher.words),
        "clients": [_state_document(state) for state in states],
        "warnings": list(warnings),
    }
    session.show(document, _state_lines(states, warnings))


def _surroundings(*, project: bool, allow_tools: bool = False) -> Surroundings:
    from agent_chatroom_ledger.clients.launcher import launcher
    from agent_chatroom_ledger.clients.surroundings import Surroundings

    here = Path.cwd()
    return Surroundings(
        environment=dict(os.environ),
        directory=here,
        launcher=launcher(os.environ, sys.argv[0]),
        project=here if project else None,
        allow_tools=allow_tools,
    )


def _carry_out(session: Session, plan: SetupPlan, *, apply: bool) -> None:
    """Show the difference first, then write it if it was asked for."""
    document: dict[str, Any] = {
        "client": plan.client,
        "applied": apply,
        "files": [
            {"path": path_text(c.place.path), "action": c.action, "diff": c.diff()}
            for c in plan.changes
        ],
        "warnings": list(plan.warnings),
        "notes": list(plan.notes),
    }
    if not apply:
        document["apply_with"] = session.applied_command()
    if apply and session.json:
        plan.apply()
    session.show(document, _plan_lines(plan, document))
    if apply and not session.json:
        plan.apply()
        session.show(document, ["Written."] if plan.changed else [])


def _plan_lines(plan: SetupPlan, document: dict[str, Any]) -> Iterator[str]:
    for file in document["files"]:
        if file["action"] == "none":
            yield f"{plain(file['path'])}: nothing to change"
        for line in file["diff"].splitlines():
            yield plain(line)
    for warning in plan.warnings:
        yield f"warning: {plain(warning)}"
    for note in plan.notes:
        yield f"note: {plain(note)}"
    if plan.changed and not document["applied"]:
        yield "Nothing was written. To write it:"
        yield f"  {plain(document['apply_with'])}"


def _state_document(state: ClientState) -> dict[str, Any]:
    return {
        "client": state.client,
        "installed": state.installed,
        "state": state.state,
        "trust": state.trust,
        "files": [
            {
                "path": path_text(file.path),
                "exists": file.exists,
                "parts": file.parts,
                "problem": file.problem,
            }
            for file in state.files
        ],
        "notes": list(state.notes),
    }


def _state_lines(states: list[ClientState], warnings: tuple[str, ...]) -> Iterator[str]:
    for state in states:
        there = "" if state.installed else ", not on PATH"
        trust = "" if state.state in {"absent", "unreadable"} else f", hooks: {state.trust}"
        yield f"{state.client}: {state.state}{trust}{there}"
        for file in state.files:
            parts = ", ".join(f"{part} {value}" for part, value in file.parts.items())
            yield f"  {plain(path_text(file.path))}: {plain(file.problem or parts)}"
        for note in state.notes:
            yield f"  {plain(note)}"
    for warning in warnings:
        yield f"warning: {plain(warning)}"
