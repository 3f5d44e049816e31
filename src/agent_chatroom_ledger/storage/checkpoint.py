"""A checkpoint: views, work tree, durability, index, next generation (docs/design.md 4).

After it the work tree and git's index equal main (invariant 4).
"""

from __future__ import annotations

import os
from bisect import bisect_left
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import msgspec

from agent_chatroom_ledger.domain.frames import Frame, Header, ViewMark, encode_frame
from agent_chatroom_ledger.domain.records import decode_record
from agent_chatroom_ledger.domain.tombstones import ROOM_ARCHIVE, ROOM_RESTORE
from agent_chatroom_ledger.storage import (
    artifacts,
    attic,
    failpoints,
    files,
    foreign,
    gitindex,
    packlist,
    packs,
    reading,
    refs,
    showing,
)
from agent_chatroom_ledger.storage.commits import COMMIT_FORMAT
from agent_chatroom_ledger.storage.layout import is_ours, room_of_log
from agent_chatroom_ledger.storage.objects import FILE_MODE, NO_OBJECT
from agent_chatroom_ledger.storage.overlay import number_of
from agent_chatroom_ledger.storage.source import CommitTree
from agent_chatroom_ledger.storage.trees import EMPTY_TREE, differences, walk
from agent_chatroom_ledger.storage.worktree import WorkTreeWriter, blob_id

if TYPE_CHECKING:
    from collections.abc import Container, Iterable, Iterator, Mapping, Sequence

    from agent_chatroom_ledger.storage.committer import Committer
    from agent_chatroom_ledger.storage.layout import Layout
    from agent_chatroom_ledger.storage.source import Source
    from agent_chatroom_ledger.storage.trees import Change


