"""References to messages: ``57``, or ``57@ci-9a1c``.

The short form belongs to the origin that created the room. What is stored is always the full form,
with its origin. Ranges, ``5-9`` or ``5-9@ci-9a1c``, name both ends.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from agent_chatroom_ledger.domain.display import shown
from agent_chatroom_ledger.errors import InvalidInput
from agent_chatroom_ledger.limits import NUMBER_MAX, ORIGIN_CHARS_MAX, REFERENCES_MAX

if TYPE_CHECKING:
    from collections.abc import Iterable

_REFERENCE: Final = re.compile(
    rf"#?(\d{{1,8}})(?:-#?(\d{{1,8}}))?(?:@([a-z0-9][a-z0-9-]{{0,{ORIGIN_CHARS_MAX - 1}}}))?",
    re.ASCII,
)


def full_ref(origin: str, n: int) -> str:
    """Return the stored form of a reference: ``57@mbp-3f2a``."""
    return f"{n}@{origin}"


def range_ref(origin: str, first: int, last: int) -> str:
    """Return the stored form of a range: ``1-3@mbp-3f2a``, or ``9@mbp-3f2a`` for one message."""
    return f"{first}@{origin}" if first == last else f"{first}-{last}@{origin}"


def parse_range(text: str, primary_origin: str) -> tuple[str, int, int]:
    """Return origin, first and last number of ``57``, ``#57``, ``5-9`` or ``5-9@ci-9a1c``.

    A number without an origin belongs to ``primary_origin``. Raises InvalidInput for anything else,
    for a number outside 1 to 99,999,999 and for a range that runs backwards.
    """
    match = _REFERENCE.fullmatch(text.strip())
    if match is not None:
        first = int(match[1])
        last = first if match[2] is None else int(match[2])
        if 1 <= first <= last <= NUMBER_MAX:
            return match[3] or primary_origin, first, last
    message = f"not a message: {shown(text)!r}; write 57, 5-9 or 57@origin"
    raise InvalidInput(message, field="ref", value=shown(text))


def parse_ref(text: str, primary_origin: str) -> tuple[str, int]:
    """Return origin and number of one reference; raises InvalidInput for a range too."""
    origin, first, last = parse_range(text, primary_origin)
    if first != last:
        message = f"one message is needed, and {shown(text)!r} names several"
        raise InvalidInput(message, field="ref", value=shown(text))
    return origin, first


def parse_ranges(texts: Iterable[str], primary_origin: str) -> list[tuple[str, int, int]]:
    """Return origin, first and last number of each of some references, in the order given.

    Raises InvalidInput when they name more than 10,000 messages together.
    """
    ranges: list[tuple[str, int, int]] = []
    named = 0
    for text in texts:
        origin, first, last = parse_range(text, primary_origin)
        named += last - first + 1
        if named > REFERENCES_MAX:
            message = f"one call names at most {REFERENCES_MAX} messages; make several calls"
            raise InvalidInput(message, field="refs", limit=REFERENCES_MAX)
        ranges.append((origin, first, last))
    return ranges


def parse_refs(text: str, primary_origin: str) -> list[tuple[str, int]]:
    """Return origin and number of every message in a list such as ``3,5-9,57@ci-9a1c``."""
    return [
        (origin, n)
        for origin, first, last in parse_ranges(text.split(","), primary_origin)
        for n in range(first, last + 1)
    ]
