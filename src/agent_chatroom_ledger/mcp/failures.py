"""What a model is told when a tool fails: what happened, and what to do next."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final

import msgspec

from agent_chatroom_ledger.errors import (
    Busy,
    Conflict,
    Corrupt,
    Forbidden,
    InvalidInput,
    LedgerError,
    NotFound,
)
from agent_chatroom_ledger.mcp.answers import line_of, to_letter

if TYPE_CHECKING:
    from agent_chatroom_ledger.mcp.parameters import Parameters

_log = logging.getLogger("agent_chatroom_ledger.mcp")

# By the code of an error first, and then by its class.
_NEXT: Final = {
    "ambiguous": "Call again with one of these.",
    "archived": "Read it, but post elsewhere, or ask a person to restore it.",
    "not_yet_committed": "It is stored: do not send it again.",
    "send_limit": "Stop sending in this session, and tell your user.",
    "past_end": "Give a number that rooms_read has shown you.",
    "bad_setting": "Tell your user: only a person can correct the settings.",
    "cursor_mismatch": "Tell your user; nothing was changed.",
}
_NEXT_BY_CLASS: Final = (
    (Busy, "Nothing was changed. Call again in a few seconds."),
    (NotFound, "rooms_list shows the rooms, rooms_read a room's messages."),
    (Conflict, "Look at the room with rooms_read before you call again."),
    (InvalidInput, "Correct the argument and call again."),
    (Forbidden, "Do not try again; tell your user."),
    (Corrupt, "Do not try again; tell your user to run `rooms verify`."),
)
_CANDIDATES_SHOWN: Final = 10
_WRITTEN: Final = frozenset({"body", "title"})


def parsed(kind: type[Parameters], arguments: dict[str, object] | None) -> Parameters:
    """Return a tool's arguments; InvalidInput names the one that is wrong, and those there are.

    What is null counts as left out, and a number may come as text: models write both.
    """
    given = {
        # What a model copies from a structured result has its escapes; what it writes has not.
        key: value if key in _WRITTEN else to_letter(value)
        for key, value in (arguments or {}).items()
        if value is not None
    }
    try:
        return msgspec.convert(given, kind, strict=False)
    except msgspec.ValidationError as error:
        raise InvalidInput(
            f"{str(error).replace(' - at `$', ' - at `')}. The arguments are "
            f"{', '.join(_spelt(kind))}."
        ) from None


def _spelt(kind: type[Parameters]) -> list[str]:
    return [
        one.encode_name if one.required else f"[{one.encode_name}]"
        for one in msgspec.structs.fields(kind)
    ]


def sentence_of(error: Exception) -> str:
    """Return what a model reads of an error; one that is our fault goes to the log as well."""
    if isinstance(error, LedgerError):
        parts = [error.message]
        nearest = error.fields.get("candidates")
        if isinstance(nearest, list | tuple) and nearest:
            shown = ", ".join(str(one) for one in nearest[:_CANDIDATES_SHOWN])
            parts.append(f"The nearest: {shown}.")
        parts.append(_advice(error))
        return line_of(" ".join(parts))
    if isinstance(error, OSError):
        return line_of(
            f"The system refused: {error.strerror or type(error).__name__}. Tell your user."
        )
    _log.error("a tool failed", exc_info=error)
    return f"A fault of the server ({type(error).__name__}). Do not try again; tell your user."


def _advice(error: LedgerError) -> str:
    if error.code in _NEXT:
        return _NEXT[error.code]
    if isinstance(error, NotFound) and "root" in error.fields:
        return "Tell your user: without a ledger there are no rooms."
    return next(
        (advice for kind, advice in _NEXT_BY_CLASS if isinstance(error, kind)), "Tell your user."
    )
