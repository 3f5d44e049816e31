"""Names: who may be an author, what a room and its directory may be called, and who a commit is by.

A name that is given is stored exactly or refused. A name that is derived (a slug, an origin, the
identity in a commit) is cleaned instead, and can leave no directory, forge no header and collide
with none of our own files (invariant 7).
"""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache
from typing import Final

from agent_chatroom_ledger.domain.digests import sha256_hex
from agent_chatroom_ledger.domain.display import CONTROL_CLASS, has_control, shown
from agent_chatroom_ledger.errors import InvalidInput
from agent_chatroom_ledger.limits import (
    AUTHOR_CHARS_MAX,
    FOLDER_DEPTH_MAX,
    ORIGIN_CHARS_MAX,
    ROOM_PATH_BYTES_MAX,
    SLUG_BYTES_MAX,
    TITLE_CHARS_MAX,
)

ROOMS: Final = "rooms"
# The addressee that means everybody, and so no author's name.
BROADCAST: Final = "*"

# Device names that Windows finds in every directory, with any extension; then what a room's own
# directory holds. Superscript digits count as digits there, and fold_name turns them into such.
_DEVICES: Final = frozenset(
    {"con", "prn", "aux", "nul", "conin$", "conout$"}
    | {f"{port}{digit}" for port in ("com", "lpt") for digit in range(10)},
)
RESERVED: Final = _DEVICES | {
    "messages",
    "operations",
    "versions",
    "view",
    "room.json",
    "policy.json",
    ".git",
}

_SHOWN_CHARS: Final = 64
_FALLBACK_SLUG: Final = "room"
_FALLBACK_AUTHOR: Final = "unnamed"
_FALLBACK_EMAIL: Final = "author"
_FALLBACK_HOST: Final = "host"
_HOST_CHARS_MAX: Final = 24
_EMAIL_CHARS_MAX: Final = 64
# Letters that show nothing: joiners and fillers that Unicode counts as letters or marks, and
# variation selectors.
# These three are texts, compiled by `re` at first use: readers start without them.
_INVISIBLE: Final = (
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u3164\ufe00-\ufe0f\uffa0\U000e0100-\U000e01ef]"
)
_PATH_FORBIDDEN: Final = rf'[{CONTROL_CLASS}<>:"|?*\\~\u00ad\u200b-\u200d\u2060]'
# With one of these a name looks like another: soft hyphens, spaces of no width, fillers, tags.
UNSEEN: Final = (
    r"[\u00ad\u034f\u115f\u1160\u17b4\u17b5\u180e\u200b\u2060-\u2064"
    r"\u3164\uffa0\U000e0000-\U000e007f]"
)
_HEADER_FORBIDDEN: Final = f"[{CONTROL_CLASS}]"
_NOT_EMAIL: Final = re.compile(r"[^\w.+-]+")
_NOT_HOST: Final = re.compile(r"[^a-z0-9]+")
_ORIGIN: Final = re.compile(rf"[a-z0-9][a-z0-9-]{{0,{ORIGIN_CHARS_MAX - 1}}}", re.ASCII)
# What git strips from both ends of a name when it makes a commit itself.
_CRUD: Final = " .,:;<>\"\\'"


def _refuse(field: str, message: str, text: str, limit: int | None = None) -> InvalidInput:
    """Return the error for a text, which it shows shortened and without lone surrogates."""
    value = shown(text)
    if limit is None:
        return InvalidInput(message, field=field, value=value)
    return InvalidInput(message, field=field, value=value, limit=limit)


def _check_line(text: str, field: str, chars_max: int) -> str:
    """Return a text that is one visible line without blanks around it, or raise InvalidInput."""
    if not text or text.isspace():
        message = f"{field} must not be blank"
        raise _refuse(field, message, text)
    if len(text) > chars_max:
        message = (
            f"{field} has {len(text)} characters, and at most {chars_max} are allowed; shorten it"
        )
        raise _refuse(field, message, text, limit=chars_max)
    if has_control(text):
        message = f"{field} must not hold line breaks or other control characters; remove them"
        raise _refuse(field, message, text)
    if not text.isascii() and re.search(UNSEEN, text):
        message = f"{field} must not hold characters that nobody sees; remove them"
        raise _refuse(field, message, text)
    if text != text.strip():
        message = f"{field} must not begin or end with white space; remove it"
        raise _refuse(field, message, text)
    return text


