"""git's commit-graph: parents, trees, times and generations of commits in one file.

With it git walks history without opening commits. Where there is a git binary it writes the file,
with its filters of changed paths, which let `git log -- rooms/design-review` skip what did not
touch the room; without one we write a plain one ourselves. Format: git's `gitformat-commit-graph`
documentation, version 1 with SHA-1.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import struct
import subprocess
from array import array
from itertools import accumulate
from typing import TYPE_CHECKING

from agent_chatroom_ledger.errors import Busy
from agent_chatroom_ledger.storage import failpoints, files, refs
from agent_chatroom_ledger.storage.objects import NO_OBJECT
from agent_chatroom_ledger.storage.packreader import PackReader

if TYPE_CHECKING:
    from agent_chatroom_ledger.storage.layout import Layout
    from agent_chatroom_ledger.storage.objects import Objects

_NO_PARENT = 0x70000000
_MORE_PARENTS = 0x80000000
_LAST_PARENT = 0x80000000
_TIME_BITS = 34
_GENERATION_MAX = (1 << 30) - 1
_ENTRY = struct.Struct(">II")
_CHUNK = struct.Struct(">4sQ")
_LOCK_WAIT_SECONDS_MAX = 5.0
_GIT_SECONDS_MAX = 3600.0


def write_commit_graph(layout: Layout, objects: Objects) -> str:
    """Write the file for all of main's history; the caller holds the commit lock.

    Returns who wrote it, ``git`` or ``ledger``, or ``none`` where git itself would not: history
    is shallow, or has replaced objects. Raises Busy when another program holds git's lock on it.
    """
    if (layout.git / "shallow").exists() or (layout.git / "refs" / "replace").exists():
        return "none"
    binary = shutil.which("git")
    if binary is not None and _by_git(layout, binary):
        return "git"
    data = graph_bytes(objects, refs.read_main(layout))
    if data is None:
        return "none"
    info = f"{layout.git}/objects/info"
    os.makedirs(info, exist_ok=True)
    lock = f"{info}/commit-graph.lock"
    refs.take_mark(layout, lock, _LOCK_WAIT_SECONDS_MAX)
    try:
        failpoints.reach("commitgraph.write")
        with files.clear_errors("writing the commit-graph"):
            files.replace(layout, f"{info}/commit-graph", data, sync=True)
        failpoints.reach("commitgraph.written")
    finally:
        os.unlink(lock)
    return "ledger"


def _by_git(layout: Layout, binary: str) -> bool:
    """Let git write it; False when it would not, whatever its reason."""
    lock = f"{layout.git}/objects/info/commit-graph.lock"
    if os.path.lexists(lock):
        if not refs.ours(layout, lock):
            raise Busy(f"{lock} is held by another program, or was left behind", path=lock)
        os.unlink(lock)  # of one of ours that was killed: we hold the commit lock
    command = [binary, f"--git-dir={layout.git}", "commit-graph", "write"]
    command += ["--reachable", "--changed-paths", "--no-progress"]
    try:
        done = subprocess.run(  # noqa: S603 - found on PATH, as its user would find it
            command,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            check=False,
            timeout=_GIT_SECONDS_MAX,
        )
    except (OSError, subprocess.TimeoutExpired):
        return False
    return done.returncode == 0


class _History:
    """Every commit of main's history, numbered as it is met; parents by number."""

    def __init__(self, objects: Objects, main: str) -> None:
        self.names: list[bytes] = []
        self.trees = bytearray()
        self.seconds = array("q")
        self.first = array("l")
        self.others: dict[int, tuple[int, ...]] = {}
        self._places: dict[bytes, int] = {}
        packs = PackReader(objects.layout)
        waiting = [main]
        self._place(main)
        # Numbers are given when a commit is first named, so the rows are filled in later.
        while waiting:
            oid = waiting.pop()
            place = self._place(oid)
            commit = objects.as_commit(oid, packs.commit(objects, oid))
            parents = []
            for parent in commit.parents:
                if bytes.fromhex(parent) not in self._places:
                    waiting.append(parent)
                parents.append(self._place(parent))
            self.trees[20 * place : 20 * place + 20] = bytes.fromhex(commit.tree)
            self.seconds[place] = commit.committer_seconds
            self.first[place] = parents[0] if parents else -1
            if len(parents) > 1:
                self.others[place] = tuple(parents[1:])
        packs.close()

    def _place(self, oid: str) -> int:
        name = bytes.fromhex(oid)
        place = self._places.setdefault(name, len(self.names))
        if place == len(self.names):
            self.names.append(name)
            self.trees += bytes(20)
            self.seconds.append(0)
            self.first.append(-1)
        return place

    def parents(self, place: int) -> tuple[int, ...]:
        """Return the numbers of a commit's parents."""
        first = self.first[place]
        return () if first < 0 else (first, *self.others.get(place, ()))

    def generations(self) -> array[int]:
        """Return for each commit the length of the longest way down to a first commit."""
        found = array("l", bytes(array("l").itemsize * len(self.names)))
        waiting = [0]
        while waiting:
            place = waiting[-1]
            parents = self.parents(place)
            missing = [parent for parent in parents if not found[parent]]
            if missing and not found[place]:
                waiting += missing
                continue
            waiting.pop()
            found[place] = 1 + max((found[parent] for parent in parents), default=0)
        return found


def graph_bytes(objects: Objects, main: str) -> bytes | None:
    """Return the file for a commit and its ancestors; None when the format cannot hold them."""
    if main == NO_OBJECT:
        return None
    history = _History(objects, main)
    generations = history.generations()
    count = len(history.names)
    newest, oldest = max(history.seconds), min(history.seconds)
    if max(generations) > _GENERATION_MAX or oldest < 0 or newest >> _TIME_BITS:
        return None
    order = sorted(range(count), key=history.names.__getitem__)
    position = array("l", bytes(array("l").itemsize * count))
    for at, place in enumerate(order):
        position[place] = at
    data, edges = bytearray(), bytearray()
    for place in order:
        parents = [position[parent] for parent in history.parents(place)]
        first, second = ([*parents[:2], _NO_PARENT, _NO_PARENT])[:2]
        if len(parents) > 2:
            second = _MORE_PARENTS | len(edges) // 4
            for more in parents[1:-1]:
                edges += more.to_bytes(4, "big")
            edges += (parents[-1] | _LAST_PARENT).to_bytes(4, "big")
        time = history.seconds[place]
        data += history.trees[20 * place : 20 * place + 20]
        data += _ENTRY.pack(first, second)
        data += _ENTRY.pack(generations[place] << 2 | time >> 32, time & 0xFFFFFFFF)
    names = b"".join(history.names[place] for place in order)
    first_bytes = [0] * 256
    for name in history.names:
        first_bytes[name[0]] += 1
    fan = struct.pack(">256I", *accumulate(first_bytes))
    chunks = [(b"OIDF", fan), (b"OIDL", names), (b"CDAT", bytes(data))]
    if edges:
        chunks.append((b"EDGE", bytes(edges)))
    return _laid_out(chunks)


def _laid_out(chunks: list[tuple[bytes, bytes]]) -> bytes:
    start = 8 + _CHUNK.size * (len(chunks) + 1)
    table = bytearray()
    for name, content in chunks:
        table += _CHUNK.pack(name, start)
        start += len(content)
    table += _CHUNK.pack(bytes(4), start)
    head = b"CGPH" + bytes((1, 1, len(chunks), 0))
    body = head + bytes(table) + b"".join(content for _, content in chunks)
    return body + hashlib.sha1(body, usedforsecurity=False).digest()
