"""`rooms tail -f` as a real process: nothing missed, nothing twice, and a clean end."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import msgspec
import pytest

from agent_chatroom_ledger import Ledger
from agent_chatroom_ledger.cli.schemas import FollowedLine
from tests.cli.conftest import environment

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.cli.conftest import Start


@pytest.fixture
def ledger(root: Path) -> Iterator[Ledger]:
    with Ledger.open(root) as opened:
        opened.create_room("Review").post_many([{"author": "A", "body": str(n)} for n in range(5)])
        opened.create_room("Other").post("A", "elsewhere")
        yield opened


def next_line(process: subprocess.Popen[bytes]) -> FollowedLine:
    assert process.stdout is not None
    return msgspec.json.decode(process.stdout.readline(), type=FollowedLine)


def test_the_newest_and_then_everything_that_follows(ledger: Ledger, start: Start) -> None:
    process = start("tail", "review", "-f", "-n", "2", "--json")
    assert [next_line(process).message.n for _ in range(2)] == [4, 5]
    ledger.room("other").post("A", "not for this reader")
    for n in range(6, 26):
        ledger.room("review").post("B", f"line\n{n}")
        line = next_line(process)
        assert (line.message.n, line.message.body) == (n, f"line\n{n}")
        assert line.room.path == "rooms/review"
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=30)
    assert (process.returncode, err) == (130, b"")


@pytest.mark.parametrize("options", [(), ("--json",)])
def test_every_room_is_followed_without_a_name(
    ledger: Ledger, start: Start, options: tuple[str, ...]
) -> None:
    process = start("tail", "-f", *options)
    assert process.stdout is not None
    rooms = [ledger.room("review"), ledger.room("other")]
    with ThreadPoolExecutor() as pool:
        # Nothing says when it has begun, so there is something to be seen until it has.
        first = pool.submit(process.stdout.readline)
        while not first.done():
            for room in rooms:
                room.post("B", "hello")
    rooms[0].post("B", "the end of one")
    rooms[1].post("B", "the end of all")
    lines = [first.result().decode()]
    while "the end of all" not in lines[-1]:
        lines.append(process.stdout.readline().decode())
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=30)
    assert process.returncode == 130
    if options:
        found = [msgspec.json.decode(line, type=FollowedLine) for line in lines[-2:]]
        assert [line.room.path for line in found] == ["rooms/review", "rooms/other"]
    else:
        assert re.fullmatch(r"review #\d+ [0-9:]+Z B: the end of one\n", lines[-2])
        assert re.fullmatch(r"other #\d+ [0-9:]+Z B: the end of all\n", lines[-1])


def test_without_a_room_it_must_follow(start: Start) -> None:
    process = start("tail")
    assert b"or -f to follow every room" in process.communicate()[1]
    assert process.returncode == 2


def test_nothing_is_missed_or_repeated_while_others_post(ledger: Ledger, start: Start) -> None:
    room = ledger.room("review")
    process = start("tail", "review", "-f", "-n", "3", "--json")
    for _ in range(20):
        room.post_many([{"author": "B", "body": "x"}] * 10)
    numbers = [next_line(process).message.n]
    while numbers[-1] < 205:
        numbers.append(next_line(process).message.n)
    assert numbers == list(range(numbers[0], 206))
    process.terminate()
    process.communicate()


def test_text_is_followed_too(ledger: Ledger, start: Start) -> None:
    process = start("tail", "review", "-f", "-n", "1")
    assert process.stdout is not None
    lines = [process.stdout.readline().decode() for _ in range(2)]
    assert lines[0].startswith("-- 20")
    assert lines[1].endswith("A: 4\n")
    ledger.room("review").post("B", "one\ntwo")
    lines = [process.stdout.readline().decode() for _ in range(3)]
    assert lines[0].endswith("B:\n")
    assert lines[1:] == ["    one\n", "    two\n"]
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=30)
    assert process.returncode == 130


@pytest.mark.parametrize("trap", ["", "trap '' INT;"])
@pytest.mark.usefixtures("ledger")
def test_it_ends_with_its_reader_even_when_nothing_is_posted(root: Path, trap: str) -> None:
    command = f"{sys.executable} -m agent_chatroom_ledger.cli tail review -f --json"
    found = subprocess.run(
        ["bash", "-c", f"{trap} {command} | head -1; echo ${{PIPESTATUS[0]}} >&2"],
        env=environment(root), capture_output=True, check=True, timeout=60,
    )  # fmt: skip
    assert found.stderr == b"0\n"
    assert found.stdout.count(b"\n") == 1


def test_whoever_follows_an_archived_room_is_told(ledger: Ledger, start: Start) -> None:
    ledger.archive_room("review")
    process = start("tail", "review", "-f", "--json")
    assert [next_line(process).message.n for _ in range(5)] == [1, 2, 3, 4, 5]
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=30)
    assert b"is archived" in err
