"""Artifacts: bytes under their SHA-256, for what is too large for a record (docs/design.md 3).

One waits, durably, under ``.git/ledger/artifacts`` before the frame that names it is written, and
is committed as ``artifacts/<2 hex>/<sha256>`` together with the first record that names it, so no
record can dangle. It is let go of there once a checkpoint has made the commit durable.
"""

from __future__ import annotations

import os
import re
import time
from hashlib import sha256
from typing import TYPE_CHECKING

from agent_chatroom_ledger.domain.records import decode_record
from agent_chatroom_ledger.errors import Corrupt
from agent_chatroom_ledger.storage import failpoints, files

if TYPE_CHECKING:
    from collections.abc import Iterable

    from agent_chatroom_ledger.domain.frames import Frame
    from agent_chatroom_ledger.storage.layout import Layout
    from agent_chatroom_ledger.storage.objects import Objects
    from agent_chatroom_ledger.storage.source import Source

ARTIFACTS = "artifacts"
_NAME = re.compile(r"[0-9a-f]{64}\Z", re.ASCII)


def artifact_path(name: str) -> str:
    """Return where an artifact lies in a commit's tree and in the work tree."""
    return f"{ARTIFACTS}/{name[:2]}/{name}"


def stage(layout: Layout, data: bytes) -> str:
    """Let bytes wait, durably, for the frame that names them; return their name.

    Bytes that are named by no frame within the hour are dropped again.
    """
    name = sha256(data).hexdigest()
    with files.clear_errors("storing an artifact"):
        place = layout.artifacts / name
        if not layout.artifacts.is_dir():
            layout.artifacts.mkdir(exist_ok=True)
            files.sync_directory(layout.private)
        if files.read_bytes(place) == data:
            os.utime(place)
            files.sync_path(place)
            files.sync_directory(layout.artifacts)
        else:
            files.replace(layout, place, data, sync=True)
        failpoints.reach("artifacts.staged")
    return name


def staged(layout: Layout, name: str) -> bytes | None:
    """Return the bytes of an artifact that waits for its commit; None when it does not."""
    if _NAME.match(name) is None:
        return None
    data = files.read_bytes(layout.artifacts / name)
    return data if data is not None and sha256(data).hexdigest() == name else None


def is_staged(layout: Layout, name: str) -> bool:
    """Tell whether an artifact waits for its commit, without reading it."""
    return _NAME.match(name) is not None and (layout.artifacts / name).is_file()


def read(layout: Layout, source: Source, name: str) -> bytes | None:
    """Return an artifact's bytes, waiting or committed; None when it is nowhere or damaged."""
    # The waiting one first: it goes only when the committed one is in its place.
    data = staged(layout, name)
    if data is None:
        data = committed(source, name)
    return data


def committed(source: Source, name: str) -> bytes | None:
    """Return the bytes of an artifact in a tree; None when it is missing or damaged there."""
    if _NAME.match(name) is None:
        return None
    data = source.read(artifact_path(name))
    return data if data is not None and sha256(data).hexdigest() == name else None


def of_history(objects: Objects, tip: str, path: str) -> bytes | None:
    """Return an artifact's bytes from the newest commit that holds them whole; None for none."""
    from agent_chatroom_ledger.storage import history
    from agent_chatroom_ledger.storage.source import CommitTree

    name = path.rpartition("/")[2]
    seen = {""}
    for commit in history.walk(objects, tip):
        tree = CommitTree(objects, commit.oid)
        oid = tree.oid(path) or ""
        if oid not in seen:
            seen.add(oid)
            data = committed(tree, name)
            if data is not None:
                return data
    return None


def required(layout: Layout, name: str) -> bytes:
    """Return an artifact that waits for its commit.

    Raises Corrupt when it is gone, which only somebody else can have done: it is synced before
    the frame that names it.
    """
    data = staged(layout, name)
    if data is None:
        raise Corrupt(
            f"the artifact {name} of a record that waits for its commit is gone from "
            f"{layout.artifacts}; put it back from a backup, or make the call again that stored it",
            code="artifact_missing",
            artifact=name,
            path=str(layout.artifacts / name),
        )
    return data


def sweep(layout: Layout, tree: Source, waiting: Iterable[Frame]) -> None:
    """Drop what is in the durable commit's tree, and after an hour what no frame came to name.

    The caller holds the commit lock, and a generation begins on that commit, so no replay needs
    what goes here. ``waiting`` are the frames that the commit lacks.
    """
    try:
        with os.scandir(layout.artifacts) as entries:
            found = [entry for entry in entries if entry.is_file(follow_symlinks=False)]
    except FileNotFoundError:
        return
    if not found:
        return
    needed = {
        name
        for frame in waiting
        for item in frame.records
        for name in decode_record(bytes(item.record)).artifacts
    }
    old = time.time() - files.TEMPORARY_SECONDS_MAX
    for entry in found:
        if entry.name in needed:
            continue
        held = entry.name in tree.names(f"{ARTIFACTS}/{entry.name[:2]}")
        if held or entry.stat(follow_symlinks=False).st_mtime < old:
            os.unlink(entry.path)
            failpoints.reach("artifacts.dropped")
