"""Reading: unread scans, the newest messages of a room, whole processes."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from typing import TYPE_CHECKING

import msgspec

from agent_chatroom_ledger.domain.records import Record
from tests.benchmarks import ledgers
from tests.benchmarks.measure import BODY, Row, Scale, child_environment, each, interleaved, row

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

ROUNDS = 7
COMMAND = "import sys; from agent_chatroom_ledger.cli import main; sys.exit(main())"


def unread(scale: Scale) -> list[Row]:
    """Unread scan of many rooms, ten of them changed, beside reading each one's last segment."""
    rooms = scale.size(1_000, 150)
    root = scale.folder / f"unread-{rooms}"
    with ledgers.opened(root, "group") as ledger:
        reader = ledger.consumer("Reviewer")
        made = [ledger.create_room(f"Room {n}", members=ledgers.PEOPLE) for n in range(rooms)]
        for room in made:
            ledgers.fill(room, scale.size(30, 10))
        for room in made:
            reader.acknowledge(room)
        for room in made[:: max(1, rooms // 10)][:10]:
            room.post("Analyst", BODY)
        ledger.flush()
        found = ledger.consumer("Reviewer").unread()
        if len(found) != 10:
            raise RuntimeError(f"{len(found)} rooms with unread messages where 10 changed")
        figures = interleaved(
            ROUNDS,
            {
                "unread": lambda: each(3, lambda: ledger.consumer("Reviewer").unread()),
                "every last segment": lambda: each(1, lambda: _last_segments(root)),
            },
        )
    return [
        row(
            "unread", f"unread scan of {rooms:,} rooms, 10 changed", figures,
            ours="unread", peer="every last segment", better="less", must=0.05,
        )
    ]  # fmt: skip


def _last_segments(root: Path) -> int:
    """Read and decode the newest segment of every room, as a scan without an index would.

    It goes straight to the segments, by the names of directories alone.
    """
    found = 0
    decode = msgspec.json.Decoder(Record).decode
    rooms = [f"{root}/rooms/{name}" for name in os.listdir(root / "rooms")]  # noqa: PTH208 - fast
    for crowd in [path for path in rooms if "/~" in path]:
        rooms.remove(crowd)
        rooms += [f"{crowd}/{name}" for name in os.listdir(crowd)]  # noqa: PTH208 - likewise
    for room in rooms:
        messages = f"{room}/messages"
        for origin in os.listdir(messages):  # noqa: PTH208 - likewise
            path = f"{messages}/{origin}"
            for _ in range(3):
                path = f"{path}/{max(os.listdir(path))}"  # noqa: PTH208 - likewise
            with open(path, "rb") as file:  # noqa: PTH123 - likewise
                for line in file:
                    found = max(found, decode(line).n)
    return found


def last(scale: Scale) -> list[Row]:
    """The newest 50 messages of a large room beside those of a small one."""
    small_root = ledgers.made(scale, "hundred", messages=100, rooms=1)
    with (
        ledgers.opened(ledgers.large(scale)) as large,
        ledgers.opened(small_root) as small,
    ):
        rooms = {"large": large.room(ledgers.ROOM), "small": small.room(ledgers.ROOM)}
        figures = interleaved(
            ROUNDS,
            {
                "large": lambda: each(30, lambda: rooms["large"].messages(last=50)),
                "100 messages": lambda: each(30, lambda: rooms["small"].messages(last=50)),
            },
        )
    return [
        row(
            "last", f"last 50 of {scale.size(100_000, 5_000):,} messages", figures,
            ours="large", peer="100 messages", better="less", must=1.5,
        )
    ]  # fmt: skip


def past(scale: Scale) -> list[Row]:
    """The newest 50 messages as of an old commit, named by its id and by a time, and as of now."""
    with ledgers.opened(ledgers.large(scale)) as ledger:
        room = ledger.room(ledgers.ROOM)
        moment = room.message(scale.size(50_000, 2_500)).at
        commit = ledger.commit_at(moment)
        ledger.timeline.follow()
        figures = interleaved(
            ROUNDS,
            {
                "at a commit": lambda: each(30, lambda: room.messages(last=50, at=commit)),
                "now": lambda: each(30, lambda: room.messages(last=50)),
                "commit of a time": lambda: each(30, lambda: ledger.commit_at(moment)),
            },
        )
    size = f"{scale.size(100_000, 5_000):,} messages"
    return [
        row(
            "past", f"last 50 at a commit amid {size}", figures, ours="at a commit",
            peer="now", better="less", must=5,
        ),
        row(
            "past", f"the commit of a time amid {size}", figures, ours="commit of a time",
            peer="now", better="less", must=10,
        ),
    ]  # fmt: skip


def process(scale: Scale) -> list[Row]:
    """`rooms read` and `rooms unread` as whole processes beside importing click."""
    roots = {
        "100 messages": ledgers.made(scale, "hundred", messages=100, rooms=1),
        f"{scale.size(100_000, 5_000):,} messages, {scale.size(200, 20)} rooms": ledgers.large(
            scale
        ),
    }
    commands = {
        f"rooms {words[0]} as a process; {size}": ["-c", COMMAND, "--root", str(root), *words]
        for size, root in roots.items()
        for words in (["read", ledgers.ROOM, "--last", "50"], ["unread", "--as", "Reviewer"])
    }
    # Once, so that the index and the bytecode are there.
    for args in commands.values():
        run_seconds(args)
    timed = {"import click": lambda: run_seconds(["-c", "import click"])}
    timed |= {name: lambda args=args: run_seconds(args) for name, args in commands.items()}
    figures = interleaved(scale.size(21, 7), timed)
    return [
        row("process", name, figures, ours=name, peer="import click", better="less", must=2)
        for name in commands
    ]


def run_seconds(args: Sequence[str]) -> float:
    """Return the seconds of one Python process with its start."""
    begin = time.perf_counter()
    subprocess.run(
        [sys.executable, *args],
        env=child_environment(),
        check=True,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
    )
    return time.perf_counter() - begin


def opening(scale: Scale) -> list[Row]:
    """Open, post and close in a warm process, and `rooms post`, on a large and a small ledger."""
    roots = {
        "large": ledgers.large(scale),
        "small": ledgers.made(scale, "hundred", messages=100, rooms=1),
    }

    def post(name: str) -> None:
        with ledgers.opened(roots[name]) as ledger:
            ledger.room(ledgers.ROOM).post("Analyst", BODY)

    def command(name: str) -> float:
        args = ["--root", str(roots[name]), "post", ledgers.ROOM, "hello", "--as", "Analyst"]
        return run_seconds(["-c", COMMAND, *args])

    for name in roots:
        post(name)
    warm = interleaved(
        ROUNDS,
        {name: lambda name=name: each(scale.size(10, 4), lambda: post(name)) for name in roots},
    )
    cold = interleaved(scale.size(15, 5), {name: lambda name=name: command(name) for name in roots})
    size = f"{scale.size(100_000, 5_000):,} messages, {scale.size(200, 20)} rooms"
    return [
        row(
            "open", f"open, post, close; {size}", warm, ours="large", peer="small",
            better="less", must=1.6, aim=1.2,
        ),
        row(
            "open", f"rooms post as a process; {size}", cold, ours="large", peer="small",
            better="less", must=1.3,
        ),
    ]  # fmt: skip


GROUPS = {"unread": unread, "last": last, "past": past, "process": process, "open": opening}
