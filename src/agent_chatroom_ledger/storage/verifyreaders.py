"""Checks of what lies beside git for readers: lenses' levels, version cursors, receipts."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import msgspec

from agent_chatroom_ledger.domain.consumerstate import runs_of_entry
from agent_chatroom_ledger.errors import LedgerError
from agent_chatroom_ledger.storage import files, reading
from agent_chatroom_ledger.storage.ownedfiles import LENSES, PREPARATIONS, OwnedFile
from agent_chatroom_ledger.storage.reading import MESSAGES, log_path

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path
    from typing import Any

    from agent_chatroom_ledger.storage.issues import Findings
    from agent_chatroom_ledger.storage.layout import Layout
    from agent_chatroom_ledger.storage.overlay import Overlay
    from agent_chatroom_ledger.storage.source import Source


def check_readers(
    layout: Layout,
    source: Source,
    overlay: Overlay,
    places: Mapping[str, str],
    found: Findings,
) -> None:
    """Check that every file can be read, and that levels are of messages that are there.

    ``places`` has the path of each room by its id, an empty one where it is archived. Rooms that
    are not there now are left out.
    """
    _check_receipts(layout, source, overlay, places, found)
    for _, _ in _documents(layout, layout.preparations, PREPARATIONS, "completed", found):
        found.count("preparations")
    for path, document in _documents(layout, layout.consumers, LENSES, "rooms", found):
        found.count("consumers")
        for room_id, entry in document["rooms"].items():
            room = places.get(room_id)
            try:
                runs = runs_of_entry(entry)
            except LedgerError as error:
                found.error("consumer_state_invalid", f"{path}: {error}", str(path))
                continue
            if room is None or not reading.is_room(source, room, overlay):
                continue
            for origin, mine in runs.items():
                log = log_path(room, MESSAGES, origin)
                newest = reading.last_number(source, log, overlay)
                if mine and mine[-1][1] > newest:
                    what = f"{path} has a level for {mine[-1][1]}@{origin}, which {room} has not"
                    found.error("consumer_state_invalid", what, str(path))


def _check_receipts(
    layout: Layout,
    source: Source,
    overlay: Overlay,
    places: Mapping[str, str],
    found: Findings,
) -> None:
    """Check that the receipts can be read, and that no place is past the end of its log."""
    if not layout.receipts.exists():
        return
    from agent_chatroom_ledger.storage.receipts import Receipts

    found.count("receipts")
    receipts = Receipts(layout)
    path = str(layout.receipts)
    try:
        for name, room_id, origin, n in receipts.check():
            room = places.get(room_id)
            if room is None or not reading.is_room(source, room, overlay):
                continue
            newest = reading.last_number(source, log_path(room, MESSAGES, origin), overlay)
            if n > newest:
                what = f"{path} has {name} at {n}@{origin}, past the end of {room}"
                found.error("receipts_ahead", what, path)
    except LedgerError as error:
        found.error("receipts_damaged", str(error), path)
    finally:
        receipts.close()


def _documents(
    layout: Layout, directory: Path, schema: str, section: str, found: Findings
) -> Iterator[tuple[Path, dict[str, Any]]]:
    try:
        names = sorted(os.listdir(directory))
    except FileNotFoundError:
        return
    for name in names:
        path = directory / name
        if not name.endswith(".json") or name.startswith("."):
            continue
        try:
            document = msgspec.json.decode(files.read_bytes(path) or b"")
            owner = str(document.get("consumer")) if isinstance(document, dict) else ""
            file = OwnedFile(layout, owner, schema=schema, section=section, path=path)
            yield path, file.load()
        except (LedgerError, msgspec.DecodeError, UnicodeDecodeError) as error:
            found.error("consumer_state_invalid", f"{path}: {error}", str(path))
