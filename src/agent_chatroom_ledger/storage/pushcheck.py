"""What a push may do to main: add commits that keep the invariants (docs/hooks.md).

Commits of the ledger are made again and compared by id. A commit by hand may do as it pleases
outside the ledger's own files; what it did to those is refused, unless a later commit of the same
push put it back. A merge may hold what its parents hold, and nothing else.
"""

from __future__ import annotations

from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

from agent_chatroom_ledger.domain.recordrules import check_line
from agent_chatroom_ledger.errors import Corrupt, InvalidInput, LedgerError
from agent_chatroom_ledger.storage.handwork import (
    Work,
    judge_change,
    judge_first,
    judge_merge,
)
from agent_chatroom_ledger.storage.issues import Findings
from agent_chatroom_ledger.storage.objects import COMMIT, NO_OBJECT
from agent_chatroom_ledger.storage.push import new_commits
from agent_chatroom_ledger.storage.replay import Replay, claims_of
from agent_chatroom_ledger.storage.replayed import explain
from agent_chatroom_ledger.storage.roomlaws import check_places
from agent_chatroom_ledger.storage.source import CommitTree
from agent_chatroom_ledger.storage.trees import differences

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from agent_chatroom_ledger.domain.frames import Frame
    from agent_chatroom_ledger.domain.records import Record
    from agent_chatroom_ledger.storage.issues import Report
    from agent_chatroom_ledger.storage.objects import CommitInfo, Objects
    from agent_chatroom_ledger.storage.replay import Claims

_PROGRESS_COMMITS = 1_000


@dataclass(frozen=True, kw_only=True)
class Rules:
    """What depends on the server: its clock, and who pushes.

    A record later than ``latest_at`` (stored form; empty for no bound) is refused, because its time
    would bind all others. ``origins`` are the patterns of the names under which this pusher may
    write; None for any.
    """

    latest_at: str = ""
    pusher: str = ""
    origins: tuple[str, ...] | None = None


