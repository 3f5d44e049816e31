"""What a user writes for a time or a position, as the calls below take it."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

_RELATIVE = re.compile(r"\d{1,6}\s*[smhdw](\s+ago)?|now|today|yesterday", re.ASCII | re.IGNORECASE)
_DATE = re.compile(r"\d{4}-\d{2}-\d{2}", re.ASCII)


def moment(text: str | None) -> str | None:
    """Return a commit's name as it is, and a time in words or without a zone as a full UTC time.

    A name that could be both is a time only if it has the whole form of one, such as `2h`.
    """
    if text is None or not (_RELATIVE.fullmatch(text.strip()) or _DATE.match(text)):
        return text
    return when(text).isoformat()


def when(text: str) -> datetime:
    """Return the time that a user means; times without a zone are in the user's own."""
    from agent_chatroom_ledger.domain.clock import parse_when

    return parse_when(text, datetime.now(UTC).astimezone())


def position(text: str | None, origin: str) -> int | Mapping[str, int]:
    """Return a position: a number, or a list such as `57,12@ci-9a1c` of one for each origin.

    A number without an origin counts in `origin`, the one that the room was created in.
    """
    if text is None:
        return 0
    if text.isascii() and text.isdigit():
        return int(text)
    from agent_chatroom_ledger.domain.positions import decode_position

    return decode_position(text, origin)
