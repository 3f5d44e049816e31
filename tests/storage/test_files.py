"""Files are replaced whole or not at all, whatever the system does in between."""

from __future__ import annotations

import errno
import os
import stat
import threading
from typing import TYPE_CHECKING

import pytest

from agent_chatroom_ledger.errors import Busy, Corrupt, Forbidden
from agent_chatroom_ledger.storage import failpoints, files
from tests.storage.samples import empty_place

if TYPE_CHECKING:
    from pathlib import Path

    from agent_chatroom_ledger.storage.layout import Layout


@pytest.fixture
def place(tmp_path: Path) -> Layout:
    return empty_place(tmp_path / "place")


@pytest.fixture
def reached() -> list[str]:
    """What was synced and written, in order."""
    found: list[str] = []
    failpoints.observe(found.append)
    return found


@pytest.mark.parametrize(
    ("number", "kind", "code"),
    [
        (errno.ENOSPC, Busy, "disk_full"),
        (errno.EDQUOT, Busy, "disk_full"),
        (errno.EFBIG, Busy, "disk_full"),
        (errno.EACCES, Forbidden, "read_only"),
        (errno.EROFS, Forbidden, "read_only"),
        (errno.EPERM, Forbidden, "read_only"),
        (errno.EIO, Busy, "io_error"),
        (errno.EMFILE, Busy, "io_error"),
    ],
)
def test_what_the_system_refuses_is_said_clearly(number: int, kind: type, code: str) -> None:
    with pytest.raises(kind) as caught, files.clear_errors("writing the journal"):
        raise OSError(number, os.strerror(number), "/some/where")
    assert caught.value.code == code
    assert caught.value.fields["path"] == "/some/where"
    assert "writing the journal" in str(caught.value)


def test_our_own_errors_pass_unchanged() -> None:
    with pytest.raises(Corrupt, match="as it was"), files.clear_errors("reading"):
        raise Corrupt("as it was")


def test_short_writes_are_gone_on_with(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write, pwrite = os.write, os.pwrite
    monkeypatch.setattr(os, "write", lambda d, b: write(d, bytes(b)[:3]))
    monkeypatch.setattr(os, "pwrite", lambda d, b, o: pwrite(d, bytes(b)[:3], o))
    path = tmp_path / "x"
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT)
    files.write_all(descriptor, b"0123456789")
    files.write_all(descriptor, b"abcdefg", 2)
    files.write_all(descriptor, b"", 5)
    os.close(descriptor)
    assert path.read_bytes() == b"01abcdefg9"


@pytest.mark.parametrize("sync", [False, True])
def test_a_file_is_replaced_in_one_step(place: Layout, reached: list[str], *, sync: bool) -> None:
    path = place.root / "x"
    path.write_bytes(b"old")
    with path.open("rb") as before:
        files.replace(place, path, b"new", sync=sync)
        assert before.read() == b"old"
    assert path.read_bytes() == b"new"
    assert not list(place.tmp.iterdir())
    wanted = ["files.write", "files.sync", "files.sync_directory"] if sync else ["files.write"]
    assert reached == wanted


def test_a_link_is_replaced_and_not_followed(place: Layout) -> None:
    target, link = place.root / "target", place.root / "link"
    target.write_bytes(b"theirs")
    link.symlink_to(target)
    files.replace(place, link, b"ours", sync=False)
    assert not link.is_symlink()
    assert target.read_bytes() == b"theirs"


@pytest.mark.parametrize("point", ["files.write", "files.sync"])
def test_nothing_is_left_of_a_write_that_failed(place: Layout, point: str) -> None:
    path = place.root / "x"
    path.write_bytes(b"old")

    def full(_: str) -> None:
        raise OSError(errno.ENOSPC, "full")

    failpoints.arm(point, full)
    with pytest.raises(OSError, match="full"):
        files.replace(place, path, b"new", sync=True)
    assert path.read_bytes() == b"old"
    assert not list(place.tmp.iterdir())


def test_nothing_is_left_when_the_place_cannot_be_taken(place: Layout) -> None:
    (place.root / "x" / "y").mkdir(parents=True)
    with pytest.raises(OSError, match="directory"):
        files.replace(place, place.root / "x", b"new", sync=False)
    assert not list(place.tmp.iterdir())


def test_a_mode_is_given_at_birth(place: Layout) -> None:
    path = files.write_temporary(place, "pack", b"x", mode=0o444)
    assert stat.S_IMODE(os.lstat(path).st_mode) == 0o444


def test_temporary_names_never_repeat(place: Layout) -> None:
    found: list[str] = []
    threads = [
        threading.Thread(
            target=lambda: found.extend(files.temporary_name(place, "x") for _ in range(500))
        )
        for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(found)) == 2000


def test_only_what_killed_processes_left_is_swept(place: Layout) -> None:
    old, new, directory = place.tmp / "old", place.tmp / "new", place.tmp / "directory"
    old.write_text("x")
    new.write_text("x")
    directory.mkdir()
    for path in (old, directory):
        os.utime(path, (1, 1))
    (place.tmp / "link").symlink_to(new)
    files.sweep_temporary(place)
    assert sorted(path.name for path in place.tmp.iterdir()) == ["directory", "link", "new"]


@pytest.mark.parametrize("size", [0, 1, 1 << 20, (1 << 20) + 1])
def test_a_whole_file_is_read(tmp_path: Path, size: int) -> None:
    path = tmp_path / "x"
    data = os.urandom(size)
    path.write_bytes(data)
    assert files.read_bytes(path) == data
    assert files.read_bytes(tmp_path / "none") is None


def test_files_that_tell_no_size_are_read_too() -> None:
    assert (files.read_bytes("/proc/self/status") or b"").startswith(b"Name:")


def test_a_path_is_synced_if_it_is_there(tmp_path: Path, reached: list[str]) -> None:
    path = tmp_path / "x"
    path.write_text("x")
    assert files.sync_path(path)
    assert not files.sync_path(tmp_path / "none")
    assert reached == ["files.sync"]


def test_a_tree_is_synced_from_the_leaves(tmp_path: Path, reached: list[str]) -> None:
    (tmp_path / "a" / "b").mkdir(parents=True)
    (tmp_path / "a" / "b" / "x").write_text("x")
    (tmp_path / "a" / "y").write_text("y")
    files.sync_tree(tmp_path)
    assert reached == [
        "files.sync",
        "files.sync_directory",
        "files.sync",
        "files.sync_directory",
        "files.sync_directory",
    ]


def test_quarantine_keeps_everything_under_a_name_of_its_own(
    place: Layout, reached: list[str]
) -> None:
    kept = [files.quarantine(place, "torn-1-99", bytes([n])) for n in range(3)]
    assert [path.read_bytes() for path in kept] == [b"\0", b"\1", b"\2"]
    assert len(set(kept)) == 3
    assert "files.sync" in reached
    assert reached[-1] == "files.sync_directory"


@pytest.mark.parametrize(
    "name",
    ["../../etc/passwd", "a/b\0c", "x" * 5000, "会议室/" * 100, "\U0001f600" * 200, "a\udcff", ""],
)
def test_any_name_may_go_to_quarantine(place: Layout, name: str) -> None:
    """A path in any script, at its full length: a file name has at most 255 bytes."""
    path = files.quarantine(place, name, b"kept")
    assert path.parent == place.quarantine
    assert path.read_bytes() == b"kept"


def test_the_boot_is_the_same_within_one(tmp_path: Path) -> None:
    del tmp_path
    assert files.boot_id() == files.boot_id()
    assert " " not in files.boot_id()
    assert files.boot_id()
