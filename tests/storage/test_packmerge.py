"""Merging packs: the same objects before and after, whoever else holds on to some of them."""

from __future__ import annotations

import errno
import random
from typing import TYPE_CHECKING, Protocol

import pytest

from agent_chatroom_ledger.errors import Corrupt
from agent_chatroom_ledger.storage import failpoints, packlist, packmerge, packs
from agent_chatroom_ledger.storage.commits import add_commit, commit_bytes
from agent_chatroom_ledger.storage.objects import NO_OBJECT, Objects
from agent_chatroom_ledger.storage.packmerge import merge_all, merge_small_packs
from agent_chatroom_ledger.storage.packs import PackBuilder
from agent_chatroom_ledger.storage.trees import TreeEditor
from tests.storage.samples import all_objects, empty_place, git

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from agent_chatroom_ledger.storage.layout import Layout


class Store(Protocol):
    """Store one pack of `commits` commits, each growing a log and stepping a page."""

    def __call__(self, commits: int = 1, **options: object) -> str: ...


@pytest.fixture
def place(tmp_path: Path) -> Layout:
    return empty_place(tmp_path / "place")


@pytest.fixture
def store(place: Layout) -> Iterator[Store]:
    """A growing history, main on its tip; every pack is listed as one of ours."""
    objects = Objects(place)
    editor = TreeEditor(objects, NO_OBJECT)
    state = {"tip": "", "number": 0, "log": b""}
    randomness = random.Random(1)

    def one(commits: int = 1, **options: object) -> str:
        pack = PackBuilder()
        for _ in range(commits):
            number = state["number"] = int(state["number"]) + 1
            body = randomness.randbytes(int(str(options.get("size", 20)))).hex().encode()
            state["log"] = bytes(state["log"]) + b"%d %s\n" % (number, body)
            editor.write(f"rooms/{options.get('room', 'r')}/log", bytes(state["log"]), pack)
            page = b"same\n" * 30 + b"%d\n" % (number % int(str(options.get("period", 1000))))
            editor.write(f"rooms/r/view/{number % 3}.md", page, pack)
            parents = (str(state["tip"]),) if state["tip"] else ()
            data = commit_bytes(
                editor.finish(pack), parents, "m\n", author="A", said=1, origin="o", at=number
            )
            state["tip"] = add_commit(pack, data)
        name, data, index = pack.finish()
        packlist.note(place, name, commits)
        if options.get("synced"):
            packlist.note_synced(place)
        packs.store(place, name, data, index)
        packs.release(place, (name,))
        objects.forget()
        (place.git / "refs/heads/main").write_text(f"{state['tip']}\n")
        return name

    yield one
    objects.close()


def names(place: Layout) -> list[str]:
    return sorted(path.stem.removeprefix("pack-") for path in place.packs.glob("*.pack"))


def merged(place: Layout) -> list[str]:
    """Merge, and check that no object was lost or changed and that git is content."""
    before = all_objects(place.root)
    merge_small_packs(place)
    assert all_objects(place.root) == before
    git(place.root, "fsck", "--full", "--strict")
    assert not list(place.packs.glob("*.keep"))
    assert not list(place.tmp.iterdir())
    assert sorted(pack.name for pack in packlist.read(place)) == names(place)
    return names(place)


def test_single_calls_are_joined_end_to_end(place: Layout, store: Store) -> None:
    for _ in range(packmerge.SINGLES_MAX - 1):
        store()
    assert len(merged(place)) == packmerge.SINGLES_MAX - 1
    store(3)
    (name,) = merged(place)
    git(place.root, "index-pack", "--strict", str(place.packs / f"pack-{name}.pack"))
    (own,) = packlist.read(place)
    assert own.commits == packmerge.SINGLES_MAX + 2
    assert not own.synced


def test_grown_packs_are_laid_out_anew_and_become_smaller(place: Layout, store: Store) -> None:
    for _ in range(packmerge.GROWN_MAX):
        store(16)
    sizes = sum(path.stat().st_size for path in place.packs.glob("*.pack"))
    (name,) = merged(place)
    path = place.packs / f"pack-{name}.pack"
    assert path.stat().st_size < sizes * 4 / 5
    git(place.root, "index-pack", "--strict", str(path))
    listed = git(place.root, "verify-pack", "-v", str(path)).decode()
    assert "chain length = 1:" in listed


