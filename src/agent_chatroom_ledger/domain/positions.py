"""Positions: how far something has read, as one number per origin.

With one origin a position is just a number. Several origins number their records apart, so a
position is a vector, and one position may be neither before nor after another.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

from agent_chatroom_ledger.domain.names import check_origin
from agent_chatroom_ledger.domain.records import Message
from agent_chatroom_ledger.domain.references import full_ref, parse_ref
from agent_chatroom_ledger.errors import InvalidInput
from agent_chatroom_ledger.limits import NUMBER_MAX

Position: TypeAlias = Mapping[str, int]


def covers(position: Position, origin: str, n: int) -> bool:
    """Tell whether a position has reached record ``n`` of an origin."""
    return position.get(origin, 0) >= n


def contains(position: Position, other: Position) -> bool:
    """Tell whether a position has reached everything that another one has."""
    return all(position.get(origin, 0) >= n for origin, n in other.items())


def advance(position: Position, origin: str, n: int) -> dict[str, int]:
    """Return a position that has reached record ``n`` of an origin, and all that it had before."""
    moved = dict(position)
    if n > moved.get(origin, 0):
        moved[origin] = n
    return moved


def maximum(*positions: Position) -> dict[str, int]:
    """Return the smallest position that contains all of the given ones."""
    reached: dict[str, int] = {}
    for position in positions:
        for origin, n in position.items():
            if n > reached.get(origin, 0):
                reached[origin] = n
    return reached


def minimum(*positions: Position) -> dict[str, int]:
    """Return the greatest position that all of the given ones contain."""
    if not positions:
        return {}
    first, *rest = positions
    shared = {origin: min(n, *(p.get(origin, 0) for p in rest), n) for origin, n in first.items()}
    return {origin: n for origin, n in shared.items() if n > 0}


def encode_position(position: Position) -> str:
    """Return a position as text, origins in order: ``3@ci-9a1c,57@mbp-3f2a``.

    The empty position is ``0``.
    """
    refs = [full_ref(origin, n) for origin, n in sorted(position.items()) if n > 0]
    return ",".join(refs) or "0"


def decode_position(text: str, primary_origin: str) -> dict[str, int]:
    """Return the position of a text such as ``57`` or ``3@ci-9a1c,57@mbp-3f2a``.

    Raises InvalidInput otherwise.
    """
    if text.strip() == "0":
        return {}
    return maximum(
        *(
            {origin: n}
            for origin, n in (parse_ref(part, primary_origin) for part in text.split(","))
        )
    )


def position_of(value: int | str | Position | Message, primary_origin: str) -> dict[str, int]:
    """Return the position that a caller means.

    A number counts in the origin that created the room, 0 meaning nothing; a text is decoded; a
    message stands for itself in its own origin only; a mapping is checked and copied. Raises
    InvalidInput for anything else.
    """
    if isinstance(value, Message):
        return {value.origin: value.n}
    if isinstance(value, str):
        return decode_position(value, primary_origin)
    if isinstance(value, Mapping):
        return {
            check_origin(origin): _check_number(n)
            for origin, n in value.items()
            if _check_number(n) > 0
        }
    return {primary_origin: n} if (n := _check_number(value)) > 0 else {}


def _check_number(n: object) -> int:
    if isinstance(n, int) and not isinstance(n, bool) and 0 <= n <= NUMBER_MAX:
        return n
    message = f"a position is a number from 0 to {NUMBER_MAX}, not {str(n)[:64]!r}"
    raise InvalidInput(message, field="position", limit=NUMBER_MAX)
