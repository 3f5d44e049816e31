"""The branch main, moved by compare-and-swap under git's own lock protocol.

dulwich syncs the ref file at every move and cannot say whose lock is in its way (docs/design.md
12); ours is synced at checkpoints only, and our marks are links to one permanent file, so that
they are known as ours after any kill or power cut.
"""

from __future__ import annotations

import contextlib
import errno
import os
import re
import time
from typing import TYPE_CHECKING

from agent_chatroom_ledger.errors import Busy, Conflict, Corrupt
from agent_chatroom_ledger.storage import failpoints, files

if TYPE_CHECKING:
    from agent_chatroom_ledger.storage.layout import Layout

MAIN = "refs/heads/main"
TIP = "refs/ledger/tip"
FOREIGN_LOCK_WAIT_SECONDS_MAX = 2.0
TICK_NANOSECONDS = 2_000_000_000  # of the coarsest file systems
_HEAD_ON_MAIN = f"ref: {MAIN}\n".encode()
# Here and not beside the objects, which no reader of the present state needs.
NO_OBJECT = "0" * 40
_OID = re.compile(rb"[0-9a-f]{40}")


def _packed(layout: Layout, name: str) -> str | None:
    data = files.read_bytes(layout.git / "packed-refs") or b""
    found = re.search(rb"^([0-9a-f]{40}) " + re.escape(name.encode()) + rb"$", data, re.MULTILINE)
    return found.group(1).decode() if found else None


def _loose(layout: Layout, name: str) -> bytes | None:
    try:
        return files.read_bytes(f"{layout.git}/{name}")
    except OSError as error:
        # Refs lie below this name, a ref lies above it, or no file can be called so.
        if error.errno in {errno.EISDIR, errno.ENOTDIR, errno.ENAMETOOLONG}:
            return None
        raise


def read_ref(layout: Layout, name: str) -> str:
    """Return the id that a ref names, the zero id when there is no such ref."""
    for _ in range(3):
        data = _loose(layout, name)
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
    if files.read_bytes(f"{layout.git}/HEAD") == _HEAD_ON_MAIN:
        return
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
    own = layout.own_mark
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
    return Marks(layout).take(path, seconds)


def _signature(status: os.stat_result) -> tuple[int, int, int]:
    return status.st_ino, status.st_mtime_ns, status.st_size


def _signature_of(path: str) -> tuple[int, int, int] | None:
    try:
        return _signature(os.stat(path))
    except FileNotFoundError:
        return None