@lru_cache(maxsize=4096)
def check_author(text: str, field: str = "author") -> str:
    """Return an author's, a member's or an addressee's name exactly as given.

    It has 1 to 64 characters, no control characters, no white space around it, and is not ``*``.
    Raises InvalidInput otherwise; ``field`` is named in the error.
    """
    if text == BROADCAST:
        message = f"{field} must not be *, which addresses everybody"
        raise _refuse(field, message, text)
    return _check_line(text, field, AUTHOR_CHARS_MAX)


def check_title(text: str) -> str:
    """Return a room's title exactly as given; raises InvalidInput unless it fits on one line."""
    return _check_line(text, "title", TITLE_CHARS_MAX)


def fold_name(text: str) -> str:
    """Return the form that is equal for two names which some file system takes for the same."""
    return unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold())


def fold_title(text: str) -> str:
    """Return the form that is equal for two titles which a person takes for the same."""
    return " ".join(fold_name(text).split())


def is_reserved(text: str) -> bool:
    """Tell whether a name means something else to Windows, to git or to a room's directory."""
    folded = fold_name(text)
    return (
        folded in RESERVED
        or folded.partition(".")[0].rstrip() in _DEVICES
        or folded.startswith(".git")
    )


def _cut(text: str, bytes_max: int) -> str:
    """Return the longest beginning of a text that fits and does not end in a separator."""
    return text.encode()[:bytes_max].decode(errors="ignore").rstrip("-_.")


def slug_of(title: str) -> str:
    """Return the readable directory name of a title: ``Design review`` becomes ``design-review``.

    It holds letters and digits of any script, ``-``, ``_`` and inner dots, in NFC and lower case,
    has 1 to 80 bytes of UTF-8, and passes check_slug. A title without a letter or digit gives
    ``room``; the caller numbers a slug that is taken (numbered_slug).
    """
    text = unicodedata.normalize(
        "NFKC", title[: TITLE_CHARS_MAX * 2].encode(errors="ignore").decode()
    )
    text = re.sub(_INVISIBLE, "", unicodedata.normalize("NFKC", text.lower()))
    kept: list[str] = []
    for character in text:
        if character.isalnum() or character == "_":
            kept.append(character)
        elif unicodedata.category(character)[0] == "M":
            # A mark belongs to the letter before it, and means nothing after a separator.
            if kept and kept[-1] not in "-_.":
                kept.append(character)
        elif character == "." and kept and kept[-1] not in "-_.":
            kept.append(".")
        elif kept and kept[-1] != "-":
            if kept[-1] == ".":
                kept.pop()
            kept.append("-")
    slug = _cut("".join(kept).strip("-_."), SLUG_BYTES_MAX)
    slug = unicodedata.normalize("NFC", slug.replace("._", "_"))
    if not slug:
        return _FALLBACK_SLUG
    return f"{_FALLBACK_SLUG}-{slug}"[:SLUG_BYTES_MAX] if is_reserved(slug) else slug


def numbered_slug(slug: str, k: int) -> str:
    """Return a slug with a number, for a room whose own slug is taken: ``design-review_2``."""
    suffix = f"_{k}"
    return _cut(slug, SLUG_BYTES_MAX - len(suffix)) + suffix


def _check_part(text: str, field: str) -> str:
    """Return one part of a path that is safe on every file system, or raise InvalidInput."""
    size = len(text.encode(errors="replace"))
    if not text or size > SLUG_BYTES_MAX:
        message = (
            f"each part of {field} has 1 to {SLUG_BYTES_MAX} bytes, not {size}; choose another name"
        )
        raise _refuse(field, message, text, limit=SLUG_BYTES_MAX)
    if re.search(_PATH_FORBIDDEN, text) is not None:
        message = (
            f'{field} must not hold control characters or any of < > : " | ? * \\ ~; rename it'
        )
        raise _refuse(field, message, text)
    if text[0] in " .-" or text[-1] in " .":
        message = (
            f"no part of {field} may begin with a blank, dot or hyphen, or end with a blank or dot"
        )
        raise _refuse(field, message, text)
    if is_reserved(text):
        message = f"{text!r} is a reserved name; choose another"
        raise _refuse(field, message, text)
    if unicodedata.normalize("NFC", text) != text:
        message = f"{field} must be in Unicode normal form C (NFC)"
        raise _refuse(field, message, text)
    return text


def check_slug(text: str) -> str:
    """Return a room's directory name exactly as given.

    Raises InvalidInput for one that slug_of would never give.
    """
    _check_part(text, "slug")
    if text != text.lower() or not all(
        c.isalnum() or c in "-_." or unicodedata.category(c)[0] == "M" for c in text
    ):
        message = "a slug holds letters and digits in lower case, hyphens, underscores and dots"
        raise _refuse("slug", message, text)
    return text


