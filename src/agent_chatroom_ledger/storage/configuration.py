"""The settings of a ledger on this machine: ``.git/ledger/config.toml``, outside version control.

Every key may be absent and has a default. An unknown key is a warning, because a newer version may
know it; a value that cannot be meant is an error that names the key, the limit and the way out.
"""

from __future__ import annotations

import re
import warnings
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

import msgspec

from agent_chatroom_ledger.errors import Forbidden, InvalidInput
from agent_chatroom_ledger.limits import (
    CONFIG_BYTES_MAX,
    DELIVER_MAX,
    POLL_MILLISECONDS_MAX,
    POLL_MILLISECONDS_MIN,
    SENDS_MAX,
    STALE_SECONDS_MAX,
)
from agent_chatroom_ledger.storage import files
from agent_chatroom_ledger.storage.locks import holding

if TYPE_CHECKING:
    from collections.abc import Mapping

    from agent_chatroom_ledger.storage.layout import Layout

Delivery: TypeAlias = Literal["steer", "followUp"]
DELIVERIES: Final = ("steer", "followUp")


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """What a ledger's owner may set, with the defaults.

    ``steer`` hands a message over at the next tool as well; ``followUp`` only at a prompt, at the
    start of a session and through the inbox. ``max_sends_per_session`` is None for no limit.
    ``poll_ms`` is how often a waiting process looks whether the journal has grown.
    """

    auto_join: bool = True
    max_sends_per_session: int | None = None
    dm_delivery: Delivery = "steer"
    room_delivery: Delivery = "steer"
    poll_ms: int = 30
    max_deliver_per_flush: int = 5
    stale_after_seconds: int = 900


# What each key that holds a number may be.
_RANGES: Final[Mapping[str, tuple[int, int]]] = {
    "max_sends_per_session": (1, SENDS_MAX),
    "poll_ms": (POLL_MILLISECONDS_MIN, POLL_MILLISECONDS_MAX),
    "max_deliver_per_flush": (1, DELIVER_MAX),
    "stale_after_seconds": (1, STALE_SECONDS_MAX),
}
_CHOICES: Final = ("dm_delivery", "room_delivery")
_SWITCHES: Final = ("auto_join",)
KEYS: Final = (*_SWITCHES, *_CHOICES, *_RANGES)
_DEFAULTS: Final = Settings()
# A line that sets a key: the key, its value, and a comment after it.
_SETTING: Final = re.compile(
    r"""\s*(?P<key>[A-Za-z0-9_-]+|"[^"\\]*"|'[^']*')\s*=\s*"""
    r"""(?:"[^"\\]*"|'[^']*'|[^#"'\s]+)(?P<rest>\s*(?:\#.*)?)\r?\n?\Z"""
)


def load_settings(layout: Layout) -> Settings:
    """Return the settings; a missing file means all defaults.

    Warns of a key that this version does not know. Raises InvalidInput (code ``bad_setting``) for
    a file that is no TOML and for a value that its key may not have, Forbidden for a file that
    cannot be read.
    """
    try:
        content = files.read_bytes(layout.config)
    except OSError as error:
        raise Forbidden(
            f"The settings {layout.config} cannot be read: {error}.", path=str(layout.config)
        ) from error
    if content is None:
        return _DEFAULTS
    found = _parsed(layout, content)
    unknown = [key for key in found if key not in KEYS]
    if unknown:
        names = ", ".join(repr(key[:80]) for key in unknown[:10])
        warnings.warn(
            f"{layout.config} sets {names}, which this version does not know; it knows "
            f"{', '.join(KEYS)}",
            stacklevel=2,
        )
    known = {
        key: checked(key, value, str(layout.config)) for key, value in found.items() if key in KEYS
    }
    return msgspec.structs.replace(_DEFAULTS, **known)


def settings_set(layout: Layout) -> frozenset[str]:
    """Return the keys that the file sets, of those that this version knows."""
    content = files.read_bytes(layout.config)
    return frozenset(() if content is None else _parsed(layout, content)) & frozenset(KEYS)


