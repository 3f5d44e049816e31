"""The hook as a client runs it: a process of its own that is given an event."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import pytest

from agent_chatroom_ledger import Ledger
from tests.cli.conftest import environment

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

HOOK = [sys.executable, "-m", "agent_chatroom_ledger.cli", "hook", "agent"]


class Fired(NamedTuple):
    """What a hook did: its status, its answer (None for no output), what it said on stderr."""

    status: int
    answer: Any
    stderr: str

    @property
    def context(self) -> str:
        """The text for the model; empty when there is none."""
        if self.answer is None or "hookSpecificOutput" not in self.answer:
            return ""
        text: str = self.answer["hookSpecificOutput"]["additionalContext"]
        return text

    @property
    def records(self) -> list[dict[str, Any]]:
        """The records that were handed over."""
        lines = [json.loads(line) for line in self.context.split("\n") if line.startswith("{")]
        return [line for line in lines if "your room" not in line]

    @property
    def bodies(self) -> list[str]:
        """The bodies of the records that were handed over."""
        return [record["body"] for record in self.records]


class Fire(Protocol):
    """Fire an event of an agent's client in the ledger of the test."""

    def __call__(
        self, event: str, *words: str, name: str | None = "bob", **fields: Any
    ) -> Fired: ...


def run(
    data: bytes, *words: str, env: Mapping[str, str], cwd: Path | None = None, **options: Any
) -> Fired:
    """Run the hook on some bytes; its output must be nothing or one JSON document on one line."""
    done = subprocess.run(
        [*HOOK, *words],
        input=data,
        env=dict(env),
        cwd=cwd,
        capture_output=True,
        timeout=60,
        check=False,
        **options,
    )
    assert done.stdout == b"" or done.stdout.count(b"\n") == 1
    answer = json.loads(done.stdout) if done.stdout else None
    return Fired(done.returncode, answer, done.stderr.decode())


def event(name: str, directory: Path | str, **fields: Any) -> bytes:
    """Return an event as Claude Code sends it."""
    known = {"session_id": "s-1", "transcript_path": "/t", "cwd": str(directory)}
    return json.dumps({**known, "hook_event_name": name, **fields}).encode()


def hook_environment(name: str | None = "bob") -> dict[str, str]:
    """Return an environment in which the hook finds our sources and acts under a name."""
    found = environment()
    for variable in ("CLAUDE_CODE_ENTRYPOINT", "ROOMS_WAKE_SECONDS", "ROOMS_NAME"):
        found.pop(variable, None)
    return {**found, "ROOMS_NAME": name} if name else found


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Give a ledger with a room of alice, bob and carol."""
    path = tmp_path / "ledger"
    with Ledger.open(path, create=True) as ledger:
        ledger.create_room("Design review", members=["alice", "bob", "carol"], by="alice")
    return path


@pytest.fixture
def fire(root: Path) -> Fire:
    """Give `fire("Stop", stop_hook_active=False)`; it fails unless the hook exits with 0."""

    def call(event_name: str, *words: str, name: str | None = "bob", **fields: Any) -> Fired:
        fired = run(
            event(event_name, fields.pop("cwd", root), **fields),
            *words,
            env=hook_environment(name),
            cwd=root,
        )
        assert fired.status == 0, fired.stderr
        return fired

    return call


class Say(Protocol):
    """Post as alice, or another; returns the number of the message."""

    def __call__(self, body: str, *to: str, by: str = "alice", kind: str = "message") -> int: ...


@pytest.fixture
def say(root: Path) -> Say:
    def call(body: str, *to: str, by: str = "alice", kind: str = "message") -> int:
        with Ledger.open(root) as ledger:
            return ledger.room("design-review").post(by, body, to=to, kind=kind).n

    return call


def private_files(root: Path) -> dict[str, bytes]:
    """Return what lies outside version control, but for the log of failures and lock files."""
    folder = root / ".git" / "ledger"
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file() and path.name != "hook.log"
    }


def hook_log(root: Path) -> str:
    """Return the log of failures; empty when there is none."""
    path = root / ".git" / "ledger" / "hook.log"
    return path.read_text() if path.exists() else ""
