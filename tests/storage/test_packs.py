"""Packs of growing data: whatever the history, every object comes back byte for byte."""

from __future__ import annotations

import errno
import os
import random
import re
import stat
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from agent_chatroom_ledger.storage import failpoints, packs
from agent_chatroom_ledger.storage.commits import add_commit, commit_bytes
from agent_chatroom_ledger.storage.objects import BLOB, NO_OBJECT, TREE, Objects
from agent_chatroom_ledger.storage.packmerge import apply_delta
from agent_chatroom_ledger.storage.packs import DEPTH_MAX, PackBuilder
from agent_chatroom_ledger.storage.trees import TreeEditor, hash_object
from tests.storage.samples import all_objects, empty_place, git, put_pack

if TYPE_CHECKING:
    from agent_chatroom_ledger.storage.layout import Layout

PIECES = st.sampled_from([b"", b"x", b"line\n", b"a longer line of text\n" * 4, b"z" * 70_000])
CHANGES = st.lists(
    st.tuples(
        st.sampled_from(["grow", "replace", "step", "revert"]),
        st.sampled_from(["a/log", "a/page", "b/log"]),
        PIECES,
        st.integers(0, 50),
    ),
    min_size=1,
    max_size=25,
)


def changed(kind: str, versions: list[bytes], piece: bytes, number: int) -> bytes:
    """Return the next version of a file."""
    newest = versions[-1]
    if kind == "grow":
        return newest + piece
    if kind == "revert":
        return versions[number % len(versions)]
    if kind == "step":
        spot = number * len(newest) // 50
        return newest[:spot] + piece + newest[spot + number :]
    return piece


def judged(layout: Layout, builder: PackBuilder, expected: dict[str, bytes]) -> None:
    """Let git and dulwich read a pack, and compare with what went into it."""
    count = len(builder)
    name = put_pack(layout, builder)
    path = str(layout.packs / f"pack-{name}.pack")
    assert git(layout.root, "index-pack", "--strict", path).decode().strip().endswith(name)
    seen = {oid: data for oid, (_, data) in all_objects(layout.root).items()}
    assert seen == expected
    assert len(seen) == count
    objects = Objects(layout)
    assert {oid: objects.get(oid)[1] for oid in expected} == expected
    objects.close()
    chains = re.findall(r"^chain length = (\d+):", packed(layout, name), re.MULTILINE)
    assert all(int(length) <= DEPTH_MAX for length in chains)


def packed(layout: Layout, name: str) -> str:
    return git(layout.root, "verify-pack", "-v", str(layout.packs / f"pack-{name}.idx")).decode()


@given(CHANGES)
@example([("replace", "a/log", b"", 0), ("grow", "a/log", b"line\n", 0)])
@example([("grow", "a/log", b"x", 0), ("replace", "a/log", b"", 0), ("grow", "a/log", b"x", 0)])
@settings(max_examples=40, deadline=None)
def test_any_history_comes_back_byte_for_byte(
    changes: list[tuple[str, str, bytes, int]],
) -> None:
    """Blobs that grow, step and go back, and the trees and commits above them."""
    with tempfile.TemporaryDirectory() as folder:
        layout = empty_place(Path(folder) / "place")
        objects = Objects(layout)
        editor, builder = TreeEditor(objects, NO_OBJECT), PackBuilder()
        history: dict[str, list[bytes]] = {}
        expected: dict[str, bytes] = {}
        tip: tuple[str, ...] = ()
        for kind, path, piece, number in changes:
            versions = history.setdefault(path, [b"first\n"])
            versions.append(changed(kind, versions, piece, number))
            editor.write(path, versions[-1], builder)
            expected[hash_object(b"blob", versions[-1]).hex()] = versions[-1]
            data = commit_bytes(
                editor.finish(builder), tip, f"{kind}\n", author="A", said=1, origin="o", at=1
            )
            tip = (add_commit(builder, data),)
            expected[tip[0]] = data
            for node in (editor._root, *editor._root.children.values()):
                expected[hash_object(b"tree", node.data).hex()] = bytes(node.data)
        judged(layout, builder, expected)
        git(layout.root, "update-ref", "refs/heads/main", tip[0])
        git(layout.root, "fsck", "--full", "--strict")