class Checkpoint:
    """One checkpoint under the commit lock, after everything pending was committed."""

    def __init__(self, committer: Committer) -> None:
        """Work for the holder of the commit lock."""
        self._committer = committer
        self._layout = committer.layout
        self._objects = committer.objects

    def run(self, views: Sequence[str] = (), *, views_too: bool = True) -> None:
        """Make the checkpoint; nothing is done when nothing has happened since the last one.

        The pages of the rooms named in `views` are looked at in the work tree, and those that
        somebody changed or deleted are written again.
        """
        committer, layout = self._committer, self._layout
        base = committer.intake.header.base
        locked = refs.ours(layout, f"{layout.git}/index.lock")
        if views_too:
            self._compile(views)
        else:
            # The next generation does not hold what is committed, so its rooms are noted here.
            done = [f for f in committer.intake.frames if f.frame <= committer.committed()]
            committer.views_owed.update(dict.fromkeys(_rooms_of(done)))
        main = committer.builder.tip
        spoiled = self._spoiled(views, main)
        if main == base and not (locked or spoiled or committer.intake.frames):
            return
        committer.take_index_lock()
        with files.clear_errors("making a checkpoint"):
            self._bring_up(base, main, spoiled)
            failpoints.reach("checkpoint.durable")
            if committer.met_foreign:
                foreign.mark(layout, main, committer.intake.generation + 1)
                failpoints.reach("checkpoint.marked")
            self._rotate(main)
            showing.clear(layout)
            committer.met_foreign = False
            if main != NO_OBJECT:
                waiting = committer.intake.frames
                artifacts.sweep(layout, CommitTree(self._objects, main), waiting)
        failpoints.reach("checkpoint.rotated")
        refs.drop_mark(layout, f"{layout.git}/index.lock")
        # Packs that stay mapped count as memory, and keep their space on disk when a merge has
        # deleted them.
        self._objects.forget()
        failpoints.reach("checkpoint.done")

    def _compile(self, views: Sequence[str]) -> None:
        """Append and commit a view frame for every room that was written to or restored."""
        committer = self._committer
        rooms = dict.fromkeys([*views, *committer.views_owed, *_rooms_of(committer.intake.frames)])
        editor = committer.builder.editor
        marks: dict[str, ViewMark] = {}
        for room in rooms:
            if not editor.names(f"{room}/operations"):
                continue
            mark = _mark_in(editor, room)
            if not committer.builder.has(_frame_of((mark,), 1, "")):
                marks[room] = mark
        committer.views_owed.clear()
        if not marks:
            return
        journal, intake = committer.journal, committer.intake
        with files.clear_errors("writing to the journal"), journal.lock:
            intake.refresh()
            journal.settle()
            with intake.mutex:
                # What came since is committed before the view, and the next generation does not
                # hold it: nobody else would show it.
                self._cover(marks, intake.after(committer.committed()))
                if not marks:
                    return  # it was of rooms that are archived now
                number = intake.last_frame + 1
                frame = _frame_of(tuple(marks.values()), number, committer.present.next_time())
                end = journal.append(intake.offset, encode_frame(frame))
                intake.accept((frame,), end)
        failpoints.reach("checkpoint.view_appended")
        # What comes after the view is left to the next generation, and to its views.
        committer.commit_locked(checkpoint_foreign=False, through=number)

    def _cover(self, marks: dict[str, ViewMark], frames: Iterable[Frame]) -> None:
        """Let the marks reach to the end of frames that the tip lacks, as if they were there."""
        editor = self._committer.builder.editor
        gone: set[str] = set()
        for frame in frames:
            for item in frame.records:
                room = room_of_log(item.log)
                if room is None:
                    data = _of_whole_room(bytes(item.record))
                    if data is None:
                        continue
                    room = str(data["path"])
                    gone.add(room)
                    marks.pop(room, None)
                    if "commit" in data:
                        kept = CommitTree(self._objects, str(data["commit"]))
                        marks[room] = _mark_in(kept, str(data["from"]), room)
                    continue
                mark = marks.get(room)
                if mark is None:
                    if room in gone:
                        mark = ViewMark(room=room, messages={}, operations={})
                    else:
                        mark = _mark_in(editor, room)
                _, log, origin = item.log.rsplit("/", 2)
                reached = {**getattr(mark, log), origin: number_of(bytes(item.record))}
                marks[room] = msgspec.structs.replace(mark, **{log: reached})

    def _spoiled(self, views: Sequence[str], main: str) -> dict[str, str]:
        """Return the pages of some rooms, and their blobs, that the work tree shows otherwise."""
        found: dict[str, str] = {}
        source = CommitTree(self._objects, main) if views and main != NO_OBJECT else None
        if source is None:
            return found
        with WorkTreeWriter(self._layout) as work:
            for room in views:
                view = source.oid(f"{room}/view")
                for name, _, oid in () if view is None else walk(self._objects, view):
                    path = f"{room}/view/{name}"
                    data = work.read(path)
                    if data is None or blob_id(data) != oid:
                        found[path] = oid
        return found

    def _bring_up(self, base: str, main: str, spoiled: Mapping[str, str]) -> None:
        """Let work tree and index show main, and make everything durable."""
        steps = [c for c in showing.noted(self._layout) if self._objects.has(c)]
        if base != main:
            showing.note(self._layout, (main,))
        moved = self._move_rooms(base, main, whole=not steps)
        changes = self._changes((base, *steps, main), moved)
        for inside in moved.values():
            changes.update((path, (mode, new, {old})) for path, _, old, mode, new in inside)
        entries: dict[str, gitindex.Entry | None] = {}
        with WorkTreeWriter(self._layout) as tree:
            # Logs first: a reader that finds a projection finds what it was folded from.
            for path in sorted(changes, key=lambda path: (not path.endswith(".jsonl"), path)):
                mode, new, known = changes[path]
                before = self._before(tree, path, known)
                if new is None:
                    tree.remove(path, before)
                    entries[path] = None
                elif mode == FILE_MODE:
                    data = self._objects.blob(new)
                    status = tree.put(path, before, data)
                    # The stat vouches for the content, so it is noted only if the sizes agree.
                    same = status.st_size == len(data)
                    entries[path] = gitindex.Entry(mode, new, status if same else None)
                else:
                    entries[path] = gitindex.Entry(mode, new)
            for path in spoiled.keys() - entries.keys():
                data = self._objects.blob(spoiled[path])
                status = tree.put(path, None, data)
                same = status.st_size == len(data)
                entries[path] = gitindex.Entry(FILE_MODE, spoiled[path], status if same else None)
            tree.sync()
        failpoints.reach("checkpoint.files")
        sync_objects(self._layout, base, main)
        failpoints.reach("checkpoint.synced")
        self._refresh_index(base, main, entries)

    def _changes(
        self, steps: Sequence[str], moved: Container[str]
    ) -> dict[str, tuple[int, str | None, set[str | None]]]:
        """Return mode and id in the last of some commits of every file of ours that changes.

        With them all ids that the file had before: the work tree may show any of these.
        """
        changes: dict[str, tuple[int, str | None, set[str | None]]] = {}
        trees = [self._tree(commit) for commit in steps]
        for before, after in pairwise(trees):
            for path, _, old, mode, new in differences(self._objects, before, after, without=moved):
                if is_ours(path):
                    known = changes[path][2] if path in changes else set[str | None]()
                    changes[path] = mode, new, known | {old}
        return changes

    def _before(self, tree: WorkTreeWriter, path: str, known: set[str | None]) -> bytes | None:
        """Return the one of some contents that a file has; None for another, or for no file."""
        oids = [oid for oid in known if oid is not None]
        if len(known) == 1:
            return self._objects.blob(oids[0]) if oids else None
        present = tree.read(path)
        return present if present is not None and blob_id(present) in oids else None

    def _move_rooms(self, base: str, main: str, *, whole: bool) -> dict[str, list[Change]]:
        """Put archived rooms' directories aside and restored ones back, each in one step.

        Returns their paths, each with what is left to be done in it file by file. Only those that
        are `whole` are put aside: with no file in them that an unfinished checkpoint has written.
        """
        named = {
            str(data.get("path")): data
            for frame in self._committer.intake.frames
            for item in frame.records
            if room_of_log(item.log) is None
            for data in (_of_whole_room(bytes(item.record)),)
            if data is not None
        }
        moved: dict[str, list[Change]] = {}
        if not named or base == NO_OBJECT:
            return moved
        self._committer.met_foreign = True  # whoever follows the journal alone reads rooms anew
        before, after = CommitTree(self._objects, base), CommitTree(self._objects, main)
        for path, data in named.items():
            was, now = before.oid(path), after.oid(path)
            index = gitindex.read_to_keep(self._layout)
            changed: bytes | None = None
            standing = NO_OBJECT
            if was is not None and now is None and whole:
                changed = attic.put_aside(self._layout, path, was, index)
            elif was is None and now is not None and data.get("from") == path:
                kept = CommitTree(self._objects, str(data["commit"])).oid(path)
                if kept is not None:
                    changed = attic.bring_back(self._layout, path, kept, index)
                    standing = kept
            if changed is None:
                continue
            gitindex.write(self._layout, changed, sync=True)
            moved[path] = list(differences(self._objects, standing, now or NO_OBJECT, f"{path}/"))
        return moved

    def _tree(self, commit: str) -> str:
        return NO_OBJECT if commit == NO_OBJECT else self._objects.commit(commit).tree

    def _refresh_index(
        self, base: str, main: str, entries: Mapping[str, gitindex.Entry | None]
    ) -> None:
        layout = self._layout
        data = gitindex.read_to_keep(layout)
        if data is None:
            data = self.index_of(main, ())
        elif entries:
            names = _Neighbours(self._committer.builder.editor)
            last = None
            if base != NO_OBJECT:
                last = _Neighbours(CommitTree(self._objects, base)).last()
            patched = gitindex.patched(data, entries, names.before, last)
            data = self.index_of(main, entries.items()) if patched is None else patched
        else:
            return
        # Durable before the generation that builds on it: nobody looks at all of it after a cut.
        gitindex.write(layout, data, sync=True)

    def index_of(self, main: str, entries: Iterable[tuple[str, gitindex.Entry | None]]) -> bytes:
        """Lay out a plain index of main, with the stats of files that are known to equal it."""
        known = dict(entries)
        raw: list[tuple[str, bytes]] = []
        tree = self._tree(main)
        with WorkTreeWriter(self._layout) as work:
            for path, mode, oid in (
                () if tree in (NO_OBJECT, EMPTY_TREE) else walk(self._objects, tree)
            ):
                entry = known.get(path)
                if entry is None or entry.oid != oid:
                    data = work.read(path)
                    status = None
                    if data is not None and blob_id(data) == oid:
                        status = os.lstat(self._layout.root / path)
                        if status.st_size != len(data):
                            status = None
                    entry = gitindex.Entry(mode, oid, status)
                raw.append((path, gitindex.raw_entry(path, entry)))
        return gitindex.plain(raw)

    def _rotate(self, main: str) -> None:
        """Start the next generation on main, with the frames that main lacks."""
        committer = self._committer
        journal, intake = committer.journal, committer.intake
        with journal.lock:
            intake.refresh()
            journal.settle()
            with intake.mutex:
                committed = committer.committed()
                carried = intake.after(committed)
                header = Header(
                    generation=intake.generation + 1,
                    base=main,
                    newest_at=committer.present.newest_at,
                    last_frame=committed,
                    commit_format=COMMIT_FORMAT,
                    origin=committer.present.origin,
                )
                journal.mend_tail(intake.offset)
                journal.start(header, [encode_frame(frame) for frame in carried])
                intake.refresh()
        journal.trim()


