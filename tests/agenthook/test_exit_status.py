"""The hook exits with 0 whatever happens: in a client exit 2 erases a prompt."""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from agent_chatroom_ledger import Ledger
from agent_chatroom_ledger.agenthook import arguments_of
from agent_chatroom_ledger.agenthook.process import options_of
from agent_chatroom_ledger.limits import HOOK_LOG_BYTES_MAX
from tests.agenthook.conftest import HOOK, event, hook_environment, hook_log, run

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.agenthook.conftest import Fire, Say

PROMPT = "UserPromptSubmit"


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"   \n",
        b"{",
        b"not json",
        b"[]",
        b"null",
        b"{}",
        b"\x00\xff\xfe",
        b"[" * 200_000,
        b'{"hook_event_name": 7, "cwd": {}}',
        b'{"hook_event_name": "Stop", "cwd": "relative"}',
        b'{"hook_event_name": "Stop", "cwd": "/\\u0000"}',
        b'{"hook_event_name": "Stop", "cwd": "\\ud800"}',
        b'{"hook_event_name":"Stop","session_id":"' + b"x" * 1_000_000 + b'"}',
    ],
    ids=lambda data: repr(data[:24]),
)
def test_any_input(data: bytes, root: Path) -> None:
    fired = run(data, env=hook_environment(), cwd=root)
    assert fired[:2] == (0, None)


def test_a_huge_event_is_answered(root: Path, say: Say) -> None:
    say("hello")
    data = event("PostToolUse", root, tool_response="\n<x>" * 5_000_000)
    assert run(data, env=hook_environment(), cwd=root).bodies == ["hello"]


def test_an_event_beyond_the_limit_is_not_read(root: Path) -> None:
    data = event("PostToolUse", root, tool_response="x" * (33 << 20))
    fired = run(data, env=hook_environment(), cwd=root)
    assert fired[:2] == (0, None)
    assert "is not read" in fired.stderr


@pytest.mark.parametrize(
    "words",
    [
        ("--no-such-option",),
        ("--client",),
        ("--client", "netscape"),
        ("--client=",),
        ("--wake", "--wake"),
        ("extra", "words"),
        ("--", "--help"),
        ("--root",),
        ("--json", "--debug"),
        ("--root", "/nowhere/at/all"),
    ],
    ids=" ".join,
)
def test_any_command_line(root: Path, words: tuple[str, ...]) -> None:
    assert run(event("SessionEnd", root), *words, env=hook_environment(), cwd=root).status == 0


def test_what_is_strange_on_the_command_line_is_noted_and_the_event_answered(
    fire: Fire, say: Say
) -> None:
    say("hello")
    fired = fire(PROMPT, "--no-such-option", "--client", "netscape", prompt="x")
    assert fired.bodies == ["hello"]
    assert "--no-such-option" in fired.stderr


@given(st.lists(st.text(max_size=12), max_size=8))
def test_no_word_is_an_error(words: list[str]) -> None:
    options_of(words)
    found = arguments_of(["hook", "agent", *words])
    options = words[: words.index("--")] if "--" in words else words
    assert found == (None if {"-h", "--help"} & set(options) else words)


def test_what_is_the_agent_hook() -> None:
    assert arguments_of(["hook", "agent"]) == []
    assert arguments_of(["--root", "x", "--json", "hook", "agent", "--wake"]) == [
        "--root",
        "x",
        "--json",
        "--wake",
    ]
    assert arguments_of(["hook", "pre-commit", "agent"]) is None
    assert arguments_of(["post", "hook", "agent"]) is None
    assert arguments_of(["hook"]) is None
    assert options_of(["--client=codex", "--root=/x", "--wake"]) == ("codex", "/x", True, ())


def test_help_is_shown_by_the_command_line(root: Path) -> None:
    done = subprocess.run(
        [*HOOK, "--help"], env=hook_environment(), cwd=root, capture_output=True, check=True
    )
    assert b"Usage: rooms hook" in done.stdout


@pytest.mark.parametrize("closed", [(0,), (1,), (2,), (0, 1), (1, 2), (0, 1, 2)])
@pytest.mark.parametrize("name", ["SessionStart", "Stop"])
def test_closed_streams(root: Path, say: Say, closed: tuple[int, ...], name: str) -> None:
    say("hello", "bob")

    def shut() -> None:
        for descriptor in closed:
            os.close(descriptor)

    done = subprocess.run(
        HOOK,
        input=event(name, root, source="startup"),
        stdout=subprocess.PIPE,
        env=hook_environment(),
        cwd=root,
        preexec_fn=shut,
        check=False,
    )
    assert done.returncode == 0
    # No file of the ledger has got the number of a stream, and with it what was written there.
    with Ledger.open(root) as ledger:
        assert ledger.verify().ok
        if name == "SessionStart":
            # What went nowhere was handed to nobody; without an event nothing went anywhere.
            waits = [item.message.body for item in ledger.agent("bob").inbox(peek=True)]
            assert waits == (["hello"] if {0, 1} & set(closed) else [])


