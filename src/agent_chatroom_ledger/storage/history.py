"""The audit trail: commits of main, newest first, with the records that they name."""

from __future__ import annotations

import difflib
import heapq
import re
from dataclasses import dataclass
from datetime import UTC, datetime
from math import floor
from typing import TYPE_CHECKING, Any

from agent_chatroom_ledger.domain.clock import SECONDS_MAX, from_micros
from agent_chatroom_ledger.domain.display import one_line, shown
from agent_chatroom_ledger.domain.numerals import decimal
from agent_chatroom_ledger.errors import Conflict, Corrupt, InvalidInput, NotFound
from agent_chatroom_ledger.storage import refs
from agent_chatroom_ledger.storage.layout import is_log

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from agent_chatroom_ledger.domain.records import Message
    from agent_chatroom_ledger.storage.layout import Layout
    from agent_chatroom_ledger.storage.objects import CommitInfo, Objects
    from agent_chatroom_ledger.storage.stays import Stays
    from agent_chatroom_ledger.storage.timeline import Timeline

NO_COMMIT = "0" * 40
# So many commits are read one by one before the timeline is asked: the second number where it
# would have to be made, or made longer by more than that, first.
_WALKED_MIN = 20
WALKED_MAX = 2_000
# Larger files are named in a patch, not shown: a diff of them takes too long.
_BLOB = 3
_SUBMODULE_MODE = 0o160000
PATCH_BYTES_MAX = 1_048_576
_HEX = re.compile(r"[0-9a-f]{4,40}\Z")
_STEPS = re.compile(r"(?P<base>[^~^]+)(?P<steps>(?:~\d*|\^)*)\Z", re.ASCII)
# No history has more commits than a number of so many digits.
_STEP_DIGITS_MAX = 10
# What git lets no ref be called (git check-ref-format), and half a character.
_NO_REF = re.compile(r"[\0- \x7f:?*\[\\\ud800-\udfff]|\.\.|//|^/|/\Z")
_TRAILER = re.compile(r"([A-Z][A-Za-z-]*): (.*)\Z")
_REF_PLACES = ("refs/{}", "refs/tags/{}", "refs/heads/{}", "refs/remotes/{}")


@dataclass(frozen=True, kw_only=True)
class LogEntry:
    """One commit: who, when, what, and which records it added.

    ``at`` is when the ledger wrote it, ``said_at`` when the author said it. ``frame`` is None for
    a commit that is not the ledger's own. ``messages`` and ``operations`` are references such as
    ``57@mbp-3f2a``. ``patch`` is there when it was asked for.
    """

    commit: str
    at: datetime
    said_at: datetime
    author: str
    email: str
    subject: str
    rooms: tuple[str, ...] = ()
    kinds: tuple[str, ...] = ()
    messages: tuple[str, ...] = ()
    operations: tuple[str, ...] = ()
    records: tuple[str, ...] = ()
    frame: int | None = None
    requested_by: str = ""
    reason: str = ""
    patch: str | None = None

    def as_dict(self) -> dict[str, Any]:
        """Return the entry as JSON values."""
        document: dict[str, Any] = {
            "commit": self.commit,
            "at": _text(self.at),
            "said_at": _text(self.said_at),
            "author": self.author,
            "email": self.email,
            "subject": self.subject,
            "rooms": list(self.rooms),
            "kinds": list(self.kinds),
            "messages": list(self.messages),
            "operations": list(self.operations),
            "records": list(self.records),
            "frame": self.frame,
            "requested_by": self.requested_by,
            "reason": self.reason,
        }
        if self.patch is not None:
            document["patch"] = self.patch
        return document