def sync_objects(layout: Layout, base: str, main: str) -> None:
    """Make packs, their directory, main and our anchor durable; the commit lock is held."""
    packs.release_forgotten(layout)
    refs.drop_forgotten(layout)
    files.sweep_temporary(layout)
    fresh = [pack.name for pack in packlist.read(layout) if not pack.synced]
    files.sync_paths(
        f"{layout.packs}/pack-{name}.{suffix}" for name in fresh for suffix in ("pack", "idx")
    )
    if fresh:
        files.sync_directory(layout.packs)
    refs.sync_main(layout)
    if fresh:
        packlist.note_synced(layout)
    if base != main:
        tip = refs.read_ref(layout, refs.TIP)
        refs.move(layout, refs.TIP, tip, main, sync=True)


def _of_whole_room(line: bytes) -> dict[str, Any] | None:
    """Return the data of a record that archives or restores a room, None for any other."""
    record = decode_record(line)
    return record.data if record.kind in (ROOM_ARCHIVE, ROOM_RESTORE) else None


def _rooms_of(frames: Iterable[Frame]) -> Iterator[str]:
    """Give the rooms that frames write to or put back; an older view comes back with a tree."""
    for frame in frames:
        for item in frame.records:
            room = room_of_log(item.log)
            if room is not None:
                yield room
            elif (data := _of_whole_room(bytes(item.record))) is not None:
                yield str(data["path"])


