"""The hook as a process: it reads an event, answers it, and exits with 0 whatever happens.

In the clients exit 2 erases a prompt, hides a tool's result or keeps an agent from stopping, and a
crash may do as much; so nothing that goes wrong here leaves through the exit status. The one
exception is `--wake`, where 2 is how Claude Code is told to go on.
"""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING, Final, NamedTuple, NoReturn

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from agent_chatroom_ledger.agenthook.answers import Member
    from agent_chatroom_ledger.agenthook.dialects import Event
    from agent_chatroom_ledger.ledger import Ledger
    from agent_chatroom_ledger.quiet import Quiet

_WAKE_STATUS: Final = 2
_CHUNK_BYTES: Final = 1 << 20
_LOG_LINE_CHARS_MAX: Final = 2_000
# Where a process of Claude Code runs once, without anybody who is idle, a hook that waits is waited
# for; it then looks once and goes.
_ONE_SHOT: Final = frozenset({"sdk-cli"})
_WAKE_VARIABLE: Final = "ROOMS_WAKE_SECONDS"


class Options(NamedTuple):
    """What the command line says; what it says beyond that is passed over."""

    client: str | None = None
    root: str | None = None
    wake: bool = False
    strange: tuple[str, ...] = ()


def main(arguments: Sequence[str]) -> NoReturn:
    """Answer one event and exit; `arguments` are those after `rooms hook agent`."""
    status = 0
    run = _Run()
    try:
        _hold_descriptors()
        status = run.answer(options_of(arguments))
    except BaseException as error:  # noqa: BLE001 - a status but 0 would erase a prompt
        _tell_quietly(run, error)
    os._exit(status)


def options_of(arguments: Sequence[str]) -> Options:
    """Read the command line leniently: a word that is not known is noted, and never an error."""
    found = Options()
    strange = []
    words = list(arguments)
    while words:
        word = words.pop(0)
        key, equals, value = word.partition("=")
        if key in {"--client", "--root"}:
            if not equals:
                value = words.pop(0) if words else ""
            if value and key == "--client":
                found = found._replace(client=value)
            elif value:
                found = found._replace(root=value)
        elif word == "--wake":
            found = found._replace(wake=True)
        elif word not in {"--json", "--debug"}:
            strange.append(word)
    return found._replace(strange=tuple(strange))


