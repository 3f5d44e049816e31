r"""What a model is given to read: results as objects, and the same as one line of careful JSON.

A result goes out twice, and some clients show a model the one, some the other. Its text is JSON on
one line in which no member's words can close a tag, begin a line or hide anything; a JSON parser
gives them back to the letter. Its structured content is parsed by the client and written out
again, with only JSON's own escapes, so in it such characters are replaced by the six letters of
their escape: `\u003c` stands for `<`. `to_letter` undoes that.
"""

from __future__ import annotations

import json
import re
from dataclasses import MISSING, fields, is_dataclass
from typing import Any, Final

from agent_chatroom_ledger.domain.quoting import quoted


def object_of(result: object) -> Any:  # noqa: ANN401 - JSON values
    """Return a result as JSON values, its empty optional fields left out."""
    if is_dataclass(result) and not isinstance(result, type):
        found = {}
        for one in fields(result):
            value = getattr(result, one.name)
            optional = one.default is not MISSING or one.default_factory is not MISSING
            if not optional or (value not in (None, False) and value != []):
                found[one.name] = object_of(value)
        return found
    if isinstance(result, list | tuple):
        return [object_of(one) for one in result]
    return result


def text_of(value: object) -> str:
    """Return JSON values as JSON on one line, every text in it as `domain.quoting` writes it."""
    if isinstance(value, str):
        return quoted(value)
    if isinstance(value, dict):
        return "{" + ",".join(f"{quoted(key)}:{text_of(one)}" for key, one in value.items()) + "}"
    if isinstance(value, list | tuple):
        return "[" + ",".join(map(text_of, value)) + "]"
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    assert isinstance(value, int), f"a result holds a {type(value).__name__}"
    return str(value)


def shown(value: Any) -> Any:  # noqa: ANN401 - JSON values
    r"""Return JSON values whose texts a client may write out again in front of a model.

    Without `<` nothing opens or closes a tag; controls and what is not seen are written out too.
    A `\u` that somebody wrote becomes `\u005cu`, so that `to_letter` gives the very same back.
    """
    if isinstance(value, str):
        return value.replace("\\u", "\\u005cu").translate(_SHOWN)
    if isinstance(value, dict):
        return {shown(key): shown(one) for key, one in value.items()}
    if isinstance(value, list):
        return [shown(one) for one in value]
    return value


def to_letter(value: Any) -> Any:  # noqa: ANN401 - JSON values
    """Return what `shown` was given."""
    if isinstance(value, str):
        return _ESCAPES.sub(lambda found: str(json.loads(f'"{found[0]}"')), value)
    if isinstance(value, dict):
        return {to_letter(key): to_letter(one) for key, one in value.items()}
    if isinstance(value, list):
        return [to_letter(one) for one in value]
    return value


class _Shown(dict[int, str]):
    """What each character is shown as, found out when it is first met."""

    def __missing__(self, point: int) -> str:
        written = quoted(chr(point))[1:-1]
        plain = not written.startswith("\\u") or chr(point) in _HARMLESS
        found = self[point] = chr(point) if plain else written
        return found


# Common in code, and nothing without the `<` before them.
_HARMLESS: Final = ">&"
_SHOWN: Final = _Shown()
_ESCAPES: Final = re.compile(r"(?:\\u[0-9a-f]{4})+")


def line_of(sentence: str) -> str:
    """Return a sentence of ours, which may quote a member's words, as safe as these are."""
    return quoted(sentence)[1:-1].replace('\\"', '"').replace("\\\\", "\\")
