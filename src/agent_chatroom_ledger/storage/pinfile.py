"""The file of pins: read at every call, replaced whole and durably, under a lock.

A file that cannot be read is an error that names it and the way out, never taken for no pins:
that would rename agents behind their backs. Fields that this version does not know survive.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from agent_chatroom_ledger.domain.identities import ProcessId
from agent_chatroom_ledger.domain.pins import Pin
from agent_chatroom_ledger.errors import Corrupt, Forbidden, InvalidInput
from agent_chatroom_ledger.limits import CLAIM_WAIT_SECONDS_MAX, PINS_MAX
from agent_chatroom_ledger.storage import files
from agent_chatroom_ledger.storage.locks import holding

if TYPE_CHECKING:
    from collections.abc import Callable

    from agent_chatroom_ledger.storage.layout import Layout

FORMAT = 1
SCHEMA = "agent-chatroom-ledger/pins"


class _Entry(msgspec.Struct):
    name: str
    set_at: str = ""
    set_by: str = ""
    claimed_by: ProcessId | None = None
    claimed_at: str | None = None


class _File(msgspec.Struct):
    format: int
    schema: str
    pins: dict[str, _Entry]


_decoder = msgspec.json.Decoder(_File)


def load(layout: Layout) -> dict[str, Pin]:
    """Return the pins by key; none when there is no file."""
    content = _content(layout)
    return {} if content is None else _pins(layout, content)


def change(
    layout: Layout, edit: Callable[[dict[str, Pin]], dict[str, Pin] | None]
) -> dict[str, Pin]:
    """Read, edit and replace the pins in one step; None from ``edit`` leaves them as they are.

    Raises Busy when others change them for too long, and InvalidInput beyond 1,000 pins.
    """
    with (
        files.clear_errors("writing the pins"),
        holding(layout.locks / "pins.lock", seconds=CLAIM_WAIT_SECONDS_MAX),
    ):
        content = _content(layout)
        before = {} if content is None else _pins(layout, content)
        after = edit(dict(before))
        if after is None or after == before:
            return before
        if len(after) > max(PINS_MAX, len(before)):
            raise InvalidInput(
                f"A ledger holds at most {PINS_MAX} pins; `rooms pins remove` takes one away.",
                field="pins",
                limit=PINS_MAX,
            )
        known = {} if content is None else msgspec.json.decode(content)
        document = _document(known, after)
        data = msgspec.json.format(msgspec.json.encode(document), indent=1) + b"\n"
        files.replace(layout, layout.pins, data, sync=True)
        return after


def _content(layout: Layout) -> bytes | None:
    """Return the file's bytes; None without one. Raises Forbidden when it cannot be read."""
    try:
        return files.read_bytes(layout.pins)
    except OSError as error:
        raise Forbidden(
            f"The file of pins {layout.pins} cannot be read: {error.strerror}. Let yourself read "
            "it, or move it away; until then --as or ROOMS_NAME says who you are.",
            path=str(layout.pins),
        ) from error


def _document(known: dict[str, Any], pins: dict[str, Pin]) -> dict[str, Any]:
    stored = known.get("pins", {})
    entries: dict[str, Any] = {}
    for key, pin in sorted(pins.items()):
        said = {k: v for k, v in msgspec.to_builtins(pin).items() if k != "key"}
        entries[key] = {**stored.get(key, {}), **said}
    return {**known, "format": FORMAT, "schema": SCHEMA, "pins": entries}


def _pins(layout: Layout, content: bytes) -> dict[str, Pin]:
    try:
        found = _decoder.decode(content)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise _damaged(layout, str(error)) from None
    if found.schema != SCHEMA:
        raise _damaged(layout, f"its schema is {found.schema[:80]!r}")
    if found.format != FORMAT:
        raise InvalidInput(
            f"{layout.pins} has format {found.format}; this version knows {FORMAT}: use the newer "
            "version.",
            code="pins_format",
            path=str(layout.pins),
        )
    return {
        key: Pin(
            key=key,
            name=entry.name,
            set_at=entry.set_at,
            set_by=entry.set_by,
            claimed_by=entry.claimed_by,
            claimed_at=entry.claimed_at,
        )
        for key, entry in found.pins.items()
    }


def _damaged(layout: Layout, why: str) -> Corrupt:
    return Corrupt(
        f"The file of pins {layout.pins} is damaged: {why}. Put back a copy of it, or move it away "
        "and set the pins again; until then --as or ROOMS_NAME says who you are.",
        code="pins_damaged",
        path=str(layout.pins),
    )