def log(
    layout: Layout,
    objects: Objects,
    timeline: Callable[[], Timeline],
    *,
    room: Stays | None = None,
    author: str | None = None,
    since: datetime | None = None,
    patch: bool = False,
) -> Iterator[LogEntry]:
    """Yield the commits of main, newest first, those with a room, an author and a time only.

    ``author`` is a part of a name or address, in whatever case. The ledger's times never run back,
    so its first commit before ``since`` is the last one that is looked at; the clock of somebody
    who commits with git may say anything.
    """
    from agent_chatroom_ledger.storage.commits import LEDGER_NAME

    tip = refs.read_main(layout)
    walked = walk(objects, tip) if room is None else walk_room(objects, tip, room, timeline)
    for commit in walked:
        if since is not None and commit.committer_seconds < since.timestamp():
            if commit.committer == LEDGER_NAME:
                return
            continue
        if not is_by(commit, author or ""):
            continue
        yield entry_of(commit, patch_of(objects, commit) if patch else None)


def is_by(commit: CommitInfo, author: str) -> bool:
    """Tell whether a part of a name or address, in whatever case, is in a commit's author."""
    wanted = author.casefold()
    # The brackets of a name stand in the commit as similar marks.
    wanted_name = wanted.replace("<", "\u2039").replace(">", "\u203a")
    by = f"{commit.author} <{commit.author_email}>".casefold()
    return wanted in by or wanted_name in by


def commit_of(
    objects: Objects, timeline: Timeline, room: str, record: Message
) -> CommitInfo | None:
    """Return the commit that added a record; None when no commit of main says that it did.

    A commit's time is its record's, so few are looked at; all of the room's only when somebody's
    clock ran back.
    """
    seconds = max(floor(record.at.timestamp()), 0)
    trailer = f"\nRecord: {one_line(record.id, len(record.id) + 1)}\n"

    def candidates() -> Iterator[str]:
        yield from timeline.touching(room, seconds=seconds)
        yield from timeline.written_at(seconds)
        yield from timeline.touching(room)

    for oid in candidates():
        commit = objects.commit(oid)
        if trailer in commit.message:
            return commit
    return None


def ledgers_time(objects: Objects, tip: str) -> str:
    """Return a time, in the stored form, after all that the newest commit of the ledger's tells.

    What somebody committed with git has the time of that clock, and binds nobody: a record of ours
    that went on from a wrong one would bind all others.
    """
    from agent_chatroom_ledger.storage.commits import LEDGER_NAME

    found = (commit for commit in walk(objects, tip) if commit.committer == LEDGER_NAME)
    newest = next(found, None)
    # A second on: the commit's time is cut to whole seconds, the record's was not.
    seconds = 0 if newest is None else newest.committer_seconds + 1
    return from_micros(min(seconds, SECONDS_MAX) * 1_000_000)


def walk(objects: Objects, tip: str, until: str | None = None) -> Iterator[CommitInfo]:
    """Yield a commit and all its ancestors, newest first, stopping where ``until`` is met."""
    if tip == NO_COMMIT:
        return
    first = objects.commit(tip)
    seen = {tip}
    waiting = [(-first.committer_seconds, 0, first)]
    count = 0
    while waiting:
        _, _, commit = heapq.heappop(waiting)
        if commit.oid == until:
            continue
        yield commit
        for parent in commit.parents:
            if parent not in seen:
                seen.add(parent)
                count += 1
                found = objects.commit(parent)
                # A child comes before its parents even where a clock ran back.
                heapq.heappush(waiting, (-found.committer_seconds, count, found))


def walk_room(
    objects: Objects, tip: str, room: Stays, timeline: Callable[[], Timeline]
) -> Iterator[CommitInfo]:
    """Yield the commits about a room, newest first, without reading all the others."""
    seen = set()
    for commit in _recent(objects, tip, timeline):
        seen.add(commit.oid)
        if room.holds(commit):
            yield commit
    path = "" if len(seen) >= _WALKED_MIN else room.path
    while path != room.path:
        path = room.path
        for oid in timeline().touching(path):
            if oid in seen:
                continue
            seen.add(oid)
            commit = objects.commit(oid)
            if room.holds(commit):
                yield commit
            if room.path != path:
                break  # it lay elsewhere before, and its commits there are listed there


