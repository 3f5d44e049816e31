"""Commits of the ledger made again from their parent and their records, and compared by id.

A commit is a pure function of its parent and a frame (invariant 5), and the frame can be read back
from the commit: the trailers name its records, and the tree holds them. So whether logs only grew,
projections equal the fold, author and trailers equal the records is one question: is it the commit
that the ledger makes of these records?
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from agent_chatroom_ledger.domain.clock import from_micros
from agent_chatroom_ledger.domain.frames import Frame, FrameRecord, ViewMark
from agent_chatroom_ledger.domain.names import check_origin
from agent_chatroom_ledger.domain.numerals import decimal
from agent_chatroom_ledger.domain.pages import parse_header
from agent_chatroom_ledger.domain.policy import ranges_of
from agent_chatroom_ledger.domain.records import decode_record
from agent_chatroom_ledger.errors import InvalidInput, LedgerError
from agent_chatroom_ledger.storage import artifacts, reading
from agent_chatroom_ledger.storage.commits import CommitBuilder
from agent_chatroom_ledger.storage.history import trailers
from agent_chatroom_ledger.storage.objects import BLOB, NO_OBJECT, TREE
from agent_chatroom_ledger.storage.packs import PackBuilder
from agent_chatroom_ledger.storage.source import CommitTree
from agent_chatroom_ledger.storage.viewpages import TreeViewReader

if TYPE_CHECKING:
    from collections.abc import Iterable

    from agent_chatroom_ledger.domain.records import Record
    from agent_chatroom_ledger.storage.objects import CommitInfo, Objects
    from agent_chatroom_ledger.storage.source import Source
    from agent_chatroom_ledger.storage.trees import Node

_RECORDS = {"Message": reading.MESSAGES, "Operation": reading.OPERATIONS}
_COMMITTER = re.compile(rb"\ncommitter ([^\n]*<ledger@([a-z0-9-]+)> \d+ \+0000)\n")
_LIGHTEN_COMMITS = 200
_LOGS_MAX = 20_000


class Claim(NamedTuple):
    """A record that a commit says it adds: its room (empty for none), log, number and id."""

    room: str
    log: str
    n: int
    origin: str
    record_id: str


class Claims(NamedTuple):
    """What the trailers of a commit say."""

    frame: int
    records: tuple[Claim, ...]
    rooms: tuple[str, ...]
    requested_by: str
    reason: str


def claims_of(message: str) -> Claims | None:
    """Return what a commit's trailers say of its frame; None for a commit that names no frame.

    Raises InvalidInput for trailers that name records otherwise than the ledger does.
    """
    frame = 0
    room, what, ref = "", "", ""
    rooms: dict[str, None] = {}
    records: list[Claim] = []
    request = {"Requested-by": "", "Reason": ""}
    for key, value in trailers(message):
        if key == "Room":
            room = value
            rooms[value] = None
        elif key in _RECORDS:
            what, ref = _RECORDS[key], value
        elif key == "Record":
            number, _, origin = ref.partition("@")
            n = decimal(number)
            if n is None or not origin:
                raise InvalidInput(f"the trailers name a record {value[:80]!r} without its number")
            records.append(Claim(room, what, n, check_origin(origin), value))
            room, what, ref = "", "", ""
        elif key == "Frame" and (named := decimal(value)) is not None:
            frame = named
        elif key in request:
            request[key] = value
    if frame == 0 and (records or ref):
        raise InvalidInput("the trailers name records, and no frame")
    if frame == 0:
        return None
    return Claims(frame, tuple(records), tuple(rooms), request["Requested-by"], request["Reason"])


class ScratchPack(PackBuilder):
    """Takes the objects of one commit and keeps them for a comparison, but lays out nothing."""

    def __init__(self) -> None:
        """Begin empty."""
        super().__init__()
        self.held: dict[str, tuple[int, bytes]] = {}
        self.made = b""

    def commit(self, oid: bytes, data: bytes) -> None:
        """Keep the commit."""
        del oid
        self.made = data

    def blob(self, path: str | bytes, oid: bytes, data: bytes) -> None:
        """Keep a file's content."""
        del path
        self.held[oid.hex()] = (BLOB, data)

    def tree(self, node: Node, older: bytes, head: int, tail: int) -> None:
        """Keep a directory."""
        del older, head, tail
        if node.oid is not None:
            self.held[node.oid.hex()] = (TREE, bytes(node.data))


