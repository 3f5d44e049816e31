"""git's index patched as bytes: git reads from it what it would have written itself."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from agent_chatroom_ledger.storage import gitindex
from agent_chatroom_ledger.storage.gitindex import Entry, parse, patched, plain, raw_entry
from agent_chatroom_ledger.storage.worktree import blob_id
from tests.storage.samples import empty_place, git

if TYPE_CHECKING:
    from collections.abc import Callable

    from agent_chatroom_ledger.storage.layout import Layout

# Paths of a ledger, and names that sort in between and beside them.
POOL = [
    ".gitattributes",
    "ledger.json",
    "rooms/a-b/room.json",
    "rooms/a.b/room.json",
    "rooms/a/messages/o/00/00/00000001.jsonl",
    "rooms/a/messages/o/00/00/00000051.jsonl",
    "rooms/a/room.json",
    "rooms/a/view/2026/11-29.0.md",
    "rooms/a0/room.json",
    "rooms/été ☀/room.json",
    "rooms/" + "long" * 80 + "/" + "r" * 200,
    "versions.txt",
]
FOREIGN = ["AAA", "ledger.json.bak", "rooms/a/mine", "rooms/notes", "zzz"]


@pytest.fixture
def place(tmp_path: Path) -> Layout:
    return empty_place(tmp_path / "place")


def blob(place: Layout, text: str) -> str:
    return git(place.root, "hash-object", "-w", "--stdin", given=text).decode().strip()


def stage(place: Layout, files: dict[str, str], *options: str) -> None:
    """Let git write an index of some files, stat data aside."""
    lines = "".join(f"100644 {oid}\t{path}\0" for path, oid in files.items())
    git(place.root, *options, "update-index", "-z", "--index-info", given=lines)


def staged(place: Layout) -> dict[str, str]:
    """Return path -> id of the index as git reads it, which checks its order and its checksum."""
    listed = git(place.root, "ls-files", "--stage", "-z").decode("utf-8", "surrogateescape")
    found: dict[str, str] = {}
    for line in listed.split("\0")[:-1]:
        head, _, path = line.partition("\t")
        mode, oid, stage_number = head.split(" ")
        assert (mode, stage_number) == ("100644", "0")
        found[path] = oid
    git(place.root, "fsck", "--no-dangling")
    return found


def index(place: Layout) -> bytes:
    return gitindex.read(place) or plain([])


def neighbour(main: dict[str, str]) -> Callable[[str], str | None]:
    """Name the file that stands just before a path in main."""

    def before(path: str) -> str | None:
        key = path.encode()
        return max((p for p in main if p.encode() < key), key=str.encode, default=None)

    return before


def patch(place: Layout, main: dict[str, str], changes: dict[str, str | None]) -> dict[str, str]:
    """Patch the index, which stands for `main`, put it in place and let git read it."""
    after = {p: o for p, o in {**main, **changes}.items() if o is not None}
    last = max(main, key=str.encode, default=None)
    entries = {p: None if o is None else Entry(0o100644, o) for p, o in changes.items()}
    data = patched(index(place), entries, neighbour(after), last)
    assert data is not None
    (place.git / "index").write_bytes(data)
    return staged(place)


CONTENTS = st.sampled_from(["one", "two", "three"])
FILES = st.dictionaries(st.sampled_from(POOL), CONTENTS, max_size=len(POOL))


@given(
    FILES,
    st.dictionaries(st.sampled_from(POOL), st.one_of(st.none(), CONTENTS), max_size=6),
    st.sets(st.sampled_from(FOREIGN)),
)
@example({}, {POOL[0]: "one"}, set())
@example({POOL[1]: "one"}, {POOL[0]: "one", POOL[-1]: "one"}, {"AAA", "zzz"})
@example(dict.fromkeys(POOL, "one"), dict.fromkeys(POOL, None), set())
@settings(max_examples=60, deadline=None)
def test_any_changes_give_what_git_would_list(
    main: dict[str, str], changes: dict[str, str | None], foreign: set[str]
) -> None:
    """Sets, inserts and removals at the front, in the middle and at the end; others' stay."""
    with tempfile.TemporaryDirectory() as folder:
        place = empty_place(Path(folder) / "place")
        oids = {text: blob(place, text) for text in ("one", "two", "three")}
        mine = {path: oids[text] for path, text in main.items()}
        extra = dict.fromkeys(foreign, oids["one"])
        stage(place, mine | extra)
        wanted = {p: None if t is None else oids[t] for p, t in changes.items()}
        expected = {p: o for p, o in {**mine, **wanted}.items() if o is not None} | extra
        assert patch(place, mine, wanted) == expected
        # What we write is what git writes, byte for byte, but for the stat that neither has.
        ours = index(place)
        (place.git / "index").unlink()
        if expected:
            stage(place, expected)
            assert index(place) == ours


