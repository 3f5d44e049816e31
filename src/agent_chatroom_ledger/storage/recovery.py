"""Which frames main has, judged anew when the hint does not fit (docs/design.md 4).

Recovery is the commit path itself; here is only the judgement where it begins: after a kill, after
a foreign commit, and after a power cut, when packs and main may be lost or damaged.
"""

from __future__ import annotations

import contextlib
import dataclasses
from collections import deque
from typing import TYPE_CHECKING

from agent_chatroom_ledger import limits
from agent_chatroom_ledger.domain.records import decode_record
from agent_chatroom_ledger.domain.segments import first_of
from agent_chatroom_ledger.errors import Conflict, Corrupt, InvalidInput
from agent_chatroom_ledger.storage import (
    damagedpacks,
    failpoints,
    files,
    gitindex,
    journal,
    packlist,
    packs,
    reading,
    refs,
    showing,
)
from agent_chatroom_ledger.storage.commits import batches
from agent_chatroom_ledger.storage.layout import is_log, is_ours, room_of_log
from agent_chatroom_ledger.storage.objects import NO_OBJECT
from agent_chatroom_ledger.storage.packs import PackBuilder
from agent_chatroom_ledger.storage.source import CommitTree
from agent_chatroom_ledger.storage.state import read_state
from agent_chatroom_ledger.storage.trees import differences

if TYPE_CHECKING:
    from collections.abc import Sequence

    from agent_chatroom_ledger.domain.frames import Frame
    from agent_chatroom_ledger.storage.committer import Committer
    from agent_chatroom_ledger.storage.layout import Layout
    from agent_chatroom_ledger.storage.objects import Objects
    from agent_chatroom_ledger.storage.state import State

FOREIGN_COMMITS_MAX = 100_000


@dataclasses.dataclass(frozen=True)
class Located:
    """The last frame that main has, and whether somebody else's commits are on top."""

    frame: int
    foreign: bool


def locate(committer: Committer, state: State | None) -> Located:
    """Let the builder stand on main and say which frames main has.

    Raises Conflict (code `rewound`) when main does not descend from what it was, and Corrupt when
    a foreign commit has changed a log.
    """
    header = committer.intake.header
    builder = committer.builder
    if state is None or state.boot != committer.boot:
        return _after_unclean_boot(committer, state)
    main = refs.read_main(committer.layout)
    known = state.main
    # We may have been killed between moving main and writing the hint.
    builder.start(known)
    pending = committer.intake.after(state.frame)
    done = state.frame
    scratch = PackBuilder()
    for frame in pending[: limits.CHECKPOINT_FRAMES_MAX]:
        try:
            builder.add(frame, scratch)
        except Corrupt:
            break  # it builds on objects that were never stored, so main does not have it
        done = frame.frame
        if builder.tip == main:
            builder.start(main)
            return Located(done, foreign=False)
    _require_descent(committer.objects, main, known)
    builder.start(main)
    _require_logs_kept(committer, known, main)
    _go_on_from(committer, known, main)
    return Located(_bisect(committer, pending, max(state.frame, header.last_frame)), foreign=True)


def _bisect(committer: Committer, frames: Sequence[Frame], before: int) -> int:
    """Return the last frame that the builder's tip has; `before` is known to be there."""
    records = [frame for frame in frames if frame.records]
    low, high = 0, len(records)
    while low < high:
        middle = (low + high) // 2
        if committer.builder.has(records[middle]):
            low = middle + 1
        else:
            high = middle
    return records[low - 1].frame if low else before


def _require_descent(objects: Objects, main: str, known: str) -> None:
    """Raise Conflict unless `main` is `known` or descends from it."""
    if descends(objects, main, known):
        return
    raise Conflict(
        f"main is {main[:12]}, which does not descend from {known[:12]}, where the ledger was: "
        "somebody rewound or replaced it. Nothing is written, because numbers would be given "
        "twice; `rooms verify --repair --apply` reunites the two",
        code="rewound",
        main=main,
        ledger=known,
    )


def descends(objects: Objects, main: str, known: str) -> bool:
    """Tell whether a commit is another or has it among its ancestors."""
    if known == NO_OBJECT:
        return True
    seen, waiting = {main}, deque([main])
    while waiting and len(seen) < FOREIGN_COMMITS_MAX:
        oid = waiting.popleft()  # the nearest first: of a long history few are looked at
        if oid == known:
            return True
        if oid == NO_OBJECT:
            continue
        for parent in objects.commit(oid).parents:
            if parent not in seen:
                seen.add(parent)
                waiting.append(parent)
    return False


