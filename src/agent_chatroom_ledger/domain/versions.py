"""Versions of a message: ten levels of ever shorter renditions, level 0 the message itself.

A bundle is set by an operation, whose data holds it or names the artifact that does. The newest
one that keeps the rules is projected to ``versions/<origin>/<nn>/<nn>/<n>.json`` (invariant 2),
so a message without a bundle costs no bytes: its levels are all the message. Lengths are counted
in characters (Unicode code points).
"""

from __future__ import annotations

from hashlib import sha256
from typing import TYPE_CHECKING, Any, Final

import msgspec

from agent_chatroom_ledger.domain.clock import from_datetime, to_datetime
from agent_chatroom_ledger.domain.drafts import Draft, check_body, check_draft
from agent_chatroom_ledger.domain.names import check_author
from agent_chatroom_ledger.domain.references import full_ref, parse_ref
from agent_chatroom_ledger.domain.rooms import check_reason
from agent_chatroom_ledger.domain.segments import directory_of
from agent_chatroom_ledger.errors import Corrupt, InvalidInput
from agent_chatroom_ledger.limits import (
    DATA_BYTES_MAX,
    VERSION_BUNDLE_BYTES_MAX,
    VERSION_LEVELS_MAX,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from agent_chatroom_ledger.domain.records import Message

FORMAT: Final = 1
VERSIONS: Final = "versions"
VERSIONS_SET: Final = "versions.set"
VERSIONS_CLEAR: Final = "versions.clear"
KINDS: Final = frozenset({VERSIONS_SET, VERSIONS_CLEAR})
LEVELS: Final = tuple(str(level) for level in range(VERSION_LEVELS_MAX))
LAST_LEVEL: Final = VERSION_LEVELS_MAX - 1
INVALID: Final = "version_invalid"

# What is left of an operation's data for the reason and the report that stand beside the levels.
_INLINE_BYTES_MAX: Final = DATA_BYTES_MAX - 16_384


class Bundle(msgspec.Struct, frozen=True, kw_only=True):
    """The ten levels of one message, and who prepared them when.

    ``semantic`` says that they were prepared for their meaning, rather than made by rule.
    ``source_hash`` is the SHA-256 of the message that they were made from, ``bundle_hash`` that of
    the levels together. A message that nobody has prepared has ten equal levels, no ``prepared_by``
    and no ``prepared_at``.
    """

    origin: str
    n: int
    levels: tuple[str, ...]
    semantic: bool = False
    prepared_by: str = ""
    prepared_at: str = ""
    source_hash: str = ""
    bundle_hash: str = ""

    @property
    def prepared(self) -> bool:
        """Whether somebody has set these levels."""
        return bool(self.prepared_at)

    def as_dict(self) -> dict[str, Any]:
        """Return the bundle as JSON values, each level with its text and its length."""
        return {
            "message": full_ref(self.origin, self.n),
            "semantic_prepared": self.semantic,
            "prepared_by": self.prepared_by,
            "prepared_at": self.prepared_at,
            "source_hash": self.source_hash,
            "bundle_hash": self.bundle_hash,
            "levels": levels_shape(self.levels),
        }


class Change(msgspec.Struct, frozen=True, kw_only=True):
    """What one operation does to the versions of a message; ``levels`` is None in an artifact."""

    origin: str
    n: int
    clear: bool = False
    semantic: bool = False
    prepared_by: str = ""
    prepared_at: str = ""
    source_hash: str = ""
    bundle_hash: str = ""
    levels: tuple[str, ...] | None = None


class _Level(msgspec.Struct, frozen=True):
    char_count: int
    message: str


class _File(msgspec.Struct, frozen=True, kw_only=True):
    """A projection, and (without the rest) the levels of an artifact."""

    format: int
    levels: dict[str, _Level]
    message: str
    semantic_prepared: bool
    prepared_by: str
    prepared_at: str
    source_hash: str
    bundle_hash: str


class _Levels(msgspec.Struct, frozen=True):
    format: int
    levels: tuple[str, ...]


_ENCODER: Final = msgspec.json.Encoder(order="sorted")
_FILE_DECODER: Final = msgspec.json.Decoder(_File)
_LEVELS_DECODER: Final = msgspec.json.Decoder(_Levels)


def levels_shape(levels: tuple[str, ...]) -> dict[str, dict[str, Any]]:
    """Return levels as callers give and get them: ``{"0": {"message", "char_count"}, …}``."""
    return {
        level: {"message": text, "char_count": len(text)}
        for level, text in zip(LEVELS, levels, strict=True)
    }


def source_hash(body: str) -> str:
    """Return the SHA-256 of a message's text, by which a bundle knows what it was made from."""
    return sha256(body.encode()).hexdigest()


def encode_levels(levels: tuple[str, ...]) -> bytes:
    """Return the bytes whose SHA-256 is the bundle's hash, and which an artifact holds."""
    return _ENCODER.encode(_Levels(FORMAT, levels)) + b"\n"


def unprepared(message: Message) -> Bundle:
    """Return the bundle of a message that nobody has prepared: ten equal levels."""
    levels = (message.body,) * VERSION_LEVELS_MAX
    return Bundle(
        origin=message.origin,
        n=message.n,
        levels=levels,
        source_hash=source_hash(message.body),
        bundle_hash=sha256(encode_levels(levels)).hexdigest(),
    )


def check_levels(versions: object, body: str) -> tuple[str, ...]:
    """Return the ten texts of ``{"0": {"message", "char_count"}, …}`` for a message.

    Raises InvalidInput (code ``version_invalid``) unless all ten levels are there and no other,
    level 0 is the message itself, and every count is that of its text.
    """
    if not isinstance(versions, dict):
        raise _invalid("versions are an object with the levels 0 to 9")
    given = {str(level): value for level, value in versions.items()}
    missing = [level for level in LEVELS if level not in given]
    foreign = [level[:20] for level in given if level not in LEVELS]
    if missing or foreign or len(given) != len(versions):
        what = f"lack {', '.join(missing)}" if missing else f"have {', '.join(foreign)}"
        raise _invalid(f"versions hold the levels 0 to 9, each once; these {what}")
    texts = []
    for level in LEVELS:
        value = given[level]
        text = value.get("message") if isinstance(value, dict) else None
        count = value.get("char_count") if isinstance(value, dict) else None
        if not isinstance(text, str) or not isinstance(count, int) or isinstance(count, bool):
            raise _invalid(f'level {level} is an object {{"message": text, "char_count": number}}')
        if count != len(check_body(text)):
            raise _invalid(f"level {level} has {len(text)} characters, not {count}")
        texts.append(text)
    if texts[0] != body:
        raise _invalid("level 0 must be the message itself, every character of it")
    return tuple(texts)


def _invalid(message: str) -> InvalidInput:
    return InvalidInput(message, code=INVALID, field="versions")


def set_draft(
    bundle: Bundle, *, by: str, reason: str = "", report: Mapping[str, Any] | None = None
) -> tuple[Draft, bytes | None]:
    """Return the operation that sets a bundle, and the artifact that it names, if it needs one.

    Only origin, number, levels and ``semantic`` of the bundle are given by a caller who prepares
    it; one who restores it gives ``prepared_by`` and ``prepared_at`` too, which then stay what they
    were. Small bundles stand in the operation, larger ones in the artifact.
    """
    content = encode_levels(bundle.levels)
    if len(content) > VERSION_BUNDLE_BYTES_MAX:
        raise InvalidInput(
            f"the ten levels have {len(content)} bytes together, and at most "
            f"{VERSION_BUNDLE_BYTES_MAX} are allowed; shorten them",
            code=INVALID,
            field="versions",
            limit=VERSION_BUNDLE_BYTES_MAX,
            size=len(content),
        )
    ref = full_ref(bundle.origin, bundle.n)
    name = sha256(content).hexdigest()
    inline = len(content) <= _INLINE_BYTES_MAX
    data: dict[str, Any] = {
        "messages": [ref],
        "source_hash": source_hash(bundle.levels[0]),
        "bundle_hash": name,
        "semantic": bundle.semantic,
    }
    if bundle.prepared_at:
        data["prepared_by"] = check_author(bundle.prepared_by, "prepared_by")
        data["prepared_at"] = bundle.prepared_at
    if inline:
        data["levels"] = list(bundle.levels)
    lengths = f"{len(bundle.levels[0])} to {len(bundle.levels[-1])} characters"
    draft = _operation(VERSIONS_SET, by, reason, f"Set the versions of {ref}, {lengths}", data)
    if report is not None:
        data["report"] = dict(report)
    if not inline:
        draft = msgspec.structs.replace(draft, artifacts=(name,))
    return check_draft(draft), None if inline else content


def clear_draft(
    origin: str, n: int, *, by: str, reason: str = "", report: Mapping[str, Any] | None = None
) -> Draft:
    """Return the operation that takes a message's bundle back: its levels are equal again."""
    ref = full_ref(origin, n)
    data: dict[str, Any] = {"messages": [ref]}
    draft = _operation(VERSIONS_CLEAR, by, reason, f"Cleared the versions of {ref}", data)
    if report is not None:
        data["report"] = dict(report)
    return check_draft(draft)


def _operation(kind: str, by: str, reason: str, body: str, data: dict[str, Any]) -> Draft:
    if check_reason(reason):
        data["reason"] = reason
    return Draft(author=by, kind=kind, body=body, data=data)


def change_of(message: Message) -> Change | None:
    """Return what an operation does to versions; None for one of another kind.

    Raises InvalidInput for one that breaks a rule, which every fold skips.
    """
    if message.kind not in KINDS:
        return None
    data = message.data or {}
    refs = data.get("messages")
    if not isinstance(refs, list) or len(refs) != 1 or not isinstance(refs[0], str):
        raise _invalid("an operation on versions names one message")
    origin, n = parse_ref(refs[0], message.origin)
    if message.kind == VERSIONS_CLEAR:
        return Change(origin=origin, n=n, clear=True)
    levels = data.get("levels")
    texts: tuple[str, ...] | None = None
    if levels is not None:
        if not isinstance(levels, list) or not all(isinstance(text, str) for text in levels):
            raise _invalid("the levels of a bundle are texts")
        texts = tuple(levels)
    name = data.get("bundle_hash")
    prepared_at = data.get("prepared_at", from_datetime(message.at))
    prepared_by = data.get("prepared_by", message.author)
    if not isinstance(name, str) or (texts is None and message.artifacts != (name,)):
        raise _invalid("a bundle stands in its operation, or in the one artifact that it names")
    if not isinstance(prepared_at, str) or not isinstance(prepared_by, str):
        raise _invalid("who prepared a bundle, and when, are texts")
    to_datetime(prepared_at)
    return Change(
        origin=origin,
        n=n,
        semantic=data.get("semantic") is True,
        prepared_by=check_author(prepared_by, "prepared_by"),
        prepared_at=prepared_at,
        source_hash=str(data.get("source_hash")),
        bundle_hash=name,
        levels=texts,
    )


def bundle_of(change: Change, artifact: bytes | None) -> Bundle:
    """Return the bundle that an operation sets; ``artifact`` holds its levels if it does not.

    Raises InvalidInput when the levels are not what the operation says of them.
    """
    levels = change.levels
    if levels is None:
        try:
            levels = _LEVELS_DECODER.decode(artifact or b"").levels
        except (msgspec.MsgspecError, UnicodeDecodeError):
            raise _invalid(f"the artifact {change.bundle_hash} holds no levels") from None
    if (
        len(levels) != VERSION_LEVELS_MAX
        or sha256(encode_levels(levels)).hexdigest() != change.bundle_hash
        or source_hash(levels[0]) != change.source_hash
    ):
        raise _invalid(f"the levels of {full_ref(change.origin, change.n)} do not fit their hashes")
    return Bundle(
        origin=change.origin,
        n=change.n,
        levels=levels,
        semantic=change.semantic,
        prepared_by=change.prepared_by,
        prepared_at=change.prepared_at,
        source_hash=change.source_hash,
        bundle_hash=change.bundle_hash,
    )


def versions_path(room: str, origin: str, n: int) -> str:
    """Return the path of the projection of a message's bundle."""
    return f"{room}/{VERSIONS}/{origin}/{directory_of(n)}/{n}.json"


def bundle_json(bundle: Bundle) -> bytes:
    """Return the bytes of a bundle's projection; the same bundle always gives the same."""
    document = {"format": FORMAT, **bundle.as_dict()}
    return msgspec.json.format(_ENCODER.encode(document), indent=2) + b"\n"


def bundle_from_json(data: bytes, of: tuple[str, int] | None = None) -> Bundle:
    """Return the bundle of a projection, which must be of this message if one is named.

    Raises Corrupt for bytes that are none, whose hash does not fit, or (code ``newer_format``)
    that a newer version wrote; the operations have the truth then.
    """
    try:
        file = _FILE_DECODER.decode(data)
        origin, n = parse_ref(file.message, "") if of is None else of
        levels = tuple(file.levels[level].message for level in LEVELS)
    except (msgspec.MsgspecError, UnicodeDecodeError, InvalidInput, KeyError) as error:
        raise Corrupt(f"not the versions of a message: {error}") from None
    if file.format > FORMAT:
        raise Corrupt(
            f"a file of versions has format {file.format}, newer than {FORMAT}: update the package",
            code="newer_format",
            format=file.format,
        )
    if file.message != full_ref(origin, n):
        raise Corrupt(f"these versions are of {file.message[:80]}, not of {full_ref(origin, n)}")
    if sha256(encode_levels(levels)).hexdigest() != file.bundle_hash:
        raise Corrupt(f"the versions of {file.message} do not fit their hash")
    return Bundle(
        origin=origin,
        n=n,
        levels=levels,
        semantic=file.semantic_prepared,
        prepared_by=file.prepared_by,
        prepared_at=file.prepared_at,
        source_hash=file.source_hash,
        bundle_hash=file.bundle_hash,
    )


def needs_work(bundle: Bundle, body: str, *, semantic: bool) -> tuple[str, ...]:
    """Say what a message's versions lack, in codes; nothing when they need no work.

    ``stale_source``: they were made from another text. ``not_semantic``: nobody has prepared them
    for their meaning, which is asked for with ``semantic``.
    """
    reasons = []
    if bundle.levels[0] != body:
        reasons.append("stale_source")
    if semantic and not bundle.semantic:
        reasons.append("not_semantic")
    return tuple(reasons)
