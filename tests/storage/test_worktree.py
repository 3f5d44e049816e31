"""The work tree is brought up to date; what others put in the way is kept, never followed."""

from __future__ import annotations

import os
import resource
import stat
from typing import TYPE_CHECKING

import pytest

from agent_chatroom_ledger.storage import failpoints
from agent_chatroom_ledger.storage.worktree import WorkTreeWriter, blob_id
from tests.storage.samples import MESSAGES, empty_place, git

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from agent_chatroom_ledger.storage.layout import Layout

LOG = f"{MESSAGES}/00/00/00000001.jsonl"
PAGE = "rooms/design-review/view/2026/11-29.0.md"


@pytest.fixture
def place(tmp_path: Path) -> Layout:
    return empty_place(tmp_path / "place")


@pytest.fixture
def tree(place: Layout) -> Iterator[WorkTreeWriter]:
    with WorkTreeWriter(place) as found:
        yield found


def quarantined(place: Layout) -> list[bytes]:
    if not place.quarantine.is_dir():
        return []
    return [path.read_bytes() for path in place.quarantine.iterdir() if path.is_file()]


def test_a_file_is_written_with_its_directories_and_its_stat(
    place: Layout, tree: WorkTreeWriter
) -> None:
    status = tree.put(PAGE, None, b"page\n")
    assert (place.root / PAGE).read_bytes() == b"page\n"
    assert status == os.lstat(place.root / PAGE)
    assert tree.read(PAGE) == b"page\n"
    assert not list(place.tmp.iterdir())


def test_a_log_grows_in_place(place: Layout, tree: WorkTreeWriter) -> None:
    """Readers that have it open see the new lines; nothing is copied."""
    tree.put(LOG, None, b"1\n")
    with (place.root / LOG).open("rb") as reader:
        assert reader.read() == b"1\n"
        status = tree.put(LOG, b"1\n", b"1\n2\n")
        assert reader.read() == b"2\n"
    assert status.st_size == 4
    assert not quarantined(place)


def test_a_page_is_replaced_in_one_step(place: Layout, tree: WorkTreeWriter) -> None:
    tree.put(PAGE, None, b"old\n")
    with (place.root / PAGE).open("rb") as reader:
        tree.put(PAGE, b"old\n", b"old\nnew\n")
        assert reader.read() == b"old\n"
    assert (place.root / PAGE).read_bytes() == b"old\nnew\n"


@pytest.mark.parametrize("path", [LOG, PAGE])
@pytest.mark.parametrize("foreign", [b"mine\n", b"1\nmine\n", b"1\nX\n3\n"])
def test_foreign_bytes_go_to_quarantine_first(
    place: Layout, tree: WorkTreeWriter, path: str, foreign: bytes
) -> None:
    tree.put(path, None, b"1\n2\n")
    (place.root / path).write_bytes(foreign)
    tree.put(path, b"1\n2\n", b"1\n2\n3\n")
    assert (place.root / path).read_bytes() == b"1\n2\n3\n"
    assert quarantined(place) == [foreign]
    assert tree.quarantined


@pytest.mark.parametrize("path", [LOG, PAGE])
@pytest.mark.parametrize("present", [None, b"", b"1\n", b"1\n2", b"1\n2\n3\n"])
def test_a_file_that_is_behind_or_ahead_is_no_foreign_one(
    place: Layout, tree: WorkTreeWriter, path: str, present: bytes | None
) -> None:
    """A killed process may have got part of the way, or all of it."""
    tree.put(path, None, b"1\n")
    if present is None:
        (place.root / path).unlink()
    else:
        (place.root / path).write_bytes(present)
    tree.put(path, b"1\n2\n", b"1\n2\n3\n")
    assert (place.root / path).read_bytes() == b"1\n2\n3\n"
    assert not quarantined(place)


@pytest.mark.parametrize("path", [LOG, PAGE])
@pytest.mark.parametrize("kind", ["link", "dangling", "pipe", "directory"])
def test_what_is_no_file_is_set_aside_and_never_followed(
    place: Layout, tree: WorkTreeWriter, path: str, kind: str
) -> None:
    target = place.root / "target"
    target.write_bytes(b"1\n")
    full = place.root / path
    full.parent.mkdir(parents=True)
    if kind == "link":
        full.symlink_to(target)
    elif kind == "dangling":
        full.symlink_to("/none/where")
    elif kind == "pipe":
        os.mkfifo(full)
    else:
        (full / "below").mkdir(parents=True)
    assert tree.read(path) is None
    tree.put(path, b"1\n", b"1\n2\n")
    assert stat.S_ISREG(full.lstat().st_mode)
    assert full.read_bytes() == b"1\n2\n"
    assert target.read_bytes() == b"1\n"
    assert len(list(place.quarantine.iterdir())) == 1


