"""Names of agents: given ones are checked, derived ones always fit, and so do those with a suffix.

A name that an agent lives under has at most 48 characters, everything that we put behind it
included, so that a list of agents stays readable and no suffix is ever cut off.
"""

from __future__ import annotations

import re
import unicodedata
from typing import Final

from agent_chatroom_ledger.domain.names import UNSEEN, check_author
from agent_chatroom_ledger.errors import InvalidInput
from agent_chatroom_ledger.limits import AGENT_NAME_CHARS_MAX

_HEX_CHARS: Final = 4
_FALLBACK: Final = "agent"
_SEPARATORS: Final = "-_."
# A directory's name may be of any length; more of it than this is never looked at.
_LOOKED_AT_CHARS: Final = 256


def check_agent_name(text: str, field: str = "name") -> str:
    """Return an agent's name exactly as given: an author's name of at most 48 characters.

    Raises InvalidInput otherwise; ``field`` is named in the error.
    """
    check_author(text, field)
    if len(text) > AGENT_NAME_CHARS_MAX:
        raise InvalidInput(
            f"{field} has {len(text)} characters, and an agent's name has at most "
            f"{AGENT_NAME_CHARS_MAX}; shorten it",
            field=field,
            value=text,
            limit=AGENT_NAME_CHARS_MAX,
        )
    return text


def derived_name(directory: str) -> str:
    """Return the name of whoever works in a directory and has no other: ``m2-core-1a2f``.

    The directory is given in its canonical form; the four hex digits are of its SHA-256, so that
    a restart keeps the name and a namesake elsewhere has another. Whatever the directory is
    called, the name passes check_agent_name and holds only letters, digits, ``-``, ``_``, ``.``.
    """
    # Loading the library of hashes takes longer than reading a room, and few calls derive a name.
    from hashlib import sha256

    mark = sha256(directory.encode("utf-8", "surrogatepass")).hexdigest()[:_HEX_CHARS]
    last = re.split(r"[/\\]", directory.rstrip("/\\"))[-1]
    word = _word_of(last)[: AGENT_NAME_CHARS_MAX - 1 - _HEX_CHARS].rstrip(_SEPARATORS)
    return f"{word or _FALLBACK}-{mark}"


def suffixed(name: str, pid: int, attempt: int = 1) -> str:
    """Return the name of the one who came second: ``lead-4242``, then ``lead-4242-2`` and so on.

    The name is cut, never the suffix, so that two of them differ where their processes do.
    """
    suffix = f"-{pid}" if attempt == 1 else f"-{pid}-{attempt}"
    return name[: AGENT_NAME_CHARS_MAX - len(suffix)].rstrip(f" {_SEPARATORS}") + suffix


def _word_of(text: str) -> str:
    """Return the letters, digits and marks of a text, one hyphen for all else between them."""
    readable = text[:_LOOKED_AT_CHARS].encode(errors="ignore").decode()
    kept: list[str] = []
    for character in re.sub(UNSEEN, "", unicodedata.normalize("NFC", readable)):
        if character.isalnum():
            kept.append(character)
        elif character in _SEPARATORS:
            if kept and kept[-1] not in _SEPARATORS:
                kept.append(character)
        elif unicodedata.category(character) in {"Mn", "Mc"}:
            # A mark belongs to the letter before it, and means nothing after a separator.
            if kept and kept[-1] not in _SEPARATORS:
                kept.append(character)
        elif kept and kept[-1] not in _SEPARATORS:
            kept.append("-")
    return "".join(kept).strip(_SEPARATORS)