def test_a_full_disk_for_the_answer(root: Path, say: Say) -> None:
    say("hello")
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run(
            HOOK, input=event(PROMPT, root), stdout=full, env=hook_environment(), check=False
        )
    assert done.returncode == 0
    assert run(event(PROMPT, root), env=hook_environment(), cwd=root).bodies == ["hello"]


def test_no_ledger_anywhere(tmp_path: Path) -> None:
    empty = tmp_path / "empty"
    empty.mkdir()
    home = tmp_path / "home"
    env = {**hook_environment(), "HOME": str(home), "XDG_DATA_HOME": "", "XDG_STATE_HOME": ""}
    for name in ("SessionStart", PROMPT, "PostToolUse", "Stop"):
        assert run(event(name, empty), env=env, cwd=empty) == (0, None, "")
    assert not home.exists()
    assert not list(empty.iterdir())


@pytest.mark.parametrize("missing", ["HOME", "PATH", "XDG_DATA_HOME", "LC_ALL"])
def test_a_poor_environment(root: Path, say: Say, missing: str) -> None:
    say("hello")
    env = hook_environment()
    env.pop(missing, None)
    assert run(event(PROMPT, root), env=env, cwd=root).bodies == ["hello"]


def test_a_name_that_no_agent_may_have(root: Path) -> None:
    fired = run(event(PROMPT, root), env=hook_environment("x" * 100), cwd=root)
    assert fired[:2] == (0, None)
    assert "rooms hook agent: InvalidInput" in fired.stderr
    assert "InvalidInput" in hook_log(root)


def test_a_working_directory_that_is_gone(tmp_path: Path) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    code = f"import os, shutil, sys; shutil.rmtree({str(gone)!r}); os.execv(sys.executable, {HOOK})"
    fired = subprocess.run(
        [sys.executable, "-c", code],
        input=b'{"hook_event_name":"Stop"}',
        env=hook_environment(),
        cwd=gone,
        capture_output=True,
        check=False,
    )
    assert (fired.returncode, fired.stdout) == (0, b"")


@pytest.mark.broken_on_purpose
@pytest.mark.parametrize(
    "damage",
    ["ledger.json", ".git/HEAD", ".git/ledger/journal", ".git/ledger/receipts", "rooms", ".git"],
)
@pytest.mark.parametrize("name", ["SessionStart", PROMPT, "PostToolUse", "Stop"])
def test_a_damaged_ledger(root: Path, say: Say, fire: Fire, damage: str, name: str) -> None:
    say("hello", "bob")
    fire(PROMPT, prompt="x")
    path = root / damage
    if path.is_dir():
        for inner in [path, *path.rglob("*")]:
            if inner.is_file():
                inner.write_bytes(b"\x00rubbish\xff" * 50)
    else:
        path.write_bytes(b"\x00rubbish\xff")
    assert run(event(name, root), env=hook_environment(), cwd=root).status == 0


@pytest.mark.broken_on_purpose
def test_a_ledger_that_vanished_half(root: Path) -> None:
    shutil.rmtree(root / ".git")
    assert run(event(PROMPT, root), env=hook_environment(), cwd=root).status == 0


def test_bad_settings_are_noted_and_no_reason_to_fail(root: Path, say: Say) -> None:
    (root / ".git" / "ledger" / "config.toml").write_text("dm_delivery = 7\n")
    say("hello")
    fired = run(event(PROMPT, root), env=hook_environment(), cwd=root)
    assert fired[:2] == (0, None)
    assert "dm_delivery" in hook_log(root)


def test_damaged_receipts_are_named_in_the_log(root: Path, say: Say, fire: Fire) -> None:
    say("hello")
    fire(PROMPT, prompt="x")
    path = root / ".git" / "ledger" / "receipts" / "receipts.sqlite3"
    kept = path.read_bytes()
    path.write_bytes(b"rubbish" * 1_000)
    say("more")
    assert run(event(PROMPT, root), env=hook_environment(), cwd=root)[:2] == (0, None)
    assert "receipts.sqlite3" in hook_log(root)
    path.write_bytes(kept)


@pytest.mark.parametrize("name", ["SessionStart", PROMPT, "PostToolUse", "Stop"])
def test_locks_that_somebody_holds(root: Path, say: Say, name: str) -> None:
    say("hello", "bob")
    locks = root / ".git" / "ledger" / "locks"
    run(event(PROMPT, root), env=hook_environment(), cwd=root)
    say("hello", "bob")
    (locks / "agenthook.lock").touch()
    held = []
    for path in locks.iterdir():
        if path.suffix == ".lock":
            held.append(path.open("a"))
            fcntl.flock(held[-1], fcntl.LOCK_EX)
    try:
        fired = run(event(name, root), env=hook_environment(), cwd=root)
    finally:
        for file in held:
            file.close()
    assert fired[:2] == (0, None)
    # What nobody could note was not said either, and comes when it can be.
    assert run(event(PROMPT, root), env=hook_environment(), cwd=root).bodies == ["hello"]


