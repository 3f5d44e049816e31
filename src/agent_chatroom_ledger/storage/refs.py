"""The branch main, moved by compare-and-swap under git's own lock protocol.

dulwich syncs the ref file at every move and cannot say whose lock is in its way (DESIGN section
12); ours is synced at checkpoints only, and our marks are links to one permanent file, so that
they are known as ours after any kill or power cut.
"""

from __future__ import annotations

import os
import re
import time
from typing import TYPE_CHECKING

from agent_chatroom_ledger.errors import Busy, Conflict, Corrupt
from agent_chatroom_ledger.storage import failpoints, files
from agent_chatroom_ledger.storage.objects import NO_OBJECT
from agent_chatroom_ledger.storage.packs import keep_mark

if TYPE_CHECKING:
    from agent_chatroom_ledger.storage.layout import Layout

MAIN = "refs/heads/main"
TIP = "refs/ledger/tip"
FOREIGN_LOCK_WAIT_SECONDS_MAX = 2.0
_OID = re.compile(rb"[0-9a-f]{40}")


def _packed(layout: Layout, name: str) -> str | None:
    data = files.read_bytes(layout.git / "packed-refs") or b""
    found = re.search(rb"^([0-9a-f]{40}) " + re.escape(name.encode()) + rb"$", data, re.MULTILINE)
    return found.group(1).decode() if found else None


def read_ref(layout: Layout, name: str) -> str:
    """Return the id that a ref names, the zero id when there is no such ref."""
    for _ in range(3):
        data = files.read_bytes(f"{layout.git}/{name}")
        if data is not None:
            found = _OID.match(data)
            if found is None:
                raise Corrupt(
                    f"the file of {name} does not hold an object id; `rooms verify` says more",
                    code="bad_ref",
                    ref=name,
                )
            return found.group().decode()
        packed = _packed(layout, name)
        if packed is not None:
            return packed
        # `git pack-refs` may have moved it between the two looks: look once more.
    return NO_OBJECT


def read_main(layout: Layout) -> str:
    """Return the commit that main names, the zero id for an unborn branch."""
    return read_ref(layout, MAIN)


def head(layout: Layout) -> str:
    """Return what HEAD names: a ref, or an id when it is detached."""
    data = files.read_bytes(layout.git / "HEAD")
    text = (data or b"").decode("utf-8", "replace").strip()
    return text.removeprefix("ref:").strip()


def require_head_on_main(layout: Layout) -> None:
    """Raise Conflict unless HEAD is main: numbers must not be given twice."""
    found = head(layout)
    if found != MAIN:
        raise Conflict(
            f"HEAD is {found or 'unreadable'}, not {MAIN}; writing would give numbers twice. Go "
            "back with `git switch main`, or run `rooms verify --repair --apply`",
            code="not_on_main",
            head=found,
        )


def ours(layout: Layout, path: str) -> bool:
    """Tell whether a mark in .git is a link to our permanent file, or a copy of it."""
    own = keep_mark(layout)
    try:
        if os.path.samefile(path, own):
            return True
        # A power cut or a copy of the directory may have parted the two: the content tells too.
        return files.read_bytes(path) == files.read_bytes(own)
    except FileNotFoundError:
        return False


def take_mark(layout: Layout, path: str, seconds: float) -> bool:
    """Create one of git's lock files as ours; True when it was ours already.

    The caller holds the commit lock, so a mark of ours has no other holder. Raises Busy, naming
    the file, when somebody else holds it for longer than `seconds`.
    """
    deadline = time.monotonic() + seconds
    pause = 0.001
    while True:
        try:
            os.link(keep_mark(layout), path)
        except FileExistsError:
            if ours(layout, path):
                return True
            if time.monotonic() >= deadline:
                raise Busy(
                    f"{path} is held by another program, for instance a `git commit` with its "
                    "editor open; let it finish, or delete the file if nothing runs",
                    code="git_locked",
                    path=path,
                ) from None
            time.sleep(pause)
            pause = min(pause * 2, 0.05)
            continue
        return False


def drop_mark(layout: Layout, path: str) -> None:
    """Delete one of git's lock files, if it is ours."""
    if ours(layout, path):
        os.unlink(path)


def move(layout: Layout, name: str, old: str, new: str, *, sync: bool = False) -> bool:
    """Let a ref name `new` if it names `old`; False when it names something else."""
    path = f"{layout.git}/{name}"
    lock = f"{path}.lock"
    try:
        take_mark(layout, lock, FOREIGN_LOCK_WAIT_SECONDS_MAX)
    except FileNotFoundError:
        os.makedirs(os.path.dirname(path), exist_ok=True)
        take_mark(layout, lock, FOREIGN_LOCK_WAIT_SECONDS_MAX)
    try:
        failpoints.reach("refs.locked")
        if read_ref(layout, name) != old:
            return False
        files.replace(layout, path, f"{new}\n".encode(), sync=sync)
        failpoints.reach("refs.moved")
        return True
    finally:
        os.unlink(lock)


def move_main(layout: Layout, old: str, new: str) -> bool:
    """Move main from `old` to `new`; False when somebody has moved it meanwhile."""
    return move(layout, MAIN, old, new)


def replace_main(layout: Layout, new: str) -> None:
    """Let main name `new` whatever it names now: only after a power cut has damaged it."""
    path = f"{layout.git}/{MAIN}"
    os.makedirs(os.path.dirname(path), exist_ok=True)
    take_mark(layout, f"{path}.lock", FOREIGN_LOCK_WAIT_SECONDS_MAX)
    try:
        files.replace(layout, path, f"{new}\n".encode(), sync=True)
    finally:
        os.unlink(f"{path}.lock")


def sync_main(layout: Layout) -> None:
    """Make main durable, loose or packed."""
    if not files.sync_path(f"{layout.git}/{MAIN}"):
        files.sync_path(layout.git / "packed-refs")
        files.sync_directory(layout.git)
        return
    files.sync_directory(f"{layout.git}/refs/heads")
