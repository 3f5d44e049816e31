"""What a model is given to read: results as objects, and the same as one line of careful JSON.

The structured content of a result holds what was said, to the letter. The text beside it is the
same JSON on one line in which no member's words can close a tag, begin a line or hide anything.
"""

from __future__ import annotations

from dataclasses import MISSING, fields, is_dataclass
from typing import Any

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


def line_of(sentence: str) -> str:
    """Return a sentence of ours, which may quote a member's words, as safe as these are."""
    return quoted(sentence)[1:-1].replace('\\"', '"').replace("\\\\", "\\")
