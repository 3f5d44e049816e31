"""What a caller wants to say, before it has a number and a time."""

from __future__ import annotations

import re
from datetime import datetime
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

import msgspec

from agent_chatroom_ledger.domain.clock import from_datetime, to_datetime
from agent_chatroom_ledger.domain.display import has_control
from agent_chatroom_ledger.domain.names import BROADCAST, check_author
from agent_chatroom_ledger.errors import InvalidInput
from agent_chatroom_ledger.limits import (
    BODY_BYTES_MAX,
    DATA_BYTES_MAX,
    ID_CHARS_MAX,
    KIND_CHARS_MAX,
    NAMES_MAX,
    REF_FIELD_CHARS_MAX,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

KIND_PATTERN: Final = rf"^[a-z0-9][a-z0-9_.-]{{0,{KIND_CHARS_MAX - 1}}}\Z"

_KIND: Final = re.compile(KIND_PATTERN, re.ASCII)
_SHA256: Final = re.compile(r"[0-9a-f]{64}", re.ASCII)
_OLDEST: Final = "1970-01-01T00:00:00.000000Z"
_SHOWN_CHARS: Final = 64
_LISTS: Final = ("to", "mentions", "artifacts")
_DATA_ENCODER: Final = msgspec.json.Encoder()
_DATA_DECODER: Final = msgspec.json.Decoder()


class Draft(msgspec.Struct, frozen=True, kw_only=True):
    """What a caller wants to say; check_draft says whether it may be said.

    The fields are those of a record. ``id`` makes the call idempotent: the same id with the same
    content again is the first record, with other content it is a Conflict. ``said_at`` is for
    imports: when it was really said.
    """

    author: str
    body: str = ""
    kind: str = "message"
    to: tuple[str, ...] = ()
    mentions: tuple[str, ...] = ()
    reply_to: str | None = None
    correlation: str | None = None
    cause: str | None = None
    status: str | None = None
    data: dict[str, Any] | None = None
    said_at: str | None = None
    id: str | None = None
    artifacts: tuple[str, ...] = ()
    placed_from: dict[str, Any] | None = None

    @classmethod
    def of(cls, mapping: Mapping[str, Any]) -> Draft:
        """Return the draft that a mapping describes.

        Lists become tuples, and ``said_at`` may be an aware datetime. Raises InvalidInput for an
        unknown key, a missing author and a value of another type. The draft is not checked further.
        """
        values = dict(mapping)
        unknown = [key for key in values if key not in cls.__struct_fields__]
        if unknown:
            name = str(unknown[0])[:_SHOWN_CHARS]
            known = ", ".join(cls.__struct_fields__)
            raise InvalidInput(f"unknown field {name!r}; known are {known}", field=name)
        said_at = values.get("said_at")
        if isinstance(said_at, datetime):
            values["said_at"] = from_datetime(said_at)
        for name in _LISTS:
            value = values.get(name, ())
            if isinstance(value, str):
                message = f"{name} is a list of texts, not one text"
                raise InvalidInput(message, field=name)
        try:
            return msgspec.convert(values, cls)
        except msgspec.ValidationError as error:
            message = f"not a message: {error}"
            raise InvalidInput(message, field="draft") from None
        except RecursionError:
            message = "data and placed_from must not be nested without end"
            raise InvalidInput(message, field="data") from None


def check_text(text: str, field: str, chars_max: int) -> str:
    """Return one line of 1 to ``chars_max`` characters, without controls and blanks around it.

    Raises InvalidInput, naming the field and the limit, for anything else.
    """
    if not text or len(text) > chars_max:
        message = f"{field} has 1 to {chars_max} characters, not {len(text)}"
        raise InvalidInput(message, field=field, limit=chars_max)
    if has_control(text) or text != text.strip():
        message = f"{field} must not hold control characters, nor white space at its ends"
        raise InvalidInput(message, field=field)
    return text


@lru_cache(maxsize=1024)
def check_kind(kind: str) -> str:
    """Return a kind as given: at most 64 lower-case letters, digits, ``_``, ``.`` and ``-``."""
    if _KIND.match(kind) is None:
        message = (
            f"kind has 1 to {KIND_CHARS_MAX} lower-case letters, digits, dots, hyphens and"
            f" underscores, and begins with a letter or digit: {kind[:_SHOWN_CHARS]!r}"
        )
        raise InvalidInput(message, field="kind", limit=KIND_CHARS_MAX)
    return kind


def check_body(body: str) -> str:
    """Return a body as given: at most 256 KiB of UTF-8, without NUL and lone surrogates."""
    try:
        size = len(body) if body.isascii() else len(body.encode())
    except UnicodeEncodeError:
        message = (
            "body holds half a character (a lone surrogate), which UTF-8 cannot hold; remove it"
        )
        raise InvalidInput(message, field="body") from None
    if size > BODY_BYTES_MAX:
        message = (
            f"body has {size} bytes of UTF-8, and at most {BODY_BYTES_MAX} are allowed; split it"
        )
        raise InvalidInput(message, field="body", limit=BODY_BYTES_MAX, size=size)
    if "\0" in body:
        message = "body holds a NUL character; remove it"
        raise InvalidInput(message, field="body")
    return body


def _check_names(names: tuple[str, ...], field: str) -> None:
    if len(names) > NAMES_MAX:
        message = f"{field} holds {len(names)} names, and at most {NAMES_MAX} are allowed"
        raise InvalidInput(message, field=field, limit=NAMES_MAX)
    if field == "to" and names == (BROADCAST,):
        return
    for name in names:
        check_author(name, field)


def _check_artifacts(artifacts: tuple[str, ...]) -> None:
    if len(artifacts) > NAMES_MAX:
        message = f"artifacts holds {len(artifacts)} names, and at most {NAMES_MAX} are allowed"
        raise InvalidInput(message, field="artifacts", limit=NAMES_MAX)
    if any(_SHA256.fullmatch(artifact) is None for artifact in artifacts):
        message = "an artifact is named by the 64 lower-case hex digits of its SHA-256"
        raise InvalidInput(message, field="artifacts")


def check_data(data: dict[str, Any], field: str) -> None:
    """Raise InvalidInput unless an object is JSON of at most 64 KiB that comes back as it was."""
    try:
        line = _DATA_ENCODER.encode(data)
        same = bool(_DATA_DECODER.decode(line) == data)
    except (TypeError, ValueError, OverflowError, RecursionError, msgspec.MsgspecError):
        line, same = b"", False
    if not same:
        message = (
            f"{field} must be an object of JSON values: texts, finite numbers, lists, objects …"
        )
        raise InvalidInput(message, field=field)
    if len(line) > DATA_BYTES_MAX:
        message = (
            f"{field} has {len(line)} bytes, and at most {DATA_BYTES_MAX} are allowed; shorten it"
        )
        raise InvalidInput(message, field=field, limit=DATA_BYTES_MAX, size=len(line))


def _check_said_at(said_at: str) -> None:
    to_datetime(said_at)
    if said_at < _OLDEST:
        message = f"said_at must not lie before 1970, where git has no dates: {said_at}"
        raise InvalidInput(message, field="said_at", value=said_at)


def check_draft(draft: Draft) -> Draft:
    """Return the draft unchanged when it may be said.

    Raises InvalidInput naming the field, the limit and the way out. Nothing is trimmed, cut or
    translated, so what passes is stored exactly. References (reply_to, cause) are checked for their
    form only.
    """
    check_author(draft.author)
    check_kind(draft.kind)
    check_body(draft.body)
    if draft.to:
        _check_names(draft.to, "to")
    if draft.mentions:
        _check_names(draft.mentions, "mentions")
    if draft.id is not None:
        check_text(draft.id, "id", ID_CHARS_MAX)
    for field in ("reply_to", "correlation", "cause", "status"):
        value = getattr(draft, field)
        if value is not None:
            check_text(value, field, REF_FIELD_CHARS_MAX)
    if draft.said_at is not None:
        _check_said_at(draft.said_at)
    if draft.artifacts:
        _check_artifacts(draft.artifacts)
    if draft.data is not None:
        check_data(draft.data, "data")
    if draft.placed_from is not None:
        check_data(draft.placed_from, "placed_from")
    return draft
