"""Rooms as resources: `room:///team/design-review` names a room by its path.

Each part of the path is percent-encoded, and there is no authority: what stands in its place is
turned to lower case by some programs that handle addresses, and a path is not.
"""

from __future__ import annotations

from typing import Final
from urllib.parse import quote, unquote

from agent_chatroom_ledger.errors import NotFound

SCHEME: Final = "room:///"
TEMPLATE: Final = "room:///{+path}"
_ROOMS: Final = "rooms/"


def uri_of(path: str) -> str:
    """Return the address of a room's path, with or without `rooms/` before it."""
    parts = path.removeprefix(_ROOMS).split("/")
    return SCHEME + "/".join(quote(part, safe="") for part in parts)


def path_of(uri: str) -> str:
    """Return the path that an address names; NotFound for an address of another kind."""
    try:
        if uri.startswith(SCHEME) and uri != SCHEME:
            return unquote(uri[len(SCHEME) :], errors="strict")
    except UnicodeDecodeError:
        pass
    raise NotFound(
        f"{uri[:200]!r} is no address of a room; one is {SCHEME}design-review.", uri=uri[:200]
    )
