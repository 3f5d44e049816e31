"""Errors as the user sees them: a sentence on stderr, or one JSON document on stdout."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import click

from agent_chatroom_ledger.cli import output
from agent_chatroom_ledger.domain.display import terminal_safe
from agent_chatroom_ledger.errors import LedgerError

if TYPE_CHECKING:
    from agent_chatroom_ledger.cli.session import Session

FAILURE = 1
USAGE = 2


def show_failure(session: Session, error: Exception) -> int:
    """Show an error and return the exit status that belongs to it.

    With `--json` the document `{"error": {"code", "message", "fields"}}` is stdout's last line;
    otherwise one sentence and what may help go to stderr. `--debug` adds the traceback on stderr.
    """
    status, failure, hints = _describe(session, error)
    if session.debug:
        import traceback

        traceback.print_exception(error, file=sys.stderr)
    if session.json:
        output.write_json({"error": failure})
        return status
    sys.stdout.flush()
    lines = [f"{session.program}: {failure['message']}", *hints]
    sys.stderr.write(terminal_safe("\n".join(lines), lines=True) + "\n")
    return status


def _describe(session: Session, error: Exception) -> tuple[int, dict[str, Any], list[str]]:
    """Return exit status, the error document, and lines that help a person."""
    if isinstance(error, LedgerError):
        return error.exit_status, error.as_dict(), _hints(error.fields)
    if isinstance(error, click.UsageError):
        return _usage(session, error)
    if isinstance(error, click.ClickException):
        return FAILURE, _failure("failure", error.format_message()), []
    if isinstance(error, OSError):
        return _system(error)
    what = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
    hint = [] if session.debug else ["This is a fault of ours; --debug shows where."]
    return FAILURE, _failure("internal", f"internal error: {what}"), hint


def _usage(
    session: Session,
    error: click.UsageError,
) -> tuple[int, dict[str, Any], list[str]]:
    command = error.ctx.command_path if error.ctx is not None else session.program
    if isinstance(error, click.exceptions.NoArgsIsHelpError):
        # A group without a command: its message is its whole help text.
        missing = f"Say which command of {command}."
        return USAGE, _failure("usage", missing, command=command), [error.format_message()]
    hints = []
    if error.ctx is not None:
        hints.append(error.ctx.get_usage())
    hints.append(f"Try: {command} --help")
    return USAGE, _failure("usage", error.format_message(), command=command), hints


def _system(error: OSError) -> tuple[int, dict[str, Any], list[str]]:
    reason = error.strerror or str(error) or type(error).__name__
    if error.filename is None:
        return FAILURE, _failure("system", reason), []
    path = output.path_text(error.filename)
    return FAILURE, _failure("system", f"{path}: {reason}", path=path), []


def _failure(code: str, message: str, **fields: object) -> dict[str, Any]:
    return {"code": code, "message": message, "fields": fields}


def _hints(fields: dict[str, Any]) -> list[str]:
    """Turn the nearest candidates of an unknown or ambiguous name into lines."""
    candidates = fields.get("candidates")
    if not isinstance(candidates, (list, tuple)) or not candidates:
        return []
    return ["The nearest:", *(f"  {candidate}" for candidate in candidates)]
