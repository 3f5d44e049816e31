"""A directory of the work tree read file by file: what `read` gives, and nothing from outside."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from agent_chatroom_ledger.storage.source import WorkTree

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def root(tmp_path: Path) -> Path:
    place = tmp_path / "root"
    (place / "a/b/inner").mkdir(parents=True)
    (place / "a/b/file").write_bytes(b"content")
    (tmp_path / "secret").write_bytes(b"secret")
    (place / "a/b/link").symlink_to(tmp_path / "secret")
    (place / "a/way").symlink_to(place / "a/b")
    return place


@pytest.mark.parametrize("name", ["file", "missing", "inner", "link", "../b/file", "inner/x", ""])
def test_it_gives_what_reading_by_path_gives(root: Path, name: str) -> None:
    tree = WorkTree(root)
    with tree.directory("a/b") as read:
        expected = None if "/" in name else tree.read(f"a/b/{name}")
        assert read(name) == expected


@pytest.mark.parametrize("directory", ["a/way", "a/none", "a/b/file", "../root/a/b", ""])
def test_a_directory_that_is_none_of_ours_holds_nothing(root: Path, directory: str) -> None:
    with WorkTree(root).directory(directory) as read:
        assert read("file") is None