class Marks:
    """Our marks in .git and the moves of main under them, by the holder of the commit lock."""

    def __init__(self, layout: Layout) -> None:
        """Remember nothing yet."""
        self._layout = layout
        self._own = layout.own_mark
        self._own_inode = 0
        self._main = f"{layout.git}/{MAIN}"
        self._main_seen: tuple[int, int, int] | None = None
        self._main_named = ""
        self._head = f"{layout.git}/HEAD"
        self._head_seen: tuple[int, int, int] | None = None

    def _is_ours(self, path: str) -> bool:
        try:
            inode = os.stat(path).st_ino
        except FileNotFoundError:
            return False
        if not self._own_inode:
            self._own_inode = os.stat(self._own).st_ino
        return inode == self._own_inode or ours(self._layout, path)

    def take(self, path: str, seconds: float) -> bool:
        """Do what `take_mark` says."""
        deadline = time.monotonic() + seconds
        pause = 0.001
        while True:
            try:
                os.link(self._own, path)
            except FileExistsError:
                if self._is_ours(path):
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

    def require_head_on_main(self) -> None:
        """Raise Conflict unless HEAD is main; it is read only when it was replaced."""
        seen = _signature(os.stat(self._head))
        if seen != self._head_seen:
            require_head_on_main(self._layout)
            self._head_seen = seen

    def main_names(self, oid: str) -> bool:
        """Tell whether main names a commit; its file is read only when it was replaced.

        git replaces the file at every move, so inode and time tell. Raises Corrupt for a main
        that cannot be read.
        """
        try:
            seen = _signature(os.stat(self._main))
        except FileNotFoundError:
            return read_main(self._layout) == oid  # it may be packed
        if seen != self._main_seen:
            self._main_named = read_main(self._layout)
            # A file that was written just now may be written again within the same tick of the
            # file system's clock, under a number that was given back: then nothing would tell.
            settled = time.time_ns() - seen[1] > TICK_NANOSECONDS
            self._main_seen = seen if settled and _signature_of(self._main) == seen else None
        return self._main_named == oid

    def move_main(self, old: str, new: str) -> bool:
        """Let main name `new` if it names `old`; False when somebody has moved it meanwhile."""
        return self.move(MAIN, old, new)

    def move(self, name: str, old: str, new: str, *, sync: bool = False) -> bool:
        """Let a ref name `new` if it names `old`; with `sync` the move is durable."""
        path = f"{self._layout.git}/{name}"
        lock = f"{path}.lock"
        try:
            self.take(lock, FOREIGN_LOCK_WAIT_SECONDS_MAX)
        except FileNotFoundError:
            os.makedirs(os.path.dirname(path), exist_ok=True)
            self.take(lock, FOREIGN_LOCK_WAIT_SECONDS_MAX)
        try:
            failpoints.reach("refs.locked")
            same = self.main_names(old) if name == MAIN else read_ref(self._layout, name) == old
            if not same:
                return False
            if sync:
                files.replace(self._layout, path, f"{new}\n".encode(), sync=True)
            else:
                from agent_chatroom_ledger.storage import exchange  # readers need no ctypes

                status = exchange.put(self._layout, path, f"{new}\n".encode())
                if name == MAIN:
                    self._main_seen, self._main_named = _signature(status), new
            failpoints.reach("refs.moved")
            return True
        finally:
            os.unlink(lock)


def drop_mark(layout: Layout, path: str) -> None:
    """Delete one of git's lock files, if it is ours."""
    if ours(layout, path):
        with contextlib.suppress(FileNotFoundError):  # two of us found it forgotten
            os.unlink(path)


def drop_forgotten(layout: Layout) -> None:
    """Delete the ref locks that killed processes left; the caller holds the commit lock.

    Because of them git would refuse the user's own commits.
    """
    for name in (MAIN, TIP):
        drop_mark(layout, f"{layout.git}/{name}.lock")


def move(layout: Layout, name: str, old: str, new: str, *, sync: bool = False) -> bool:
    """Let a ref name `new` if it names `old`; False when it names something else."""
    return Marks(layout).move(name, old, new, sync=sync)


def replace_main(layout: Layout, new: str) -> None:
    """Let main name `new` whatever it names now: only after a power cut has damaged it."""
    path = f"{layout.git}/{MAIN}"
    os.makedirs(os.path.dirname(path), exist_ok=True)
    take_mark(layout, f"{path}.lock", FOREIGN_LOCK_WAIT_SECONDS_MAX)
    try:
        files.replace(layout, path, f"{new}\n".encode(), sync=True)
    finally:
        os.unlink(f"{path}.lock")


def point_head_at_main(layout: Layout) -> None:
    """Let HEAD be main, under git's own lock."""
    lock = f"{layout.git}/HEAD.lock"
    take_mark(layout, lock, FOREIGN_LOCK_WAIT_SECONDS_MAX)
    try:
        files.replace(layout, f"{layout.git}/HEAD", _HEAD_ON_MAIN, sync=True)
    finally:
        os.unlink(lock)


def sync_main(layout: Layout) -> None:
    """Make main durable, loose or packed."""
    if not files.sync_path(f"{layout.git}/{MAIN}"):
        files.sync_path(layout.git / "packed-refs")
        files.sync_directory(layout.git)
        return
    files.sync_directory(f"{layout.git}/refs/heads")