def _mark_in(source: Source, place: str, room: str = "") -> ViewMark:
    """Return how far the logs of a room reach that lies at a place in a tree."""
    messages, operations = (
        {
            origin: reading.last_number(source, f"{place}/{log}/{origin}")
            for origin in reading.origins(source, place, log)
        }
        for log in ("messages", "operations")
    )
    return ViewMark(room=room or place, messages=messages, operations=operations)


def _frame_of(marks: tuple[ViewMark, ...], number: int, at: str) -> Frame:
    return Frame(frame=number, at=at, views=marks)


class _Neighbours:
    """Finds the file that stands before another in the order of git's index, in a tree."""

    def __init__(self, editor: Source) -> None:
        self._editor = editor
        self._known: dict[str, list[tuple[bytes, str]]] = {}

    def _ordered(self, directory: str) -> list[tuple[bytes, str]]:
        """Return the names in a directory with their bytes, by which git sorts; read once."""
        found = self._known.get(directory)
        if found is None:
            names = self._editor.names(directory)
            found = sorted([(name.encode("utf-8", "surrogateescape"), name) for name in names])
            self._known[directory] = found
        return found

    def _last_below(self, directory: str) -> str | None:
        names = self._ordered(directory)
        if not names:
            return None
        path = f"{directory}/{names[-1][1]}" if directory else names[-1][1]
        return self._last_below(path[:-1]) if path.endswith("/") else path

    def last(self) -> str | None:
        """Return the last file of all."""
        return self._last_below("")

    def before(self, path: str) -> str | None:
        """Return the file just before a path; None for the first of all."""
        directory, name = "", path
        best: str | None = None
        while True:
            head, slash, rest = name.partition("/")
            own = (head + slash).encode("utf-8", "surrogateescape")
            ordered = self._ordered(directory)
            place = bisect_left(ordered, (own, ""))
            if place:
                earlier = ordered[place - 1][1]
                found = f"{directory}/{earlier}" if directory else earlier
                best = self._last_below(found[:-1]) if found.endswith("/") else found
            if not slash:
                return best
            directory = f"{directory}/{head}" if directory else head
            name = rest
