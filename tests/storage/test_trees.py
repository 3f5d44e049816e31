"""The tree editor: git's own tree objects after any changes, and every change seen at once."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent_chatroom_ledger.storage.objects import NO_OBJECT, Objects
from agent_chatroom_ledger.storage.packs import PackBuilder
from agent_chatroom_ledger.storage.trees import EMPTY_TREE, TreeEditor, differences, walk
from tests.storage.samples import all_objects, empty_place, files_of, git, put_pack

if TYPE_CHECKING:
    from collections.abc import Iterator

    from agent_chatroom_ledger.storage.layout import Layout

# Names that sort one way as files and another as directories; and one that is not UTF-8.
NAMES = ["a", "a-b", "a.b", "a0", "ab", "A", "b", "a b", "é", "a\udcff"]
PATHS = st.lists(
    st.one_of(st.sampled_from(NAMES[:4]), st.sampled_from(NAMES)), min_size=1, max_size=3
).map("/".join)
CONTENTS = st.sampled_from([b"", b"one\n", b"one\ntwo\n", b"other"])
CHANGES = st.one_of(
    st.tuples(st.just("write"), PATHS, CONTENTS),
    st.tuples(st.just("remove"), PATHS, st.none()),
    st.tuples(st.just("graft"), PATHS, st.integers(0, 20)),
)


def git_tree(root: Path, files: dict[str, bytes]) -> str:
    """Let git lay out the trees of some files, and name the root."""
    git(root, "read-tree", "--empty")
    lines = b"".join(
        b"100644 %s\t%s\0" % (blob_id(data).encode(), path.encode("utf-8", "surrogateescape"))
        for path, data in files.items()
    )
    git(root, "update-index", "-z", "--index-info", given=lines)
    return git(root, "write-tree", "--missing-ok").decode().strip()


def blob_id(data: bytes) -> str:
    from agent_chatroom_ledger.storage.trees import hash_object

    return hash_object(b"blob", data).hex()


class Model:
    """The files as a dictionary, and the editor that has to agree with it."""

    def __init__(self, layout: Layout) -> None:
        self.layout = layout
        self.objects = Objects(layout)
        self.editor = TreeEditor(self.objects, NO_OBJECT)
        self.pack = PackBuilder()
        self.files: dict[str, bytes] = {}
        self.subtrees: list[tuple[str, dict[str, bytes]]] = []

    def change(self, kind: str, path: str, given: object) -> None:
        if kind == "write":
            assert isinstance(given, bytes)
            self._clear(path)
            self.files[path] = given
            self.editor.write(path, given, self.pack)
        elif kind == "remove":
            self.files = {p: d for p, d in self.files.items() if not _within(p, path)}
            self.editor.remove(path)
        elif self.subtrees and not self._is_taken(path):
            assert isinstance(given, int)
            tree, content = self.subtrees[given % len(self.subtrees)]
            self.files |= {f"{path}/{name}": data for name, data in content.items()}
            self.editor.graft(path, tree)

    def _clear(self, path: str) -> None:
        """Take away what stands in the place of a file or of the directories above it."""
        for known in list(self.files):
            if _within(known, path) or path.startswith(f"{known}/"):
                del self.files[known]

    def _is_taken(self, path: str) -> bool:
        return any(_within(p, path) or path.startswith(f"{p}/") for p in self.files)

    def finish(self) -> str:
        root = self.editor.finish(self.pack)
        if len(self.pack):
            put_pack(self.layout, self.pack)
            self.objects.forget()
        self.pack = PackBuilder()
        for path in {p.rpartition("/")[0] for p in self.files} - {""}:
            oid = self.editor.oid(path)
            assert oid is not None
            content = {p[len(path) + 1 :]: d for p, d in self.files.items() if _within(p, path)}
            self.subtrees.append((oid, content))
        return root


def _within(path: str, directory: str) -> bool:
    return path == directory or path.startswith(f"{directory}/")


@given(st.lists(st.tuples(st.lists(CHANGES, max_size=6), st.booleans()), min_size=1, max_size=4))
@settings(max_examples=60, deadline=None)
def test_any_changes_give_the_trees_that_git_makes(
    rounds: list[tuple[list[tuple[str, str, object]], bool]],
) -> None:
    """Writes, removals and grafts, in one editor or in new ones; every object is in the packs."""
    with tempfile.TemporaryDirectory() as folder:
        model = Model(empty_place(Path(folder) / "place"))
        for changes, anew in rounds:
            for kind, path, given_ in changes:
                model.change(kind, path, given_)
                assert files_of(model.editor) == model.files
            root = model.finish()
            assert root == git_tree(model.layout.root, model.files)
            if anew:
                model.editor = TreeEditor(model.objects, root)
            assert files_of(model.editor) == model.files
        if model.files:
            # git's own trees lie beside ours as loose objects: only the packs may be asked.
            for path in (model.layout.git / "objects").glob("??"):
                path.rename(Path(folder) / path.name)
            listed = git(model.layout.root, "ls-tree", "-r", "-z", root)
            assert listed.count(b"\0") == len(model.files)
            git(model.layout.root, "fsck", "--full", "--strict")
        model.objects.close()


@pytest.fixture
def place(tmp_path: Path) -> Layout:
    return empty_place(tmp_path / "place")


@pytest.fixture
def store(place: Layout) -> Iterator[Objects]:
    found = Objects(place)
    yield found
    found.close()


def committed(place: Layout, store: Objects, files: dict[str, bytes]) -> str:
    """Store a tree of some files and return its id."""
    editor, pack = TreeEditor(store, NO_OBJECT), PackBuilder()
    for path, data in files.items():
        editor.write(path, data, pack)
    root = editor.finish(pack)
    put_pack(place, pack)
    store.forget()
    return root


def test_names_are_those_of_now_before_and_after_a_change_is_finished(store: Objects) -> None:
    editor, pack = TreeEditor(store, NO_OBJECT), PackBuilder()
    for step in (["a"], ["b/c", "d"], ["b/e", "a/f"]):
        for path in step:
            editor.write(path, b"x", pack)
        if "a/f" in step:
            assert sorted(editor.names("")) == ["a/", "b/", "d"]
        editor.finish(pack)
    assert sorted(editor.names("")) == ["a/", "b/", "d"]
    assert sorted(editor.names("b")) == ["c", "e"]
    editor.names("b").clear()
    editor.remove("b/c")
    assert editor.names("b") == ["e"]
    editor.remove("d")
    assert sorted(editor.names("")) == ["a/", "b/"]
    editor.finish(pack)
    assert sorted(editor.names("")) == ["a/", "b/"]
    assert editor.names("b") == ["e"]


def test_an_editor_without_files_is_the_empty_tree(store: Objects) -> None:
    editor, pack = TreeEditor(store, NO_OBJECT), PackBuilder()
    assert editor.finish(pack) == EMPTY_TREE
    editor.write("a/b", b"x", pack)
    editor.remove("a/b")
    assert editor.finish(pack) == EMPTY_TREE
    assert TreeEditor(store, EMPTY_TREE).names("") == []


def test_a_changed_file_costs_the_trees_above_it_and_no_others(
    place: Layout, store: Objects
) -> None:
    files = {f"rooms/{name}/log": b"1\n" for name in ("x", "y", "z")}
    editor = TreeEditor(store, committed(place, store, files))
    pack = PackBuilder()
    editor.write("rooms/y/log", b"1\n2\n", pack)
    editor.finish(pack)
    assert len(pack) == 4  # the blob, y, rooms and the root


def test_only_directories_that_were_asked_for_are_read(place: Layout, store: Objects) -> None:
    editor = TreeEditor(
        store, committed(place, store, {f"rooms/r{i}/log": b"1\n" for i in range(50)})
    )
    assert editor.read("rooms/r7/log") == b"1\n"
    assert editor.nodes == 3


def test_writing_makes_an_ordinary_file_of_whatever_stood_there(
    place: Layout, store: Objects
) -> None:
    """A foreign commit may have made a program or a link of one of our files."""
    blob = git(place.root, "hash-object", "-w", "--stdin", given=b"1\n").decode().strip()
    lines = f"100755 blob {blob}\tprogram\n120000 blob {blob}\tlink\n"
    tree = git(place.root, "mktree", given=lines).decode().strip()
    editor, pack = TreeEditor(store, tree), PackBuilder()
    for name in ("program", "link"):
        editor.write(name, b"1\n2\n", pack)
    root = editor.finish(pack)
    assert root == git_tree(place.root, {"program": b"1\n2\n", "link": b"1\n2\n"})


def test_other_entries_keep_their_modes(place: Layout, store: Objects) -> None:
    """The user's programs, links and submodules stay as they are."""
    blob = git(place.root, "hash-object", "-w", "--stdin", given=b"1\n").decode().strip()
    lines = f"100755 blob {blob}\tp\n120000 blob {blob}\tl\n160000 commit {'1' * 40}\tsub\n"
    tree = git(place.root, "mktree", "--missing", given=lines).decode().strip()
    editor, pack = TreeEditor(store, tree), PackBuilder()
    editor.write("m", b"new", pack)
    root = editor.finish(pack)
    put_pack(place, pack)
    listed = git(place.root, "ls-tree", root).decode()
    assert [line.split(" ")[0] for line in listed.splitlines()] == [
        "120000",
        "100644",
        "100755",
        "160000",
    ]


