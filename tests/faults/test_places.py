"""Links planted in the tree, places that cannot be written, and repositories of other kinds."""

from __future__ import annotations

import os
import shutil
import subprocess
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest

from agent_chatroom_ledger import Ledger
from agent_chatroom_ledger.errors import Corrupt, Forbidden, LedgerError, NotFound
from agent_chatroom_ledger.storage import failpoints
from tests.faults import children
from tests.faults.soundness import Acknowledged, assert_sound, git

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

SECRET = b"nobody may change this, nor read it\n"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A closed ledger with one room and its view."""
    with Ledger.open(tmp_path / "ledger", create=True) as ledger:
        room = ledger.create_room("Design review", members=["Reviewer"])
        for number in range(3):
            room.post("Analyst", f"message {number}")
        room.compile()
        ledger.consumer("Reviewer").acknowledge(room, through=2)
    return tmp_path / "ledger"


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    """A directory that is none of the ledger's business."""
    place = tmp_path / "outside"
    place.mkdir()
    for name in ("00000001.jsonl", "room.json", "policy.json", "11-30.0.md", "secret"):
        (place / name).write_bytes(SECRET)
    return place


def planted(root: Path, outside: Path, name: str) -> None:
    """Put a link in the place of something of ours."""
    room = root / "rooms" / "design-review"
    place = {
        "segment": next((room / "messages").rglob("*.jsonl")),
        "room.json": room / "room.json",
        "view page": next((room / "view").rglob("*.md")),
        "log directory": room / "messages",
        "view directory": room / "view",
        "room directory": room,
        "rooms": root / "rooms",
    }[name]
    target = outside
    if place.is_file():
        target = outside / "secret"
        place.unlink()
    else:
        shutil.rmtree(place)
    place.symlink_to(target)


@pytest.mark.parametrize(
    "name",
    [
        "segment",
        "room.json",
        "view page",
        "log directory",
        "view directory",
        "room directory",
        "rooms",
    ],
)
def test_a_planted_link_is_never_followed(root: Path, outside: Path, name: str) -> None:
    """Nothing outside is read or written (7), and the repair puts our files back."""
    planted(root, outside, name)
    told = []
    with Ledger.open(root) as ledger:
        try:
            room = ledger.room("rooms/design-review")
            told.append(Acknowledged.of(room.path, room.post("Analyst", "beside the link")))
            assert SECRET.decode() not in "".join(m.body for m in room.messages())
            room.compile()
        except (NotFound, Corrupt):
            pass  # readers miss what the link hides; what counts is that they say so
        assert ledger.verify(repair=True).ok
    for path in outside.iterdir():
        assert path.read_bytes() == SECRET
    assert len(list(outside.iterdir())) == 5
    assert not [path for path in root.rglob("*") if path.is_symlink() and ".git" not in path.parts]
    rooms = assert_sound(root, told)
    assert len(rooms["rooms/design-review"]) == 3 + len(told)


@pytest.mark.parametrize("name", ["quarantine", "tmp", "cursors", "journal", "locks"])
def test_a_private_directory_that_is_a_link_is_the_users_choice(
    root: Path, tmp_path: Path, name: str
) -> None:
    """Inside .git a link is not planted by a commit: the directory may lie on another disk."""
    private = root / ".git" / "ledger" / name
    shutil.move(private, tmp_path / name)
    private.symlink_to(tmp_path / name)
    with Ledger.open(root) as ledger:
        room = ledger.room("design-review")
        told = [Acknowledged.of(room.path, room.post("Analyst", "through the link"))]
        ledger.consumer("Reviewer").acknowledge(room)
    assert_sound(root, told)


@contextmanager
def read_only(root: Path) -> Iterator[None]:
    """Let nobody write below a directory, root included."""
    if os.geteuid() == 0:
        bind = subprocess.run(
            ["mount", "--bind", str(root), str(root)], capture_output=True, check=False
        )
        if bind.returncode:
            pytest.skip("root writes anywhere, and cannot mount here")
        try:
            subprocess.run(["mount", "-o", "remount,ro,bind", str(root)], check=True)
            yield
        finally:
            subprocess.run(["umount", str(root)], check=True)
    else:
        paths = [root, *root.rglob("*")]
        modes = [path.stat().st_mode for path in paths]
        try:
            for path in paths:
                path.chmod(path.stat().st_mode & ~0o222)
            yield
        finally:
            for path, mode in zip(paths, modes, strict=True):
                path.chmod(mode)


