"""Processes of this machine: who started us, who is alive, who works in a directory.

The only module that imports psutil, and only inside functions: most commands need no process.
"""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

from agent_chatroom_ledger.domain.clientprograms import KNOWN, client_name, is_init, is_passed_over
from agent_chatroom_ledger.domain.identities import ProcessId
from agent_chatroom_ledger.storage import files

if TYPE_CHECKING:
    import psutil

_ANCESTORS_MAX = 64
_LOOKS_MAX = 5


class Ancestor(NamedTuple):
    """A process, its name and the words of its command line, both empty where they are secret."""

    id: ProcessId
    name: str
    words: tuple[str, ...]


@lru_cache(maxsize=1)
def boot() -> str:
    """Return what names this boot; empty where start times are absolute and need no boot."""
    return files.boot_id() if sys.platform == "linux" else ""


def identify(pid: int) -> ProcessId | None:
    """Return a running process by its number; None when there is none, or only a zombie."""
    import psutil

    try:
        process = psutil.Process(pid)
        return None if _is_zombie(process) else _id_of(process)
    except psutil.Error:
        return None


def current() -> ProcessId:
    """Return this process."""
    found = identify(os.getpid())
    assert found is not None, "a process that asks is alive"
    return found


def is_alive(process: ProcessId) -> bool:
    """Tell whether a process still runs.

    It does not when its number is gone or another's by now (it started at another time, or in an
    earlier boot), or when only a zombie is left. One that the system does not let us look at is
    taken for alive, because its name must not be given away on a guess.
    """
    import psutil

    if process.boot != boot():
        return False
    try:
        found = psutil.Process(process.pid)
        return not _is_zombie(found) and _id_of(found) == process
    except psutil.NoSuchProcess:
        return False
    except psutil.AccessDenied:  # pragma: no cover - Linux lets everybody look
        return True


def ancestors(pid: int) -> list[Ancestor]:
    """Return the processes that a process was started by, its parent first.

    On Linux as the system's files have them: to import psutil takes longer than a hook may.
    """
    return _read_ancestors(pid) if sys.platform == "linux" else _asked_ancestors(pid)


def _asked_ancestors(pid: int) -> list[Ancestor]:
    import psutil

    found: list[Ancestor] = []
    with suppress(psutil.Error):
        parent = psutil.Process(pid).parent()
        while parent is not None and len(found) < _ANCESTORS_MAX:
            found.append(_ancestor(parent))
            parent = parent.parent()
    return found


def _read_ancestors(pid: int) -> list[Ancestor]:
    found: list[Ancestor] = []
    seen = _stat(pid)
    while seen is not None and len(found) < _ANCESTORS_MAX:
        _, number, ticks = seen
        parent = _stat(number)
        # A number that was given to a later process is nobody's parent any more.
        if parent is None or parent[2] > ticks:
            break
        started = round(parent[2] / os.sysconf("SC_CLK_TCK"), 2)
        found.append(Ancestor(ProcessId(number, started, boot()), parent[0], _words(number)))
        seen = parent
    return found


def _stat(pid: int) -> tuple[str, int, int] | None:
    """Return a process's name, its parent and when it began, in ticks since the boot."""
    try:
        content = files.read_bytes(f"/proc/{pid}/stat")
    except OSError:
        return None
    if not content:
        return None
    # The name may hold anything, parentheses too; what follows the last one is numbers.
    head, _, rest = content.rpartition(b")")
    fields = rest.split()
    return os.fsdecode(head.partition(b"(")[2]), int(fields[1]), int(fields[19])


def _words(pid: int) -> tuple[str, ...]:
    """Return the words of a command line, as psutil reads them; none of what is secret or ended."""
    with suppress(OSError):
        text = os.fsdecode(files.read_bytes(f"/proc/{pid}/cmdline") or b"")
        if not text:
            return ()
        words = text.removesuffix("\0").split("\0")
        # A program that writes its own title may part it by blanks.
        if len(words) == 1 and " " in text:
            words = text.rstrip("\0").split(" ")
        return tuple(words)
    return ()


def client_of(line: list[Ancestor]) -> Ancestor | None:
    """Return the nearest ancestor that is neither a shell nor a launcher nor our own command.

    Where all are, the farthest of them stands for the terminal; the system's first process never
    does.
    """
    own = [ancestor for ancestor in line if not is_init(ancestor.name, ancestor.words)]
    for ancestor in own:
        if not is_passed_over(ancestor.name, ancestor.words):
            return ancestor
    return own[-1] if own else None


def canonical(directory: str) -> str:
    """Return the one way to write a directory: absolute, without links, and as text.

    Bytes that are no text become escapes, since neither a file of ours nor a name can hold them.
    """
    path = os.path.realpath(directory)
    return os.fsencode(path).decode("utf-8", "backslashreplace")


def directory_of(process: ProcessId) -> str | None:
    """Return a process's working directory; None where that is secret or it has ended."""
    import psutil

    with suppress(psutil.Error, OSError):
        return canonical(psutil.Process(process.pid).cwd())
    return None


def clients_in(directory: str) -> set[ProcessId]:
    """Return the known clients that run in a directory, whether or not they ever came to us.

    A launcher that only waits for a child of the same kind is one client together with it.
    """
    import psutil

    found: dict[int, tuple[psutil.Process, str]] = {}
    for process in psutil.process_iter():
        with suppress(psutil.Error, OSError):
            kind = client_name(process.name(), process.cmdline())
            if kind not in KNOWN or _is_zombie(process):
                continue
            if canonical(process.cwd()) == directory:
                found[process.pid] = process, kind
    launchers = set()
    for process, kind in found.values():
        with suppress(psutil.Error):
            parent = process.ppid()
            if parent in found and found[parent][1] == kind:
                launchers.add(parent)
    clients = set()
    for pid, (process, _) in found.items():
        with suppress(psutil.Error):
            if pid not in launchers:
                clients.add(_id_of(process))
    return clients


def _ancestor(process: psutil.Process) -> Ancestor:
    import psutil

    name = ""
    words: list[str] = []
    with suppress(psutil.AccessDenied):
        name = process.name()
        words = process.cmdline()
    return Ancestor(_id_of(process), name, tuple(words))


def _is_zombie(process: psutil.Process) -> bool:
    import psutil

    return process.status() in {psutil.STATUS_ZOMBIE, psutil.STATUS_DEAD}


def _id_of(process: psutil.Process) -> ProcessId:
    """Return what tells a process from every other one, whatever becomes of the clock.

    psutil adds the time of boot to what Linux says, and that moves whenever the clock is set; so
    it is taken off again, provided that it did not move in between.
    """
    import psutil

    if sys.platform != "linux":  # pragma: no cover - start times are absolute there
        return ProcessId(process.pid, round(process.create_time(), 2))
    for _ in range(_LOOKS_MAX):
        before = psutil.boot_time()
        # A new look each time: an object keeps what it has found out once.
        started = psutil.Process(process.pid).create_time()
        if psutil.boot_time() == before:
            break
    return ProcessId(process.pid, round(started - before, 2), boot())
