"""Which requests over HTTP may come near the server: Host and Origin, checked by ourselves.

A web page can make a browser send requests to an address of this machine, by giving its own name
that address (DNS rebinding); the Host header then still bears the page's name. The SDK checks it
only where it is bound to loopback, and takes any port after a name it knows for a part of it.
"""

from __future__ import annotations

import ipaddress
import re
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable

_AUTHORITY: Final = re.compile(
    r"(?P<host>\[[0-9a-f:.]+\]|[a-z0-9](?:[a-z0-9._-]*[a-z0-9])?\.?)(?::(?P<port>[0-9]{1,5}))?",
    re.ASCII,
)
_ORIGIN: Final = re.compile(r"https?://(?P<authority>[^/?#@\s]+)", re.ASCII | re.IGNORECASE)
_LOOPBACK: Final = ("localhost", "127.0.0.1", "::1")


class Refusal(NamedTuple):
    """Why a request is refused: an HTTP status and a sentence."""

    status: int
    why: str


class Guard:
    """The names under which a server may be asked."""

    def __init__(self, bound: str, allowed: Iterable[str] = ()) -> None:
        """Name the address that the server listens on, and further names that lead to it."""
        self.is_loopback = is_loopback(bound)
        self._any_address = _is_unspecified(bound)
        names = {bound, *allowed}
        if self.is_loopback or self._any_address:
            names.update(_LOOPBACK)
        self._names = {name.strip("[]").rstrip(".").lower() for name in names}

    def refusal(self, hosts: list[str], origins: list[str]) -> Refusal | None:
        """Return why a request with these headers is refused, or None.

        There is one Host, of a name that leads here. An Origin, which only browsers send, is the
        very host and port that is asked.
        """
        asked = _parts(hosts[0]) if len(hosts) == 1 else None
        if asked is None or not self._is_ours(asked[0]):
            return Refusal(421, "This server is not asked under that name; see --allow-host.")
        if not origins:
            return None
        found = _ORIGIN.fullmatch(origins[0]) if len(origins) == 1 else None
        if found is None or _parts(found["authority"]) != asked:
            return Refusal(403, "This server does not answer to other pages.")
        return None

    def _is_ours(self, host: str) -> bool:
        # An address cannot be anybody's name, so it cannot be given to us by a stranger.
        return host in self._names or (self._any_address and _is_address(host))


def is_loopback(host: str) -> bool:
    """Tell whether only this machine reaches an address."""
    if host.lower() == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def bearer_of(headers: list[str]) -> str | None:
    """Return the token of the Authorization headers; empty for what is none, None without any."""
    if not headers:
        return None
    scheme, _, token = headers[0].partition(" ")
    if len(headers) > 1 or scheme.lower() != "bearer":
        return ""
    return token.strip()


def _parts(authority: str) -> tuple[str, str | None] | None:
    found = _AUTHORITY.fullmatch(authority.lower())
    if found is None:
        return None
    return found["host"].strip("[]").rstrip("."), found["port"]


def _is_address(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True


def _is_unspecified(host: str) -> bool:
    try:
        return host == "" or ipaddress.ip_address(host.strip("[]")).is_unspecified
    except ValueError:
        return False
