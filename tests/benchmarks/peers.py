"""The systems we measure ourselves against, each doing the same work in its own way."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
import time
from typing import TYPE_CHECKING

from tests.benchmarks.measure import BODY, child_result, each, git, git_environment

if TYPE_CHECKING:
    from pathlib import Path

LINES = 1_000


def _growing_file(root: Path) -> Path:
    """Make a repository with one committed file of 1,000 lines, about as long as our records."""
    root.mkdir(parents=True)
    git(root, "init", "-q", "-b", "main")
    path = root / "room.jsonl"
    path.write_text("".join(f"{n:08} {BODY}\n" for n in range(LINES)), encoding="utf-8")
    git(root, "add", path.name)
    git(root, "commit", "-q", "-m", "1,000 lines")
    return path


class Porcelain:
    """dulwich.porcelain: append a line, add, commit. Neither call syncs anything to disk."""

    def __init__(self, root: Path) -> None:
        from dulwich import porcelain

        self._path = _growing_file(root)
        self._root = str(root)
        self._add, self._commit = porcelain.add, porcelain.commit

    def post(self) -> None:
        with self._path.open("a", encoding="utf-8") as file:
            file.write(f"{BODY}\n")
        self._add(self._root, [str(self._path)])
        self._commit(
            self._root, message=b"a line", author=b"Analyst <a@example.invalid>",
            committer=b"Analyst <a@example.invalid>",
        )  # fmt: skip

    def run(self, count: int) -> float:
        return each(count, self.post)


class Git:
    """The git binary: append a line, `git add`, `git commit`."""

    def __init__(self, root: Path) -> None:
        self._path = _growing_file(root)
        self._root = root
        self._env = git_environment()

    def post(self) -> None:
        with self._path.open("a", encoding="utf-8") as file:
            file.write(f"{BODY}\n")
        for args in (["add", self._path.name], ["commit", "-q", "-m", "a line"]):
            subprocess.run(["git", *args], cwd=self._root, env=self._env, check=True)

    def run(self, count: int) -> float:
        return each(count, self.post)


def sqlite_posts(path: Path, count: int) -> float:
    """Return the seconds per post of SQLite, WAL and synchronous=FULL, one row and one index."""
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("PRAGMA journal_mode=WAL")
    connection.execute("PRAGMA synchronous=FULL")
    connection.execute(
        "CREATE TABLE messages (n INTEGER PRIMARY KEY, id TEXT, at TEXT, room TEXT, author TEXT,"
        " kind TEXT, body TEXT)"
    )
    connection.execute("CREATE INDEX by_room ON messages (room, n)")

    def post() -> None:
        connection.execute(
            "INSERT INTO messages (id, at, room, author, kind, body) VALUES (?, ?, ?, ?, ?, ?)",
            (str(time.time_ns()), "2026-11-29T21:27:42.123456Z", "r", "Analyst", "message", BODY),
        )

    spent = each(count, post)
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    connection.close()
    return spent


def mempalace_path(folder: Path) -> Path | None:
    """Install mempalace, without what it depends on, into a folder; None when it cannot be had.

    pip's own settings count: PIP_FIND_LINKS names a directory that holds the wheel.
    """
    target = folder / "mempalace"
    if not target.exists():
        done = subprocess.run(
            [sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--target", str(target),
             "--disable-pip-version-check", "mempalace"],
            check=False, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        if done.returncode:
            return None
    return target


def logstream_posts(packages: Path, folder: Path, count: int) -> float:
    """Return the seconds per `Logstream.append_event`, measured inside a process of its own."""
    found = child_result("logstream", str(packages), str(folder), str(count))
    return float(found["seconds_each"])