@pytest.fixture
def open_place() -> Iterator[Path]:
    """Give a folder that every user of the machine may enter."""
    with tempfile.TemporaryDirectory(dir="/tmp") as name:
        Path(name).chmod(0o755)
        yield Path(name)


@pytest.mark.skipif(
    os.geteuid() == 0 and not shutil.which("setpriv"), reason="the one who may write all asks"
)
def test_a_ledger_that_may_not_be_written(open_place: Path) -> None:
    drop: list[str] = []
    if os.geteuid() == 0:
        drop = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]
        found = [*drop, sys.executable, "-c", "import agent_chatroom_ledger.cli"]
        if subprocess.run(found, env=hook_environment(), cwd="/", check=False).returncode:
            pytest.skip("the package lies where only its owner may read it")
    root = open_place / "ledger"
    with Ledger.open(root, create=True) as ledger:
        room = ledger.create_room("Design review", members=["alice", "bob"], by="alice")
        room.post("alice", "hello", to=["bob"])
    for path in [root, *root.rglob("*")]:
        path.chmod(0o555 if path.is_dir() else 0o444)
    for name in ("SessionStart", PROMPT, "PostToolUse", "Stop"):
        done = subprocess.run(
            [*drop, *HOOK],
            input=event(name, root),
            env={**hook_environment(), "HOME": "/nonexistent"},
            cwd="/",
            capture_output=True,
            check=False,
        )
        # What cannot be noted must not keep an agent from stopping: it would for ever.
        assert (done.returncode, b"decision" in done.stdout) == (0, False), done.stderr
    for path in [root, *root.rglob("*")]:
        path.chmod(0o755 if path.is_dir() else 0o644)


def test_an_interrupt(root: Path) -> None:
    process = subprocess.Popen(
        HOOK, stdin=subprocess.PIPE, stderr=subprocess.PIPE, env=hook_environment(), cwd=root
    )
    # It reads its input, so it is past its beginning.
    assert process.stdin is not None
    process.stdin.write(b" " * (1 << 20))
    process.stdin.flush()
    process.send_signal(signal.SIGINT)
    assert process.wait(timeout=30) == 0
    process.communicate()


def test_a_client_that_never_closes_the_input_is_given_up(root: Path) -> None:
    process = subprocess.Popen(
        HOOK, stdin=subprocess.PIPE, stderr=subprocess.PIPE, env=hook_environment(), cwd=root
    )
    assert process.stdin is not None
    process.stdin.write(b"{")
    process.stdin.flush()
    assert process.wait(timeout=30) == 0
    assert process.stderr is not None
    assert b"took too long" in process.stderr.read()
    process.communicate()


def test_the_log_of_failures_is_bounded(root: Path) -> None:
    log = root / ".git" / "ledger" / "hook.log"
    line = b"2026-11-30T00:00:00Z 1 " + b"x" * 77 + b"\n"
    log.write_bytes(line * (HOOK_LOG_BYTES_MAX // len(line)))
    before = log.stat().st_size
    run(b"no event", env=hook_environment(), cwd=root)
    # Before the event is read it is not known which ledger it is about.
    assert log.stat().st_size == before
    for _ in range(2):
        run(event(PROMPT, root), env=hook_environment("x" * 100), cwd=root)
    lines = log.read_bytes().splitlines()
    assert HOOK_LOG_BYTES_MAX // 3 < log.stat().st_size < HOOK_LOG_BYTES_MAX
    assert b"InvalidInput" in lines[-1]
    assert all(entry.startswith(b"2026") for entry in lines)


def test_a_failure_outside_of_a_ledger_goes_to_the_users_own_state(tmp_path: Path) -> None:
    state = tmp_path / "state"
    env = {**hook_environment(), "XDG_STATE_HOME": str(state)}
    run(b"no event", env=env, cwd=tmp_path)
    assert "the event is no JSON" in (state / "agent-chatroom-ledger" / "hook.log").read_text()


def test_a_log_that_is_a_link_is_left_alone(root: Path, tmp_path: Path) -> None:
    target = tmp_path / "precious"
    target.write_text("precious")
    (root / ".git" / "ledger" / "hook.log").symlink_to(target)
    assert run(event(PROMPT, root), env=hook_environment("x" * 100), cwd=root).status == 0
    assert target.read_text() == "precious"


@settings(max_examples=15, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    st.dictionaries(
        st.sampled_from(["session_id", "cwd", "model", "source", "agent_id", "prompt", "x"]),
        st.none() | st.integers() | st.text(max_size=20) | st.lists(st.booleans(), max_size=2),
    ),
    st.sampled_from(["SessionStart", PROMPT, "PostToolUse", "Stop", "AfterAgent", "stop", ""]),
)
def test_any_fields(root: Path, fields: dict[str, Any], name: str) -> None:
    data = json.dumps({"hook_event_name": name, **fields}).encode()
    assert run(data, env=hook_environment(), cwd=root).status == 0
