"""The whole ledger checked against its invariants (docs/invariants.md), by us and without git.

Nothing is mended here. History is read as far back as the last commit that verified clean; the
present state (work tree, index, journal, cursors) is looked at every time.
"""

from __future__ import annotations

import os
from contextlib import contextmanager
from typing import TYPE_CHECKING

import msgspec

from agent_chatroom_ledger.domain.records import decode_record
from agent_chatroom_ledger.domain.rooms import ROOM_CREATE
from agent_chatroom_ledger.domain.segments import first_of
from agent_chatroom_ledger.domain.tombstones import ROOM_RESTORE, tombstone_path
from agent_chatroom_ledger.errors import Corrupt, LedgerError
from agent_chatroom_ledger.storage import files, journal, reading, recovery, refs
from agent_chatroom_ledger.storage.cursors import SCHEMA, CursorFile
from agent_chatroom_ledger.storage.issues import Findings, Issue, Report
from agent_chatroom_ledger.storage.layout import is_log, room_of_log
from agent_chatroom_ledger.storage.objects import NO_OBJECT, Objects
from agent_chatroom_ledger.storage.overlay import Overlay, number_of
from agent_chatroom_ledger.storage.reading import MESSAGES, OPERATIONS, ROOMS, log_path
from agent_chatroom_ledger.storage.source import CommitTree, WorkTree
from agent_chatroom_ledger.storage.verifycommits import HistoryCheck
from agent_chatroom_ledger.storage.verifyfiles import check_files
from agent_chatroom_ledger.storage.verifylogs import check_log, check_room
from agent_chatroom_ledger.storage.verifyreaders import check_readers

if TYPE_CHECKING:
    from collections.abc import Iterator

    from agent_chatroom_ledger.storage.layout import Layout
    from agent_chatroom_ledger.storage.source import Source

__all__ = ["Issue", "Report", "verify"]

_ATTEMPTS_MAX = 5


def verify(layout: Layout, *, full: bool = False, remember: bool = True) -> Report:
    """Check everything and report what is wrong.

    ``full`` reads all of history and every file. With ``remember`` a clean result is noted, so
    that the next verification reads only what came since.
    """
    objects = Objects(layout)
    try:
        return _verify(layout, objects, full=full, remember=remember)
    finally:
        objects.close()


def _verify(layout: Layout, objects: Objects, *, full: bool, remember: bool) -> Report:
    found = Findings()
    main = _check_refs(layout, objects, found)
    known = None if full else _verified(layout)
    if main != NO_OBJECT:
        with _named(found, refs.MAIN):
            known = _check_history(objects, main, known, found)
        tree = CommitTree(objects, main)
        places: dict[str, str] = {}
        with _named(found, OPERATIONS):
            _check_rooms_present(tree, places, found)
        found.count("rooms", len(places))
        with _named(found, str(layout.cursors)):
            _check_cursors(layout, places, found)
        with _named(found, str(layout.journal)):
            _check_journal(layout, tree, found)
        _check_present(layout, objects, found, thorough=full)
    report = found.report(main="" if main == NO_OBJECT else main, since=known or "")
    if report.ok and remember and layout.writable and main not in (NO_OBJECT, known):
        _remember(layout, main)
    return report


def _check_refs(layout: Layout, objects: Objects, found: Findings) -> str:
    """Check HEAD, main and our anchor; return what main names, or the zero id."""
    head = refs.head(layout)
    if head != refs.MAIN:
        found.error("not_on_main", f"HEAD is {head or 'unreadable'}, not {refs.MAIN}", "HEAD")
    try:
        main = refs.read_main(layout)
        tip = refs.read_ref(layout, refs.TIP)
    except Corrupt as error:
        found.error("bad_ref", error.message, str(error.fields.get("ref", "")))
        return NO_OBJECT
    if main == NO_OBJECT:
        found.error("main_missing", "there is no branch main", refs.MAIN)
        return main
    if not objects.has(main):
        found.error("missing_object", f"main names {main}, which cannot be read", refs.MAIN)
        return NO_OBJECT
    if tip not in {NO_OBJECT, main}:
        try:
            descends = recovery.descends(objects, main, tip)
        except Corrupt as error:
            found.error("missing_object", error.message, refs.MAIN)
            return main
        if not descends:
            found.error(
                "rewound",
                f"main is {main[:12]}, which does not descend from {tip[:12]}, where the ledger "
                "was; `rooms verify --repair --apply` reunites the two",
                refs.MAIN,
            )
    for name in ("index.lock", f"{refs.MAIN}.lock", "HEAD.lock", "packed-refs.lock"):
        path = layout.git / name
        if os.path.lexists(path) and not refs.ours(layout, str(path)):
            found.warning(
                "git_locked", f"{path} is held by another program, or was left behind", name
            )
    return main


