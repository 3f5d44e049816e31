"""An editable git tree that patches its own bytes and remembers each version for the pack.

An append changes twenty bytes of seven trees. So a directory is kept as git's own bytes with the
place of every id in it; a change is a patch, and the delta of the older version against the newer
one is known without comparing anything.
"""

from __future__ import annotations

import binascii
import hashlib
from typing import TYPE_CHECKING

from agent_chatroom_ledger.storage.objects import (
    FILE_MODE,
    NO_OBJECT,
    TREE,
    raw_entries,
    tree_entry,
)

if TYPE_CHECKING:
    from collections.abc import Container, Iterator

    from agent_chatroom_ledger.storage.objects import Objects
    from agent_chatroom_ledger.storage.packs import PackBuilder

_TREE_PREFIX = b"40000 "
_BLOB_PREFIX = b"100644 "
_CONTENTS_MAX = 512
EMPTY_TREE = "4b825dc642cb6eb9a060e54bf8d69288fbee4904"


def hash_object(kind: bytes, data: bytes | bytearray) -> bytes:
    """Return the 20-byte id of an object."""
    return hashlib.sha1(b"%s %d\0" % (kind, len(data)) + data, usedforsecurity=False).digest()


class Node:
    """One directory: its tree object's bytes, and where in them each entry's id stands."""

    __slots__ = ("children", "data", "listing", "oid", "pending", "spots", "trees")

    def __init__(self, data: bytes, oid: bytes | None) -> None:
        """Take over the bytes of a tree object."""
        self.data = bytearray(data)
        self.oid = oid
        self.children: dict[bytes, Node] = {}
        self.pending: dict[bytes, bytes | Node | None] = {}
        self.listing: list[str] | None = None  # what `names` gave, until an entry comes or goes
        self._parse()

    def _parse(self) -> None:
        spots: dict[bytes, int] = {}
        trees: set[bytes] = set()
        at = 0
        for mode, name, _ in raw_entries(bytes(self.data)):
            at += len(mode) + len(name) + 2
            spots[name] = at
            if mode == b"40000":
                trees.add(name)
            at += 20
        self.spots = spots
        self.trees = trees
        self.listing = None

    def names(self) -> list[str]:
        """Return the names of the entries as they are, directories with a slash."""
        if self.listing is None:
            trees = self.trees
            self.listing = [
                name.decode("utf-8", "surrogateescape") + ("/" if name in trees else "")
                for name in self.spots
            ]
        return self.listing

    def _entry(self, name: bytes) -> tuple[int, int]:
        """Return where an entry starts and ends."""
        spot = self.spots[name]
        start = self.data.rindex(b" ", 0, spot - len(name) - 1)
        # The mode before the blank: 40000, or six digits.
        start -= 5 if name in self.trees else 6
        return start, spot + 20

    def put(self, name: bytes, oid: bytes, *, tree: bool) -> tuple[int, int]:
        """Set one entry; return how many bytes before and after the change stayed the same."""
        spot = self.spots.get(name)
        if spot is not None and self._is_of_kind(name, spot, tree=tree):
            self.data[spot : spot + 20] = oid
            return spot, len(self.data) - spot - 20
        if spot is not None:
            head = self.cut(name)[0]
            return min(head, self.put(name, oid, tree=tree)[0]), 0
        key = name + b"/" if tree else name
        at = len(self.data)
        for other in self.spots:
            if (other + b"/" if other in self.trees else other) > key:
                at = self._entry(other)[0]
                break
        entry = (_TREE_PREFIX if tree else _BLOB_PREFIX) + name + b"\0" + oid
        self.data[at:at] = entry
        self._parse()
        return at, len(self.data) - at - len(entry)

    def _is_of_kind(self, name: bytes, spot: int, *, tree: bool) -> bool:
        """Tell whether an entry is a directory, or an ordinary file: no program and no link."""
        if tree or name in self.trees:
            return tree and name in self.trees
        return self.data.startswith(_BLOB_PREFIX, spot - len(name) - 8)

    def cut(self, name: bytes) -> tuple[int, int]:
        """Remove one entry; return as `put` does."""
        start, end = self._entry(name)
        del self.data[start:end]
        self._parse()
        return start, len(self.data) - start