def test_every_stage_of_a_long_life_keeps_every_object(
    place: Layout, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Singles, grown, joined and joined again, as thousands of commits would go."""
    for name, value in (("SINGLES_MAX", 3), ("GROWN_MAX", 3), ("JOINED_MAX", 2)):
        monkeypatch.setattr(packmerge, name, value)
    monkeypatch.setattr(packmerge, "_GROWN_COMMITS", 3)
    monkeypatch.setattr(packmerge, "_PACKED_COMMITS", 9)
    counts = []
    for number in range(40):
        store(synced=number % 7 == 0, period=5)
        counts.append(len(merged(place)))
    assert max(counts) <= 8


@pytest.mark.parametrize("level", ["joined", "laid out anew"])
def test_an_object_in_two_packs_is_no_matter(place: Layout, store: Store, level: str) -> None:
    """Content that went back to what it was stands in the pack of every call that wrote it."""
    many, commits = (packmerge.SINGLES_MAX, 1) if level == "joined" else (packmerge.GROWN_MAX, 16)
    for _ in range(many):
        store(commits, period=2)
    objects = len(all_objects(place.root))
    (name,) = merged(place)
    count = packmerge.object_count(str(place.packs / f"pack-{name}.idx"))
    assert (count > objects) == (level == "joined")
    git(place.root, "index-pack", str(place.packs / f"pack-{name}.pack"))
    git(place.root, "repack", "-adq")
    git(place.root, "fsck", "--full", "--strict")


def test_what_somebody_protects_is_left_alone(place: Layout, store: Store) -> None:
    kept, listed = store(), store()
    (place.packs / f"pack-{kept}.keep").write_text("mine")
    git(place.root, "multi-pack-index", "write", "--stdin-packs", given=f"pack-{listed}.idx\n")
    for _ in range(packmerge.SINGLES_MAX):
        store()
    before = all_objects(place.root)
    merge_small_packs(place)
    assert all_objects(place.root) == before
    assert {kept, listed} <= set(names(place))
    assert len(names(place)) == 3
    assert (place.packs / f"pack-{kept}.keep").read_text() == "mine"
    git(place.root, "multi-pack-index", "verify")
    git(place.root, "fsck", "--full", "--strict")


@pytest.mark.parametrize("merge", [merge_small_packs, merge_all])
def test_what_a_chain_of_multi_pack_indexes_lists_is_left_alone(
    place: Layout, store: Store, merge: Callable[[Layout], object]
) -> None:
    """As git 2.47 writes them with `--incremental`; only the names matter to us."""
    listed = store()
    chain = place.packs / "multi-pack-index.d"
    chain.mkdir()
    (chain / "multi-pack-index-0.midx").write_bytes(b"MIDX\0pack-%s.idx\0" % listed.encode())
    for _ in range(packmerge.SINGLES_MAX):
        store()
    merge(place)
    assert listed in names(place)
    assert len(names(place)) == 2


def test_what_was_durable_stays_durable_and_what_was_not_can_wait(
    place: Layout, store: Store
) -> None:
    synced: list[str] = []
    failpoints.arm("files.sync", synced.append)
    for _ in range(packmerge.SINGLES_MAX):
        store()
    merged(place)
    assert not synced
    (own,) = packlist.read(place)
    assert not own.synced
    store(synced=True)
    for _ in range(packmerge.SINGLES_MAX):
        store()
    merged(place)
    assert synced
    assert {pack.commits: pack.synced for pack in packlist.read(place)} == {32: True, 33: True}


def test_a_pack_that_a_foreign_repack_took_away_is_forgotten(place: Layout, store: Store) -> None:
    for _ in range(5):
        store()
    git(place.root, "repack", "-adq")
    merge_small_packs(place)
    assert packlist.read(place) == []
    git(place.root, "fsck", "--full", "--strict")


def test_half_of_a_pack_that_a_killed_process_left_is_swept(place: Layout, store: Store) -> None:
    name = store()
    (place.packs / f"pack-{name}.idx").rename(place.root / "kept.idx")
    merge_small_packs(place)
    assert names(place) == []


@pytest.mark.parametrize("commits", [1, 16])
def test_packs_too_large_for_one_merge_are_merged_in_part(
    place: Layout, store: Store, monkeypatch: pytest.MonkeyPatch, commits: int
) -> None:
    """The sum of a full class may be beyond what one merge may hold: then a part of it goes."""
    many = packmerge.SINGLES_MAX if commits == 1 else packmerge.GROWN_MAX
    for _ in range(many):
        store(commits)
    size = sum(path.stat().st_size for path in place.packs.glob("*.pack"))
    monkeypatch.setattr(packmerge, "_JOINED_BYTES_MAX", size // 2)
    assert 1 < len(merged(place)) < many
    largest = max(path.stat().st_size for path in place.packs.glob("*.pack"))
    assert largest <= size // 2


def test_packs_of_which_no_two_fit_one_merge_stay(
    place: Layout, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(packmerge, "_JOINED_BYTES_MAX", 100)
    for _ in range(packmerge.SINGLES_MAX + 3):
        store()
    assert len(merged(place)) == packmerge.SINGLES_MAX + 3


def test_a_damaged_pack_stops_the_merge_and_loses_nothing(place: Layout, store: Store) -> None:
    listed = [store() for _ in range(packmerge.SINGLES_MAX)]
    path = place.packs / f"pack-{listed[7]}.pack"
    data = bytearray(path.read_bytes())
    data[20] ^= 1
    path.chmod(0o644)
    path.write_bytes(data)
    with pytest.raises(Corrupt) as caught:
        merge_small_packs(place)
    assert caught.value.code == "bad_pack"
    assert names(place) == sorted(listed)
    assert not list(place.tmp.iterdir())


def test_a_full_disk_stops_the_merge_and_the_next_one_does_it(place: Layout, store: Store) -> None:
    listed = [store() for _ in range(packmerge.SINGLES_MAX)]

    def full(_: str) -> None:
        raise OSError(errno.ENOSPC, "no space")

    failpoints.arm("files.write", full)
    with pytest.raises(OSError, match="no space"):
        merge_small_packs(place)
    failpoints.disarm()
    assert names(place) == sorted(listed)
    assert len(merged(place)) == 1


def test_of_a_directory_only_what_changed_is_looked_at_again() -> None:
    """Of two hundred rooms a message changes one; what is new is never missed, in any order."""
    randomness = random.Random(3)
    names = {b"room-%d" % number: randomness.randbytes(20) for number in range(200)}
    modes = dict.fromkeys(names, b"40000")
    directory = packmerge._Directory()
    seen: set[tuple[bytes, bytes]] = set()
    looked_at: list[int] = []
    for turn in range(300):
        what, name = turn % 10, randomness.choice(sorted(names))
        if what < 7:
            names[name] = randomness.randbytes(20)  # one id, as a message does
        elif what == 7:
            names[name], names[min(names)] = b"\0 /" * 6 + b"40", randomness.randbytes(20)
        elif what == 8:
            names[b"room-%d" % (200 + turn)] = names.pop(name)  # another name of the same length
            modes[b"room-%d" % (200 + turn)] = b"100644"
        else:
            modes[name] = b"100755" if modes[name] == b"100644" else b"100644"
        entries = set(names.items())
        data = b"".join(b"%s %s\0%s" % (modes[key], key, names[key]) for key in sorted(names))
        changed = directory.changed(data)
        assert set(changed) <= entries
        assert entries - seen <= set(changed)
        seen |= set(changed)
        if what < 7 and turn % 10:
            looked_at.append(len(changed))
    assert set(looked_at) == {1}


def test_many_rooms_are_laid_out_anew_with_each_older_directory_as_a_delta(
    place: Layout, store: Store
) -> None:
    for number in range(100):
        store(1, room=f"room-{number}")
    merged(place)
    for _ in range(packmerge.GROWN_MAX):
        store(16)
    (name,) = merged(place)
    listed = git(place.root, "verify-pack", "-v", str(place.packs / f"pack-{name}.pack")).decode()
    entries = [line.split() for line in listed.splitlines()]
    whole = [int(e[2]) for e in entries if len(e) == 5 and e[1] == "tree"]
    # All of the last 192 commits have a directory of 101 rooms; one in fifty is stored whole.
    assert 0 < whole.count(max(whole)) < 10


def test_packs_are_read_back_by_our_own_decoder(place: Layout, store: Store) -> None:
    name = store(60, period=4)
    read = {oid.hex(): data for oid, (_, data) in packmerge.read_pack(place, name).items()}
    assert read == {oid: data for oid, (_, data) in all_objects(place.root).items()}


def test_an_index_of_another_kind_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "x.idx"
    path.write_bytes(b"\0" * 2000)
    with pytest.raises(Corrupt):
        packmerge.object_count(str(path))