class _Builder(CommitBuilder):
    """Builds commits whose artifacts stand in the commit that is made again."""

    # The commit that is made again, and has the artifacts of its frame.
    model = NO_OBJECT

    def _attach(self, name: str, pack: PackBuilder) -> None:
        path = artifacts.artifact_path(name)
        if self.editor.oid(path) is not None:
            return
        data = artifacts.committed(CommitTree(self._objects, self.model), name)
        if data is None:
            raise InvalidInput(
                f"a record names the artifact {name}, which is not there or has other bytes",
                code="artifact_missing",
            )
        self.editor.write(path, data, pack)


class Replay:
    """Makes commits again, one after the other; what it holds in memory does not grow with them."""

    def __init__(self, objects: Objects) -> None:
        """Read parents, and the records to be replayed, from ``objects``."""
        self._objects = objects
        self._builder = _Builder(objects, "")
        self.pack = ScratchPack()
        self._since_lightened = 0
        self._newest_at: dict[str, str] = {}

    @property
    def origin(self) -> str:
        """The origin that the commit at hand says it was written by."""
        return self._builder.origin

    @property
    def source(self) -> Source:
        """The tree of the commit that the next one is made on."""
        return self._builder.editor

    def frame_of(self, commit: CommitInfo, data: bytes, claims: Claims) -> Frame:
        """Return the frame that a commit says it was made of.

        Its records are read from the commit's tree. Raises Corrupt or InvalidInput when they are
        not there, or when the commit names no origin that wrote it.
        """
        parent = commit.parents[0] if commit.parents else NO_OBJECT
        match = _COMMITTER.search(data.partition(b"\n\n")[0] + b"\n")
        if match is None:
            raise InvalidInput(
                f"its committer {commit.committer!r} is not the ledger", code="forged_author"
            )
        self._builder.origin = check_origin(match[2].decode("ascii"))
        if self._builder.tip != parent:
            self._builder.start(parent)
            self._newest_at.clear()
        self._builder.model = commit.oid
        self.pack.held.clear()
        if not claims.records:
            return self._view_frame(claims, commit.committer_seconds)
        for claim in claims.records:
            if claim.origin != self._builder.origin:
                raise InvalidInput(
                    f"{self._builder.origin} may not write under {claim.origin}, whose record "
                    f"{claim.n} it adds",
                    code="foreign_origin",
                )
        if len(claims.records) == 1:
            entries = [self._only_record(commit, claims.records[0])]
        else:
            entries = self._records(claims.records)
        return Frame(
            frame=claims.frame,
            records=tuple(entries),
            requested_by=claims.requested_by,
            reason=claims.reason,
        )

    def make(self, frame: Frame) -> str:
        """Make a frame's commit on the parent that `frame_of` stands on; return its id.

        Raises LedgerError when the records cannot follow what the parent holds.
        """
        before = self._builder.tip
        try:
            self._builder.add(frame, self.pack)
        except LedgerError:
            self._builder.forget()
            raise
        except (LookupError, TypeError, ValueError) as error:
            # An operation whose data no writer makes meets code that trusts writers.
            self._builder.forget()
            raise InvalidInput(f"its records cannot be applied ({error!r})") from None
        made = self._builder.tip
        self._since_lightened += 1
        return "" if made == before else made

    def newest_at(self, log: str) -> str:
        """Return the time of a log's newest record before the commit; empty when it has none."""
        known = self._newest_at.get(log)
        if known is None:
            lines = reading.last_records(self._builder.editor, log, 1)
            known = decode_record(lines[0][1]).at if lines else ""
        return known

    def settle(self, records: Iterable[tuple[str, Record]]) -> None:
        """Go on from the commit just made, which equals the one that was given."""
        for log, record in records:
            self._newest_at[log] = record.at
        if self._since_lightened >= _LIGHTEN_COMMITS:
            self._builder.lighten()
            self._since_lightened = 0
            if len(self._newest_at) > _LOGS_MAX:
                self._newest_at.clear()

    def forget(self) -> None:
        """Begin anew at the next commit."""
        self._builder.forget()

    def tree_made(self) -> str:
        """Return the root of the tree that was made last; its new objects are in ``pack``."""
        return self._builder.editor.finish(self.pack)

    def _logs(self, claim: Claim) -> list[str]:
        """Return the logs that a claim may mean; the ledger's own may speak of a room as well."""
        own = [reading.log_path("", reading.OPERATIONS, claim.origin)]
        if not claim.room:
            return own
        if not claim.room.startswith(f"{reading.ROOMS}/"):
            raise InvalidInput(f"{claim.room[:80]!r} is not the path of a room")
        place = [reading.log_path(claim.room, claim.log, claim.origin)]
        return place + own if claim.log == reading.OPERATIONS else place

    def _only_record(self, commit: CommitInfo, claim: Claim) -> FrameRecord:
        """Read the one record that a commit adds, from where it has to be, and nothing else."""
        for log in self._logs(claim):
            path = self._builder.place_of(log, claim.n)
            data = self._file(commit.tree, path)
            line = data[data.rfind(b"\n", 0, -1) + 1 : -1] if data.endswith(b"\n") else b""
            if _is_named(line, claim):
                return FrameRecord(log, msgspec.Raw(line))
        raise _not_added(claim)

    def _file(self, tree: str, path: str) -> bytes:
        """Return a file's bytes from a tree; empty when it is not there."""
        *directories, name = path.encode("utf-8", "surrogateescape").split(b"/")
        oid = tree
        for mode, part in [(b"40000 ", part) for part in directories] + [(b"100644 ", name)]:
            data = self._objects.data(oid, TREE)
            entry = mode + part + b"\0"
            found = data.find(entry)
            if found < 0:
                return b""
            # Should an id look like a name, a wrong object is read, and the ids will not agree.
            oid = data[found + len(entry) : found + len(entry) + 20].hex()
        return self._objects.blob(oid)

    def _records(self, claims: tuple[Claim, ...]) -> list[FrameRecord]:
        """Read the records of a frame that has several, log by log."""
        tree = CommitTree(self._objects, self._builder.model)
        wanted: dict[str, list[Claim]] = {}
        for claim in claims:
            for log in self._logs(claim):
                wanted.setdefault(log, []).append(claim)
        found: dict[tuple[str, int], bytes] = {}
        for log, mine in wanted.items():
            for first, last in ranges_of(claim.n for claim in mine):
                found.update({(log, n): x for n, x in reading.records(tree, log, first - 1, last)})
        entries = []
        for claim in claims:
            for log in self._logs(claim):
                line = found.get((log, claim.n), b"")
                if _is_named(line, claim):
                    entries.append(FrameRecord(log, msgspec.Raw(line)))
                    break
            else:
                raise _not_added(claim)
        return entries

    def _view_frame(self, claims: Claims, seconds: int) -> Frame:
        """Return the frame of a view commit: the positions stand in the newest pages."""
        tree = CommitTree(self._objects, self._builder.model)
        marks = []
        for room in claims.rooms:
            newest = TreeViewReader(tree, room, "", {}, {}).newest_page()
            if newest is None:
                raise InvalidInput(f"it names a view of {room[:80]}, which has none")
            header = parse_header(newest[1])
            marks.append(
                ViewMark(
                    room=room,
                    messages=header.through_messages,
                    operations=header.through_operations,
                )
            )
        at = from_micros(seconds * 1_000_000)
        return Frame(frame=claims.frame, at=at, views=tuple(marks))


def _is_named(line: bytes, claim: Claim) -> bool:
    """Tell cheaply whether a line may be the record of a claim; the ids of commits decide.

    Two logs may hold what is claimed of an operation, so its id is looked at: the ledger gave it.
    """
    head = b'{"n":%d,"id":' % claim.n
    if claim.log == reading.OPERATIONS:
        head += msgspec.json.encode(claim.record_id)
    return line.startswith(head)


def _not_added(claim: Claim) -> InvalidInput:
    return InvalidInput(
        f"it names record {claim.n}@{claim.origin} of {claim.room or 'the ledger'}, which it does "
        "not add",
        code="commit_record_mismatch",
    )