def test_a_removed_directory_does_not_come_back_with_a_new_file(
    place: Layout, store: Objects
) -> None:
    editor = TreeEditor(store, committed(place, store, {"a/old": b"1", "a/b/old": b"2", "c": b"3"}))
    editor.remove("a")
    assert editor.names("a") == []
    assert editor.read("a/old") is None
    pack = PackBuilder()
    editor.write("a/new", b"4", pack)
    assert files_of(editor) == {"a/new": b"4", "c": b"3"}
    assert editor.finish(pack) == git_tree(place.root, {"a/new": b"4", "c": b"3"})


def test_removing_what_is_missing_changes_nothing(place: Layout, store: Objects) -> None:
    root = committed(place, store, {"a/b": b"1"})
    editor, pack = TreeEditor(store, root), PackBuilder()
    for path in ("x", "a/x", "a/b/x", "x/y/z"):
        editor.remove(path)
    assert editor.finish(pack) == root
    assert len(pack) == 0


def test_a_tree_that_goes_back_and_forth_is_stored_once_each(place: Layout, store: Objects) -> None:
    """Content that returns to what it was: no version is lost and none is stored twice."""
    editor, pack = TreeEditor(store, NO_OBJECT), PackBuilder()
    roots = []
    for data in (b"one", b"two", b"one", b"three", b"two"):
        editor.write("d/e/file", data, pack)
        roots.append(editor.finish(pack))
    name = put_pack(place, pack)
    assert len(all_objects(place.root)) == 3 * 4
    git(place.root, "index-pack", "--strict", str(place.packs / f"pack-{name}.pack"))
    for root, data in zip(roots, (b"one", b"two", b"one", b"three", b"two"), strict=True):
        assert git(place.root, "cat-file", "blob", f"{root}:d/e/file") == data