def _check_history(objects: Objects, main: str, known: str | None, found: Findings) -> str | None:
    """Check commits since the known one, and the logs and rooms that they touched."""
    check = HistoryCheck(objects, found)
    if not check.run(main, known):
        # What was verified is no longer in main's past, so all of it has just been read.
        known = None
    tree = CommitTree(objects, main)
    changed = check.changed
    logs: dict[str, set[int]] = {}
    rooms: set[str] = set()
    for path in changed:
        if is_log(path):
            log = path.rsplit("/", 3)[0]
            try:
                logs.setdefault(log, set()).add(first_of(path))
            except Corrupt:
                found.error("foreign_segment", f"{path} is not named as a segment is", path)
            room = room_of_log(log)
            if room is not None:
                rooms.add(room)
        elif path.startswith(ROOMS + "/"):
            rooms.add(_room_of_file(tree, path))
    for log, firsts in sorted(logs.items()):
        room = room_of_log(log)
        with _named(found, log):
            if room is None or tree.names(room):
                check_log(tree, log, found, None if known is None else firsts)
    for room in sorted(rooms - {""}):
        with _named(found, room):
            if tree.names(f"{room}/{OPERATIONS}") or tree.names(f"{room}/{MESSAGES}"):
                check_room(tree, room, found, ids=known is None)
    return known


@contextmanager
def _named(found: Findings, path: str) -> Iterator[None]:
    """Turn damage that stops a check into an issue: verify reports, whatever it meets."""
    try:
        yield
    except Corrupt as error:
        code = "number_gap" if error.code == Corrupt.code else error.code
        found.error(code, error.message, path)


def _room_of_file(tree: Source, path: str) -> str:
    """Return the room that a file lies in: the nearest directory above that has logs."""
    place = path.rpartition("/")[0]
    while place and place != ROOMS:
        if reading.is_room(tree, place):
            return place
        place = place.rpartition("/")[0]
    return ""


def _check_rooms_present(tree: Source, places: dict[str, str], found: Findings) -> None:
    """Check that every room that was ever created is there, or has a tombstone.

    ``places`` takes the rooms' paths by id: where each was put last, since a room that comes back
    from the archive may have to go elsewhere. An archived room is nowhere, and has an empty path:
    where it lay, another may be by now.
    """
    put_at: dict[str, str] = {}
    for origin in reading.origins(tree, "", OPERATIONS):
        for _, line in reading.records(tree, log_path("", OPERATIONS, origin)):
            try:
                record = decode_record(line)
            except Corrupt:
                continue
            data = record.data or {}
            room_id, path = data.get("id"), data.get("path")
            if record.kind not in {ROOM_CREATE, ROOM_RESTORE} or not room_id or not path:
                continue
            if record.at >= put_at.get(str(room_id), ""):
                put_at[str(room_id)] = record.at
                places[str(room_id)] = str(path)
    archived = _tombstones(tree)
    for room_id, path in places.items():
        if tombstone_path(room_id).rpartition("/")[2] in archived:
            places[room_id] = ""
        elif not reading.is_room(tree, path):
            found.error(
                "room_missing",
                f"the room {path} is gone from main without a tombstone; "
                "`rooms verify --repair --apply` brings it back",
                path,
            )


def _tombstones(tree: Source) -> set[str]:
    """Return the names of the files of all tombstones."""
    parts = [f"archive/{part.rstrip('/')}" for part in tree.names("archive")]
    return {name for part in parts for name in tree.names(part)}


