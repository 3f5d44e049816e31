"""Reading git's objects, wherever git has put them and whoever repacks meanwhile."""

from __future__ import annotations

import errno
import os
import random
import subprocess
import sys
import threading
from typing import TYPE_CHECKING

import pytest

from agent_chatroom_ledger.errors import Busy, Corrupt
from agent_chatroom_ledger.storage import objects
from agent_chatroom_ledger.storage.objects import (
    BLOB,
    COMMIT,
    TREE,
    Objects,
    parse_commit,
    parse_tree,
)
from tests.storage.samples import all_objects, empty_place, git

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from agent_chatroom_ledger.storage.layout import Layout

KINDS = {"commit": COMMIT, "tree": TREE, "blob": BLOB}


@pytest.fixture
def place(tmp_path: Path) -> Layout:
    """A repository that git has made, with two commits."""
    layout = empty_place(tmp_path / "place")
    for number in range(2):
        (layout.root / "dir").mkdir(exist_ok=True)
        (layout.root / "dir" / "file").write_text(f"{number}\n" * 500)
        (layout.root / f"é{number}").write_text("x")
        git(layout.root, "add", "-A")
        git(layout.root, "commit", "-q", "-m", f"Commit {number}\n\nBody")
    return layout


@pytest.fixture
def store(place: Layout) -> Iterator[Objects]:
    found = Objects(place)
    yield found
    found.close()


@pytest.mark.parametrize("where", ["loose", "packed", "alternates"])
def test_every_object_is_read_wherever_it_lies(place: Layout, tmp_path: Path, where: str) -> None:
    layout = place
    if where == "packed":
        git(place.root, "gc", "-q")
    if where == "alternates":
        git(tmp_path, "clone", "-q", "--shared", str(place.root), "clone")
        layout = type(place)(tmp_path / "clone")
    store = Objects(layout)
    for oid, (kind, data) in all_objects(place.root).items():
        assert store.get(oid) == (KINDS[kind], data)
    store.close()


def test_a_commit_says_what_git_says(place: Layout, store: Objects) -> None:
    form = "--format=%H%n%T%n%P%n%an%n%ae%n%at%n%cn%n%ct%n%B"
    said = git(place.root, "show", "-s", form, "HEAD").decode().split("\n", 8)
    info = store.commit(said[0])
    assert [
        info.oid,
        info.tree,
        " ".join(info.parents),
        info.author,
        info.author_email,
        str(info.author_seconds),
        info.committer,
        str(info.committer_seconds),
    ] == said[:8]
    assert info.message.strip() == said[8].strip()


def test_a_tree_says_what_git_says(place: Layout, store: Objects) -> None:
    tree = git(place.root, "rev-parse", "HEAD^{tree}").decode().strip()
    listed = git(place.root, "ls-tree", "-z", tree).decode().split("\0")[:-1]
    found = [(f"{e.mode:06o}", e.oid, e.name, e.is_tree) for e in store.tree(tree)]
    assert found == [
        (
            line.split(" ")[0],
            line.split("\t")[0].split(" ")[2],
            line.split("\t")[1],
            " tree " in line,
        )
        for line in listed
    ]


def test_a_foreign_repack_is_survived(place: Layout, store: Objects) -> None:
    """Packs that were listed vanish; what they held is found where it is now."""
    oids = list(all_objects(place.root))
    git(place.root, "repack", "-adq")
    for oid in oids:
        store.get(oid)
    store.forget()
    store.get(oids[0])
    git(place.root, "-c", "pack.compression=9", "repack", "-adFq")
    for oid in oids:
        store.get(oid)


def test_new_objects_are_found_without_asking_for_them(place: Layout, store: Objects) -> None:
    first = git(place.root, "rev-parse", "HEAD").decode().strip()
    assert store.has(first)
    (place.root / "new").write_text("new")
    git(place.root, "add", "-A")
    git(place.root, "commit", "-q", "-m", "new")
    git(place.root, "gc", "-q")
    assert store.has(git(place.root, "rev-parse", "HEAD").decode().strip())


def test_a_pack_that_came_within_one_tick_of_the_clock_is_found(
    place: Layout, store: Objects
) -> None:
    """Then the time of the directory, by which it is listed again, says nothing."""
    git(place.root, "gc", "-q")
    assert store.has(git(place.root, "rev-parse", "HEAD").decode().strip())
    listed = place.packs.stat()
    (place.root / "new").write_text("new")
    git(place.root, "add", "-A")
    git(place.root, "commit", "-q", "-m", "new")
    git(place.root, "repack", "-dq")
    os.utime(place.packs, ns=(listed.st_atime_ns, listed.st_mtime_ns))
    assert store.has(git(place.root, "rev-parse", "HEAD").decode().strip())


