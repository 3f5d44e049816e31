"""Where everything lies, and which paths of a commit are ours."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from agent_chatroom_ledger.storage.layout import (
    Layout,
    find_root,
    is_ledger,
    is_log,
    is_ours,
    nobodys_log,
    room_of_log,
)
from tests.storage.samples import MESSAGES, OPERATIONS, ROOM, git

if TYPE_CHECKING:
    from pathlib import Path


def test_everything_private_is_inside_git(tmp_path: Path) -> None:
    """`git clean -fdx` spares it there, and no commit can hold it."""
    layout = Layout(tmp_path)
    private = [
        layout.journal,
        layout.cursors,
        layout.locks,
        layout.quarantine,
        layout.tmp,
        layout.state,
        layout.own_packs,
        layout.index_db,
    ]
    assert all(path.parent == tmp_path / ".git" / "ledger" for path in private)
    assert layout.packs == tmp_path / ".git" / "objects" / "pack"
    assert layout.own_mark == str(layout.locks / "own")


@pytest.mark.parametrize(
    "path",
    [
        f"{MESSAGES}/00/00/00000001.jsonl",
        f"{OPERATIONS}/00/00/00000001.jsonl",
        "rooms/a/b/messages/o/00/01/00001000.jsonl",
        "rooms/messages/messages/o/00/00/00000001.jsonl",
        "operations/o/00/00/00000001.jsonl",
    ],
)
def test_segments_are_logs(path: str) -> None:
    assert is_log(path)
    assert is_ours(path)


@pytest.mark.parametrize(
    ("directory", "named"),
    [
        ("rooms/a/b/messages/O/00/00", "rooms/a/b/messages/O"),
        ("rooms/a/operations/o\n", "rooms/a/operations/o\n"),
        ("operations/con/00", "operations/con"),
        ("operations/o/00/00", None),
        ("rooms/a/messages", None),
        ("rooms/messages/messages/o/00", None),
        ("rooms/a/view/2026", None),
        ("artifacts/ab", None),
    ],
)
def test_a_directory_among_logs_that_is_no_origins(directory: str, named: str | None) -> None:
    assert nobodys_log(directory) == named


@pytest.mark.parametrize(
    "path",
    [
        f"{ROOM}/room.json",
        f"{ROOM}/view/2026/11-29.0.md",
        f"{MESSAGES}/00/00/notes.txt",
        "rooms/messages/o/00/00/00000001.jsonl",
        "operations/o/00/00000001.jsonl",
        "operations/o/00/00/00/00000001.jsonl",
        "notes/a/messages/o/00/00/00000001.jsonl",
        "00000001.jsonl",
        "rooms/a/messages/O/00/00/00000001.jsonl",
        "rooms/a/operations/o\n/00/00/00000001.jsonl",
        "operations/con/00/00/00000001.jsonl",
    ],
)
def test_other_files_are_no_logs(path: str) -> None:
    assert not is_log(path)


@pytest.mark.parametrize(
    ("path", "ours"),
    [
        ("ledger.json", True),
        (".gitattributes", True),
        ("rooms/a/room.json", True),
        ("archive/0a/id.json", True),
        ("artifacts/0a/ff", True),
        ("README.md", False),
        ("rooms", False),
        ("roomsandmore/x", False),
        ("docs/rooms/x", False),
        ("docs/ledger.json", False),
    ],
)
def test_the_users_files_are_told_apart(path: str, *, ours: bool) -> None:
    assert is_ours(path) == ours


def test_a_log_tells_its_room() -> None:
    assert room_of_log(MESSAGES) == ROOM
    assert room_of_log("rooms/a/b/operations/o") == "rooms/a/b"
    assert room_of_log("operations/o") is None


def test_the_root_is_found_from_below(layout: Layout, tmp_path: Path) -> None:
    below = layout.root / "rooms" / "a"
    below.mkdir(parents=True)
    assert find_root(below) == layout.root
    assert find_root(layout.root) == layout.root
    assert find_root(tmp_path) is None


def test_a_ledger_is_known_without_its_work_tree_and_a_repository_is_not_one(
    layout: Layout, tmp_path: Path
) -> None:
    data = (layout.root / "ledger.json").read_bytes()
    (layout.root / "ledger.json").unlink()
    assert is_ledger(layout.root)
    (layout.root / "ledger.json").write_bytes(data)
    git(tmp_path, "init", "-q", "other")
    assert not is_ledger(tmp_path / "other")
    (tmp_path / "ledger.json").write_text("{}")
    assert not is_ledger(tmp_path)
