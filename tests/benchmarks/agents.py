"""Agents: what waits is handed over, waited for, and told by the hook."""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import time
import uuid
from random import Random
from typing import TYPE_CHECKING

from tests.benchmarks import ledgers
from tests.benchmarks.measure import (
    BODY,
    Row,
    Scale,
    child_environment,
    interleaved,
    row,
    seconds,
)
from tests.benchmarks.reading import COMMAND, run_seconds

if TYPE_CHECKING:
    from pathlib import Path

    from agent_chatroom_ledger import Ledger

ROUNDS = 9
# As many as one call hands over.
BATCH = 5
WAKE_SECONDS_MAX = 0.1
# Of one processor.
IDLE_SHARE_MAX = 0.01


class Folder:
    """The scheme of earlier rooms: a JSON file for each message and recipient.

    Handing over moves the oldest files to ``read/`` and rewrites a receipt for each under a lock
    of its own. Nothing is synced, and the oldest are found by listing the folder.
    """

    def __init__(self, root: Path, queued: int) -> None:
        self._inbox, self._receipts = root / "inbox" / "Ben", root / "receipts"
        (self._inbox / "read").mkdir(parents=True)
        self._serial = 0
        self.post(queued)

    def post(self, count: int) -> None:
        for _ in range(count):
            self._serial += 1
            name = str(uuid.uuid4())
            message = {"id": name, "from": "Ana", "body": BODY, "queuedAt": time.time()}
            temporary = self._inbox / f".{name}"
            temporary.write_text(json.dumps(message), encoding="utf-8")
            temporary.rename(self._inbox / f"{self._serial:08}-{name}.json")
            (self._receipts / name).mkdir(parents=True)
            receipt = self._receipts / name / "Ben.json"
            receipt.write_text(json.dumps({"queuedAt": time.time()}), encoding="utf-8")

    def take(self) -> list[str]:
        names = sorted(name for name in os.listdir(self._inbox) if name.endswith(".json"))  # noqa: PTH208 - fast
        bodies = []
        for name in names[:BATCH]:
            path = self._inbox / name
            message = json.loads(path.read_text(encoding="utf-8"))
            bodies.append(message["body"])
            path.rename(self._inbox / "read" / name)
            receipt = self._receipts / message["id"] / "Ben.json"
            lock = receipt.with_suffix(".json.lock")
            lock.mkdir()
            known = json.loads(receipt.read_text(encoding="utf-8"))
            temporary = receipt.with_suffix(".tmp")
            temporary.write_text(json.dumps({**known, "deliveredAt": time.time()}))
            temporary.rename(receipt)
            lock.rmdir()
        return bodies


def inbox(scale: Scale) -> list[Row]:
    """Five handed over with a receipt each, beside the folder scheme, few and many queued."""
    rows = []
    for queued in (10, scale.size(1_000, 100)):
        folder = Folder(scale.fresh("folder"), queued)
        with ledgers.opened(scale.fresh("inbox"), "group") as ledger:
            room = ledger.create_room("Review", members=["Ana", "Ben"])
            room.post_many([{"author": "Ana", "body": BODY}] * queued)

            def ours(ledger: Ledger = ledger) -> float:
                spent = _taken(ledger, "Ben")
                ledger.room("review").post_many([{"author": "Ana", "body": BODY}] * BATCH)
                return spent

            def theirs(folder: Folder = folder) -> float:
                begin = time.perf_counter()
                found = folder.take()
                spent = time.perf_counter() - begin
                assert len(found) == BATCH
                folder.post(BATCH)
                return spent

            figures = interleaved(ROUNDS * 5, {"inbox": ours, "a file each": theirs})
        rows.append(
            row(
                "inbox", f"inbox: {BATCH} of {queued:,} queued, with receipts", figures,
                ours="inbox", peer="a file each", better="less", must=None,
            )
        )  # fmt: skip
    return rows


def _taken(ledger: Ledger, name: str, count: int = BATCH) -> float:
    begin = time.perf_counter()
    with ledger.agent(name).take(BATCH) as handover:
        assert len(handover) == count
        handover.confirm()
    return time.perf_counter() - begin