def _require_logs_kept(committer: Committer, known: str, main: str) -> None:
    """Raise Corrupt when foreign commits changed a log otherwise than by appending.

    To a log of this origin nothing appends but its journal: a number that somebody made up would
    be gone on from. A room that was removed whole is no damage: its history is kept.
    """
    if known == NO_OBJECT:
        return
    objects = committer.objects
    pending: dict[str, set[bytes]] = {}
    for frame in committer.intake.frames:
        for item in frame.records:
            pending.setdefault(item.log, set()).add(bytes(item.record))
    before = CommitTree(objects, known)
    trees = (objects.commit(known).tree, objects.commit(main).tree)
    for path, _, old, _, new in differences(objects, *trees):
        log = path.rsplit("/", 3)[0]
        if not is_log(path) or (old is None and before.oid(log) is None):
            continue
        room = room_of_log(log)
        if new is None and room is not None and not committer.builder.editor.names(room):
            continue
        was = b"" if old is None else objects.blob(old)
        now = b"" if new is None else objects.blob(new)
        kept = new is not None and now.startswith(was)
        if kept and log.endswith(f"/{committer.builder.origin}"):
            known_lines = pending.get(log, set())
            kept = all(line in known_lines for line in now[len(was) :].split(b"\n")[:-1])
        if not kept:
            raise Corrupt(
                f"a commit that is not the ledger's has changed {path}, whose bytes must never "
                "change; `rooms verify --repair --apply` puts them back and keeps the others",
                code="log_changed",
                path=path,
                main=main,
            )


def _go_on_from(committer: Committer, known: str, main: str) -> None:
    """Let our next record be later than what a merge has brought.

    Another clone's clock may be ahead of ours, and what answers its records must not come before
    them. Each log's newest record tells; times in a log never run back.
    """
    objects = committer.objects
    before = NO_OBJECT if known == NO_OBJECT else objects.commit(known).tree
    newest: dict[str, tuple[int, str]] = {}
    for path, _, _, _, new in differences(objects, before, objects.commit(main).tree):
        log = path.rsplit("/", 3)[0]
        if new is None or not is_log(path) or log.endswith(f"/{committer.builder.origin}"):
            continue
        with contextlib.suppress(Corrupt):  # a name that no segment has; verify names it
            newest[log] = max((first_of(path), new), newest.get(log, (0, "")))
    for _, segment in newest.values():
        for line in reversed(objects.blob(segment).split(b"\n")):
            with contextlib.suppress(Corrupt, InvalidInput):  # a line that is no record: likewise
                at = decode_record(line).at
                with committer.intake.mutex:
                    committer.present.go_on_from(at)
                break


def _mend_hole(committer: Committer, state: State | None) -> None:
    """Cut the newest generation off at a hole that a power cut left in what nobody had synced.

    The pages of an append reach the disk in any order. A frame was acknowledged only after a sync
    of all before it, so nothing behind such a hole was. Frames behind it that the hint or main
    knows prove that it is rot: then it is left as it is, for the repair.
    """
    own, intake = committer.journal, committer.intake
    with own.lock:
        intake.refresh()
        own.settle()
        behind = journal.salvage(own.rest(intake.offset))
        hinted = state is not None and state.frame > intake.last_frame
        if behind and not hinted and not _main_has_any(committer, behind):
            own.cut_off(intake.offset)


def _main_has_any(committer: Committer, frames: Sequence[Frame]) -> bool:
    """Tell whether main, if it can be read, holds a record of some frames."""
    try:
        tree = CommitTree(committer.objects, refs.read_main(committer.layout))
        return any(
            reading.record(tree, item.log, decode_record(line).n) == line
            for frame in frames
            for item in frame.records
            for line in (bytes(item.record),)
        )
    except Corrupt:
        return False


