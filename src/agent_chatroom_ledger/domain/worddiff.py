"""What changed between two texts, word by word."""

from __future__ import annotations

import difflib
import re
from typing import TYPE_CHECKING, Final

import msgspec

if TYPE_CHECKING:
    from collections.abc import Iterable

_WORD: Final = re.compile(r"\s+|\w+|[^\w\s]")
_LINE: Final = re.compile(r"[^\n]*\n|[^\n]+")
# Longer texts are compared line by line: the time for words grows with their square.
_WORDS_MAX: Final = 10_000


class Piece(msgspec.Struct, frozen=True):
    """A run of text that is in both texts (``same``), or only in one (``removed``, ``added``)."""

    change: str
    text: str


def word_diff(old: str, new: str) -> tuple[Piece, ...]:
    """Return the pieces that both texts are made of, in order.

    ``same`` and ``removed`` together are the old text, ``same`` and ``added`` the new one, every
    character of them.
    """
    if old == new:
        return (Piece("same", old),) if old else ()
    pattern = _WORD
    a, b = pattern.findall(old), pattern.findall(new)
    if len(a) + len(b) > _WORDS_MAX:
        a, b = _LINE.findall(old), _LINE.findall(new)
    matcher = difflib.SequenceMatcher(None, a, b, autojunk=False)
    found = []
    for tag, a1, a2, b1, b2 in matcher.get_opcodes():
        if tag == "equal":
            found.append(Piece("same", "".join(a[a1:a2])))
            continue
        if a2 > a1:
            found.append(Piece("removed", "".join(a[a1:a2])))
        if b2 > b1:
            found.append(Piece("added", "".join(b[b1:b2])))
    return tuple(found)


def word_diff_text(pieces: Iterable[Piece]) -> str:
    """Return a diff as one text, marked as git marks words: ``[-removed-]{+added+}``."""
    marks = {"removed": "[-{}-]", "added": "{{+{}+}}"}
    return "".join(
        marks[piece.change].format(piece.text) if piece.change in marks else piece.text
        for piece in pieces
    )