def inbox_large(scale: Scale) -> list[Row]:
    """An inbox of 1,000 rooms and 100,000 messages beside one of 10 rooms, and as processes.

    With all of it waiting; with five new messages after all was handed over; and with nothing.
    """
    sizes = {
        "large": (scale.size(1_000, 100), scale.size(100_000, 2_000)),
        "10 rooms": (10, 1_000),
    }
    roots = {name: _many(scale, *size) for name, size in sizes.items()}
    measured: dict[str, dict[str, list[float]]] = {}
    opened = {name: ledgers.opened(root, "group") for name, root in roots.items()}
    try:
        for what, name in (
            ("all waiting", "Full"),
            ("five new", "Reader"),
            ("nothing new", "Reader"),
        ):
            for ledger in opened.values():
                _ready(ledger, what)
            measured[what] = interleaved(
                ROUNDS * 3,
                {
                    size: lambda ledger=ledger, what=what, name=name: _measured(ledger, what, name)
                    for size, ledger in opened.items()
                },
            )
    finally:
        for ledger in opened.values():
            ledger.close()
    for what, name in (("nothing new", "Reader"), ("all waiting", "Full")):
        commands = {
            size: ["-c", COMMAND, "--root", str(root), "inbox", "--as", name, "--peek"]
            for size, root in roots.items()
        }
        measured[f"as a process, {what}"] = interleaved(
            scale.size(15, 5),
            {size: lambda args=args: run_seconds(args) for size, args in commands.items()},
        )
    rooms, messages = sizes["large"]
    return [
        row(
            "inbox-large", f"inbox {what}; {rooms:,} rooms, {messages:,} messages", figures,
            ours="large", peer="10 rooms", better="less", must=2,
        )
        for what, figures in measured.items()
    ]  # fmt: skip


def _many(scale: Scale, rooms: int, messages: int) -> Path:
    """Return a ledger of many rooms, all of which list Full and Reader, who has read it all."""
    root = scale.folder / f"inbox-{rooms}-{messages}"
    with ledgers.opened(root, "group") as ledger:
        members = [*ledgers.PEOPLE, "Full", "Reader"]
        made = [ledger.create_room(f"Room {number}", members=members) for number in range(rooms)]
        for _ in range(0, messages, rooms * 10):
            for room in made:
                room.post_many(list(ledgers.drafts(10)))
        for room in made:
            ledger.receipts.drop("Reader", room.id, room.last_position())
        made[0].post("Analyst", BODY)
        _taken(ledger, "Reader", 1)
        ledger.flush()
        ledger.index.follow()
    return root


def _ready(ledger: Ledger, what: str) -> None:
    if what == "nothing new":
        with ledger.agent("Reader").take(BATCH * 2) as handover:
            handover.confirm()


def _measured(ledger: Ledger, what: str, name: str) -> float:
    if what == "five new":
        for number in range(BATCH):
            ledger.room(f"Room {number}").post("Analyst", BODY)
        # Their commits are not what is measured, and would run beside it.
        ledger.flush()
    return _taken(ledger, name, 0 if what == "nothing new" else BATCH)


def wake(scale: Scale) -> list[Row]:
    """How long after a post returns `rooms tail -f` shows it, and `rooms wait` has ended."""
    root = scale.fresh("wake")
    random = Random(7)
    with ledgers.opened(root, "group") as ledger:
        room = ledger.create_room("Review", members=["Ana", "Ben"])
        shown: list[float] = []
        with _waiting(root, "tail", "-f", "--as", "Ben", "--json") as following:
            _until_it_waits(ledger, "Ben")
            for _ in range(scale.size(200, 30)):
                # At any moment of whatever rhythm the follower may have.
                time.sleep(random.uniform(0.01, 0.15))
                shown.append(_until(following, lambda: room.post("Ana", BODY)))
            following.kill()
        ended: list[float] = []
        for _ in range(scale.size(15, 5)):
            with _waiting(root, "wait", "--as", "Cleo") as waiting:
                _until_it_waits(ledger, "Cleo")
                time.sleep(random.uniform(0.05, 0.2))
                ended.append(_until(waiting, lambda: room.post("Ana", BODY, to=["Cleo"])))
                waiting.wait()
            with ledger.agent("Cleo").take(BATCH) as handover:
                handover.confirm()
    return [
        _bounded("wake", f"rooms tail -f shows a post, {word}", of(shown), WAKE_SECONDS_MAX, shown)
        for word, of in _DISTRIBUTION.items()
    ] + [
        _bounded("wake", f"rooms wait tells of a post, {word}", of(ended), WAKE_SECONDS_MAX, ended)
        for word, of in (("median", statistics.median), ("slowest", max))
    ]