class _Run:
    """One event from its bytes to its answer."""

    def __init__(self) -> None:
        self.root: Path | None = None
        # What a hook that wakes says on stderr is put before the model: nothing but its count.
        self.silent = False

    def answer(self, options: Options) -> int:
        """Answer and return the exit status."""
        from agent_chatroom_ledger.limits import HOOK_DEADLINE_SECONDS, WAKE_SECONDS_MAX

        self.silent = options.wake
        deadline = _Deadline(self, HOOK_DEADLINE_SECONDS)
        if os.isatty(0):
            _say("rooms hook agent reads the event of an agent's client; see docs/agent-hooks.md")
            return 0
        data = _standard_input()
        if not data.strip():
            return 0
        _spare_imports()
        from agent_chatroom_ledger.agenthook.dialects import read

        event = read(data, options.client)
        del data
        if options.strange:
            self.note(f"passed over on the command line: {' '.join(options.strange)}")
        if event.subagent:
            return 0
        if options.wake:
            seconds = _wake_seconds(WAKE_SECONDS_MAX)
            if event.kind != "stop" or seconds <= 0:
                return 0
            deadline.move(seconds + 30)
            return self._wake(event, options, seconds)
        return self._answer(event, options)

    def _answer(self, event: Event, options: Options) -> int:
        directory = event.directory or _directory()
        if not self._find_ledger(options, directory):
            return 0
        quiet = self._quiet(event, directory) if event.kind == "tool" else None
        if quiet is not None and quiet.holds():
            return 0
        from agent_chatroom_ledger.agenthook.answers import answer
        from agent_chatroom_ledger.agenthook.dialects import encode
        from agent_chatroom_ledger.identity import is_orphaned

        if is_orphaned():
            return 0
        with self._ledger() as ledger:
            member = _member(ledger, event, directory)
            if member is None:
                return 0
            with answer(member) as found:
                if found.document is None:
                    if quiet is not None:
                        quiet.remember(member.name)
                elif _write(encode(found.document)):
                    found.confirm()
        return 0

    def _quiet(self, event: Event, directory: str) -> Quiet:
        """Return how things stand, before anything is asked of the ledger."""
        from agent_chatroom_ledger.quiet import Quiet

        assert self.root is not None, "there is a ledger"
        return Quiet(self.root, os.environ, event.client, event.session, event.model, directory)

    def _wake(self, event: Event, options: Options, seconds: float) -> int:
        """Wait until something comes for an agent that has stopped."""
        directory = event.directory or _directory()
        if not self._find_ledger(options, directory):
            return 0
        from agent_chatroom_ledger.agenthook.rendering import reason
        from agent_chatroom_ledger.identity import has_client
        from agent_chatroom_ledger.nudges import wait_to_wake

        if not has_client():
            return 0  # it has ended meanwhile, so there is nobody to wake
        with self._ledger() as ledger:
            member = _member(ledger, event, directory)
            if member is None:
                return 0
            count = wait_to_wake(
                ledger, member.name, event.session, client=member.client, seconds=seconds
            )
        if not count:
            return 0
        _say(reason(count))
        return _WAKE_STATUS

    def _find_ledger(self, options: Options, directory: str) -> bool:
        """Find the ledger that an event is about; False where there is none."""
        from agent_chatroom_ledger.agenthook.whereabouts import ledger_root

        self.root = ledger_root(options.root, os.environ, directory)
        return self.root is not None

    def _ledger(self) -> Ledger:
        """Open the ledger that was found."""
        import gc
        import warnings

        from agent_chatroom_ledger.ledger import Ledger

        warnings.showwarning = lambda message, *_rest, **_more: self.note(str(message))
        gc.enable()
        assert self.root is not None, "there is a ledger"
        # Reading recovers nothing and waits for nobody, and receipts may be written all the same.
        ledger = Ledger.open(self.root, read_only=True)
        from agent_chatroom_ledger.cli.indexed import wants_index_file

        if not wants_index_file(ledger):
            return ledger
        ledger.close()
        return Ledger.open(self.root)

    def note(self, text: str) -> None:
        """Write a failure down, on stderr and in the log; what cannot be written is dropped."""
        from agent_chatroom_ledger.agenthook.whereabouts import log_paths
        from agent_chatroom_ledger.domain.display import terminal_safe
        from agent_chatroom_ledger.limits import HOOK_LOG_BYTES_MAX

        line = terminal_safe(text[:_LOG_LINE_CHARS_MAX], lines=False)
        if not self.silent:
            _say(f"rooms hook agent: {line}")
        at = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        entry = f"{at} {os.getpid()} {line}\n".encode(errors="backslashreplace")
        for path in log_paths(self.root, os.environ):
            try:
                _append(path, entry, HOOK_LOG_BYTES_MAX)
            except OSError:
                continue
            return


class _Deadline:
    """Ends the process with 0 when it has taken too long, whatever it is stuck in."""

    def __init__(self, run: _Run, seconds: float) -> None:
        import _thread

        self._run = run
        self._until = time.monotonic() + seconds
        _thread.start_new_thread(self._watch, ())

    def move(self, seconds: float) -> None:
        """Let the process run so much longer from now on."""
        self._until = time.monotonic() + seconds

    def _watch(self) -> None:
        try:
            while (left := self._until - time.monotonic()) > 0:
                time.sleep(left)
            self._run.note("took too long, and was given up; what waits is handed over later")
        finally:
            os._exit(0)


