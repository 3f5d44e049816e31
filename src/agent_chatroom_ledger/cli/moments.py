"""What a user writes for a time, as the calls below take it."""

from __future__ import annotations

import re
from datetime import UTC, datetime

from agent_chatroom_ledger.errors import InvalidInput

_RELATIVE = re.compile(r"\d{1,6}\s*[smhdw](\s+ago)?|now|today|yesterday", re.ASCII | re.IGNORECASE)
_DATE = re.compile(r"\d{4}-\d{2}-\d{2}", re.ASCII)


def moment(text: str | None) -> str | None:
    """Return a commit's name as it is, and a time in words or without a zone as a full UTC time.

    A name that could be both is a time only if it has the whole form of one, such as `2h`.
    """
    if text is None or not (_RELATIVE.fullmatch(text.strip()) or _DATE.match(text)):
        return text
    try:
        return when(text).isoformat()
    except InvalidInput:
        # A branch may be named after a day.
        return text


def when(text: str) -> datetime:
    """Return the time that a user means; times without a zone are in the user's own."""
    from agent_chatroom_ledger.domain.clock import parse_when

    return parse_when(text, datetime.now(UTC).astimezone())