@given(st.lists(st.tuples(st.sampled_from([BLOB, TREE]), PIECES, st.integers(0, 3)), max_size=20))
@settings(max_examples=25, deadline=None)
def test_versions_of_a_history_that_is_laid_out_again_come_back(
    versions: list[tuple[int, bytes, int]],
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        layout, builder = empty_place(Path(folder) / "place"), PackBuilder()
        expected: dict[str, bytes] = {}
        before = b""
        for kind, piece, cut in versions:
            data = before[: len(before) * cut // 3] + piece
            if kind == TREE:
                data = b"".join(b"100644 %06d\0" % i + os.urandom(20) for i in range(len(data) % 9))
            else:
                before = data
            name = {BLOB: b"blob", TREE: b"tree"}[kind]
            oid = hash_object(name, data)
            builder.version("path", kind, oid, data)
            expected[oid.hex()] = data
        name = put_pack(layout, builder)
        git(layout.root, "index-pack", str(layout.packs / f"pack-{name}.pack"))
        assert {oid: data for oid, (_, data) in all_objects(layout.root).items()} == expected


def test_a_growing_file_is_stored_once_and_each_older_version_in_a_few_bytes(
    tmp_path: Path,
) -> None:
    """Every older version is one copy instruction against the newest, however many there are."""
    layout, builder = empty_place(tmp_path / "place"), PackBuilder()
    data = b""
    for number in range(400):
        data += b"%d %s\n" % (number, random.Random(number).randbytes(20).hex().encode())
        builder.blob("log", hash_object(b"blob", data), data)
    lines = packed(layout, put_pack(layout, builder)).splitlines()
    deltas = [line.split() for line in lines if " blob " in line and len(line.split()) == 7]
    assert len(deltas) == 399
    assert {int(delta[5]) for delta in deltas} == {1}
    assert max(int(delta[3]) for delta in deltas) <= 30


@pytest.mark.parametrize("kind", [BLOB, TREE])
def test_long_chains_begin_anew_after_fifty_steps(tmp_path: Path, kind: int) -> None:
    layout, builder = empty_place(tmp_path / "place"), PackBuilder()
    expected: dict[str, bytes] = {}
    entries = {f"{i:04d}": b"\1" * 20 for i in range(40)}
    for number in range(260):
        entries[f"{number % 40:04d}"] = number.to_bytes(20, "big")
        data = b"".join(b"100644 %s\0" % n.encode() + oid for n, oid in sorted(entries.items()))
        oid = hash_object(b"tree" if kind == TREE else b"blob", data)
        builder.version("path", kind, oid, data)
        expected[oid.hex()] = data
    name = put_pack(layout, builder)
    chains = dict(re.findall(r"^chain length = (\d+): (\d+)", packed(layout, name), re.MULTILINE))
    assert max(map(int, chains)) <= DEPTH_MAX
    assert sum(map(int, chains.values())) >= 250  # nearly all are deltas
    assert {oid: data for oid, (_, data) in all_objects(layout.root).items()} == expected


def test_trees_of_a_long_batch_come_back(tmp_path: Path) -> None:
    """The editor's own deltas, over 130 versions of one directory in one pack."""
    layout = empty_place(tmp_path / "place")
    objects = Objects(layout)
    editor, builder = TreeEditor(objects, NO_OBJECT), PackBuilder()
    expected: dict[str, bytes] = {}
    for number in range(130):
        editor.write(f"rooms/r/{number % 30:02d}.jsonl", b"%d" % number, builder)
        if number == 70:
            editor.remove("rooms/r/03.jsonl")
        editor.finish(builder)
        for node in (editor._root, editor._root.children[b"rooms"]):
            expected[hash_object(b"tree", node.data).hex()] = bytes(node.data)
        room = editor._root.children[b"rooms"].children[b"r"]
        expected[hash_object(b"tree", room.data).hex()] = bytes(room.data)
    expected |= {hash_object(b"blob", b"%d" % n).hex(): b"%d" % n for n in range(130)}
    judged(layout, builder, expected)
    objects.close()


@given(st.binary(max_size=300), st.binary(max_size=300), st.binary(max_size=300))
@settings(max_examples=200, deadline=None)
def test_a_delta_builds_its_target(head: bytes, middle: bytes, tail: bytes) -> None:
    from dulwich.pack import apply_delta as dulwichs

    base, target = head + tail, head + middle + tail
    for old, new in ((base, target), (target, base)):
        same, end = packs.compare(old, new)
        assert new[:same] == old[:same]
        assert same + end <= min(len(old), len(new))
        ops = packs.delta(len(old), new, same, end)
        assert apply_delta(old, ops) == new
        assert b"".join(dulwichs(old, ops)) == new


@pytest.mark.parametrize("size", [1, 127, 0xFFFF, 0x10000, 0x10001, 0xFFFFFF, 0x1000000, 0x1234567])
def test_copies_of_any_length_are_encoded(size: int) -> None:
    base = bytes(range(256)) * (size // 256 + 2)
    ops = packs.delta(len(base), base[: size + 1], size + 1, 0)
    assert apply_delta(base, ops) == base[: size + 1]
    ops = packs.delta(len(base), base[-size:], 0, size)
    assert apply_delta(base, ops) == base[-size:]


def test_the_index_is_the_one_that_git_makes(tmp_path: Path) -> None:
    layout, builder = empty_place(tmp_path / "place"), PackBuilder()
    for number in range(300):
        data = b"%d" % number * 30
        builder.blob(f"f{number}", hash_object(b"blob", data), data)
    name = put_pack(layout, builder)
    ours = (layout.packs / f"pack-{name}.idx").read_bytes()
    made = tmp_path / "made.idx"
    git(tmp_path, "index-pack", "-o", str(made), str(layout.packs / f"pack-{name}.pack"))
    assert made.read_bytes() == ours


def one_pack(number: int = 1) -> tuple[str, bytes, bytes]:
    builder = PackBuilder()
    data = b"%d" % number
    builder.blob("f", hash_object(b"blob", data), data)
    return builder.finish()


@pytest.mark.parametrize("sync", [False, True])
def test_a_stored_pack_is_kept_until_it_is_released(tmp_path: Path, *, sync: bool) -> None:
    layout = empty_place(tmp_path / "place")
    name, pack, index = one_pack()
    assert packs.store(layout, name, pack, index, sync=sync)
    keep = layout.packs / f"pack-{name}.keep"
    assert keep.samefile(layout.own_mark)
    for suffix in ("pack", "idx"):
        mode = (layout.packs / f"pack-{name}.{suffix}").stat().st_mode
        assert stat.S_IMODE(mode) == 0o444
    assert not list(layout.tmp.iterdir())
    # A pack that nothing refers to: git's own cleaning spares it while it is marked.
    git(layout.root, "gc", "-q", "--prune=now")
    assert (layout.packs / f"pack-{name}.pack").exists()
    packs.release(layout, (name,))
    packs.release(layout, (name,))
    assert not keep.exists()


def test_storing_a_pack_again_says_so_and_protects_it(tmp_path: Path) -> None:
    layout = empty_place(tmp_path / "place")
    name, pack, index = one_pack()
    assert packs.store(layout, name, pack, index)
    packs.release(layout, (name,))
    assert not packs.store(layout, name, pack, index)
    assert (layout.packs / f"pack-{name}.keep").exists()


@pytest.mark.parametrize("suffix", ["pack", "idx"])
@pytest.mark.parametrize("left", [0, 20])
def test_what_a_power_cut_has_left_of_a_pack_is_stored_anew_where_it_must_be_durable(
    tmp_path: Path, suffix: str, left: int
) -> None:
    layout = empty_place(tmp_path / "place")
    name, pack, index = one_pack()
    packs.store(layout, name, pack, index)
    packs.release(layout, (name,))
    path = layout.packs / f"pack-{name}.{suffix}"
    path.chmod(0o644)
    path.write_bytes(path.read_bytes()[:left])
    assert packs.store(layout, name, pack, index, sync=True)
    assert (layout.packs / f"pack-{name}.pack").read_bytes() == pack
    assert (layout.packs / f"pack-{name}.idx").read_bytes() == index
    assert not list(layout.tmp.iterdir())


def test_a_pack_that_is_there_is_synced_where_it_must_be_durable(tmp_path: Path) -> None:
    """Whoever stored it may not have had to."""
    layout = empty_place(tmp_path / "place")
    name, pack, index = one_pack()
    packs.store(layout, name, pack, index)
    synced: list[str] = []
    failpoints.arm("files.sync", synced.append)
    failpoints.arm("files.sync_directory", synced.append)
    assert not packs.store(layout, name, pack, index, sync=True)
    assert synced == ["files.sync", "files.sync", "files.sync_directory"]


def test_a_mark_of_somebody_else_is_never_taken_away(tmp_path: Path) -> None:
    layout = empty_place(tmp_path / "place")
    name, pack, index = one_pack()
    foreign = layout.packs / f"pack-{name}.keep"
    foreign.write_text("mine")
    packs.store(layout, name, pack, index)
    packs.release(layout, (name,))
    packs.release_forgotten(layout)
    assert foreign.read_text() == "mine"


def test_a_discarded_pack_leaves_nothing(tmp_path: Path) -> None:
    layout = empty_place(tmp_path / "place")
    name, pack, index = one_pack()
    packs.store(layout, name, pack, index)
    packs.discard(layout, name)
    packs.discard(layout, name)
    assert not list(layout.packs.iterdir())


def test_marks_that_killed_processes_left_are_taken_away(tmp_path: Path) -> None:
    layout = empty_place(tmp_path / "place")
    names = [packs_name for packs_name, pack, index in map(one_pack, range(3))]
    for name in names:
        packs.mark(layout, name)
    packs.release_forgotten(layout)
    assert not list(layout.packs.iterdir())


def test_a_missing_pack_directory_is_made(tmp_path: Path) -> None:
    layout = empty_place(tmp_path / "place")
    layout.packs.rmdir()
    name, pack, index = one_pack()
    assert packs.store(layout, name, pack, index)
    assert (layout.packs / f"pack-{name}.idx").exists()


def test_a_full_disk_before_the_index_leaves_no_pack_file_behind(tmp_path: Path) -> None:
    layout = empty_place(tmp_path / "place")

    def full(_: str) -> None:
        raise OSError(errno.ENOSPC, "no space")

    failpoints.arm("packs.pack_written", full)
    with pytest.raises(OSError, match="no space"):
        packs.store(layout, *one_pack())
    assert not list(layout.packs.iterdir())
    assert not list(layout.tmp.iterdir())
