"""`rooms wait`, `inbox --wait` and `tail -f --as` as real processes: awake, and a clean end."""

from __future__ import annotations

import signal
from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from agent_chatroom_ledger.cli.agentschemas import InboxDocument, WaitDocument
from agent_chatroom_ledger.cli.schemas import FollowedLine
from agent_chatroom_ledger.presence import live

if TYPE_CHECKING:
    import subprocess

    from agent_chatroom_ledger import Ledger, Room
    from tests.cli.conftest import Ask, Invoke, Start


def until_it_waits(ledger: Ledger, name: str, process: subprocess.Popen[bytes]) -> None:
    """Return when a name is known as one whom a message wakes."""
    while (found := live(ledger, name)) is None or found.reach != "wakes":
        assert process.poll() is None, process.communicate()


def ended(process: subprocess.Popen[bytes]) -> tuple[int, bytes, bytes]:
    out, err = process.communicate(timeout=60)
    return process.returncode, out, err


def test_it_ends_when_a_message_comes(ledger: Ledger, room: Room, start: Start) -> None:
    process = start("wait", "--as", "ben", "--json")
    until_it_waits(ledger, "ben", process)
    room.post("ben", "my own")
    room.post("ana", "hello")
    status, out, err = ended(process)
    assert (status, err) == (0, b"")
    document = msgspec.json.decode(out, type=WaitDocument)
    assert (document.name, document.waiting, document.timed_out) == ("ben", 1, False)
    assert live(ledger, "ben") is None


def test_124_when_the_time_is_up(ask: Ask, invoke: Invoke, room: Room) -> None:
    result = invoke("wait", "--as", "ben", "--timeout", "0.05")
    assert (result.exit_code, result.stdout) == (124, "Nothing came for ben.\n")
    assert ask("wait", "--as", "ben", "--timeout", "0")["timed_out"]
    room.post("ana", "hello")
    result = invoke("wait", "--as", "ben", "--timeout", "0")
    assert (result.exit_code, result.stdout) == (0, "1 waits for ben.\n")
    assert invoke("wait", "--as", "ben", "--room", "nowhere").exit_code == 3
    assert invoke("wait", "--as", "ben", "--timeout", "-1").exit_code == 2


def test_only_one_room(ledger: Ledger, room: Room, start: Start) -> None:
    other = ledger.create_room("Other", members=["ben"])
    other.post("ana", "elsewhere")
    process = start("wait", "--as", "ben", "--room", "review")
    until_it_waits(ledger, "ben", process)
    room.post("ana", "here")
    assert ended(process) == (0, b"1 waits for ben.\n", b"")


@pytest.mark.parametrize("command", [("wait",), ("inbox", "--wait", "600"), ("tail", "-f")])
@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_ends_it_and_it_waits_no_more(
    ledger: Ledger,
    room: Room,
    start: Start,
    command: tuple[str, ...],
    number: signal.Signals,
    status: int,
) -> None:
    assert room.members
    process = start(*command, "--as", "ben")
    until_it_waits(ledger, "ben", process)
    process.send_signal(number)
    assert ended(process) == (status, b"", b"")
    assert live(ledger, "ben") is None
    assert not list(ledger.layout.private.glob("**/*ben*wait*"))


@pytest.mark.parametrize("command", [("wait",), ("inbox", "--wait", "600"), ("tail", "-f")])
def test_a_reader_that_goes_away_ends_it(
    ledger: Ledger, room: Room, start: Start, command: tuple[str, ...]
) -> None:
    assert room.members
    process = start(*command, "--as", "ben")
    until_it_waits(ledger, "ben", process)
    assert process.stdout is not None
    process.stdout.close()
    assert ended(process)[0] == 0
    assert live(ledger, "ben") is None


def test_an_inbox_that_waits_hands_over_what_comes(
    ledger: Ledger, room: Room, start: Start, ask: Ask
) -> None:
    process = start("inbox", "--as", "ben", "--wait", "600", "--json")
    until_it_waits(ledger, "ben", process)
    room.post("ana", "hello")
    status, out, err = ended(process)
    assert (status, err) == (0, b"")
    document = msgspec.json.decode(out, type=InboxDocument)
    assert [item.message.body for item in document.messages] == ["hello"]
    assert ask("inbox", "--as", "ben", "--wait", "0.05")["messages"] == []


def test_followed_as_a_name_only_what_is_for_it(ledger: Ledger, room: Room, start: Start) -> None:
    other = ledger.create_room("Other", members=["ana"])
    process = start("tail", "-f", "--as", "ben", "--json")
    until_it_waits(ledger, "ben", process)
    lines: list[Any] = []
    assert process.stdout is not None
    # It is known as waiting before it follows, so there is something to see until it does.
    while not lines:
        room.post("ana", "begin")
        if live(ledger, "ben") is not None and _has_output(process):
            lines.append(process.stdout.readline())
    other.post("ana", "elsewhere")
    room.post("ben", "my own")
    room.post("ana", "joined", kind="event")
    other.post("ana", "to you", to=["ben"])
    room.post("ana", "end")
    while b'"end"' not in lines[-1]:
        lines.append(process.stdout.readline())
    process.send_signal(signal.SIGTERM)
    assert ended(process)[0] == 143
    found = [msgspec.json.decode(line, type=FollowedLine).message.body for line in lines]
    assert [body for body in found if body != "begin"] == ["to you", "end"]
    # Following hands nothing over.
    assert not ledger.layout.receipts.exists()


def _has_output(process: subprocess.Popen[bytes]) -> bool:
    import select

    return bool(select.select([process.stdout], [], [], 0.05)[0])


def test_as_goes_with_following(invoke: Invoke, room: Room) -> None:
    assert room.members
    assert invoke("tail", "review", "--as", "ben").exit_code == 2