class PushCheck:
    """Checks the commits that a push brings to main, parents first, and stops at a bad one."""

    def __init__(
        self,
        objects: Objects,
        rules: Rules,
        progress: Callable[[int, int], None] | None = None,
    ) -> None:
        """Read from ``objects``; ``progress`` is told now and then how many of how many it did."""
        self._objects = objects
        self._rules = rules
        self._progress = progress
        self._replay = Replay(objects)
        self._found = Findings()
        # Commits that are bad so far, each with the newest good one before it and what is wrong.
        self._doubtful: dict[str, tuple[str, Findings]] = {}

    def run(self, old: str, new: str) -> Report:
        """Check what ``new`` has and ``old`` has not; the zero id stands for a new or gone main."""
        found = self._found
        if new == NO_OBJECT:
            found.error("main_deleted", "main must not be deleted: it holds the ledger")
            return found.report(main=old, since=old)
        try:
            self._check_all(old, new)
        except LedgerError as error:
            found.error(error.code, error.message)
        return found.report(main=new, since="" if old == NO_OBJECT else old)

    def _check_all(self, old: str, new: str) -> None:
        brought = new_commits(self._objects, new, old)
        if not brought.builds_on:
            self._found.error(
                "forced_push",
                f"main is {old[:12]} here, and {new[:12]} does not build on it: logs only grow, "
                "so a forced push is refused; fetch, let the ledger merge, and push again",
                new,
            )
            return
        for done, oid in enumerate(brought.order, 1):
            self._check(oid)
            self._found.count("commits")
            if not self._found.report(main="", since="").ok:
                return
            if self._progress is not None and done % _PROGRESS_COMMITS == 0:
                self._progress(done, len(brought.order))
        if new in self._doubtful:
            self._blame(new)

    def _blame(self, oid: str) -> None:
        """Refuse what a doubtful commit has not undone."""
        for issue in self._doubtful[oid][1].report(main="", since="").issues:
            self._found.error(issue.code, issue.message, issue.path)

    def _check(self, oid: str) -> None:
        data = self._objects.data(oid, COMMIT)
        commit = self._objects.as_commit(oid, data)
        try:
            claims = claims_of(commit.message)
            if claims is not None and len(commit.parents) < 2:
                self._check_ledgers(commit, data, claims)
                return
            if claims is not None:
                raise InvalidInput("a merge names no records", code="commit_record_mismatch")
        except LedgerError as error:
            code = error.code
            if code in {InvalidInput.code, Corrupt.code}:
                code = "bad_commit"
            self._found.error(code, f"commit {oid[:12]}: {error.message}", oid)
            return
        self._replay.forget()
        self._check_by_hand(commit)

    def _check_ledgers(self, commit: CommitInfo, data: bytes, claims: Claims) -> None:
        """Check a commit that says it is the ledger's own."""
        oid = commit.oid
        doubtful = next((p for p in commit.parents if p in self._doubtful), None)
        frame = self._replay.frame_of(commit, data, claims)
        self._check_pusher(self._replay.origin)
        records = self._records(frame)
        for log, record in records:
            check_places(self._replay.source, log, record, mending=doubtful is not None)
        made = self._replay.make(frame)
        if made != oid:
            explain(self._objects, self._replay, commit, data, self._found)
            self._replay.forget()
            return
        if doubtful is not None:
            # Its parent's tree is not sound, and a commit built on it is no better for being exact.
            left = self._judged([self._doubtful[doubtful][0]], commit, {log for log, _ in records})
            if not left.report(main="", since="").ok:
                self._blame(doubtful)
                return
        self._replay.settle(records)

    def _check_pusher(self, origin: str) -> None:
        allowed = self._rules.origins
        if allowed is not None and not any(fnmatchcase(origin, pattern) for pattern in allowed):
            who = self._rules.pusher or "an unnamed pusher"
            raise InvalidInput(
                f"{who} may not write under the origin {origin}", code="origin_not_allowed"
            )

    def _records(self, frame: Frame) -> list[tuple[str, Record]]:
        """Decode a frame's records and hold each to the rules."""
        records: list[tuple[str, Record]] = []
        newest: dict[str, str] = {}
        for entry in frame.records:
            log = entry.log
            try:
                record = check_line(bytes(entry.record))
            except LedgerError as error:
                raise InvalidInput(f"a record of {log}: {error.message}") from None
            before = newest.get(log) or self._replay.newest_at(log)
            if record.at <= before:
                raise InvalidInput(
                    f"record {record.n} of {log} is not later than the one before it",
                    code="time_runs_back",
                )
            if self._rules.latest_at and record.at > self._rules.latest_at:
                raise InvalidInput(
                    f"record {record.n} of {log} is of {record.at}, which is more than a day from "
                    "now: set the clock of the machine that wrote it",
                    code="time_ahead",
                )
            newest[log] = record.at
            records.append((log, record))
        return records

    def _check_by_hand(self, commit: CommitInfo) -> None:
        """Check a commit that is not the ledger's: a merge, or one that somebody made with git."""
        # What is good in a doubtful parent is what was there before it.
        bases = [self._doubtful[p][0] if p in self._doubtful else p for p in commit.parents]
        found = self._judged(bases, commit)
        if found.report(main="", since="").ok:
            return
        if len(bases) == 1:
            self._doubtful[commit.oid] = (bases[0], found)
            return
        for issue in found.report(main="", since="").issues:
            self._found.error(issue.code, issue.message, issue.path)

    def _judged(
        self, bases: list[str], commit: CommitInfo, grown: Collection[str] = ()
    ) -> Findings:
        """Compare a commit with sound ones before it; ``grown`` are logs that may have grown."""
        objects, found = self._objects, Findings()
        work = Work(
            name=f"commit {commit.oid[:12]}",
            tree=CommitTree(objects, commit.oid),
            objects=objects,
            found=found,
        )
        before = {base: CommitTree(objects, base) for base in bases}
        changes = (
            change
            for base in bases
            for change in differences(objects, objects.commit(base).tree, commit.tree)
        )
        if not bases:
            judge_first(work)
        elif len(bases) == 1:
            judge_change(work, before[bases[0]], changes, grown)
        else:
            judge_merge(work, before, changes)
        return found
