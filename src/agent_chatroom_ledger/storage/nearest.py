"""The rooms whose names are nearest to one that nobody bears, for whoever mistyped it."""

from __future__ import annotations

from difflib import SequenceMatcher
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from agent_chatroom_ledger.storage.index import RoomRow

_CANDIDATES_MAX = 5


def nearest(rows: Iterable[RoomRow], name: str) -> list[RoomRow]:
    """Return the few rooms whose path, slug or title is nearest to a name, best first."""
    wanted = name.removeprefix("rooms/").casefold()
    matcher = SequenceMatcher(b=wanted, autojunk=False)
    ranked = []
    for row in rows:
        best = 0.0
        for text in {
            row.path.removeprefix("rooms/").casefold(),
            row.slug,
            row.title.casefold(),
        }:
            if wanted and (wanted in text or text in wanted):
                best = max(best, 0.9)
                continue
            matcher.set_seq1(text)
            if matcher.real_quick_ratio() > best and matcher.quick_ratio() > best:
                best = max(best, matcher.ratio())
        if best >= 0.5:
            ranked.append((-best, row.path, row))
    ranked.sort(key=lambda entry: entry[:2])
    return [row for _, _, row in ranked[:_CANDIDATES_MAX]]
