"""Every error that the ledger raises on purpose.

The children are grouped by who has to act. Where an older interface promises a built-in error, the
child inherits from that one too. Doors map ``code`` to HTTP and MCP, and ``exit_status`` to the
exit status of the command.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

if TYPE_CHECKING:
    from agent_chatroom_ledger.domain.records import Record


class LedgerError(Exception):
    """The root of all errors of this package.

    ``message`` is a sentence for a person; ``code`` is stable and for programs; ``fields`` holds
    JSON-able details.
    """

    code: str = "failed"
    exit_status: ClassVar[int] = 1

    def __init__(self, message: str, *, code: str | None = None, **fields: object) -> None:
        """Keep the message and its details; ``code`` replaces the code of the class."""
        super().__init__(message)
        self.message = message
        self.fields: dict[str, object] = fields
        if code is not None:
            self.code = code

    def __str__(self) -> str:
        """Return the message."""
        return self.message

    def as_dict(self) -> dict[str, object]:
        """Return the code, the message and the fields, as every door prints them.

        Half characters (lone surrogates) that a caller gave are shown as escapes, since no
        encoding takes them.
        """
        shown = {"code": self.code, "message": self.message, "fields": self.fields}
        return {key: _encodable(value) for key, value in shown.items()}


class InvalidInput(LedgerError, ValueError):
    """The caller asked for something that breaks a rule or a limit; asking again will not help."""

    code = "invalid_input"


class NotFound(LedgerError, FileNotFoundError):
    """What the caller named does not exist."""

    code = "not_found"
    exit_status = 3


class Conflict(LedgerError):
    """What the caller asked for contradicts what is there, or is ambiguous."""

    code = "conflict"
    exit_status = 4


class Busy(LedgerError):
    """Somebody else holds what is needed; the same call may succeed later."""

    code = "busy"
    exit_status = 5


class Forbidden(LedgerError, PermissionError):
    """The caller may not do this, or the directory may not be written."""

    code = "forbidden"


class Corrupt(LedgerError):
    """Stored data breaks its format; the message names the place and the way out."""

    code = "corrupt"
    exit_status = 6


class NotYetCommitted(Busy):
    """The records are durable, only their commit is still to come: do not send them again."""

    code = "not_yet_committed"

    def __init__(
        self,
        message: str,
        *,
        code: str | None = None,
        records: tuple[Record, ...] = (),
        **fields: object,
    ) -> None:
        """Keep the records that are durable already."""
        super().__init__(message, code=code, **fields)
        self.records = records


def _encodable(value: object) -> object:
    if isinstance(value, str):
        return value if value.isascii() else value.encode(errors="backslashreplace").decode()
    if isinstance(value, dict):
        return {_encodable(key): _encodable(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_encodable(inner) for inner in value]
    return value
