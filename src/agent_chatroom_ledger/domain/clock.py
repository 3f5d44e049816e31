"""Times as the records hold them, and the ids made from them.

A stored time is text: UTC, microseconds, ``2026-11-29T21:27:42.123456Z``. Its order as text is its
order in time. Nothing here reads a clock: the present and the random bytes come in as arguments.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import Final

from agent_chatroom_ledger.domain.display import shown
from agent_chatroom_ledger.errors import InvalidInput

TIME_PATTERN: Final = (
    r"^[0-9]{4}-[01][0-9]-[0-3][0-9]T[0-2][0-9]:[0-5][0-9]:[0-5][0-9]\.[0-9]{6}Z\Z"
)

# The last second that a datetime can hold.
SECONDS_MAX: Final = 253_402_300_799

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND: Final = timedelta(microseconds=1)
_TIME: Final = re.compile(TIME_PATTERN)
_AGO: Final = re.compile(r"(\d{1,6})\s*([smhdw])(?:\s+ago)?", re.ASCII)
_AGO_UNITS: Final = {
    "s": timedelta(seconds=1),
    "m": timedelta(minutes=1),
    "h": timedelta(hours=1),
    "d": timedelta(days=1),
    "w": timedelta(weeks=1),
}
_ENTROPY_BYTES: Final = 10


def to_datetime(text: str) -> datetime:
    """Return a stored time as an aware UTC datetime.

    Raises InvalidInput unless it has exactly the stored form.
    """
    if _TIME.match(text) is not None:
        try:
            return datetime.fromisoformat(text)
        except ValueError:
            pass
    message = f"not a time of the form 2026-11-29T21:27:42.123456Z: {shown(text)!r}"
    raise InvalidInput(message, field="at", value=shown(text))


def from_datetime(when: datetime) -> str:
    """Return an aware datetime in the stored form.

    Raises InvalidInput for one without a time zone, because guessing a zone would shift the record.
    """
    offset = when.utcoffset()
    if offset is None:
        message = f"a time needs its zone, and {when.isoformat()} has none; add +00:00 or Z"
        raise InvalidInput(message, field="said_at", value=when.isoformat())
    try:
        utc = when.astimezone(UTC) if offset else when
    except OverflowError:
        message = f"out of the range of times: {when.isoformat()}"
        raise InvalidInput(message, field="said_at", value=when.isoformat()) from None
    return utc.replace(tzinfo=None).isoformat(timespec="microseconds") + "Z"


def to_micros(text: str) -> int:
    """Return a stored time as microseconds since 1970."""
    return (to_datetime(text) - _EPOCH) // _MICROSECOND


def from_micros(micros: int) -> str:
    """Return microseconds since 1970 in the stored form."""
    try:
        return from_datetime(_EPOCH + timedelta(microseconds=micros))
    except OverflowError:
        message = f"out of the range of times: {micros} µs"
        raise InvalidInput(message, field="at", value=micros) from None


def new_id(micros: int, entropy: bytes) -> str:
    """Return a UUIDv7 (RFC 9562) of a time and ten random bytes, as text of 36 characters.

    The milliseconds stand in the first 48 bits; the first 12 random bits are replaced by the
    microseconds within the millisecond (RFC 9562, 6.2, method 3), so ids of one ledger, whose times
    never repeat, sort as their records do.
    """
    assert len(entropy) == _ENTROPY_BYTES, "an id takes ten random bytes"
    millis, rest = divmod(micros, 1000)
    fraction = rest * 4096 // 1000
    random = int.from_bytes(entropy[2:], "big") & 0x3FFF_FFFF_FFFF_FFFF
    digits = f"{millis & 0xFFFF_FFFF_FFFF:012x}{0x7000 | fraction:04x}{1 << 63 | random:016x}"
    return f"{digits[:8]}-{digits[8:12]}-{digits[12:16]}-{digits[16:20]}-{digits[20:]}"


def parse_when(text: str, now: datetime) -> datetime:
    """Return the time that a person means, in UTC.

    Takes an ISO date or time (without a zone: the zone of ``now``), ``now``, ``today``,
    ``yesterday`` (their midnight in the zone of ``now``), or an age such as ``90s``, ``15m``,
    ``2h``, ``3d``, ``1w``, with or without ``ago``. Raises InvalidInput for anything else.
    """
    words = text.strip().lower()
    midnight = now.replace(hour=0, minute=0, second=0, microsecond=0)
    named = {"now": now, "today": midnight, "yesterday": midnight - timedelta(days=1)}
    age = _AGO.fullmatch(words)
    try:
        if words in named:
            when = named[words]
        elif age is not None:
            when = now - int(age[1]) * _AGO_UNITS[age[2]]
        else:
            when = datetime.fromisoformat(text.strip())
            if when.tzinfo is None:
                when = when.replace(tzinfo=now.tzinfo)
        return when.astimezone(UTC)
    except (ValueError, OverflowError):
        message = (
            f"not a time: {shown(text)!r}; use an ISO date or time such as 2026-11-29T21:27Z,"
            " an age such as 2h or 3d, today or yesterday"
        )
        raise InvalidInput(message, field="when", value=shown(text)) from None