def test_walk_is_in_the_order_of_gits_index(place: Layout, store: Objects) -> None:
    files = {f"{name}/x": b"1" for name in ("a", "a-b", "a0")} | {"a.b": b"2", "b": b"3"}
    root = committed(place, store, files)
    paths = [path for path, _, _ in walk(store, root)]
    assert paths == sorted(files, key=str.encode)
    assert {path: store.blob(oid) for path, _, oid in walk(store, root)} == files


@given(
    st.dictionaries(PATHS, CONTENTS, max_size=6),
    st.dictionaries(PATHS, CONTENTS, max_size=6),
)
@settings(max_examples=30, deadline=None)
def test_differences_turn_one_tree_into_the_other(
    before: dict[str, bytes], after: dict[str, bytes]
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        model = Model(empty_place(Path(folder) / "place"))
        states, roots = [], []
        for files in (before, after):
            for path in list(model.files):
                model.change("remove", path, None)
            for path, data in files.items():
                model.change("write", path, data)
            states.append(dict(model.files))
            roots.append(model.finish() if model.files else NO_OBJECT)
        known = {path: blob_id(data) for path, data in states[0].items()}
        for path, _, old, _, new in differences(model.objects, roots[0], roots[1]):
            assert known.pop(path, None) == old
            if new is not None:
                known[path] = new
        assert known == {path: blob_id(data) for path, data in states[1].items()}
        model.objects.close()