@pytest.mark.parametrize("count", [1, 64, 65, 300])
def test_few_and_many_changes_give_the_same(place: Layout, count: int) -> None:
    """Beyond 64 changes the index is patched in one pass."""
    one, two = blob(place, "one"), blob(place, "two")
    main = {f"rooms/r{i:03d}/room.json": one for i in range(400)}
    stage(place, main)
    changes: dict[str, str | None] = {f"rooms/r{i:03d}/room.json": two for i in range(count)}
    changes["rooms/r399/room.json"] = None
    changes["rooms/r200a"] = two
    expected = {p: o for p, o in {**main, **changes}.items() if o is not None}
    assert patch(place, main, changes) == expected


@pytest.mark.parametrize(
    "option",
    [
        ("index.version=2",),
        ("index.version=3",),
        ("index.version=4",),
        ("core.splitIndex=true",),
        ("index.skipHash=true",),
        ("feature.manyFiles=true",),
    ],
    ids=str,
)
def test_what_cannot_be_patched_is_said_and_what_can_is(
    place: Layout, option: tuple[str, ...]
) -> None:
    """Version 4 and split indexes are given up; then main is written as a plain index."""
    one, two = blob(place, "one"), blob(place, "two")
    main = dict.fromkeys(POOL, one)
    options = [part for setting in option for part in ("-c", setting)]
    stage(place, main, *options)
    if option == ("core.splitIndex=true",):
        git(place.root, "update-index", "--split-index")
    changes = {"rooms/a/room.json": Entry(0o100644, two)}
    data = patched(index(place), changes, neighbour(main), max(POOL, key=str.encode))
    if data is None:
        assert option[0] in {
            "index.version=4",
            "core.splitIndex=true",
            "feature.manyFiles=true",
        }
        return
    (place.git / "index").write_bytes(data)
    assert staged(place) == main | {"rooms/a/room.json": two}


def test_a_sparse_index_is_given_up(place: Layout) -> None:
    """It has entries for whole directories, which a patch would leave in place."""
    main = dict.fromkeys(POOL[2:-2], blob(place, "one"))
    stage(place, main)
    git(place.root, "commit", "-q", "-m", "m")
    git(place.root, "sparse-checkout", "set", "--cone", "--sparse-index", "rooms/a")
    assert b"sdir" in index(place)
    assert patched(index(place), {"rooms/a-b/room.json": None}, neighbour(main), None) is None
    with pytest.raises(ValueError, match="sparse"):
        parse(index(place))


def test_gits_extensions_are_dropped_and_entries_stay(place: Layout) -> None:
    """After a `git commit` the index has a cache of trees, which a patch would make false."""
    one, two = blob(place, "one"), blob(place, "two")
    main = dict.fromkeys(POOL, one)
    stage(place, main)
    git(place.root, "commit", "-q", "-m", "m")
    assert b"TREE" in index(place)
    changed = main | {"rooms/a/room.json": two}
    assert patch(place, main, {"rooms/a/room.json": two}) == changed
    assert b"TREE" not in index(place)
    tree = git(place.root, "write-tree").decode().strip()
    assert git(place.root, "rev-parse", f"{tree}:rooms/a/room.json").decode().strip() == two


