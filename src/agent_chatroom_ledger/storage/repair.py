"""Mending what verify found, without losing a byte (docs/design.md 4).

The journal and the newest durable commit say what the ledger's own bytes are. What others put in
their place stays readable: commits as parents or under `refs/ledger/kept/`, files in quarantine.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from agent_chatroom_ledger.domain import rooms as room_fold
from agent_chatroom_ledger.domain.clock import to_micros
from agent_chatroom_ledger.domain.records import message_at
from agent_chatroom_ledger.errors import Corrupt
from agent_chatroom_ledger.storage import (
    artifacts,
    files,
    journalrepair,
    mainfiles,
    packlist,
    packs,
    recovery,
    refs,
    versionfold,
)
from agent_chatroom_ledger.storage.commits import (
    LEDGER_NAME,
    add_commit,
    commit_bytes,
)
from agent_chatroom_ledger.storage.layout import ATTRIBUTES_FILE, LEDGER_FILE, is_log, is_ours
from agent_chatroom_ledger.storage.objects import NO_OBJECT
from agent_chatroom_ledger.storage.packs import PackBuilder
from agent_chatroom_ledger.storage.reading import ROOMS, is_room, origins, records
from agent_chatroom_ledger.storage.source import CommitTree
from agent_chatroom_ledger.storage.trees import differences
from agent_chatroom_ledger.storage.verifycommits import RESTORED_FROM
from agent_chatroom_ledger.storage.viewpages import whole_view
from agent_chatroom_ledger.storage.writer import Writer

if TYPE_CHECKING:
    from agent_chatroom_ledger.storage.issues import Report
    from agent_chatroom_ledger.storage.layout import Layout
    from agent_chatroom_ledger.storage.source import Source

_KEPT = "refs/ledger/kept"
_REGULAR = 0o100644


def repair(layout: Layout, report: Report) -> list[str]:
    """Mend what a report names, and say in words what was done.

    Raises Busy while another program holds git's locks, and Corrupt for damage that takes
    records with it which nothing else holds: what is left of them is then in quarantine.
    """
    done: list[str] = []
    with files.clear_errors("repairing the ledger"):
        journalrepair.mend_journal(layout, done)
        writer = Writer(layout)
        try:
            with writer.committer.lock:
                _Repair(writer, report, done).run()
            writer.checkpoint()
        finally:
            writer.close()
    return done


class _Repair:
    """One repair under the commit lock."""

    def __init__(self, writer: Writer, report: Report, done: list[str]) -> None:
        self._writer = writer
        self._committer = writer.committer
        self._layout = writer.layout
        self._objects = writer.committer.objects
        self._report = report
        self._done = done
        self._sources: dict[str, None] = {}  # commits whose bytes are put back

    def run(self) -> None:
        """Mend HEAD, main, main's tree, the work tree and the index, in this order."""
        self._mend_head()
        self._committer.intake.refresh()
        self._committer.take_index_lock()
        truth = self._truth()
        tip = self._mend_main(truth)
        self._mend_tree(truth, tip)
        self._committer.commit_locked(checkpoint_foreign=False)
        self._done += mainfiles.write_anew(self._layout, self._objects, self._committer.builder.tip)

    def _keep(self, commit: str) -> None:
        """Keep a commit that nothing may name any more."""
        name = f"{_KEPT}/{commit[:16]}"
        if refs.read_ref(self._layout, name) == NO_OBJECT:
            refs.move(self._layout, name, NO_OBJECT, commit, sync=True)

    def _mend_head(self) -> None:
        layout = self._layout
        found = refs.head(layout)
        if found == refs.MAIN:
            return
        if len(found) == len(NO_OBJECT) and self._objects.has(found):
            self._keep(found)
        refs.point_head_at_main(layout)
        self._done.append(f"pointed HEAD at main again; it was {found or 'unreadable'}")

    def _truth(self) -> str:
        """Return the newest commit that the journal makes on its durable base."""
        header = self._committer.intake.header
        if not self._objects.has(header.base):
            raise Corrupt(
                f"the durable commit {header.base[:12]} is gone from git's objects; restore "
                ".git/objects from a backup or a clone, then repair again",
                code="missing_object",
                object=header.base,
            )
        tips = recovery.replay(self._committer)
        return list(tips)[-1]

    def _mend_main(self, truth: str) -> str:
        """Let main descend from the truth; return what it names then."""
        layout, objects = self._layout, self._objects
        try:
            main = refs.read_main(layout)
        except Corrupt:
            main = NO_OBJECT
        if main == truth:
            return main
        if main == NO_OBJECT or not objects.has(main):
            refs.replace_main(layout, truth)
            self._done.append(f"main was lost; it is {truth[:12]} again")
            return truth
        if recovery.descends(objects, main, truth):
            return main
        if recovery.descends(objects, truth, main):
            refs.move(layout, refs.MAIN, main, truth)
            self._done.append(f"moved main forward again, from {main[:12]} to {truth[:12]}")
            return truth
        self._keep(main)
        merged = self._reunite(truth, main)
        refs.move(layout, refs.MAIN, main, merged)
        self._done.append(
            f"reunited {truth[:12]}, where the ledger was, with {main[:12]}, where main was"
        )
        return merged

    def _reunite(self, truth: str, main: str) -> str:
        """Make a commit with both parents: our paths from the truth, the user's from main."""
        builder = self._committer.builder
        builder.start(truth)
        pack = PackBuilder()
        trees = (self._objects.commit(truth).tree, self._objects.commit(main).tree)
        for path, _, old, mode, new in differences(self._objects, *trees):
            if new is None or mode != _REGULAR:
                continue
            if not is_ours(path) or (is_log(path) and self._may_take(path, old, new)):
                builder.editor.write(path, self._objects.blob(new), pack)
        commit = self._commit(pack, (truth, main), f"Reunite main with {main[:12]}\n")
        self._store(pack)
        return commit

    def _may_take(self, path: str, old: str | None, new: str) -> bool:
        """Tell whether another branch's segment only adds records of another origin."""
        if path.rsplit("/", 4)[1] == self._writer.origin:
            return False
        before = b"" if old is None else self._objects.blob(old)
        return self._objects.blob(new).startswith(before)

    def _commit(self, pack: PackBuilder, parents: tuple[str, ...], message: str) -> str:
        present, builder = self._committer.present, self._committer.builder
        seconds = to_micros(present.newest_at) // 1_000_000
        tree = builder.editor.finish(pack)
        return add_commit(
            pack,
            commit_bytes(
                tree,
                parents,
                message,
                author=LEDGER_NAME,
                said=seconds,
                origin=builder.origin,
                at=seconds,
            ),
        )

    def _store(self, pack: PackBuilder) -> None:
        name, data, index = pack.finish()
        packlist.note(self._layout, name, 1)
        packs.store(self._layout, name, data, index, sync=True)
        packs.release(self._layout, (name,))
        self._objects.forget()

    def _mend_tree(self, truth: str, tip: str) -> None:
        """Put logs and rooms back in main's tree, and fold what does not fit them again."""
        builder, objects = self._committer.builder, self._objects
        builder.start(tip)
        pack = PackBuilder()
        back: list[str] = []
        rooms: set[str] = set()
        trees = (objects.commit(truth).tree, objects.commit(tip).tree)
        for path, _, old, mode, new in differences(objects, *trees):
            if not is_ours(path):
                continue
            room = _room_of(builder.editor, path)
            if room:
                rooms.add(room)
            if path in (LEDGER_FILE, ATTRIBUTES_FILE) and old is not None:
                builder.editor.write(path, objects.blob(old), pack)
                back.append(path)
            elif is_log(path) and self._put_back(path, old, mode, new, pack):
                back.append(path)
                rooms.add(path.rsplit("/", 5)[0] if path.startswith(ROOMS) else "")
        rooms |= self._rooms_in_report()
        back += [
            room
            for room in self._missing_rooms()
            if not is_room(builder.editor, room) and self._graft(room, tip)
        ]
        for path in {i.path for i in self._report.issues if i.code == "artifact_missing"}:
            data = artifacts.of_history(objects, tip, path)
            if data is not None:
                builder.editor.write(path, data, pack)
                back.append(path)
        folded = [room for room in sorted(rooms - {""}) if self._fold(room, pack)]
        self._committer.builder.editor.finish(pack)
        if not pack and not back:
            self._settle(tip)
            return
        if back:
            self._sources[truth] = None
        message = (
            f"Repair: {len(back)} paths put back, {len(folded)} rooms folded again\n\n"
            + "".join(f"Room: {room}\n" for room in folded[:100])
            + "".join(f"{RESTORED_FROM}: {commit}\n" for commit in self._sources)
        )
        commit = self._commit(pack, (tip,), message)
        self._store(pack)
        refs.move(self._layout, refs.MAIN, tip, commit)
        self._settle(commit)
        self._done += [f"put back {path} in main" for path in back]
        self._done += [f"folded {room} again in main" for room in folded]

    def _put_back(
        self, path: str, old: str | None, mode: int, new: str | None, pack: PackBuilder
    ) -> bool:
        """Let a segment hold the ledger's bytes again; True when it did not.

        In this origin's logs only the ledger writes. Those of others may have grown by a merge.
        """
        editor, objects = self._committer.builder.editor, self._objects
        right = None if old is None else objects.blob(old)
        found = None if new is None or mode != _REGULAR else objects.blob(new)
        if path.rsplit("/", 4)[1] == self._writer.origin:
            if found == right:
                return False
        elif right is None or (found is not None and found.startswith(right)):
            return False
        if right is None:
            editor.remove(path)
        else:
            editor.write(path, right, pack)
        return True

    def _settle(self, commit: str) -> None:
        """Let the commit path go on from here."""
        builder = self._committer.builder
        builder.start(commit)
        frames = self._committer.intake.frames
        last = frames[-1].frame if frames else self._committer.intake.header.last_frame
        self._committer.remember(last)

    def _rooms_in_report(self) -> set[str]:
        editor = self._committer.builder.editor
        return {_room_of(editor, issue.path) for issue in self._report.issues if issue.path}

    def _missing_rooms(self) -> list[str]:
        return [i.path for i in self._report.issues if i.code == "room_missing"]

    def _graft(self, room: str, tip: str) -> bool:
        """Put a room back as it was in the newest commit that has it."""
        seen, waiting = {tip}, [tip]
        while waiting and len(seen) < recovery.FOREIGN_COMMITS_MAX:
            oid = waiting.pop(0)
            tree = CommitTree(self._objects, oid).oid(room)
            if tree is not None:
                self._committer.builder.editor.graft(room, tree)
                self._sources[oid] = None
                return True
            for parent in self._objects.commit(oid).parents:
                if parent not in seen:
                    seen.add(parent)
                    waiting.append(parent)
        return False

    def _fold(self, room: str, pack: PackBuilder) -> bool:
        """Write a room's projections anew; True when one of them was not the fold."""
        editor = self._committer.builder.editor
        messages = []
        for origin in origins(editor, room, "operations"):
            for n, line in records(editor, f"{room}/operations/{origin}"):
                if message := message_at(line, origin, "operations", n, primary=False):
                    messages.append(message)
        if not messages:
            return False
        state = room_fold.fold_room(messages)
        right = {
            f"{room}/room.json": room_fold.room_json(state),
            f"{room}/policy.json": room_fold.policy_json(state),
        }
        right |= {f"{room}/view/{name}": data for name, data in whole_view(editor, state).items()}
        right |= versionfold.projections(editor, room)
        changed = False
        for path, data in right.items():
            if editor.read(path) != data:
                editor.write(path, data, pack)
                changed = True
        for year in editor.names(f"{room}/view"):
            directory = f"{room}/view/{year.rstrip('/')}"
            for name in editor.names(directory):
                if f"{directory}/{name}" not in right:
                    editor.remove(f"{directory}/{name}")
                    changed = True
        for path in versionfold.projected_paths(editor, room):
            if path not in right:
                editor.remove(path)
                changed = True
        return changed


def _room_of(editor: Source, path: str) -> str:
    """Return the room that a path lies in, empty for none."""
    while path.startswith(f"{ROOMS}/"):
        if is_room(editor, path):
            return path
        path = path.rpartition("/")[0]
    return ""
