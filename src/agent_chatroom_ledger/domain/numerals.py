"""Numbers that stand in names of files and in messages of commits, where anybody may write."""

from __future__ import annotations

from typing import Final

_DIGITS_MAX: Final = 18  # every number of so many digits fits into 64 bits


def decimal(text: str) -> int | None:
    """Return the number that a text of 1 to 18 ASCII digits writes; None for any other text.

    `str.isdigit` alone does not tell: it takes ``²`` and the digits of all scripts, and `int`
    refuses the first and takes the others, but no more than 4,300 of any.
    """
    return int(text) if len(text) <= _DIGITS_MAX and text.isascii() and text.isdigit() else None