def check_folder(text: str) -> str:
    """Return a folder under ``rooms/``, in NFC: ``a/b``, or the empty text for none.

    It has at most 8 parts of at most 80 bytes. Raises InvalidInput for an absolute path, ``..``, an
    empty part, a reserved or hidden name, a backslash, control characters, and a blank or dot at
    the end of a part.
    """
    if not text:
        return ""
    if len(text) > ROOM_PATH_BYTES_MAX:
        message = f"a folder has at most {ROOM_PATH_BYTES_MAX} bytes; shorten it"
        raise _refuse("folder", message, text, limit=ROOM_PATH_BYTES_MAX)
    parts = unicodedata.normalize("NFC", text).split("/")
    if len(parts) > FOLDER_DEPTH_MAX:
        message = f"a folder is at most {FOLDER_DEPTH_MAX} deep, not {len(parts)}"
        raise _refuse("folder", message, text, limit=FOLDER_DEPTH_MAX)
    return "/".join(_check_part(part, "folder") for part in parts)


def room_directory(folder: str, slug: str, *, crowded: bool) -> str:
    """Return a room's path: ``rooms/a/b/slug``, or ``rooms/a/b/~3f/slug`` in a crowded folder.

    Raises InvalidInput when folder or slug break their rules or the path has more than 400 bytes.
    """
    parts = [
        ROOMS,
        check_folder(folder),
        crowd_directory(slug) if crowded else "",
        check_slug(slug),
    ]
    path = "/".join(part for part in parts if part)
    if len(path.encode()) > ROOM_PATH_BYTES_MAX:
        message = f"a room's path has at most {ROOM_PATH_BYTES_MAX} bytes; choose a shorter folder"
        raise _refuse("folder", message, folder, limit=ROOM_PATH_BYTES_MAX)
    return path


def crowd_directory(slug: str) -> str:
    """Return where a crowded folder puts a room: ``~`` and two hex digits of its slug's SHA-256."""
    return f"~{sha256_hex(slug.encode())[:2]}"


def check_room_path(path: str) -> tuple[str, str]:
    """Return folder and slug of a room's path ``rooms/…``, the inverse of room_directory.

    Raises InvalidInput for a path that room_directory gives for no folder and slug.
    """
    root, *parts = path.split("/")
    if root == ROOMS and parts:
        slug = parts.pop()
        crowded = bool(parts) and parts[-1].startswith("~")
        folder = "/".join(parts[:-1] if crowded else parts)
        if room_directory(folder, slug, crowded=crowded) == path:
            return folder, slug
    message = f"not the path of a room: {path[:_SHOWN_CHARS]!r}"
    raise _refuse("path", message, path)


def mint_origin(hostname: str, entropy: bytes) -> str:
    """Return a name for a new origin, ``mbp-3f2a``, of a host name and two random bytes."""
    label = _NOT_HOST.sub("-", hostname.partition(".")[0].lower()).strip("-")
    label = label[:_HOST_CHARS_MAX].rstrip("-") or _FALLBACK_HOST
    return f"{label}-{entropy[:2].hex()}"


def is_origin(text: str) -> bool:
    """Tell whether an origin may be called so: what a foreign commit named otherwise is no log."""
    return _ORIGIN.fullmatch(text) is not None and text not in RESERVED


def check_origin(text: str) -> str:
    """Return an origin as given: 1 to 32 lower-case letters, digits, hyphens, not reserved."""
    if not is_origin(text):
        message = f"an origin has 1 to {ORIGIN_CHARS_MAX} lower-case letters, digits and hyphens"
        raise _refuse("origin", message, text, limit=ORIGIN_CHARS_MAX)
    return text


@lru_cache(maxsize=4096)
def git_identity(author: str, origin: str) -> tuple[str, str]:
    """Return name and e-mail for a commit's header: ``("Analyst", "analyst@mbp-3f2a")``.

    Whatever the author's name holds, neither text is empty, and neither holds a control character,
    a line break, an angle bracket or white space around it, so no header can be forged. Angle
    brackets become similar quotation marks, so that two names stay two.
    """
    name = re.sub(_HEADER_FORBIDDEN, "", author.replace("<", "\u2039").replace(">", "\u203a"))
    name = " ".join(name.split())[:AUTHOR_CHARS_MAX].strip()
    if not name.strip(_CRUD):
        name = _FALLBACK_AUTHOR
    local = _NOT_EMAIL.sub("-", name.lower()).strip("-.")[:_EMAIL_CHARS_MAX].strip("-.")
    return name, f"{local or _FALLBACK_EMAIL}@{origin}"
