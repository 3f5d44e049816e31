"""What git's hooks ask: may this be committed, pushed, received; and bring all up to date.

Nothing here runs git. What git tells a hook, on its standard input and in its environment, comes
in as arguments.
"""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import chain
from typing import TYPE_CHECKING

from agent_chatroom_ledger.domain.clock import from_datetime
from agent_chatroom_ledger.errors import Corrupt, InvalidInput
from agent_chatroom_ledger.storage import gitindex, refs
from agent_chatroom_ledger.storage.handwork import Work, judge_change, judge_merge
from agent_chatroom_ledger.storage.issues import Findings, Report
from agent_chatroom_ledger.storage.layout import Layout, is_ours
from agent_chatroom_ledger.storage.objects import NO_OBJECT
from agent_chatroom_ledger.storage.push import GitDirectory, PushedObjects
from agent_chatroom_ledger.storage.pushcheck import PushCheck, Rules
from agent_chatroom_ledger.storage.source import CommitTree
from agent_chatroom_ledger.storage.staged import IndexTree, put_back

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from pathlib import Path

CONFIGURATION = "rooms-hooks.toml"
_CLOCK_AHEAD_MAX = timedelta(days=1)
# While one of these is there, the index holds what the user is joining.
_UNFINISHED = ("MERGE_HEAD", "CHERRY_PICK_HEAD", "REVERT_HEAD")
_PUSHER_VARIABLE = "REMOTE_USER"
# What folding and writing anew mends; anything else needs somebody to look at it first.
_MENDABLE = frozenset(
    {
        "compiled_parse_failed",
        "index_differs",
        "index_missing",
        "message_version_invalid",
        "missing_state",
        "state_message_mismatch",
        "state_parse_failed",
        "view_ahead",
        "worktree_changed",
        "worktree_missing",
    }
)


@dataclass(frozen=True, kw_only=True)
class Surroundings:
    """What git tells a hook.

    ``git`` is the git directory, bare or not. ``objects`` are the directories of objects, the
    quarantine of a push first; empty for the repository's own. ``index`` is the index that a commit
    is made from. ``variables`` are those of the environment, ``now`` is an aware time.
    """

    git: Path
    now: datetime
    objects: tuple[str, ...] = ()
    index: Path | None = None
    variables: Mapping[str, str]


@dataclass(frozen=True)
class RefUpdate:
    """One ref that a push moves, from one commit to another; the zero id stands for none."""

    ref: str
    old: str
    new: str


def ref_updates(lines: Iterable[str], *, pushing: bool = False) -> tuple[RefUpdate, ...]:
    """Return what git writes to a hook's standard input, a line for each ref.

    A server's hook gets ``old new ref``; with ``pushing``, as before a push, a line is ``local-ref
    local remote-ref remote``, and ``old`` is what the other side has. Raises InvalidInput for a
    line that git does not write.
    """
    found = []
    for line in lines:
        parts = line.split()
        if not parts:
            continue
        if len(parts) != (4 if pushing else 3):
            raise InvalidInput(f"not a line that git gives to this hook: {line[:200]!r}")
        if pushing:
            _, new, ref, old = parts
        else:
            old, new, ref = parts
        if any(len(oid) != len(NO_OBJECT) for oid in (old, new)):
            raise InvalidInput("a ledger needs SHA-1 object ids", code="unsupported_repository")
        found.append(RefUpdate(ref, old, new))
    return tuple(found)


def receive(
    around: Surroundings,
    updates: Sequence[RefUpdate],
    progress: Callable[[int, int], None] | None = None,
) -> Report:
    """Say whether a server may take a push (pre-receive, update).

    Only main is judged: other branches and tags hold no ledger. Raises Corrupt for a configuration
    that cannot be read; the push is then refused as well.
    """
    return _pushed(around, updates, _rules(around), progress)


def push(
    around: Surroundings,
    updates: Sequence[RefUpdate],
    progress: Callable[[int, int], None] | None = None,
) -> Report:
    """Say whether a server would take what is about to be pushed (pre-push)."""
    objects = PushedObjects(around.git)
    try:
        unknown = [u for u in updates if u.old != NO_OBJECT and not objects.has(u.old)]
    finally:
        objects.close()
    for update in unknown:
        if update.ref == refs.MAIN and update.new != NO_OBJECT:
            found = Findings()
            found.error(
                "forced_push",
                f"main there is {update.old[:12]}, which is not here: fetch first, and let the "
                "ledger merge",
                refs.MAIN,
            )
            return found.report(main=update.new, since="")
    return _pushed(around, updates, Rules(), progress)


