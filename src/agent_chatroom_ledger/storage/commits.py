"""Frames turned into commits: a pure function of the parent and the frame (invariant 5).

Nothing here reads a clock, and nothing that the parent's tree does not say is taken into account,
so replaying a frame on the same parent gives the same commit id.
"""

from __future__ import annotations

import binascii
from collections import deque
from typing import TYPE_CHECKING

from agent_chatroom_ledger import limits
from agent_chatroom_ledger.domain import rooms as room_fold
from agent_chatroom_ledger.domain.clock import to_micros
from agent_chatroom_ledger.domain.names import git_identity
from agent_chatroom_ledger.domain.order import order_key
from agent_chatroom_ledger.domain.records import decode_record, message_at, message_of
from agent_chatroom_ledger.domain.segments import segment_path
from agent_chatroom_ledger.domain.subjects import frame_message, record_message, view_message
from agent_chatroom_ledger.domain.tombstones import (
    ROOM_ARCHIVE,
    ROOM_RESTORE,
    Tombstone,
    encode_tombstone,
    restores_room,
    tombstone_path,
)
from agent_chatroom_ledger.errors import Corrupt
from agent_chatroom_ledger.storage import artifacts, reading
from agent_chatroom_ledger.storage.layout import room_of_log
from agent_chatroom_ledger.storage.objects import NO_OBJECT
from agent_chatroom_ledger.storage.source import CommitTree
from agent_chatroom_ledger.storage.tails import Tails
from agent_chatroom_ledger.storage.trees import TreeEditor, hash_object
from agent_chatroom_ledger.storage.viewpages import update_pages, view_covers

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from agent_chatroom_ledger.domain.frames import Frame, ViewMark
    from agent_chatroom_ledger.domain.order import OrderKey
    from agent_chatroom_ledger.domain.records import Message, Record
    from agent_chatroom_ledger.domain.roomstate import RoomState
    from agent_chatroom_ledger.domain.versions import Bundle
    from agent_chatroom_ledger.storage.objects import Objects
    from agent_chatroom_ledger.storage.packs import PackBuilder

COMMIT_FORMAT = 1
LEDGER_NAME = "Ledger"
_NODES_MAX = 20_000
_ANCESTORS_MAX = 10_000  # commits among which a room that was removed is looked for


def commit_bytes(
    tree: str,
    parents: tuple[str, ...],
    message: str,
    *,
    author: str,
    said: int,
    origin: str,
    at: int,
) -> bytes:
    """Lay out a commit object; times are whole seconds, the committer is the ledger."""
    name, email = git_identity(author, origin)
    ledger, ledger_email = git_identity(LEDGER_NAME, origin)
    head = "".join([f"parent {parent}\n" for parent in parents])
    return (
        f"tree {tree}\n{head}author {name} <{email}> {said} +0000\n"
        f"committer {ledger} <{ledger_email}> {at} +0000\n\n{message}"
    ).encode()