def test_entries_with_flags_of_their_own_are_found(place: Layout) -> None:
    """assume-unchanged, skip-worktree and intent-to-add, on our files and on others."""
    one, two = blob(place, "one"), blob(place, "two")
    main = dict.fromkeys(POOL, one)
    stage(place, main | {"zzz": one, "rooms/mine": one})
    git(place.root, "update-index", "--assume-unchanged", "rooms/a/room.json", "zzz")
    git(place.root, "update-index", "--skip-worktree", "ledger.json", "rooms/mine")
    (place.root / "intended").write_text("x")
    git(place.root, "add", "-N", "intended")
    changes = {"rooms/a/room.json": two, "ledger.json": None}
    found = patch(place, main, changes)
    assert found.pop("intended") == blob_id(b"")
    assert found == {
        p: o for p, o in {**main, "zzz": one, "rooms/mine": one, **changes}.items() if o
    }
    flags = git(place.root, "ls-files", "-v").decode().splitlines()
    assert "h zzz" in flags
    assert "S rooms/mine" in flags


def test_an_unfinished_merge_of_the_users_file_stays_unfinished(place: Layout) -> None:
    """Its three stages are neither dropped nor resolved, in one pass or by patches."""
    one, two = blob(place, "one"), blob(place, "two")
    main = dict.fromkeys(POOL, one)
    stage(place, main)
    lines = "".join(f"100644 {oid} {n}\tnotes\0" for n, oid in enumerate((one, two, one), 1))
    git(place.root, "update-index", "-z", "--index-info", given=lines)
    for count in (1, 100):
        changes = {f"rooms/n{i}": Entry(0o100644, two) for i in range(count)}
        after = main | dict.fromkeys(changes, two)
        data = patched(index(place), changes, neighbour(after), max(POOL, key=str.encode))
        assert data is not None
        (place.git / "index").write_bytes(data)
        unmerged = git(place.root, "ls-files", "-u").decode().splitlines()
        assert [line.split("\t")[0].split(" ")[1:] for line in unmerged] == [
            [one, "1"],
            [two, "2"],
            [one, "3"],
        ]


def test_a_conflict_about_our_own_file_is_resolved_by_what_main_has(place: Layout) -> None:
    one, two = blob(place, "one"), blob(place, "two")
    stage(place, {"a": one, "c": one})
    lines = "".join(f"100644 {oid} {n}\tb\0" for n, oid in enumerate((one, two, one), 1))
    git(place.root, "update-index", "-z", "--index-info", given=lines)
    found = patch(place, {"a": one, "b": one, "c": one}, {"b": two})
    assert found == {"a": one, "b": two, "c": one}


def test_a_stat_that_git_trusts(place: Layout) -> None:
    """With the stat of an equal file `git status` is clean, without reading the file."""
    path = place.root / "rooms/a/room.json"
    path.parent.mkdir(parents=True)
    path.write_bytes(b"{}\n")
    os.utime(path, ns=(-5_000_000_000, 1_600_000_000_123_456_789))
    oid = blob(place, "{}\n")
    entry = Entry(0o100644, oid, path.stat())
    (place.git / "index").write_bytes(
        plain([("rooms/a/room.json", raw_entry("rooms/a/room.json", entry))])
    )
    git(place.root, "diff-files", "--quiet")  # asks for the stat alone
    git(place.root, "commit", "-q", "-m", "m")
    assert git(place.root, "status", "--porcelain") == b""
    path.write_bytes(b"[]\n")
    assert git(place.root, "status", "--porcelain") == b" M rooms/a/room.json\n"


def test_our_own_reader_agrees_with_git(place: Layout) -> None:
    one = blob(place, "one")
    stage(place, dict.fromkeys(POOL, one))
    found = parse(index(place))
    assert {path: (mode, oid) for path, (mode, oid, _) in found.items()} == dict.fromkeys(
        POOL, (0o100644, one)
    )
    again = plain([(path, raw) for path, (_, _, raw) in found.items()])
    assert again == index(place)


@pytest.mark.parametrize("cut", [0, 5, 12, 31, 60, 100])
def test_a_damaged_index_is_no_index(place: Layout, cut: int) -> None:
    stage(place, dict.fromkeys(POOL, blob(place, "one")))
    data = index(place)[:cut]
    with pytest.raises(ValueError, match="plain index"):
        parse(data)
    assert patched(data, {"a": None}, lambda _: None, None) is None


ROOM = "rooms/a/"


