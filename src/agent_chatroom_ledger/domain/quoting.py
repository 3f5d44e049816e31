r"""Text of members as it may stand before a model: one JSON string on one line.

Where a model reads it, such text stands beside what its client and its user say, unescaped and
with their authority. It must close no tag, begin no line and hide nothing, so beside what JSON
escapes by itself there are escaped: ``<``, ``>`` and ``&``, all controls, line separators, what
changes the direction of text or is not seen at all, and lone surrogates. Any JSON parser gives
the very same text back, lone surrogates included.
"""

from __future__ import annotations

from typing import Final, NamedTuple

_BMP_MAX: Final = 0xFFFF
_SHORT: Final = {
    '"': '\\"',
    "\\": "\\\\",
    "\b": "\\b",
    "\f": "\\f",
    "\n": "\\n",
    "\r": "\\r",
    "\t": "\\t",
}
_MARKUP: Final = "<>&"
# Python calls these printable: joiners and fillers that are letters or marks and show nothing,
# and the selectors of variants, a row of which can spell out a text that nobody sees. The one
# that makes an emoji of a sign (U+FE0F) is common and stays.
_UNSEEN: Final = (
    (0x034F, 0x034F),
    (0x115F, 0x1160),
    (0x17B4, 0x17B5),
    (0x180B, 0x180F),
    (0x2800, 0x2800),
    (0x3164, 0x3164),
    (0xFE00, 0xFE0E),
    (0xFFA0, 0xFFA0),
    (0xE0100, 0xE01EF),
)


class _Escapes(dict[int, str]):
    """What each character is written as, found out when it is first met."""

    def __missing__(self, point: int) -> str:
        written = self[point] = _written(chr(point))
        return written


def _written(char: str) -> str:
    if char in _SHORT:
        return _SHORT[char]
    point = ord(char)
    plain = char.isprintable() and char not in _MARKUP
    if plain and not any(first <= point <= last for first, last in _UNSEEN):
        return char
    if point <= _BMP_MAX:
        return f"\\u{point:04x}"
    high, low = divmod(point - 0x10000, 0x400)
    return f"\\u{0xD800 + high:04x}\\u{0xDC00 + low:04x}"


class Quoted(NamedTuple):
    """A JSON string, and of how many characters from the beginning it is made."""

    text: str
    chars: int


def quoted(text: str) -> str:
    """Return a text as one JSON string on one line, quotation marks included."""
    return f'"{text.translate(_Escapes())}"'


def quoted_within(text: str, bytes_max: int) -> Quoted:
    """Return as much of a text, from its beginning, as makes a JSON string of so many bytes.

    Bytes are those of UTF-8, quotation marks included; two at least are needed for these. A
    character is written whole or not at all.
    """
    if bytes_max < 2:
        raise ValueError(f"a JSON string needs two bytes, not {bytes_max}")
    escapes = _Escapes()
    left = bytes_max - 2
    # No character takes less than a byte, so what lies beyond cannot fit; a long text costs no
    # more than a short one.
    written: list[str] = []
    for char in text[:left]:
        piece = escapes[ord(char)]
        left -= len(piece.encode())
        if left < 0:
            break
        written.append(piece)
    return Quoted(f'"{"".join(written)}"', len(written))