def _seconds(at: str) -> int:
    return max(to_micros(at) // 1_000_000, 0)  # git knows no time before 1970


def batches(frames: Sequence[Frame]) -> Iterator[Sequence[Frame]]:
    """Cut frames into packs: at most 500, and a restored room's objects are stored before it."""
    start = 0
    for place, frame in enumerate(frames):
        full = place - start >= limits.BATCH_FRAMES_MAX
        if place > start and (full or restores_room(frame)):
            yield frames[start:place]
            start = place
    if start < len(frames):
        yield frames[start:]


def add_commit(pack: PackBuilder, data: bytes) -> str:
    """Hand a commit to the pack and return its id."""
    oid = hash_object(b"commit", data)
    pack.commit(oid, data)
    return binascii.hexlify(oid).decode("ascii")


class CommitBuilder:
    """Builds one commit after another on a tip, and keeps the tip's directories in memory."""

    def __init__(self, objects: Objects, origin: str) -> None:
        """Begin with nothing; `start` names the tip."""
        self._objects = objects
        self.origin = origin
        self._rooms: dict[str, RoomState] = {}
        # The newest operation that each of these states has, in canonical order.
        self._newest: dict[str, OrderKey] = {}
        self.tip = ""
        self._began = NO_OBJECT  # from here on every commit up to the tip is ours
        self._taken_from: dict[str, None] = {}
        self.editor: TreeEditor
        self._tails: Tails

    def start(self, commit: str) -> None:
        """Build on this commit; the zero id stands for an unborn branch."""
        self._rooms.clear()
        self.tip = ""
        tree = NO_OBJECT if commit == NO_OBJECT else self._objects.commit(commit).tree
        self.editor = TreeEditor(self._objects, tree)
        self._tails = Tails(self.editor)
        self.tip = self._began = commit

    def forget(self) -> None:
        """Trust nothing that was built: the next user has to start anew."""
        self.tip = ""

    def lighten(self) -> None:
        """Drop what is held in memory when it has become much; the tip must be readable."""
        self.editor.lighten()
        if self.editor.nodes > _NODES_MAX:
            self.start(self.tip)

    def has(self, frame: Frame) -> bool:
        """Tell whether the tip holds a frame: it holds the frame's last record."""
        if frame.records:
            last = frame.records[-1]
            n = decode_record(bytes(last.record)).n
            return reading.last_number(self.editor, last.log) >= n
        return all(view_covers(self.editor, mark) for mark in frame.views)

    def add(self, frame: Frame, pack: PackBuilder) -> bool:
        """Build the frame's commit on the tip and make it the tip.

        False when the tip holds it already, or when a view frame changes nothing: it makes no
        commit. Raises Corrupt when a record does not follow its log's last one; the builder then
        has to be started anew.
        """
        if frame.views:
            return self._add_views(frame, pack)
        if self._is_there(frame):
            return False
        entries: list[tuple[str, Record]] = []
        touched: dict[str, None] = {}
        trailers = ""
        self._taken_from.clear()
        for item in frame.records:
            line = bytes(item.record)
            record = decode_record(line)
            self._append(item.log, record.n, line, pack)
            for name in record.artifacts:
                self._attach(name, pack)
            entries.append((item.log, record))
            room = room_of_log(item.log)
            if room is None:
                trailers += self._change_rooms(record, pack)
            elif "/operations/" in item.log:
                touched[room] = None
                self._apply(room, item.log, line, pack)
                if record.kind.startswith("versions."):
                    self._apply_versions(room, item.log, line, pack)
        self._tails.write(pack)
        for room in touched:
            state = self._rooms[room]
            self.editor.write(f"{room}/room.json", room_fold.room_json(state), pack)
            self.editor.write(f"{room}/policy.json", room_fold.policy_json(state), pack)
        trailers += "".join([f"Restored-from: {commit}\n" for commit in self._taken_from])
        log, record = entries[0]
        if len(entries) == 1:
            message = record_message(log, record, frame.frame, frame.requested_by, frame.reason)
        else:
            message = frame_message(frame, entries)
        at = _seconds(record.at)
        said = _seconds(record.said_at) if record.said_at else at
        self._commit(pack, record.author, said, at, message + trailers)
        return True

    def _change_rooms(self, record: Record, pack: PackBuilder) -> str:
        """Take a room out of the tree or put one back, as the ledger's own log says.

        Returns the trailers that say where a restored tree comes from.
        """
        data = record.data or {}
        if record.kind in (ROOM_ARCHIVE, ROOM_RESTORE):
            self._tails.write(pack)
        if record.kind == ROOM_ARCHIVE:
            self._archive(str(data["path"]), record, pack)
        elif record.kind == ROOM_RESTORE:
            path, source, commit = str(data["path"]), str(data["from"]), str(data["commit"])
            tree = CommitTree(self._objects, commit).oid(source)
            if tree is None:
                raise Corrupt(f"{commit} has no {source} to restore", commit=commit, path=source)
            self.editor.remove(path)
            self._forget_room(path)
            self.editor.graft(path, tree)
            self.editor.remove(tombstone_path(str(data["id"])))
            elsewhere = f"Restored-path: {source}\n" if source != path else ""
            return f"Restored-from: {commit}\n{elsewhere}"
        return ""

    def _archive(self, path: str, record: Record, pack: PackBuilder) -> None:
        state = self.room(path)
        tombstone = Tombstone(
            id=state.id,
            title=state.title,
            path=path,
            members=state.members,
            messages=self._positions(path, "messages"),
            operations=self._positions(path, "operations"),
            commit=self.tip,
            archived_at=record.at,
            archived_by=record.author,
            reason=str((record.data or {}).get("reason", "")),
        )
        self.editor.write(tombstone_path(state.id), encode_tombstone(tombstone), pack)
        self.editor.remove(path)
        self._forget_room(path)

    def _forget_room(self, path: str) -> None:
        self._rooms.pop(path, None)
        self._tails.forget(path)

    def _is_there(self, frame: Frame) -> bool:
        """Tell whether the tip holds the very bytes of a frame's last record."""
        log = frame.records[-1].log
        tail = self._tails.known(log)
        line = bytes(frame.records[-1].record)
        if tail is not None and line.startswith(b'{"n":%d,' % (tail.last + 1)):
            return False  # the usual case: it is the next one
        n = decode_record(line).n
        if n > reading.last_number(self.editor, log):
            return False
        if reading.record(self.editor, log, n) != line:
            raise Corrupt(
                f"record {n} of {log} in main is not the one in the journal; run "
                "`rooms verify --repair --apply`",
                code="forked_record",
                log=log,
                n=n,
            )
        return True

    def _commit(self, pack: PackBuilder, author: str, said: int, at: int, message: str) -> None:
        tree = self.editor.finish(pack)
        parents = () if self.tip == NO_OBJECT else (self.tip,)
        self.tip = add_commit(
            pack,
            commit_bytes(
                tree, parents, message, author=author, said=said, origin=self.origin, at=at
            ),
        )

    def _attach(self, name: str, pack: PackBuilder) -> None:
        """Commit an artifact with the first record that names it."""
        path = artifacts.artifact_path(name)
        if self.editor.oid(path) is None:
            data = artifacts.required(self._objects.layout, name)
            self.editor.write(path, data, pack)

    def _apply_versions(self, room: str, log: str, line: bytes, pack: PackBuilder) -> None:
        """Fold one more operation on versions, which `_apply` has taken in (invariant 2)."""
        from agent_chatroom_ledger.domain.versions import bundle_json, versions_path
        from agent_chatroom_ledger.storage import versionfold

        message = message_of(line, log.rpartition("/")[2], "operations", primary=False)
        found: dict[tuple[str, int], Bundle | None] = {}
        key = versionfold.applied(
            found, message, lambda name: artifacts.committed(self.editor, name)
        )
        if key is None:
            return
        bundle = found[key]
        if order_key(message) < self._newest[room]:
            self._tails.write(pack)
            bundle = versionfold.folded(self.editor, room).get(key)
        path = versions_path(room, *key)
        if bundle is None:
            self.editor.remove(path)
        else:
            self.editor.write(path, bundle_json(bundle), pack)

    def _add_views(self, frame: Frame, pack: PackBuilder) -> bool:
        pages: dict[str, int] = {}
        for mark in frame.views:
            gone = not self.editor.names(mark.room)  # a foreign commit removed it
            if gone or view_covers(self.editor, mark):
                continue
            changed = update_pages(self.editor, self._room_at(mark), mark, self.origin)
            for name, data in changed.items():
                path = f"{mark.room}/view/{name}"
                if data is None:
                    self.editor.remove(path)
                else:
                    self.editor.write(path, data, pack)
            if changed:
                pages[mark.room] = len(changed)
        if not pages:
            return False
        at = _seconds(frame.at)
        self._commit(pack, LEDGER_NAME, at, at, view_message(frame, pages))
        return True

    def place_of(self, log: str, n: int) -> str:
        """Return the path of the segment that a log's next record goes into."""
        tail = self._tails.of(log)
        return tail.path if tail.takes(n) else f"{log}/{segment_path(n)}"

    def _append(self, log: str, n: int, line: bytes, pack: PackBuilder) -> None:
        last = self._tails.of(log).last
        if n != last + 1:
            self._tails.write(pack)
            if self._take_back(log, n - 1):
                last = self._tails.of(log).last
        if n != last + 1:
            raise Corrupt(
                f"record {n} of {log} does not follow record {last}; run `rooms verify`",
                code="number_gap",
                log=log,
                n=n,
            )
        self._tails.append(log, n, line, pack)

    def _take_back(self, log: str, last: int) -> bool:
        """Put a room back that a foreign commit removed while it had frames pending.

        It comes from the nearest ancestor whose log reaches up to `last`, so that a replay takes
        the same one. True when there was one.
        """
        place = room_of_log(log) or log
        if self.editor.names(place):
            return False
        seen, waiting = {self._began, NO_OBJECT}, deque([self._began])
        while waiting and len(seen) < _ANCESTORS_MAX:
            oid = waiting.popleft()
            source = CommitTree(self._objects, oid)
            tree = source.oid(place)
            if tree is not None and reading.last_number(source, log) == last:
                self.editor.graft(place, tree)
                self._forget_room(place)
                self._taken_from[oid] = None
                return True
            parents = [p for p in self._objects.commit(oid).parents if p not in seen]
            seen.update(parents)
            waiting.extend(parents)
        return False

    def room(self, path: str) -> RoomState:
        """Return a room's folded state at the tip."""
        state = self._rooms.get(path)
        if state is None:
            operations = self._operations(path, self._positions(path, "operations"))
            state = room_fold.fold_room(operations)
            if len(self._rooms) > _NODES_MAX:
                self._rooms.clear()
            self._rooms[path] = state
            self._newest[path] = max(map(order_key, operations))
        return state

    def _room_at(self, mark: ViewMark) -> RoomState:
        """Return a room's state as of a mark: others may have appended operations before it."""
        if self._positions(mark.room, "operations") == mark.operations:
            return self.room(mark.room)
        return room_fold.fold_room(self._operations(mark.room, mark.operations))

    def _positions(self, room: str, log: str) -> dict[str, int]:
        return {
            origin: reading.last_number(self.editor, f"{room}/{log}/{origin}")
            for origin in reading.origins(self.editor, room, log)
        }

    def _operations(self, path: str, through: Mapping[str, int]) -> list[Message]:
        messages = [
            message
            for origin, last in through.items()
            for n, line in reading.records(self.editor, f"{path}/operations/{origin}", 0, last)
            if (message := message_at(line, origin, "operations", n, primary=False))
        ]
        if not messages:
            raise Corrupt(f"{path} has no operations log, so it is no room", path=path)
        return messages

    def _apply(self, room: str, log: str, line: bytes, pack: PackBuilder) -> None:
        """Fold one more operation.

        It is newer than all before it, or a merge has brought some from a clock that is ahead.
        """
        known = self._rooms.get(room)
        message = message_of(line, log.rpartition("/")[2], "operations", primary=False)
        key = order_key(message)
        if known is None or key < self._newest[room]:
            self._tails.write(pack)
            self._rooms.pop(room, None)
            self.room(room)  # the log in the tree holds the new record now
            return
        self._rooms[room] = room_fold.apply_operation(known, message)
        self._newest[room] = key