def change_setting(layout: Layout, key: str, value: bool | int | str | None) -> None:  # noqa: FBT001 - a setting is a truth value as well as a number or a text
    """Set a key in the file, or take it out with None; comments and other keys stay.

    Raises InvalidInput for a key or value that may not be, and for a file in which the key cannot
    be set without touching more than its own line.
    """
    if value is not None or key not in KEYS:
        checked(key, value)
    with files.clear_errors("writing the settings"), holding(layout.locks / "config.lock"):
        before = files.read_bytes(layout.config) or b""
        known = _parsed(layout, before)
        after = _edited(before.decode("utf-8-sig"), key, value).encode()
        wanted = {k: v for k, v in known.items() if k != key}
        if value is not None:
            wanted[key] = value
        if _parsed(layout, after) != wanted:
            raise InvalidInput(
                f"{key} cannot be set in {layout.config} without touching more of it; edit "
                "the file by hand.",
                code="bad_setting",
                key=key,
                path=str(layout.config),
            )
        if after != before:
            files.replace(layout, layout.config, after, sync=True)


def _edited(text: str, key: str, value: bool | int | str | None) -> str:  # noqa: FBT001 - a setting is a truth value as well as a number or a text
    """Return the text with the line of a key replaced, added before any table, or taken out."""
    lines = text.splitlines(keepends=True)
    tables = (place for place, line in enumerate(lines) if line.lstrip().startswith("["))
    end = next(tables, len(lines))
    shown = "" if value is None else f"{key} = {_toml(value)}"
    for place, line in enumerate(lines[:end]):
        found = _SETTING.match(line)
        if found is not None and found["key"].strip("\"'") == key:
            kept = found["rest"].rstrip("\r\n")
            lines[place] = f"{shown}{kept}\n" if shown else ""
            return "".join(lines)
    if not shown:
        return text
    if end and not lines[end - 1].endswith("\n"):
        lines[end - 1] += "\n"
    lines.insert(end, f"{shown}\n")
    return "".join(lines)


def _toml(value: bool | int | str) -> str:  # noqa: FBT001 - a setting is a truth value as well as a number or a text
    if isinstance(value, str):
        return f'"{value}"'
    return str(value).lower()


def checked(key: str, value: object, where: str = "") -> bool | int | str:
    """Return the value of a setting; InvalidInput, naming key, limit and way out, for a bad one."""
    if key in _SWITCHES:
        if isinstance(value, bool):
            return value
        allowed = "true or false"
    elif key in _CHOICES:
        if value in DELIVERIES:
            return str(value)
        allowed = '"steer" or "followUp"'
    elif key in _RANGES:
        least, most = _RANGES[key]
        if isinstance(value, int) and not isinstance(value, bool) and least <= value <= most:
            return value
        allowed = f"a whole number from {least} to {most}"
        if key == "max_sends_per_session":
            allowed += ", or absent for no limit"
    else:
        raise InvalidInput(
            f"There is no setting {key[:80]!r}; there are {', '.join(KEYS)}.",
            code="bad_setting",
            key=key[:80],
        )
    place = f" in {where}" if where else ""
    raise InvalidInput(
        f"{key}{place} is {allowed}, not {str(value)[:80]!r}. Correct it, or remove the line to "
        f"have the default ({_shown(getattr(_DEFAULTS, key))}).",
        code="bad_setting",
        key=key,
        path=where,
    )


def _shown(value: object) -> str:
    if value is None:
        return "no limit"
    return str(value).lower() if isinstance(value, bool) else str(value)


def _parsed(layout: Layout, content: bytes) -> dict[str, Any]:
    trouble = ""
    if len(content) > CONFIG_BYTES_MAX:
        trouble = f"it has {len(content)} bytes, and settings have at most {CONFIG_BYTES_MAX}"
    else:
        # Imported where there is something to read: most ledgers have no settings.
        import tomllib

        try:
            return tomllib.loads(content.decode("utf-8-sig"))
        except (tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError) as error:
            trouble = str(error)
    raise InvalidInput(
        f"The settings {layout.config} cannot be understood: {trouble}. Mend the file, or move it "
        "away to have the defaults.",
        code="bad_setting",
        path=str(layout.config),
    )
