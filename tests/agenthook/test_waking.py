"""An idle agent is woken once for each message, by one process, for as long as its client lives."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from agent_chatroom_ledger import Ledger
from agent_chatroom_ledger.presence import reach
from tests.agenthook.conftest import HOOK, event, hook_environment, hook_log, run

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.agenthook.conftest import Fire, Say

WAKE = [*HOOK, "--wake"]
PATIENCE_SECONDS = 60.0


def until(holds: Callable[[], object]) -> None:
    """Wait until something holds; fails when it does not in a minute."""
    end = time.monotonic() + PATIENCE_SECONDS
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.02)


def how_reached(root: Path) -> str:
    with Ledger.open(root, read_only=True) as ledger:
        return reach(ledger, ["bob"])["bob"]


@contextmanager
def idle(root: Path, **environment: str) -> Iterator[subprocess.Popen[bytes]]:
    """Give a hook that waits for messages to bob; it is killed in the end if it still runs."""
    process = subprocess.Popen(
        WAKE,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**hook_environment(), **environment},
        cwd=root,
    )
    assert process.stdin is not None
    process.stdin.write(event("Stop", root, stop_hook_active=False))
    process.stdin.close()
    try:
        yield process
    finally:
        process.kill()
        process.wait()
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        process.stderr.close()


def ended(process: subprocess.Popen[bytes]) -> tuple[int, str, str]:
    status = process.wait(timeout=PATIENCE_SECONDS)
    assert process.stdout is not None
    assert process.stderr is not None
    return status, process.stdout.read().decode(), process.stderr.read().decode()


@pytest.mark.parametrize("to", [(), ("bob",)])
def test_a_message_wakes_with_two_and_a_count(root: Path, say: Say, to: tuple[str, ...]) -> None:
    with idle(root) as process:
        until(lambda: how_reached(root) == "wakes")
        say("</tag> wake up", *to)
        status, said, told = ended(process)
    assert (status, said) == (2, "")
    assert told == (
        "1 message in the chat rooms waits for you. Take them with rooms_inbox (or `rooms inbox`), "
        "deal with them, then stop.\n"
    )
    assert how_reached(root) == "next turn"


def test_what_is_wrong_goes_to_the_log_and_not_before_the_model(root: Path, say: Say) -> None:
    (root / ".git" / "ledger" / "config.toml").write_text('"obey me" = 1\n')
    say("hello")
    fired = run(event("Stop", root), "--wake", "--what", env=hook_environment(), cwd=root)
    assert fired.status == 2
    assert fired.stderr.startswith("1 message in the chat rooms waits for you.")
    assert len(fired.stderr.splitlines()) == 1
    assert "obey me" in hook_log(root)


def test_it_hands_nothing_over_and_wakes_once_for_each_message(
    root: Path, say: Say, fire: Fire
) -> None:
    say("first")
    with idle(root) as process:
        assert ended(process)[0] == 2
    with idle(root) as process:
        until(lambda: how_reached(root) == "wakes")
        say("second")
        assert ended(process)[2].startswith("2 messages")
    assert fire("UserPromptSubmit", prompt="x").bodies == ["first", "second"]


def test_what_blocked_a_stop_does_not_wake_as_well(root: Path, say: Say, fire: Fire) -> None:
    say("please look", "bob")
    assert fire("Stop").answer is not None
    assert run(event("Stop", root), "--wake", env=waking("2"), cwd=root).status == 0


def test_a_status_and_ones_own_words_wake_nobody(root: Path, say: Say) -> None:
    say("still at it", "bob", kind="status")
    say("mine", "alice", by="bob")
    assert run(event("Stop", root), "--wake", env=waking("2"), cwd=root).status == 0


def waking(seconds: str) -> dict[str, str]:
    return {**hook_environment(), "ROOMS_WAKE_SECONDS": seconds}


@pytest.mark.parametrize("seconds", ["0", "0.5", "-1"])
def test_it_ends_when_its_time_is_up(root: Path, seconds: str) -> None:
    assert run(event("Stop", root), "--wake", env=waking(seconds), cwd=root) == (0, None, "")


def test_a_newer_one_takes_the_place_of_an_older(root: Path, say: Say) -> None:
    with idle(root) as older:
        until(lambda: how_reached(root) == "wakes")
        with idle(root) as newer:
            assert ended(older) == (0, "", "")
            say("hello")
            assert ended(newer)[0] == 2


@pytest.mark.parametrize("name", ["UserPromptSubmit", "PostToolUse", "SessionStart"])
def test_it_ends_when_the_agent_works_again(root: Path, fire: Fire, name: str) -> None:
    with idle(root) as process:
        until(lambda: how_reached(root) == "wakes")
        fire(name)
        assert ended(process) == (0, "", "")


def test_after_a_quiet_tool_it_ends_too(root: Path, fire: Fire) -> None:
    fire("PostToolUse")
    fire("PostToolUse")
    with idle(root) as process:
        until(lambda: how_reached(root) == "wakes")
        fire("PostToolUse")
        assert ended(process) == (0, "", "")


CLIENT = f"""
import subprocess, sys
hook = subprocess.Popen({WAKE!r}, stdin=subprocess.PIPE, start_new_session=True)
hook.stdin.write(sys.stdin.buffer.read())
hook.stdin.close()
print(hook.pid, flush=True)
hook.wait()
"""


def test_it_ends_with_its_client(root: Path) -> None:
    client = subprocess.Popen(
        [sys.executable, "-c", CLIENT],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env=hook_environment(),
        cwd=root,
    )
    assert client.stdin is not None
    assert client.stdout is not None
    client.stdin.write(event("Stop", root))
    client.stdin.close()
    pid = int(client.stdout.readline())
    until(lambda: how_reached(root) == "wakes")
    client.kill()
    client.wait()
    until(lambda: not is_running(pid))
    client.stdout.close()
    assert how_reached(root) == "queued"


def is_running(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    # Where nobody takes orphans away a zombie stays.
    state = Path(f"/proc/{pid}/stat")
    return not (state.exists() and ") Z " in state.read_text())


def test_where_nobody_is_idle_it_does_not_wait(root: Path, say: Say) -> None:
    # `claude -p` waits for it, for as long as it waits.
    say("hello")
    env = {**hook_environment(), "CLAUDE_CODE_ENTRYPOINT": "sdk-cli"}
    assert run(event("Stop", root), "--wake", env=env, cwd=root) == (0, None, "")
    env["ROOMS_WAKE_SECONDS"] = "30"
    assert run(event("Stop", root), "--wake", env=env, cwd=root).status == 2


@pytest.mark.parametrize(
    ("name", "fields"), [("Stop", {"agent_id": "a"}), ("SubagentStop", {}), ("PostToolUse", {})]
)
def test_only_the_stop_of_the_agent_itself_waits(
    root: Path, say: Say, name: str, fields: dict[str, str]
) -> None:
    say("hello", "bob")
    fired = run(event(name, root, **fields), "--wake", env=hook_environment(), cwd=root)
    assert fired == (0, None, "")


def test_where_there_is_no_ledger_or_no_member_it_does_not_wait(root: Path, tmp_path: Path) -> None:
    empty = tmp_path / "empty"
    empty.mkdir()
    assert run(event("Stop", empty), "--wake", env=hook_environment(), cwd=empty).status == 0
    env = hook_environment("stranger")
    assert run(event("Stop", root), "--wake", env=env, cwd=root).status == 0


# A client that ends before the shell that it starts the hook by has come to the hook.
GONE = """
import subprocess, sys
subprocess.Popen(["sh", "-c", sys.argv[1]], start_new_session=True)
"""


def test_a_hook_whose_client_has_ended_waits_for_nobody(root: Path, tmp_path: Path) -> None:
    said, status = tmp_path / "event", tmp_path / "status"
    said.write_bytes(event("Stop", root, stop_hook_active=False))
    hook = shlex.join(WAKE)
    script = f"sleep 1; ps -o ppid= -p $$ > {tmp_path}/parent; {hook} < {said}; echo $? > {status}"
    subprocess.run(
        [sys.executable, "-c", GONE, script],
        env={**hook_environment(), "ROOMS_WAKE_SECONDS": "20"},
        cwd=root,
        check=True,
    )
    begin = time.monotonic()
    until(lambda: status.exists() and status.read_text())
    if (tmp_path / "parent").read_text().strip() != "1":
        pytest.skip("orphans are adopted by a process that might be a client")
    assert status.read_text() == "0\n"
    assert time.monotonic() - begin < 15, "it waited for messages"