_DISTRIBUTION = {
    "median": statistics.median,
    "90 of 100": lambda times: statistics.quantiles(times, n=10)[-1],
    "slowest": max,
}


def idle(scale: Scale) -> list[Row]:
    """How much of a processor `rooms wait` and `rooms tail -f` take while nothing comes."""
    root = scale.fresh("idle")
    span = scale.size(20, 3)
    rows = []
    with ledgers.opened(root) as ledger:
        ledger.create_room("Review", members=["Ben"])
        ledger.flush()
        for words in (("wait", "--as", "Ben"), ("tail", "-f", "--as", "Ben")):
            with _waiting(root, *words) as process:
                _until_it_waits(ledger, "Ben")
                time.sleep(1)
                before = _processor_seconds(process.pid)
                time.sleep(span)
                share = (_processor_seconds(process.pid) - before) / span
                process.kill()
            name = f"rooms {' '.join(words[:-2])}, idle: share of a processor"
            rows.append(
                Row(
                    name="idle", measure=name, ours=f"{share:.2%}", peer=f"{IDLE_SHARE_MAX:.0%}",
                    ratio=share / IDLE_SHARE_MAX, better="less", must=1, rounds={"share": [share]},
                )
            )  # fmt: skip
    return rows


def _waiting(root: Path, *words: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-c", COMMAND, "--root", str(root), *words],
        env=child_environment(), stdout=subprocess.PIPE,
    )  # fmt: skip


def _until_it_waits(ledger: Ledger, name: str) -> None:
    from agent_chatroom_ledger.presence import live

    while live(ledger, name) is None:
        time.sleep(0.01)
    # It is known a little before it looks.
    time.sleep(0.3)


def _until(process: subprocess.Popen[bytes], post: object) -> float:
    """Return the seconds from the return of a post to the next line of a process."""
    assert callable(post)
    assert process.stdout is not None
    post()
    begin = time.perf_counter()
    assert process.stdout.readline()
    return time.perf_counter() - begin


def _processor_seconds(process: int) -> float:
    with open(f"/proc/{process}/stat", encoding="ascii") as file:  # noqa: PTH123 - a table
        fields = file.read().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _bounded(name: str, measure: str, value: float, bound: float, rounds: list[float]) -> Row:
    return Row(
        name=name, measure=measure, ours=seconds(value), peer=seconds(bound),
        ratio=value / bound, better="less", must=1, rounds={"seconds": rounds},
    )  # fmt: skip


def hook(scale: Scale) -> list[Row]:
    """`rooms hook agent` as a whole process beside importing click: nothing, and five, to tell."""
    # Enough for five to be told every time.
    root = ledgers.made(scale, "hook", messages=200, rooms=1)
    directory = scale.fresh("project")
    directory.mkdir()
    event = {
        "session_id": str(uuid.uuid4()), "transcript_path": "", "cwd": str(directory),
        "hook_event_name": "PostToolUse", "tool_name": "Bash", "tool_response": {},
    }  # fmt: skip
    data = json.dumps(event).encode()

    def fired(name: str) -> float:
        begin = time.perf_counter()
        done = subprocess.run(
            [sys.executable, "-c", COMMAND, "hook", "agent"], input=data, check=True,
            env={**child_environment(), "ROOMS_ROOT": str(root), "ROOMS_NAME": name},
            stdout=subprocess.PIPE,
        )  # fmt: skip
        spent = time.perf_counter() - begin
        assert bool(done.stdout) is (name == "Reviewer"), done.stdout
        return spent

    figures = interleaved(
        scale.size(15, 5),
        {
            "hook, nothing waits": lambda: fired("Nobody"),
            "hook, five told": lambda: fired("Reviewer"),
            "import click": lambda: run_seconds(["-c", "import click"]),
        },
    )
    return [
        row(
            "agent-hook", f"rooms {name} as a process", figures, ours=name,
            peer="import click", better="less", must=2.5,
        )
        for name in ("hook, nothing waits", "hook, five told")
    ]  # fmt: skip


GROUPS = {
    "inbox": inbox,
    "inbox-large": inbox_large,
    "wake": wake,
    "idle": idle,
    "agent-hook": hook,
}