def test_old_objects_are_found_among_many_large_packs(
    place: Layout, store: Objects, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Looking into the index of a large pack leaves nothing of it in memory, and it works again."""
    monkeypatch.setattr(objects, "_LARGE_PACK_OBJECTS", 1)
    for number in range(6):
        (place.root / "dir" / "file").write_text(f"{number}\n" * 900)
        git(place.root, "add", "-A")
        git(place.root, "commit", "-q", "-m", f"{number}")
        git(place.root, "repack", "-dq")
    assert len(list(place.packs.glob("*.pack"))) > 5
    everything = all_objects(place.root)
    oids = sorted(everything) * 3
    random.Random(5).shuffle(oids)
    for oid in oids:
        assert store.get(oid) == (KINDS[everything[oid][0]], everything[oid][1])


@pytest.mark.parametrize("data", [b"100644 a", b"100644 a\0" + b"1" * 19, b"x" * 40, b"1 a\0" * 9])
def test_bytes_that_are_no_tree_are_refused(data: bytes) -> None:
    for damaged in (data, b"100644 a\0" + b"1" * 20 + data):
        with pytest.raises(ValueError, match="no tree"):
            parse_tree(damaged)


def test_what_is_missing_is_named(store: Objects) -> None:
    oid = "12" * 20
    assert not store.has(oid)
    with pytest.raises(Corrupt) as caught:
        store.get(oid)
    assert caught.value.code == "missing_object"
    assert caught.value.fields["object"] == oid


@pytest.mark.parametrize("number", [errno.EMFILE, errno.ENFILE, errno.ENOMEM])
def test_a_system_that_is_short_of_everything_tells_nothing_of_an_object(
    store: Objects, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    def short(*_: object) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(store, "_get", short)
    with pytest.raises(Busy, match=os.strerror(number)):
        store.has("12" * 20)


@pytest.mark.parametrize("where", ["loose", "packed"])
def test_what_is_damaged_is_corrupt_and_nothing_else(
    place: Layout, store: Objects, where: str
) -> None:
    oid = git(place.root, "rev-parse", "HEAD:dir/file").decode().strip()
    path = place.git / "objects" / oid[:2] / oid[2:]
    if where == "packed":
        git(place.root, "gc", "-q")
        (path,) = place.packs.glob("*.pack")
    path.chmod(0o644)
    data = path.read_bytes()
    path.write_bytes(data[: len(data) // 4])
    with pytest.raises(Corrupt):
        store.get(oid)
    store.close()


def test_an_object_of_another_kind_is_corrupt(place: Layout, store: Objects) -> None:
    commit = git(place.root, "rev-parse", "HEAD").decode().strip()
    tree = git(place.root, "rev-parse", "HEAD^{tree}").decode().strip()
    for wrong in (
        lambda: store.blob(commit),
        lambda: store.tree(commit),
        lambda: store.commit(tree),
    ):
        with pytest.raises(Corrupt):
            wrong()


def test_odd_commits_are_read() -> None:
    """Other programs write times, names and bytes of their own kind."""
    data = b"tree 1\nparent 2\nparent 3\nauthor A B <a <b> c> xyz\nencoding latin1\n\nM\xe9\n\nx"
    info = parse_commit("0", data)
    assert (info.tree, info.parents) == ("1", ("2", "3"))
    assert info.author_seconds == 0
    assert info.message == "M\ufffd\n\nx"
    with pytest.raises(Corrupt):
        parse_commit("0", b"\n\nno head")


def test_names_that_are_not_utf8_keep_their_bytes() -> None:
    (entry,) = parse_tree(b"100644 caf\xe9\0" + b"\1" * 20)
    assert entry.name.encode("utf-8", "surrogateescape") == b"caf\xe9"


def test_threads_read_at_once(place: Layout, store: Objects) -> None:
    git(place.root, "gc", "-q")
    wanted = {oid: (KINDS[kind], data) for oid, (kind, data) in all_objects(place.root).items()}
    wrong: list[object] = []

    def read() -> None:
        for _ in range(20):
            for oid, value in wanted.items():
                try:
                    if store.get(oid) != value:
                        wrong.append(oid)
                except Corrupt as error:
                    wrong.append(error)

    threads = [threading.Thread(target=read) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_a_program_that_ends_without_closing_is_quiet(place: Layout) -> None:
    program = (
        "import sys; from pathlib import Path\n"
        "from agent_chatroom_ledger.storage.layout import Layout\n"
        "from agent_chatroom_ledger.storage.objects import Objects\n"
        "store = Objects(Layout(Path(sys.argv[1])))\n"
        "store.commit(sys.argv[2])\n"
    )
    git(place.root, "gc", "-q")
    head = git(place.root, "rev-parse", "HEAD").decode().strip()
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", program, str(place.root), head],
        capture_output=True,
        text=True,
        check=True,
    )
    assert (done.stdout, done.stderr) == ("", "")


@pytest.mark.parametrize(
    "module", ["reading", "source", "journal", "overlay", "roomreader", "index"]
)
def test_reading_the_present_imports_no_git_library(module: str) -> None:
    """A command that reads the present state starts without dulwich, ctypes and the packer."""
    program = (
        f"import sys; import agent_chatroom_ledger.storage.{module}\n"
        "print(sorted(m for m in sys.modules if m.split('.')[0] in ('dulwich', 'ctypes', 'isal')\n"
        "    or m.endswith(('storage.packs', 'storage.writer', 'storage.trees'))))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert done.stdout == "[]\n"