class TreeEditor:
    """The tree of a commit under change; a Source of the reading functions at the same time.

    `read` and `names` see changes at once; `finish` turns them into tree objects for the pack.
    """

    def __init__(self, objects: Objects, root: str) -> None:
        """Begin with the tree `root`, or with an empty one for the zero id."""
        self._objects = objects
        self._contents: dict[str, bytes] = {}
        self._nodes = 1
        data = b"" if root in (NO_OBJECT, EMPTY_TREE) else objects.data(root, TREE)
        self._root = Node(data, None if root == NO_OBJECT else binascii.unhexlify(root))

    @property
    def nodes(self) -> int:
        """How many directories are held in memory."""
        return self._nodes

    def _child(self, node: Node, name: bytes) -> Node | None:
        if name in node.pending:
            changed = node.pending[name]
            return changed if isinstance(changed, Node) else None
        child = node.children.get(name)
        if child is None and name in node.trees:
            spot = node.spots[name]
            oid = bytes(node.data[spot : spot + 20])
            child = node.children[name] = Node(self._objects.data(oid.hex(), TREE), oid)
            self._nodes += 1
        return child

    def _find(self, path: str) -> Node | None:
        node = self._root
        for part in path.encode("utf-8", "surrogateescape").split(b"/") if path else ():
            child = self._child(node, part)
            if child is None:
                return None
            node = child
        return node

    def names(self, directory: str) -> list[str]:
        """Return the names in a directory, directories with a slash; [] when it is missing."""
        node = self._find(directory)
        if node is None:
            return []
        if not node.pending:
            return list(node.names())
        kinds = {name: name in node.trees for name in node.spots}
        for name, value in node.pending.items():
            if value is None:
                kinds.pop(name, None)
            else:
                kinds[name] = isinstance(value, Node)
        return [
            name.decode("utf-8", "surrogateescape") + ("/" if tree else "")
            for name, tree in kinds.items()
        ]

    def read(self, path: str) -> bytes | None:
        """Return a file's bytes; None when it is missing."""
        found = self._contents.get(path)
        if found is not None:
            return found
        oid = self.oid(path)
        return None if oid is None else self._objects.blob(oid)

    def oid(self, path: str) -> str | None:
        """Return the id of a file, or of a directory that has no pending change."""
        directory, _, last = path.rpartition("/")
        node = self._find(directory)
        name = last.encode("utf-8", "surrogateescape")
        if node is None:
            return None
        if name in node.pending:
            value = node.pending[name]
            return value.hex() if isinstance(value, bytes) else None
        spot = node.spots.get(name)
        return None if spot is None else bytes(node.data[spot : spot + 20]).hex()

    def write(self, path: str, data: bytes, pack: PackBuilder) -> None:
        """Set a file's content and hand the new blob to the pack."""
        oid = hash_object(b"blob", data)
        node, name = self._above(path)
        if name in node.trees or name in node.children:
            self._forget(path)
        node.pending[name] = oid
        pack.blob(path, oid, data)
        self._contents.pop(path, None)
        self._contents[path] = data

    def _above(self, path: str) -> tuple[Node, bytes]:
        """Return the directory that a path is to be changed in, made if missing, and its name."""
        node = self._root
        parts = path.encode("utf-8", "surrogateescape").split(b"/")
        for place, part in enumerate(parts[:-1], 1):
            child = self._child(node, part)
            if child is None:
                # A file may have stood in its place.
                self._contents.pop(b"/".join(parts[:place]).decode("utf-8", "surrogateescape"), b"")
                child = node.children[part] = Node(b"", None)
                self._nodes += 1
            node.pending[part] = child
            node = child
        return node, parts[-1]

    def lighten(self) -> None:
        """Drop contents beyond the last written; what was written must be readable as objects."""
        for path in list(self._contents)[:-_CONTENTS_MAX]:
            del self._contents[path]

    def _forget(self, path: str) -> None:
        """Forget the contents of a file, or of those in a directory."""
        for known in [p for p in self._contents if p == path or p.startswith(path + "/")]:
            del self._contents[known]

    def graft(self, path: str, tree: str) -> None:
        """Put a whole directory that git's objects hold into the place of a missing one."""
        node, name = self._above(path)
        data = self._objects.data(tree, TREE)
        node.pending[name] = node.children[name] = Node(data, bytes.fromhex(tree))
        self._nodes += 1

    def remove(self, path: str) -> None:
        """Remove a file or a whole directory; missing is no error."""
        node = self._root
        parts = path.encode("utf-8", "surrogateescape").split(b"/")
        trail: list[tuple[Node, bytes]] = []
        for part in parts[:-1]:
            child = self._child(node, part)
            if child is None:
                return
            trail.append((node, part))
            node = child
        if parts[-1] not in node.spots and parts[-1] not in node.pending:
            return
        for parent, part in trail:
            parent.pending[part] = parent.children[part]
        node.pending[parts[-1]] = None
        node.children.pop(parts[-1], None)
        self._forget(path)

    def finish(self, pack: PackBuilder) -> str:
        """Turn what changed into tree objects for the pack; return the root's id."""
        if self._root.pending:
            self._flush(self._root, pack)
        oid = self._root.oid
        return EMPTY_TREE if oid is None else oid.hex()

    def _flush(self, node: Node, pack: PackBuilder) -> None:
        before, older = node.oid, bytes(node.data)
        if not node.pending:
            return  # grafted whole
        head = tail = len(older)
        if len(node.pending) == 1:
            # One entry with a new id is the usual change, seven times a message.
            ((name, value),) = node.pending.items()
            if isinstance(value, Node) and name in node.trees:
                self._flush(value, pack)
                if value.data and value.oid is not None:
                    spot = node.spots[name]
                    node.data[spot : spot + 20] = value.oid
                    node.pending = {}
                    node.oid = hash_object(b"tree", node.data)
                    if node.oid != before:
                        pack.tree(node, older, spot, head - spot - 20)
                    return
        for name, value in node.pending.items():
            if isinstance(value, Node):
                self._flush(value, pack)
                tree, oid = True, value.oid
                if not value.data:
                    node.children.pop(name, None)
                    oid = None
            else:
                tree, oid = False, value
                if value is not None:
                    node.children.pop(name, None)
            if oid is not None:
                same_head, same_tail = node.put(name, oid, tree=tree)
            elif name in node.spots:
                same_head, same_tail = node.cut(name)
            else:
                continue
            head, tail = min(head, same_head), min(tail, same_tail)
        node.pending = {}
        node.oid = hash_object(b"tree", node.data)
        if node.oid != before:
            pack.tree(node, older, head, tail)