@pytest.mark.parametrize("kind", ["link", "file"])
def test_a_directory_on_the_way_is_a_directory_of_ours(
    place: Layout, tmp_path: Path, tree: WorkTreeWriter, kind: str
) -> None:
    """No name leads out of the root (invariant 7)."""
    outside = tmp_path / "outside"
    outside.mkdir()
    spot = place.root / "rooms"
    if kind == "link":
        spot.symlink_to(outside)
    else:
        spot.write_text("x")
    assert tree.read(LOG) is None
    tree.remove(LOG, b"1\n")
    tree.put(LOG, None, b"1\n")
    assert (place.root / LOG).read_bytes() == b"1\n"
    assert not list(outside.iterdir())
    assert len(list(place.quarantine.iterdir())) == 1


def test_a_copy_made_of_hard_links_keeps_its_bytes(place: Layout, tree: WorkTreeWriter) -> None:
    tree.put(LOG, None, b"1\n")
    copy = place.root / "copy"
    os.link(place.root / LOG, copy)
    tree.put(LOG, b"1\n", b"1\n2\n")
    assert copy.read_bytes() == b"1\n"
    assert (place.root / LOG).read_bytes() == b"1\n2\n"


def test_a_program_becomes_a_file_again(place: Layout, tree: WorkTreeWriter) -> None:
    tree.put(PAGE, None, b"page\n")
    (place.root / PAGE).chmod(0o755)
    tree.put(PAGE, b"old\n", b"page\n")
    assert (place.root / PAGE).stat().st_mode & 0o111 == 0


def test_removing_takes_empty_directories_along(place: Layout, tree: WorkTreeWriter) -> None:
    tree.put(PAGE, None, b"page\n")
    tree.put("rooms/design-review/room.json", None, b"{}\n")
    tree.remove(PAGE, b"page\n")
    assert not (place.root / "rooms/design-review/view").exists()
    tree.remove("rooms/design-review/room.json", b"{}\n")
    assert not (place.root / "rooms").exists()
    assert place.root.exists()
    tree.remove(PAGE, b"page\n")
    assert not quarantined(place)


def test_removing_keeps_what_is_foreign(place: Layout, tree: WorkTreeWriter) -> None:
    tree.put(PAGE, None, b"page\n")
    (place.root / PAGE).write_bytes(b"mine\n")
    (place.root / "rooms/notes").write_bytes(b"mine too\n")
    tree.remove(PAGE, b"page\n")
    assert quarantined(place) == [b"mine\n"]
    assert (place.root / "rooms/notes").exists()


@pytest.mark.parametrize("act", ["put", "read", "remove"])
def test_many_directories_need_few_descriptors(place: Layout, act: str) -> None:
    """A ledger of thousands of rooms is brought up to date within what a process may open."""
    paths = [f"rooms/r{n}/messages/o/00/00/00000001.jsonl" for n in range(80)]
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    with WorkTreeWriter(place) as tree:
        for path in paths:
            tree.put(path, None, b"1\n")
    resource.setrlimit(resource.RLIMIT_NOFILE, (256, hard))
    try:
        with WorkTreeWriter(place) as tree:
            for path in paths:
                if act == "put":
                    tree.put(path, b"1\n", b"1\n2\n")
                elif act == "read":
                    assert tree.read(path) == b"1\n"
                else:
                    tree.remove(path, b"1\n")
            tree.sync()
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    assert (place.root / "rooms").exists() == (act != "remove")


def test_files_and_then_their_directories_are_synced(tree: WorkTreeWriter) -> None:
    steps: list[str] = []
    failpoints.observe(steps.append)
    tree.put(LOG, None, b"1\n")
    tree.sync()
    # The journal holds what was folded until all of it is durable, so names may come first.
    assert steps.index("files.sync") < steps.index("files.sync_directory")
    assert steps.count("files.sync_directory") == 7  # the root, and the six below it
    steps.clear()
    tree.put(LOG, b"1\n", b"1\n2\n")
    tree.sync()
    assert "files.sync" in steps
    assert "files.sync_directory" not in steps


def test_a_failed_write_leaves_the_old_file(place: Layout, tree: WorkTreeWriter) -> None:
    tree.put(PAGE, None, b"old\n")

    def full(_: str) -> None:
        raise OSError(28, "full")

    failpoints.arm("files.write", full)
    with pytest.raises(OSError, match="full"):
        tree.put(PAGE, b"old\n", b"new\n")
    assert (place.root / PAGE).read_bytes() == b"old\n"
    assert not list(place.tmp.iterdir())


def test_ids_are_gits(place: Layout) -> None:
    for data in (b"", b"x\n", b"\0" * 1000):
        given = git(place.root, "hash-object", "--stdin", given=data).decode().strip()
        assert blob_id(data) == given