def _recent(objects: Objects, tip: str, timeline: Callable[[], Timeline]) -> Iterator[CommitInfo]:
    """Yield the newest commits: few, or some more where the timeline must be made first."""
    for count, commit in enumerate(walk(objects, tip)):
        if count == WALKED_MAX or (count == _WALKED_MIN and timeline().behind() <= WALKED_MAX):
            return
        yield commit


def trailers(message: str) -> list[tuple[str, str]]:
    """Return the trailers of a commit message, in order."""
    found: list[tuple[str, str]] = []
    for line in reversed(message.rstrip("\n").split("\n")):
        match = _TRAILER.match(line)
        if match is None:
            break
        found.append((match[1], match[2]))
    found.reverse()
    return found


def entry_of(commit: CommitInfo, patch: str | None = None) -> LogEntry:
    """Return what a commit says of itself."""
    named: dict[str, list[str]] = {}
    for key, value in trailers(commit.message):
        named.setdefault(key, []).append(value)
    return LogEntry(
        commit=commit.oid,
        at=datetime.fromtimestamp(commit.committer_seconds, UTC),
        said_at=datetime.fromtimestamp(commit.author_seconds, UTC),
        author=commit.author,
        email=commit.author_email,
        subject=commit.message.partition("\n")[0],
        rooms=tuple(dict.fromkeys(named.get("Room", ()))),
        kinds=tuple(named.get("Kind", ())),
        messages=tuple(named.get("Message", ())),
        operations=tuple(named.get("Operation", ())),
        records=tuple(named.get("Record", ())),
        frame=decimal(named.get("Frame", [""])[-1]),
        requested_by=named.get("Requested-by", [""])[-1],
        reason=named.get("Reason", [""])[-1],
        patch=patch,
    )


def patch_of(objects: Objects, commit: CommitInfo) -> str:
    """Return what a commit changed as a unified diff: lines added to logs, projections changed."""
    from agent_chatroom_ledger.storage.trees import differences

    before = objects.commit(commit.parents[0]).tree if commit.parents else NO_COMMIT
    parts: list[str] = []
    for path, old_mode, old, new_mode, new in differences(objects, before, commit.tree):
        was = b"" if old is None else _content(objects, old_mode, old)
        now = b"" if new is None else _content(objects, new_mode, new)
        head = f"--- {'/dev/null' if old is None else 'a/' + path}\n"
        head += f"+++ {'/dev/null' if new is None else 'b/' + path}\n"
        if is_log(path) and now.startswith(was):
            kept = was.count(b"\n")
            added = _lines(now[len(was) :])
            head += f"@@ -{kept},0 +{kept + 1},{len(added)} @@\n"
            parts.append(head + "".join(f"+{line}\n" for line in added))
        elif len(was) > PATCH_BYTES_MAX or len(now) > PATCH_BYTES_MAX or b"\0" in was + now:
            parts.append(f"{head}(not shown: {len(was)} bytes before, {len(now)} now)\n")
        else:
            parts.append(head + _diff(was, now))
    return "".join(parts)


def resolve(
    layout: Layout, objects: Objects, timeline: Callable[[], Timeline], at: str | datetime
) -> str:
    """Return the commit that a revision or a time means.

    A revision is a branch, a tag, an id or the beginning of one, with ``~n`` and ``^`` after it;
    a time (aware, or ISO text with its zone) means the newest commit of main at or before it.
    Raises NotFound for one that is not there, whatever its text may be, and Conflict for an
    ambiguous beginning of an id.
    """
    if isinstance(at, datetime):
        return _commit_at(layout, objects, timeline, at)
    match = _STEPS.match(at.strip())
    oid = None if match is None else _base(layout, objects, match["base"])
    if match is None or oid is None:
        try:
            when = datetime.fromisoformat(at.strip())
        except ValueError:
            raise NotFound(
                f"There is no commit {shown(at)!r}: it is no branch, no tag, no commit's id or the "
                "beginning of one, and no time.",
                at=shown(at),
            ) from None
        return _commit_at(layout, objects, timeline, when)
    for step in re.findall(r"~[0-9]*|\^", match["steps"]):
        digits = step[1:].lstrip("0")
        if len(digits) > _STEP_DIGITS_MAX:
            raise _too_short(at)
        count = 1 if step in {"^", "~"} else int(digits or "0")
        if count > WALKED_MAX and (far := timeline().ancestor(oid, count)):
            oid, count = far, 0
        for _ in range(count):
            parents = objects.commit(oid).parents
            if not parents:
                raise _too_short(at)
            oid = parents[0]
    return objects.commit(oid).oid