def test_a_read_only_directory_is_read_with_a_warning(root: Path) -> None:
    """Rooms, messages, lens, unread, history and verify work; writing says why it does not."""
    with read_only(root):
        with pytest.warns(UserWarning, match="reading only"):
            ledger = Ledger.open(root)
        with ledger:
            room = ledger.room("Design review")
            assert [m.n for m in room.messages()] == [1, 2, 3]
            assert len(room.lens().items) == 3
            reader = ledger.consumer("Reviewer")
            assert [item.count for item in reader.unread()] == [1]
            assert ledger.log(room)
            assert len(room.messages(at="main")) == 3
            assert ledger.verify().ok
            with pytest.raises(Forbidden):
                room.post("Analyst", "not here")
            with pytest.raises(Forbidden):
                room.compile()
            with pytest.raises(LedgerError):
                reader.acknowledge(room)
    assert_sound(root, [])


def test_a_read_only_directory_with_pending_frames_shows_them(root: Path) -> None:
    """What a killed process had made durable is read from the journal, though not committed."""

    def post_and_die() -> None:
        ledger = Ledger.open(root, commit="group")
        failpoints.arm("writer.synced", lambda _: children.die())
        ledger.room("design-review").post("Analyst", "durable")

    assert children.run(post_and_die) < 0
    with (
        read_only(root),
        pytest.warns(UserWarning, match="reading only"),
        Ledger.open(root) as ledger,
    ):
        assert [m.body for m in ledger.room("design-review").messages(last=1)] == ["durable"]
    assert len(assert_sound(root, [])["rooms/design-review"]) == 4


@pytest.mark.parametrize("kind", ["--shared", "--reference", "--no-local", "--depth=1"])
def test_a_clone_is_a_ledger_with_an_origin_of_its_own(
    root: Path, tmp_path: Path, kind: str
) -> None:
    """Objects in alternates are read, and never needed in a pack of ours."""
    place = tmp_path / "clone"
    where = [f"file://{root}"] if kind in {"--no-local", "--depth=1"} else [str(root)]
    extra = [kind, str(root)] if kind == "--reference" else [kind]
    git(tmp_path, "clone", "-q", *extra, *where, str(place))
    with Ledger.open(place) as ledger, Ledger.open(root, read_only=True) as first:
        room = ledger.room("design-review")
        assert ledger.origin != first.origin
        assert [m.body for m in room.messages()] == [
            m.body for m in first.room("design-review").messages()
        ]
        told = [Acknowledged.of(room.path, room.post("Cloner", f"{n}")) for n in range(3)]
    assert [one.n for one in told] == [1, 2, 3]
    if kind != "--depth=1":  # the commits that made the first messages are not there to be read
        assert len(assert_sound(place, told)["rooms/design-review"]) == 6


@pytest.mark.parametrize(
    ("setting", "value"),
    [
        ("extensions.objectFormat", "sha256"),
        ("extensions.refStorage", "reftable"),
        ("extensions.partialClone", "origin"),
    ],
)
def test_a_repository_of_another_kind_is_refused(root: Path, setting: str, value: str) -> None:
    """With a clear error, before anything is written."""
    git(root, "config", "core.repositoryFormatVersion", "1")
    git(root, "config", setting, value)
    with pytest.raises(LedgerError) as refused:
        Ledger.open(root)
    assert refused.value.code == "unsupported_repository"
    for text in (f"\t{setting.split('.')[1]} = {value}\n", "[extensions]\n"):
        config = (root / ".git" / "config").read_text(encoding="utf-8")
        (root / ".git" / "config").write_text(config.replace(text, ""), encoding="utf-8")
    git_config = (root / ".git" / "config").read_text(encoding="utf-8")
    (root / ".git" / "config").write_text(
        git_config.replace("repositoryFormatVersion = 1", "repositoryformatversion = 0"),
        encoding="utf-8",
    )