def walk(objects: Objects, tree: str, prefix: str = "") -> Iterator[tuple[str, int, str]]:
    """Give (path, mode, id) of every file below a tree, in the order of git's index."""
    for entry in objects.tree(tree):
        path = f"{prefix}{entry.name}"
        if entry.is_tree:
            yield from walk(objects, entry.oid, f"{path}/")
        else:
            yield path, entry.mode, entry.oid


Change = tuple[str, int, str | None, int, str | None]


def differences(
    objects: Objects, old: str, new: str, prefix: str = "", without: Container[str] = ()
) -> Iterator[Change]:
    """Give (path, old mode, old id, new mode, new id) of every file that differs.

    None stands for a file that is not there. Descends only where the ids of subtrees differ, and
    into no path of ``without``.
    """
    if old == new:
        return
    before = set() if old == NO_OBJECT else set(objects.raw_tree(old))
    after = set() if new == NO_OBJECT else set(objects.raw_tree(new))
    # Of thousands of entries few differ: only those are decoded.
    gone = {entry.name: entry for entry in map(tree_entry, before - after)}
    come = {entry.name: entry for entry in map(tree_entry, after - before)}
    for name in sorted(gone.keys() | come.keys()):
        a, b = gone.get(name), come.get(name)
        if a == b:
            continue
        path = f"{prefix}{name}"
        if path in without:
            continue
        a_tree = a.oid if a is not None and a.is_tree else NO_OBJECT
        b_tree = b.oid if b is not None and b.is_tree else NO_OBJECT
        if a_tree != b_tree:
            yield from differences(objects, a_tree, b_tree, f"{path}/", without)
        a_file = a if a is not None and not a.is_tree else None
        b_file = b if b is not None and not b.is_tree else None
        if a_file != b_file:
            yield (
                path,
                a_file.mode if a_file else FILE_MODE,
                a_file.oid if a_file else None,
                b_file.mode if b_file else FILE_MODE,
                b_file.oid if b_file else None,
            )