def _after_unclean_boot(committer: Committer, state: State | None) -> Located:
    """Make whole what a power cut may have taken, from the journal, then judge main.

    The base of the generation is durable. Its frames are committed again: same parent, same
    frame, same id.
    """
    layout, objects, builder = committer.layout, committer.objects, committer.builder
    header, frames = committer.intake.header, committer.intake.frames
    damagedpacks.set_aside(layout)
    packs.release_forgotten(layout)
    refs.drop_forgotten(layout)
    objects.forget()
    _mend_hole(committer, state)
    try:
        main: str | None = refs.read_main(layout)
    except Corrupt:
        main = None
    builder.start(header.base)
    if not frames and main == header.base:
        return Located(header.last_frame, foreign=False)
    tips = replay(committer)
    # A checkpoint may have been under way, and what it noted lost.
    showing.note(layout, [tip for tip in tips if tip != header.base])
    failpoints.reach("recovery.replayed")
    if main in tips:
        builder.start(str(main))
        return Located(tips[str(main)], foreign=False)
    behind = main is not None and _is_from_before(committer, main)
    if main is not None and main != header.base and not behind:
        if _is_whole(objects, main, tips, header.base):
            builder.start(main)
            _require_logs_kept(committer, header.base, main)
            _go_on_from(committer, header.base, main)
            return Located(_bisect(committer, frames, header.last_frame), foreign=True)
        if main != NO_OBJECT and objects.has(main):
            _require_descent(objects, main, header.base)
    # Main is behind the journal, or lost. The newest replayed commit takes its place.
    last = list(tips)[-1]
    if main != last:
        if main not in (None, header.base) and not behind:
            note = f"main named {main}, which the power cut has damaged\n"
            files.quarantine(layout, "lost-main", note.encode())
        refs.replace_main(layout, last)
    builder.start(last)
    return Located(tips[last], foreign=False)


def _is_from_before(committer: Committer, main: str) -> bool:
    """Tell whether a power cut has left main as it was before the generation's base.

    Main's file is written over without a sync (see `exchange`). Its name may be durable while its
    bytes are still those that it held as main long ago. Then git's index, which is durable before
    the generation begins, shows the base; where somebody used `git reset`, it does not.
    """
    layout, objects, base = committer.layout, committer.objects, committer.intake.header.base
    if main in (base, NO_OBJECT) or not objects.has(main) or not descends(objects, base, main):
        return False
    try:
        shown = gitindex.parse(gitindex.read(layout) or b"")
    except ValueError:
        return False
    found = list(differences(objects, objects.commit(main).tree, objects.commit(base).tree))
    # What somebody has staged among his own files is no matter, unless nothing else can tell.
    changes = [change for change in found if is_ours(change[0])] or found
    return all((shown[path][1] if path in shown else None) == new for path, _, _, _, new in changes)


def replay(committer: Committer) -> dict[str, int]:
    """Commit the generation's frames again on its base, durably.

    Returns tip -> last frame for every commit made, the base first. Main is not moved.
    """
    builder, layout = committer.builder, committer.layout
    header, frames = committer.intake.header, committer.intake.frames
    builder.start(header.base)
    tips = {header.base: header.last_frame}
    if frames:
        committer.journal.settle()
        committer.journal.sync()
    for batch in batches(frames):
        pack = PackBuilder()
        for frame in batch:
            builder.add(frame, pack)
            tips[builder.tip] = frame.frame
        if pack.commits:
            name, data, index = pack.finish()
            packlist.note(layout, name, pack.commits)
            packs.store(layout, name, data, index, sync=True)
            packs.release(layout, (name,))
            builder.lighten()
    committer.objects.forget()
    return tips


def _is_whole(objects: Objects, main: str, tips: dict[str, int], base: str) -> bool:
    """Tell whether a foreign tip on top of ours can be read with everything that is new in it."""
    try:
        waiting, seen, met = [main], {main}, False
        while waiting:
            oid = waiting.pop()
            if oid in tips or oid == base:
                met = True
                continue
            for parent in objects.commit(oid).parents:
                if parent not in seen:
                    seen.add(parent)
                    waiting.append(parent)
            if len(seen) > FOREIGN_COMMITS_MAX:
                return False
        if not met:
            return False
        trees = (objects.commit(base).tree, objects.commit(main).tree)
        for _, _, _, _, new in differences(objects, *trees):
            if new is not None:
                objects.get(new)
    except Corrupt:
        return False
    return True


def needed(layout: Layout) -> bool:
    """Tell cheaply, without git objects, whether an open has something to recover."""
    if not layout.writable:
        return False
    kept = journal.generations(layout)
    if not kept:
        return True
    if refs.ours(layout, f"{layout.git}/index.lock"):
        return True
    state = read_state(layout)
    if state is None or state.boot != files.boot_id():
        return True
    try:
        if state.main != refs.read_main(layout):
            return True
    except Corrupt:
        return True
    follower = journal.Follower.newest(layout)
    try:
        frames = follower.new_frames()
    finally:
        follower.close()
    return bool(frames) and frames[-1].frame > state.frame