def _member(ledger: Ledger, event: Event, directory: str) -> Member | None:
    from agent_chatroom_ledger.agenthook.answers import member_of

    return member_of(ledger, event, os.environ, directory)


def _spare_imports() -> None:
    """Import msgspec without `typing_extensions`, which it takes from `typing` if it is not there.

    That is a tenth of the time that a hook may take. Who needs it later finds it as ever.
    """
    import sys

    if "msgspec" in sys.modules or "typing_extensions" in sys.modules:
        return
    sys.modules["typing_extensions"] = None  # type: ignore[assignment]  # None bars a module from being imported; the stub knows modules only
    try:
        __import__("msgspec")
    finally:
        del sys.modules["typing_extensions"]


def _hold_descriptors() -> None:
    """Let 0, 1 and 2 be open, lest a file of the ledger gets one of these numbers.

    For reading alone: what is written where nobody reads fails, and counts as handed to nobody.
    """
    for descriptor in range(3):
        try:
            os.fstat(descriptor)
        except OSError:
            # The lowest number that is free is taken, which is this one.
            os.open(os.devnull, os.O_RDONLY)


def _standard_input() -> bytes:
    """Return what the client sent; raises ValueError when it is more than is taken."""
    from agent_chatroom_ledger.limits import HOOK_INPUT_BYTES_MAX

    chunks: list[bytes] = []
    size = 0
    while True:
        chunk = os.read(0, _CHUNK_BYTES)
        if not chunk:
            return b"".join(chunks)
        size += len(chunk)
        if size > HOOK_INPUT_BYTES_MAX:
            raise ValueError(f"an event of more than {HOOK_INPUT_BYTES_MAX} bytes is not read")
        chunks.append(chunk)


def _write(data: bytes) -> bool:
    """Write all of an answer; False when nobody reads it."""
    left = memoryview(data)
    try:
        while left:
            left = left[os.write(1, left) :]
    except BrokenPipeError:
        return False
    return True


def _say(text: str) -> None:
    try:
        os.write(2, f"{text}\n".encode(errors="backslashreplace"))
    except OSError:
        return


def _directory() -> str:
    """Return the working directory; empty where it was deleted."""
    try:
        from pathlib import Path

        return str(Path.cwd())
    except OSError:
        return ""


def _wake_seconds(longest: float) -> float:
    """Return how long an idle client is listened for, as its environment wants it."""
    asked = os.environ.get(_WAKE_VARIABLE)
    if asked:
        try:
            return min(max(0.0, float(asked)), longest)
        except ValueError:
            return longest
    return 0.0 if os.environ.get("CLAUDE_CODE_ENTRYPOINT") in _ONE_SHOT else longest


def _append(path: Path, entry: bytes, bytes_max: int) -> None:
    """Append a line to a log, of which the older half goes when it is full."""
    if not path.parent.is_dir():
        if path.parent.name == "ledger":
            # A ledger that has nothing of its own yet gets nothing from a failure.
            raise FileNotFoundError(path.parent)
        path.parent.mkdir(parents=True, exist_ok=True)
    flags = os.O_RDWR | os.O_APPEND | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0)
    descriptor = os.open(path, flags, 0o600)
    try:
        size = os.fstat(descriptor).st_size
        if size + len(entry) > bytes_max:
            kept = os.pread(descriptor, bytes_max // 2, size - bytes_max // 2)
            os.ftruncate(descriptor, 0)
            entry = kept[kept.find(b"\n") + 1 :] + entry
        os.write(descriptor, entry)
    finally:
        os.close(descriptor)


def _tell_quietly(run: _Run, error: BaseException) -> None:
    """Note why there is no answer; that this fails too is no reason for another exit status."""
    try:
        what = str(error) or "no reason given"
        run.note(f"{type(error).__name__}: {what}")
    except BaseException:  # noqa: BLE001 - a failure to tell of a failure changes no status
        return
