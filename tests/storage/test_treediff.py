"""Directories compared as bytes say what a comparison entry by entry says."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_chatroom_ledger.errors import Corrupt
from agent_chatroom_ledger.storage.treediff import Change, TreeDiff, entries_of

Tree = dict[bytes, tuple[bytes, bytes]]

MODES = st.sampled_from([b"40000", b"100644", b"100755"])
# Ids that begin and end alike, so that what differs lies anywhere in them; with what ends names.
IDS = st.builds(
    lambda a, b, c: bytes([a]) * 7 + bytes([b]) * 6 + bytes([c]) * 7,
    *[st.sampled_from([0, 1, 32, 255])] * 3,
)
NAMES = st.text("abc ", min_size=1, max_size=3).map(str.encode)
TREES = st.dictionaries(NAMES, st.tuples(MODES, IDS), max_size=12)


def encoded(tree: Tree) -> bytes:
    return b"".join(b"%s %s\0%s" % (mode, name, oid) for name, (mode, oid) in sorted(tree.items()))


def expected(old: Tree, new: Tree) -> list[Change]:
    return [
        Change(name, old.get(name), new.get(name))
        for name in sorted(old.keys() | new.keys())
        if old.get(name) != new.get(name)
    ]


@given(st.lists(TREES, min_size=2, max_size=6), st.data())
def test_a_chain_of_versions(trees: list[Tree], data: st.DataObject) -> None:
    # Most steps of real history change one id.
    chain = [trees[0]]
    for tree in trees[1:]:
        chain.append(tree)
        if tree:
            name = data.draw(st.sampled_from(sorted(tree)))
            chain.append({**tree, name: (tree[name][0], data.draw(IDS))})
    diff = TreeDiff()
    for number in range(len(chain) - 1, 0, -1):
        old, new = chain[number - 1], chain[number]
        found = diff.changes("here/", (str(number - 1), encoded(old)), (str(number), encoded(new)))
        if encoded(old) != encoded(new):
            assert found == expected(old, new)


def test_many_directories_are_not_all_remembered() -> None:
    diff = TreeDiff()
    one, two = ({b"x": (b"40000", bytes([n]) * 20)} for n in (1, 2))
    for number in range(1000):
        found = diff.changes(f"{number}/", ("a", encoded(one)), ("b", encoded(two)))
        assert found == expected(one, two)
    assert len(diff._layouts) < 1000


def test_a_name_that_is_there_twice_is_compared_twice() -> None:
    same = b"100644 x\0" + b"s" * 20
    evil = b"100644 x\0" + b"e" * 20
    [found] = TreeDiff().changes("", ("a", same), ("b", evil + same))
    assert found == Change(b"x", None, (b"100644", b"e" * 20))


@pytest.mark.parametrize("data", [b"100644 x", b"100644 x\0short", b"no mode\0" + b"x" * 20])
def test_what_is_no_tree_is_an_error(data: bytes) -> None:
    good = encoded({b"x": (b"100644", b"y" * 20)})
    with pytest.raises(Corrupt):
        entries_of(data)
    for old, new in ((good, data), (data, good), (b"", data), (data, data + data)):
        with pytest.raises(Corrupt):
            TreeDiff().changes("", ("a", old), ("b", new))
