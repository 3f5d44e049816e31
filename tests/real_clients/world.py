"""A machine of its own for a real client: a home, a ledger, our command on PATH, no way out.

Every client is told a proxy that nobody listens on, so that nothing leaves the loopback interface.
"""

from __future__ import annotations

import contextlib
import json
import os
import pty
import shutil
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import psutil

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

SOURCES = Path(__file__).resolve().parents[2] / "src"
CALL_SECONDS_MAX = 90
END_SECONDS_MAX = 15
QUIET = {
    # Nothing but the fake model is to be called.
    "HTTPS_PROXY": "http://127.0.0.1:9",
    "HTTP_PROXY": "http://127.0.0.1:9",
    "NO_PROXY": "127.0.0.1,localhost",
    "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
    "DISABLE_AUTOUPDATER": "1",
    "DISABLE_ERROR_REPORTING": "1",
    "DISABLE_TELEMETRY": "1",
    "GEMINI_TELEMETRY_ENABLED": "false",
    "DO_NOT_TRACK": "1",
}


class World:
    """A home and a ledger below one directory, and what a client is started with there."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.home = path / "home"
        self.ledger = path / "team"
        self.work = self.home / "work"
        self.work.mkdir(parents=True)
        binaries = path / "bin"
        binaries.mkdir()
        rooms = binaries / "rooms"
        rooms.write_text(
            f"#!{sys.executable}\nimport sys\nsys.path.insert(0, {str(SOURCES)!r})\n"
            "from agent_chatroom_ledger.cli import main\nmain()\n",
            encoding="utf-8",
        )
        rooms.chmod(0o755)
        node = shutil.which("node")
        folders = [str(binaries), str(Path(node).parent) if node else "", "/usr/bin", "/bin"]
        self.environment = {
            **QUIET,
            "HOME": str(self.home),
            "LANG": "C.UTF-8",
            "PATH": os.pathsep.join(dict.fromkeys(filter(None, folders))),
            "ROOMS_ROOT": str(self.ledger),
            "TERM": "xterm-256color",
            "TMPDIR": str(path),
        }
        self.rooms("init", str(self.ledger))

    def rooms(self, *words: str, **environment: str) -> dict[str, Any]:
        """Run our command with --json and return its document."""
        done = self.run("rooms", *words, "--json", **environment)
        assert done.returncode == 0, f"rooms {' '.join(words)}: {done.stdout}{done.stderr}"
        document: dict[str, Any] = json.loads(done.stdout)
        return document

    def run(
        self, *command: str | Path, seconds: float = CALL_SECONDS_MAX, **environment: str
    ) -> subprocess.CompletedProcess[str]:
        """Run a program in this world; it and what it started are ended when it takes too long."""
        words = [str(word) for word in command]
        words[0] = shutil.which(words[0], path=self.environment["PATH"]) or words[0]
        with subprocess.Popen(
            words,
            cwd=self.work,
            env={**self.environment, **environment},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        ) as process:
            try:
                out, said = process.communicate(timeout=seconds)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                out, said = process.communicate()
                raise AssertionError(
                    f"{words[0]} took over {seconds} s: {out[-2000:]}{said[-2000:]}"
                ) from None
        return subprocess.CompletedProcess(words, process.returncode, out, said)

    def bodies(self, room: str) -> list[str]:
        """Return what was said in a room, each with its author."""
        read = self.rooms("read", room)
        return [f"{one['author']}: {one['body']}" for one in read["messages"]]

    def processes(self) -> list[psutil.Process]:
        """Return the living processes that were started with this world's ledger."""
        mine = f"{self.ledger}"
        found = []
        for process in psutil.process_iter():
            with contextlib.suppress(psutil.Error):
                if process.environ().get("ROOMS_ROOT") == mine:
                    found.append(process)
        return found

    def end(self) -> list[str]:
        """Wait until everything that was started here is over; returns, and ends, what stayed."""
        deadline = time.monotonic() + END_SECONDS_MAX
        while (left := self.processes()) and time.monotonic() < deadline:
            time.sleep(0.1)
        names = []
        for process in left:
            with contextlib.suppress(psutil.Error):
                names.append(" ".join(process.cmdline()))
                process.kill()
        return names


class Terminal:
    """A client on a terminal of its own, as a person would have it; what it shows is kept."""

    def __init__(self, world: World, *command: str | Path, **environment: str) -> None:
        self.shown = b""
        self._changed = threading.Condition()
        self._master, slave = pty.openpty()
        self._process = subprocess.Popen(
            ["setsid", "--ctty", "--wait", *(str(word) for word in command)],
            cwd=world.work,
            env={**world.environment, "COLUMNS": "120", "LINES": "40", **environment},
            stdin=slave,
            stdout=slave,
            stderr=slave,
        )
        os.close(slave)
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        with contextlib.suppress(psutil.Error):
            root = psutil.Process(self._process.pid)
            family = [root, *root.children(recursive=True)]
            for process in family:
                with contextlib.suppress(psutil.Error):
                    process.terminate()
            _, alive = psutil.wait_procs(family, timeout=END_SECONDS_MAX)
            for process in alive:
                with contextlib.suppress(psutil.Error):
                    process.kill()
        self._process.wait()
        self._reader.join(END_SECONDS_MAX)
        os.close(self._master)

    def type(self, text: str) -> None:
        """Type a line, and Enter a moment later: a paste is not sent."""
        os.write(self._master, text.encode())
        time.sleep(0.5)
        os.write(self._master, b"\r")

    def wait_for(self, wanted: Callable[[str], bool], seconds: float) -> bool:
        """Wait until what was shown is as wanted; False when the time is over."""
        with self._changed:
            return self._changed.wait_for(lambda: wanted(self.text), seconds)

    @property
    def text(self) -> str:
        """What was shown, with its escapes."""
        return self.shown.decode(errors="replace")

    def _read(self) -> None:
        for data in self._pieces():
            with self._changed:
                self.shown += data
                self._changed.notify_all()

    def _pieces(self) -> Iterator[bytes]:
        while True:
            try:
                data = os.read(self._master, 65_536)
            except OSError:
                return
            if not data:
                return
            yield data
