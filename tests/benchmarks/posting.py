"""Posting: one by one, in a large ledger, in group mode, by several processes."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from agent_chatroom_ledger.limits import CHECKPOINT_FRAMES_MAX
from tests.benchmarks import ledgers, peers
from tests.benchmarks.measure import BODY, Row, Scale, child, each, interleaved, row

if TYPE_CHECKING:
    import subprocess
    from pathlib import Path

    from agent_chatroom_ledger import Ledger

ROUNDS = 5


def _posts(ledger: Ledger, count: int) -> float:
    """Return the seconds per post, each durable and committed when its call returns.

    The checkpoint, which falls due after 1,000 frames, is measured apart, and each post bears its
    share of it.
    """
    room = ledger.room(ledgers.ROOM)
    spent = each(count, lambda: room.post("Analyst", BODY))
    return spent + each(1, ledger.flush) / max(count, CHECKPOINT_FRAMES_MAX)


def _posts_and_flush(ledger: Ledger, count: int) -> float:
    """Return the seconds per post with the final flush, after which all are committed."""
    room = ledger.room(ledgers.ROOM)
    return each(count, lambda: room.post("Analyst", BODY), ledger.flush)


def post(scale: Scale) -> list[Row]:
    """`post` in sync mode beside dulwich porcelain and the git binary."""
    porcelain = peers.Porcelain(scale.fresh("porcelain"))
    binary = peers.Git(scale.fresh("git"))
    ours, theirs = scale.size(300, 100), scale.size(50, 12)
    root = ledgers.made(scale, "plain", messages=1_000, rooms=1)
    with ledgers.opened(root) as ledger:
        _posts(ledger, 20)
        figures = interleaved(
            ROUNDS,
            {
                "post": lambda: _posts(ledger, ours),
                "dulwich porcelain": lambda: porcelain.run(theirs),
                "git add && git commit": lambda: binary.run(theirs),
            },
        )
    return [
        row("post", "post, sync", figures, ours="post", peer=peer, better="more", must=6, aim=12)
        for peer in ("dulwich porcelain", "git add && git commit")
    ]


def post_large(scale: Scale) -> list[Row]:
    """`post` in sync mode with a hundred times the messages and two hundred times the rooms."""
    count = scale.size(300, 100)
    with (
        ledgers.opened(ledgers.made(scale, "plain", messages=1_000, rooms=1)) as small,
        ledgers.opened(ledgers.large(scale)) as large,
    ):
        for ledger in (small, large):
            _posts(ledger, 20)
        figures = interleaved(
            ROUNDS,
            {
                "large ledger": lambda: _posts(large, count),
                "1,000 messages, 1 room": lambda: _posts(small, count),
            },
        )
    size = scale.size(100_000, 5_000)
    return [
        row(
            "post-large", f"post, sync, {size:,} messages, {scale.size(200, 20)} rooms", figures,
            ours="large ledger", peer="1,000 messages, 1 room", better="less", must=1.3, aim=1.1,
        )
    ]  # fmt: skip


def group(scale: Scale) -> list[Row]:
    """Group mode, one thread, with the final flush, beside SQLite and mempalace's Logstream."""
    count = scale.size(10_000, 1_000)
    packages = peers.mempalace_path(scale.folder)

    def ours() -> float:
        with ledgers.opened(scale.fresh("group"), "group") as ledger:
            ledger.create_room(ledgers.ROOM)
            ledger.flush()
            return _posts_and_flush(ledger, count)

    def logstream() -> float:
        folder = scale.fresh("logstream")
        folder.mkdir()
        assert packages is not None
        return peers.logstream_posts(packages, folder, count)

    timed = {
        "group": ours,
        "SQLite": lambda: peers.sqlite_posts(scale.fresh("sqlite"), count),
    }
    if packages is not None:
        timed["Logstream"] = logstream
    figures = interleaved(ROUNDS, timed)
    what = f"group mode, {count:,} posts and flush"
    return [
        row("group", what, figures, ours="group", peer=peer, better="more", must=must, aim=aim)
        for peer, must, aim in (("SQLite", 0.3, 0.5), ("Logstream", 0.7, 1.2))
    ]


def placement(scale: Scale) -> list[Row]:
    """Placing messages of one room in another beside posting as many with post_many."""
    count = scale.size(1_000, 200)
    root = ledgers.made(scale, "places", messages=count, rooms=3)
    with ledgers.opened(root) as ledger:
        source = ledger.room(ledgers.ROOM)
        target, other = ledger.room("side-room-1"), ledger.room("side-room-2")
        refs = f"1-{count}"

        def place() -> float:
            return each(1, lambda: source.duplicate(refs, target, reason="why"), ledger.flush)

        def post_many() -> float:
            drafts = list(ledgers.drafts(count))
            return each(1, lambda: other.post_many(drafts), ledger.flush)

        place()
        post_many()
        figures = interleaved(ROUNDS, {"placement": place, "post_many": post_many})
    return [
        row(
            "placement", f"placing {count:,} messages in another room, and flush", figures,
            ours="placement", peer="post_many", better="less", must=1.5, aim=1,
        )
    ]  # fmt: skip


def processes(scale: Scale) -> list[Row]:
    """Eight processes posting into one room in sync mode beside one that posts as many."""
    total = scale.size(2_000, 320)
    root = ledgers.made(scale, "shared", messages=100, rooms=1)
    figures = interleaved(
        ROUNDS,
        {
            "8 processes": lambda: _together(root, 8, total // 8),
            "1 process": lambda: _together(root, 1, total),
        },
    )
    return [
        row(
            "processes", f"8 processes, {total // 8} sync posts each into one room", figures,
            ours="8 processes", peer="1 process", better="more", must=1, aim=1.6,
        )
    ]  # fmt: skip


def _together(root: Path, count: int, posts: int) -> float:
    """Return the seconds per post of `count` processes that start at one moment."""
    started = [child("posts", str(root), ledgers.ROOM, f"P{n}", str(posts)) for n in range(count)]
    try:
        for process in started:
            _heard(process)
        begin = time.perf_counter()
        for process in started:
            assert process.stdin is not None
            process.stdin.write("go\n")
            process.stdin.flush()
        for process in started:
            _heard(process)
        return (time.perf_counter() - begin) / (count * posts)
    finally:
        for process in started:
            process.communicate()


def _heard(process: subprocess.Popen[str]) -> None:
    """Wait for one line of a child; a child that ends without it has failed."""
    assert process.stdout is not None
    if not process.stdout.readline():
        raise RuntimeError(f"a posting process ended with status {process.wait()}")


GROUPS = {
    "post": post,
    "post-large": post_large,
    "group": group,
    "placement": placement,
    "processes": processes,
}
