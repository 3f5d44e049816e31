"""What must hold after any fault: nothing acknowledged lost, and git finds nothing to complain of.

The checks read through the product's own door and, apart from it, through the git binary.
"""

from __future__ import annotations

import json
import os
import subprocess
from collections import Counter
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

from agent_chatroom_ledger import Ledger

if TYPE_CHECKING:
    from pathlib import Path

    from agent_chatroom_ledger.domain.records import Message


_write = os.write  # the disk of the notes is never full, whatever a test does to the ledger's


@dataclass(frozen=True)
class Acknowledged:
    """A message whose call returned: where it stands and what it says."""

    room: str
    n: int
    id: str
    body: str

    @classmethod
    def of(cls, room: str, message: Message) -> Acknowledged:
        return cls(room, message.n, message.id, message.body)


class Notebook:
    """A file in which a process that may be killed notes what it was told, synced at once."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC)

    def note(self, room: str, *messages: Message) -> None:
        self.write(*[Acknowledged.of(room, message) for message in messages])

    def write(self, *told: Acknowledged) -> None:
        lines = [json.dumps(asdict(one)) for one in told]
        _write(self._descriptor, "".join(f"{line}\n" for line in lines).encode())
        os.fdatasync(self._descriptor)

    def seen(self, n: int) -> None:
        """Note that a cursor was moved to `n`, and the call returned."""
        self._seen.write_text(f"{n}\n", encoding="ascii")

    @property
    def _seen(self) -> Path:
        return self.path.with_suffix(".seen")


def seen_in(notes: Path) -> int:
    """Return how far the cursor was moved last, 0 when it never was."""
    path = notes.with_suffix(".seen")
    return int(path.read_text(encoding="ascii")) if path.exists() else 0


def noted(*paths: Path) -> list[Acknowledged]:
    """Read notebooks back; a line that was cut off was not noted."""
    found = []
    for path in paths:
        if path.exists():
            lines = path.read_text(encoding="utf-8").split("\n")[:-1]
            found += [Acknowledged(**json.loads(line)) for line in lines]
    return found


def git(root: Path, *args: str, check: bool = True, given: bytes | None = None) -> bytes:
    """Run the git binary; fail when it does."""
    done = subprocess.run(
        ["git", *args], cwd=root, input=given, capture_output=True, check=False, timeout=120
    )
    assert not check or done.returncode == 0, f"git {' '.join(args)}: {done.stderr.decode()}"
    return done.stdout


def assert_sound(
    root: Path, acknowledged: list[Acknowledged], *, rewritten: bool = False
) -> dict[str, list[Message]]:
    """Open the ledger, which recovers it, and close it; then everything must be in its place.

    Where somebody has `rewritten` history and it was reunited, two commits may name a record.
    Returns the messages of every room, for closer looks.
    """
    with Ledger.open(root) as ledger:
        rooms = {summary.path: ledger.room(summary.path).messages() for summary in ledger.rooms()}
        report = ledger.verify()
    assert report.ok, [issue.message for issue in report.issues]
    assert_nothing_lost(rooms, acknowledged)
    assert_git_is_content(root)
    assert_commits_name_their_records(root, rooms, rewritten=rewritten)
    return rooms


def assert_nothing_lost(rooms: dict[str, list[Message]], acknowledged: list[Acknowledged]) -> None:
    """Every acknowledged message is there exactly once, with its bytes; numbers are dense."""
    for room, messages in rooms.items():
        by_origin: dict[str, list[int]] = {}
        for message in messages:
            by_origin.setdefault(message.origin, []).append(message.n)
        for origin, numbers in by_origin.items():
            assert sorted(numbers) == list(range(1, len(numbers) + 1)), f"{room} {origin}"
        times = [message.at for message in messages]
        assert len(set(times)) == len(times), f"a time repeats in {room}"
    found = Counter(
        Acknowledged.of(room, message) for room, messages in rooms.items() for message in messages
    )
    ids = Counter((told.room, told.id) for told in found.elements())
    assert not [pair for pair, count in ids.items() if count > 1], "a message stands twice"
    lost = [told for told in acknowledged if told not in found]
    assert not lost, f"{len(lost)} of {len(acknowledged)} acknowledged are lost, first {lost[0]}"


def assert_git_is_content(root: Path) -> None:
    """`git fsck` and `git status` find nothing, and no lock or mark of ours was left behind."""
    complaints = git(root, "fsck", "--full", "--strict", "--no-dangling").decode()
    assert not complaints, complaints
    status = git(root, "status", "--porcelain").decode()
    assert not status, status
    left = [str(p) for p in (root / ".git").rglob("*.lock") if "ledger/locks" not in str(p)]
    left += [str(p) for p in (root / ".git" / "objects" / "pack").glob("*.keep")]
    assert not left, left


def logs_of(root: Path, revision: str = "main") -> dict[str, list[dict[str, object]]]:
    """Read every log out of a commit with the git binary."""
    listed = git(root, "ls-tree", "-r", "-z", revision).decode()
    blobs = [
        (entry.split("\t")[1], entry.split("\t")[0].split(" ")[2])
        for entry in listed.split("\0")
        if entry.endswith(".jsonl")
    ]
    wanted = "".join(f"{oid}\n" for _, oid in blobs).encode()
    data = git(root, "cat-file", "--batch", given=wanted)
    found: dict[str, list[dict[str, object]]] = {}
    for path, _ in sorted(blobs):
        head, _, data = data.partition(b"\n")
        size = int(head.split(b" ")[2])
        lines = data[:size].decode().split("\n")[:-1]
        data = data[size + 1 :]
        found.setdefault(path.rsplit("/", 3)[0], []).extend(json.loads(line) for line in lines)
    return found


def assert_commits_name_their_records(
    root: Path, rooms: dict[str, list[Message]], *, rewritten: bool
) -> None:
    """Main holds what readers see; every record is named by exactly one commit (invariant 5)."""
    logs = logs_of(root)
    for log, records in logs.items():
        numbers = sorted(int(str(record["n"])) for record in records)
        assert numbers == list(range(1, len(numbers) + 1)), log
    for room, messages in rooms.items():
        read = sorted((m.origin, m.n, m.id, m.body) for m in messages)
        committed = sorted(
            (log.rpartition("/")[2], record["n"], record["id"], record.get("body", ""))
            for log, records in logs.items()
            if log.startswith(f"{room}/messages/")
            for record in records
        )
        assert read == committed, room
    trailers = git(root, "log", "--format=%(trailers:key=Record,valueonly)%x00", "main").decode()
    named = Counter(line for line in trailers.replace("\0", "").split("\n") if line)
    stored = Counter(str(record["id"]) for records in logs.values() for record in records)
    if rewritten:
        named = Counter(set(named))
    assert named == stored, (named - stored, stored - named)