def _pushed(
    around: Surroundings,
    updates: Sequence[RefUpdate],
    rules: Rules,
    progress: Callable[[int, int], None] | None,
) -> Report:
    for update in updates:
        if update.ref == refs.MAIN and update.old != update.new:
            objects = PushedObjects(around.git, around.objects)
            try:
                return PushCheck(objects, rules, progress).run(update.old, update.new)
            finally:
                objects.close()
    return Findings().report(main="", since="")


def _rules(around: Surroundings) -> Rules:
    """Return what the server's configuration file says, and its clock."""
    latest = from_datetime(around.now + _CLOCK_AHEAD_MAX)
    path = around.git / CONFIGURATION
    try:
        document = tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return Rules(latest_at=latest)
    except (OSError, ValueError) as error:
        raise _bad(path, str(error)) from None
    unknown = document.keys() - {"format", "pusher", "pushers"}
    if unknown or document.get("format", 1) != 1:
        raise _bad(path, f"unknown: {', '.join(sorted(unknown)) or 'its format'}")
    variable = document.get("pusher", _PUSHER_VARIABLE)
    table = document.get("pushers")
    if not isinstance(variable, str) or not isinstance(table, dict | None):
        raise _bad(path, "pusher is the name of a variable, pushers a table")
    if table is None:
        return Rules(latest_at=latest)
    for patterns in table.values():
        if not isinstance(patterns, list) or not all(isinstance(p, str) for p in patterns):
            raise _bad(path, "each pusher has a list of patterns of origins")
    pusher = around.variables.get(variable, "")
    others: list[str] = table.get("*", [])
    allowed = table.get(pusher, others) if pusher else others
    return Rules(latest_at=latest, pusher=pusher, origins=tuple(allowed))


def _bad(path: Path, reason: str) -> Corrupt:
    return Corrupt(f"{path} cannot be used: {reason}", code="bad_hook_config", path=str(path))


def commit(around: Surroundings) -> Report:
    """Say whether a commit by hand leaves the ledger's own files as they have to be (pre-commit).

    The index is compared with HEAD, in a merge with all its parents.
    """
    layout = GitDirectory(around.git)
    head = refs.head(layout)
    at = refs.read_ref(layout, head) if head.startswith("refs/") else head
    found = Findings()
    if len(at) != len(NO_OBJECT) or at == NO_OBJECT:
        return found.report(main="", since="")
    objects = PushedObjects(around.git, around.objects)
    try:
        tree = IndexTree.of_file(around.index or around.git / "index", objects)
        work = Work(name="the commit", tree=tree, objects=objects, found=found)
        parents = [at, *_merged(around.git)]
        trees = {parent: CommitTree(objects, parent) for parent in parents}
        changes = chain.from_iterable(
            tree.changes_since(objects.commit(parent).tree) for parent in parents
        )
        if len(parents) == 1:
            judge_change(work, trees[at], changes)
        else:
            judge_merge(work, trees, changes)
    finally:
        objects.close()
    return found.report(main=at, since=at)


def _merged(git: Path) -> list[str]:
    """Return the further parents of a merge that is about to be committed."""
    try:
        text = (git / "MERGE_HEAD").read_text(encoding="ascii", errors="replace")
    except FileNotFoundError:
        return []
    return [line for line in text.split() if len(line) == len(NO_OBJECT)]


def refresh(around: Surroundings, hook: str) -> tuple[list[str], Report | None]:
    """Bring projections, work tree and index up to date after git moved something (post-…).

    Returns what was done, and what is wrong still; None where there is nothing for the ledger to
    do: another branch is checked out, a merge is not finished, or this clone has not been used yet.
    What the user has staged of his own files, and the files themselves, stay as they are.
    """
    from agent_chatroom_ledger.ledger import Ledger

    layout = Layout(around.git.parent)
    if around.git.name != ".git" or not layout.private.is_dir() or refs.head(layout) != refs.MAIN:
        return [], None
    if hook == "post-checkout" and any((around.git / name).exists() for name in _UNFINISHED):
        return [], None
    with Ledger.open(layout.root) as ledger:
        ledger.flush()
        report = _about_ours(ledger.verify())
        wrong = {issue.code for issue in report.issues if issue.severity == "error"}
        if report.ok or wrong - _MENDABLE:
            return [], report
        before = gitindex.read_to_keep(layout)
        done = ledger.mend(report)
        if before is not None:
            with ledger.writer().committer.lock:
                put_back(layout, before)
        return done, _about_ours(ledger.verify())


def _about_ours(report: Report) -> Report:
    """Leave out what is wrong with the user's own files: they are his to change."""
    return Report(
        issues=tuple(
            issue
            for issue in report.issues
            if issue.code not in {"index_differs", "worktree_changed", "worktree_missing"}
            or is_ours(issue.path)
        ),
        counts=report.counts,
        main=report.main,
        since=report.since,
    )