@given(FILES, st.sets(st.sampled_from(FOREIGN)), st.sampled_from([ROOM, "rooms/a.b/", "rooms/b/"]))
@example(dict.fromkeys(POOL, "one"), set(FOREIGN), ROOM)
@example(dict.fromkeys(POOL, "one"), set(FOREIGN), "rooms/" + "long" * 80 + "/")
@example({}, set(), ROOM)
@settings(max_examples=40, deadline=None)
def test_a_room_is_cut_out_and_put_back(
    main: dict[str, str], foreign: set[str], prefix: str
) -> None:
    """git lists what is left, and afterwards the very same bytes are there again."""
    with tempfile.TemporaryDirectory() as root:
        place = empty_place(Path(root) / "place")
        files = {path: blob(place, text) for path, text in main.items()}
        stage(place, files | dict.fromkeys(foreign, blob(place, "foreign")))
        before, listed = index(place), staged(place)
        parts = gitindex.cut(before, prefix)
        assert parts is not None
        rest, entries = parts
        for data, expected in (
            (rest, {p: o for p, o in listed.items() if not p.startswith(prefix)}),
            (entries, {p: o for p, o in listed.items() if p.startswith(prefix)}),
        ):
            (place.git / "index").write_bytes(data)
            assert staged(place) == expected
        assert gitindex.joined(rest, entries, prefix) == before


def test_entries_that_do_not_fit_are_not_put_back(place: Layout) -> None:
    stage(place, dict.fromkeys(POOL, blob(place, "one")))
    whole = index(place)
    parts = gitindex.cut(whole, ROOM)
    assert parts is not None
    rest, entries = parts
    assert gitindex.joined(whole, entries, ROOM) is None  # they are there
    assert gitindex.joined(rest, whole, ROOM) is None  # there are others among them
    assert gitindex.joined(rest, entries, "rooms/b/") is None
    assert gitindex.joined(rest[:-30], entries, ROOM) is None
    assert gitindex.joined(rest, entries[:60], ROOM) is None
    stage(place, {"rooms/a/mine": blob(place, "two")})
    unmerged = "".join(f"100644 {blob(place, 'two')} {n}\tmine\0" for n in (1, 2, 3))
    git(place.root, "update-index", "-z", "--index-info", given=unmerged)
    mine = gitindex.cut(index(place), ROOM)
    assert mine is not None
    assert gitindex.joined(mine[0], entries, ROOM) is None  # a merge that is not finished


@pytest.mark.parametrize("kind", ["version 4", "split", "out of order", "damaged"])
def test_an_index_of_another_kind_is_not_cut(place: Layout, kind: str) -> None:
    stage(place, dict.fromkeys(POOL, blob(place, "one")))
    data = index(place)
    if kind == "version 4":
        git(place.root, "update-index", "--index-version", "4")
        data = index(place)
    elif kind == "split":
        git(place.root, "update-index", "--split-index")
        data = index(place)
    elif kind == "out of order":
        raw = {path: entry for path, (_, _, entry) in parse(data).items()}
        names = [*sorted(set(raw) - {POOL[4]}), POOL[4]]
        body = b"".join(raw[name] for name in names)
        data = data[:12] + body + data[-20:]
    else:
        data = data[:200]
    assert gitindex.cut(data, ROOM) is None


def test_a_room_with_flags_of_its_own_keeps_them(place: Layout) -> None:
    """`git add -N` makes entries longer, in an index of version 3."""
    stage(place, dict.fromkeys([*POOL, "rooms/a/mine"], blob(place, "one")))
    (place.root / "rooms/a").mkdir(parents=True)
    (place.root / "rooms/a/new").write_text("new")
    git(place.root, "add", "-N", "rooms/a/new")
    before = index(place)
    assert before[7] == 3
    parts = gitindex.cut(before, ROOM)
    assert parts is not None
    plain_rest = parts[0][:7] + b"\x02" + parts[0][8:-20]
    both = gitindex.joined(plain_rest + b"\0" * 20, parts[1], ROOM)
    assert both is not None
    (place.git / "index").write_bytes(both)
    assert "rooms/a/new" in git(place.root, "ls-files").decode().split("\n")


def test_writing_needs_no_index_before(place: Layout) -> None:
    assert gitindex.read(place) is None
    gitindex.write(place, plain([]), sync=True)
    assert gitindex.read(place) == plain([])
    assert staged(place) == {}
    assert gitindex.file_mode(0) == 0o100644
    assert gitindex.file_mode(0o100755) == 0o100755
