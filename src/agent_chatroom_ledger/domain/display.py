"""Text made safe to show: on a terminal, in a commit's subject, in a table.

Bodies and names come from anyone. A control character can move a cursor, rewrite a line or reverse
the reading direction of what follows; it is shown or dropped here, and never reaches a terminal
raw.
"""

from __future__ import annotations

import re
from typing import Final

# C0, DEL and C1; line and paragraph separator; the controls that change the direction of text
# (Unicode UAX #9); the invisible byte order mark; lone surrogates, which no encoder takes.
CONTROL_CLASS: Final = (
    r"\x00-\x1f\x7f-\x9f\u2028\u2029\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069\ufeff\ud800-\udfff"
)

# Texts, compiled by `re` when the first odd character is met: most processes never meet one, and
# compiling these would be a fiftieth of their time.
_CONTROL: Final = f"[{CONTROL_CLASS}]"
_CONTROL_BUT_LINES: Final = f"(?![\t\n])[{CONTROL_CLASS}]"
_ELLIPSIS: Final = "…"
# Text that is cut is cleaned only this many times farther than the cut, so a long body costs no
# more than a short.
_CLEANED_AHEAD: Final = 4
_BYTE_MAX: Final = 0xFF
_SHOWN_CHARS: Final = 64


def _shown(match: re.Match[str]) -> str:
    """Return the escape that stands for one control character."""
    point = ord(match[0])
    return f"\\x{point:02x}" if point <= _BYTE_MAX else f"\\u{point:04x}"


def terminal_safe(text: str, *, lines: bool) -> str:
    r"""Return text with every control character shown as an escape: ``\x1b``, ``\u202e``.

    With ``lines``, tab and line feed stay; without, they too are shown, so the result is one line.
    """
    if text.isprintable():
        return text
    return re.sub(_CONTROL_BUT_LINES if lines else _CONTROL, _shown, text)


def shown(text: str) -> str:
    """Return the beginning of a text for an error's fields, lone surrogates shown as escapes."""
    return text[:_SHOWN_CHARS].encode(errors="backslashreplace").decode()


def shown_whole(text: str) -> str:
    """Return a text with lone surrogates, which no encoder takes, shown as escapes."""
    return text if text.isascii() else text.encode(errors="backslashreplace").decode()


def has_control(text: str) -> bool:
    """Tell whether a text holds a control, a line separator, a bidi control or a lone surrogate."""
    return not text.isprintable() and re.search(_CONTROL, text) is not None


def one_line(text: str, chars_max: int) -> str:
    """Return text as one line: white space becomes single blanks, controls go, the end is cut.

    The result has at most ``chars_max`` characters, and ends in an ellipsis when something was cut.
    """
    head = text[: chars_max * _CLEANED_AHEAD]
    line = " ".join(head.split())
    if not line.isprintable():
        line = " ".join(re.sub(_CONTROL, "", line).split())
    if len(line) > chars_max or (len(head) < len(text) and text[len(head) :].strip()):
        return line[: chars_max - 1].rstrip() + _ELLIPSIS
    return line