def _too_short(at: str) -> NotFound:
    return NotFound(f"There is no commit {shown(at)!r}: history is shorter.", at=shown(at))


def _commit_at(
    layout: Layout, objects: Objects, timeline: Callable[[], Timeline], when: datetime
) -> str:
    if when.tzinfo is None:
        raise InvalidInput(f"The time {when.isoformat()} needs its zone, such as Z.", field="at")
    limit = floor(when.timestamp())
    count = 0
    for commit in _recent(objects, refs.read_main(layout), timeline):
        if commit.committer_seconds <= limit:
            return commit.oid
        count += 1
    found = timeline().commit_at(limit) if count >= _WALKED_MIN else None
    if found is not None:
        return found
    raise NotFound(f"The ledger has no commit as old as {when.isoformat()}.", at=when.isoformat())


def _base(layout: Layout, objects: Objects, name: str) -> str | None:
    if name in {"HEAD", "@"}:
        named = refs.head(layout)
        found = named if _HEX.match(named) and len(named) == len(NO_COMMIT) else None
        found = found or _ref(layout, named)
        return None if found == NO_COMMIT else _peeled(objects, found)
    for place in _REF_PLACES:
        found = _ref(layout, place.format(name.removeprefix("refs/")))
        if found != NO_COMMIT:
            return _peeled(objects, found)
    if not _HEX.match(name):
        return None
    if len(name) == len(NO_COMMIT):
        return _peeled(objects, name) if objects.has(name) else None
    return _abbreviated(layout, objects, name)


def _ref(layout: Layout, name: str) -> str:
    return NO_COMMIT if _NO_REF.search(name) else refs.read_ref(layout, name)


def _abbreviated(layout: Layout, objects: Objects, name: str) -> str | None:
    from dulwich.object_store import DiskObjectStore

    store = DiskObjectStore(str(layout.git / "objects"))
    try:
        found = {oid.decode("ascii") for oid in store.iter_prefix(name.encode("ascii"))}
    finally:
        store.close()
    commits = sorted(oid for oid in found if objects.get(oid)[0] == 1)
    if len(commits) > 1:
        raise Conflict(
            f"{name} is the beginning of {len(commits)} commits; give more of it.",
            code="ambiguous",
            at=name,
            candidates=commits[:10],
        )
    return commits[0] if commits else None


def _peeled(objects: Objects, oid: str) -> str:
    for _ in range(10):
        kind, data = objects.get(oid)
        if kind == 1:
            return oid
        target = re.match(rb"object ([0-9a-f]{40})\n", data)
        if target is None:
            break
        oid = target[1].decode("ascii")
    raise Corrupt(f"{oid} is not a commit.", object=oid)


def _content(objects: Objects, mode: int, oid: str) -> bytes:
    return oid.encode("ascii") if mode == _SUBMODULE_MODE else objects.data(oid, _BLOB)


def _diff(was: bytes, now: bytes) -> str:
    found = difflib.unified_diff(_lines(was), _lines(now), lineterm="", n=1)
    return "".join(f"{line}\n" for line in list(found)[2:])


def _lines(data: bytes) -> list[str]:
    lines = data.decode("utf-8", "replace").split("\n")
    return lines[:-1] if lines[-1] == "" else lines


def _text(when: datetime) -> str:
    return when.strftime("%Y-%m-%dT%H:%M:%SZ")