def _check_cursors(layout: Layout, places: dict[str, str], found: Findings) -> None:
    """Check that every cursor can be read and lies within the rooms that it names."""
    follower = journal.Follower.newest(layout)
    try:
        source, overlay = WorkTree(layout.root), Overlay(follower.new_frames())
    finally:
        follower.close()
    check_readers(layout, source, overlay, places, found)
    try:
        names = sorted(os.listdir(layout.cursors))
    except FileNotFoundError:
        return
    for name in names:
        path = layout.cursors / name
        if not name.endswith(".json") or name.startswith("."):
            continue
        found.count("cursors")
        try:
            document = msgspec.json.decode(files.read_bytes(path) or b"")
            if not isinstance(document, dict) or document.get("schema") != SCHEMA:
                raise Corrupt(f"{path} is not a cursor file", path=str(path))
            consumer = str(document.get("consumer"))
            cursor = CursorFile(layout, consumer, path).load()
        except (LedgerError, msgspec.DecodeError, UnicodeDecodeError) as error:
            found.error("consumer_state_invalid", f"{path}: {error}", str(path))
            continue
        for room_id in cursor.positions():
            room = places.get(room_id)
            if room is None:
                found.warning(
                    "cursor_room_unknown", f"{path} speaks of a room that is not here", str(path)
                )
                continue
            if not room:
                continue
            for origin, mark in cursor.marks(room_id).items():
                log = log_path(room, MESSAGES, origin)
                line = reading.record(source, log, mark.n, overlay) if mark.n else None
                if mark.n and (line is None or _other_id(line, mark.id)):
                    found.error(
                        "consumer_state_invalid",
                        f"{path} is at {mark.n}@{origin} of {room}, which is not there or "
                        "another record",
                        str(path),
                    )


def _other_id(line: bytes, wanted: str) -> bool:
    try:
        return bool(wanted) and decode_record(line).id != wanted
    except Corrupt:
        return False


def _check_journal(layout: Layout, tree: Source, found: Findings) -> None:
    """Check that generations can be read, and that main has what the newest one holds."""
    kept = journal.generations(layout)
    if not kept:
        found.warning("journal_missing", "this clone has not been written to yet")
        return
    for generation in kept:
        path = journal.generation_path(layout, generation)
        data = files.read_bytes(path)
        if data is None:
            continue
        scan = journal.scan(data, 0, None)
        if scan.header is None:
            found.error("journal_rot", f"the header of {path} is damaged", str(path))
        elif scan.rest and journal.holds_valid_frame(scan.rest):
            found.error("journal_rot", f"{path} is damaged at byte {scan.end}", str(path))
        elif scan.rest:
            found.warning("journal_torn", f"{path} ends in a write that was cut short", str(path))
        if generation != kept[-1]:
            continue
        pending = 0
        for frame in scan.frames:
            for entry in frame.records:
                line = bytes(entry.record)
                there = reading.record(tree, entry.log, number_of(line))
                pending += there is None
                if there is not None and there != line:
                    found.error(
                        "journal_mismatch",
                        f"main has another record {number_of(line)} of {entry.log} than "
                        "the journal",
                        entry.log,
                    )
        if pending:
            found.warning("journal_pending", f"{pending} records wait for their commit", str(path))


def _check_present(layout: Layout, objects: Objects, found: Findings, *, thorough: bool) -> None:
    """Compare work tree and index with main, again when somebody wrote meanwhile."""
    busy = False
    report = found.report(main="", since="")
    for _ in range(_ATTEMPTS_MAX):
        before = (refs.read_main(layout), journal.generations(layout)[-1:])
        here = Findings()
        try:
            check_files(layout, objects, before[0], here, thorough=thorough)
        except Corrupt as error:
            here.error("missing_object", error.message)
        busy = before != (refs.read_main(layout), journal.generations(layout)[-1:])
        busy = busy or refs.ours(layout, f"{layout.git}/index.lock")
        report = here.report(main="", since="")
        if report.ok or not busy:
            break
    if busy and not report.ok:
        found.warning("not_compared", "the work tree is being written to; verify again later")
        return
    for issue in report.issues:
        (found.error if issue.severity == "error" else found.warning)(
            issue.code, issue.message, issue.path
        )
    for what, number in report.counts.items():
        found.count(what, number)


def _verified(layout: Layout) -> str | None:
    data = files.read_bytes(layout.private / "verified")
    text = (data or b"").decode("ascii", "replace").strip()
    return text if len(text) == len(NO_OBJECT) and text.isalnum() else None


def _remember(layout: Layout, main: str) -> None:
    with files.clear_errors("noting what was verified"):
        files.replace(layout, layout.private / "verified", f"{main}\n".encode("ascii"), sync=False)
