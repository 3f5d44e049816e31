"""Checks of a commit's tree: logs, projections and views (invariants 1 and 2)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agent_chatroom_ledger.domain.clock import to_datetime
from agent_chatroom_ledger.domain.pages import parse_header
from agent_chatroom_ledger.domain.positions import contains, covers
from agent_chatroom_ledger.domain.projections import (
    policy_json,
    room_json,
    state_from_projections,
)
from agent_chatroom_ledger.domain.records import decode_record
from agent_chatroom_ledger.domain.rooms import fold_room
from agent_chatroom_ledger.domain.segments import segment_path, starts_new_segment
from agent_chatroom_ledger.domain.versions import bundle_json, needs_work, versions_path
from agent_chatroom_ledger.domain.views import build_view
from agent_chatroom_ledger.errors import Corrupt, InvalidInput, NotFound
from agent_chatroom_ledger.storage import reading, versionfold
from agent_chatroom_ledger.storage.artifacts import artifact_path, committed
from agent_chatroom_ledger.storage.reading import MESSAGES, OPERATIONS, log_path
from agent_chatroom_ledger.storage.roomreader import POLICY_FILE, ROOM_FILE, VIEW, RoomReader
from agent_chatroom_ledger.storage.viewpages import TreeViewReader

if TYPE_CHECKING:
    from collections.abc import Iterable

    from agent_chatroom_ledger.domain.roomstate import RoomState
    from agent_chatroom_ledger.storage.issues import Findings
    from agent_chatroom_ledger.storage.source import Source


def check_log(source: Source, log: str, found: Findings, only: Iterable[int] | None = None) -> None:
    """Check the segments of a log: names, numbers without gaps, every line a record.

    ``only`` names the first numbers of the segments whose lines are read; all when None.
    """
    firsts = reading.segments(source, log)
    chosen = None if only is None else set(only)
    expected = 1
    before: tuple[int, int, int] | None = None
    newest_at = ""
    for first in firsts:
        path = f"{log}/{segment_path(first)}"
        read_it = chosen is None or first in chosen
        data = source.read(path) or b""
        lines = reading.lines_of(data)
        if first != expected:
            found.error("number_gap", f"{path} begins with {first}, not with {expected}", path)
        elif before is not None and not starts_new_segment(*before, first):
            found.error("segment_early", f"{path} begins before the segment above is full", path)
        if not data.endswith(b"\n"):
            found.error("message_parse_failed", f"{path} ends within a line", path)
        if read_it:
            newest_at = _check_lines(lines, first, path, newest_at, found)
            _check_artifacts(source, lines, first, path, found)
        else:
            newest_at = _at(lines[-1]) if lines else newest_at
        expected = first + len(lines)
        before = (first, len(lines), len(data))


def _check_artifacts(
    source: Source, lines: list[bytes], first: int, path: str, found: Findings
) -> None:
    """Check that what records name is there: they are committed together."""
    for index, line in enumerate(lines):
        if b'"artifacts":[' not in line:
            continue
        try:
            names = decode_record(line).artifacts
        except Corrupt:
            continue
        for name in names:
            if committed(source, name) is None:
                place = artifact_path(name)
                what = f"record {first + index} of {path} names {place}, which is not there"
                found.error("artifact_missing", what, place)


def _check_lines(lines: list[bytes], first: int, path: str, newest_at: str, found: Findings) -> str:
    for index, line in enumerate(lines):
        n = first + index
        try:
            record = decode_record(line)
            to_datetime(record.at)
        except (Corrupt, InvalidInput) as error:
            found.error("message_parse_failed", f"record {n} of {path}: {error.message}", path)
            continue
        if record.n != n:
            found.error("number_mismatch", f"record {n} of {path} calls itself {record.n}", path)
        if record.at <= newest_at:
            found.error("time_runs_back", f"record {n} of {path} is not later than {n - 1}", path)
        newest_at = record.at
    found.count("records", len(lines))
    return newest_at


def _at(line: bytes) -> str:
    try:
        return decode_record(line).at
    except Corrupt:
        return ""


def check_room(source: Source, room: str, found: Findings, *, ids: bool) -> None:
    """Check a room's projections and its view against the fold of its logs.

    ``ids`` asks for the ids of its messages too: each stands once in an origin.
    """
    found.count("rooms_folded")
    reader = RoomReader(source, None, room)
    try:
        state = reader.folded_state()
    except (NotFound, Corrupt) as error:
        found.error("missing_state", f"no operation creates {room}: {error.message}", room)
        return
    if state.path != room:
        found.error("room_misplaced", f"{room} was created as {state.path}", room)
    _check_projections(source, state, found)
    _check_versions(source, reader, found)
    _check_view(source, reader, state, found)
    if ids:
        _check_ids(source, reader, found)


def _check_projections(source: Source, state: RoomState, found: Findings) -> None:
    room, policy = (source.read(f"{state.path}/{name}") for name in (ROOM_FILE, POLICY_FILE))
    for name, data, right in (
        (ROOM_FILE, room, room_json(state)),
        (POLICY_FILE, policy, policy_json(state)),
    ):
        path = f"{state.path}/{name}"
        if data is None:
            found.error("missing_state", f"{path} is missing", path)
        elif data != right:
            try:
                state_from_projections(room or b"", policy or b"")
            except Corrupt as error:
                found.error("state_parse_failed", f"{path}: {error.message}", path)
            else:
                found.error(
                    "state_message_mismatch", f"{path} is not what the operations make it", path
                )


def _check_versions(source: Source, reader: RoomReader, found: Findings) -> None:
    """Check the projected versions against the fold, and the messages that they are of."""
    room = reader.room
    projected = versionfold.projected_paths(source, room)
    if not projected and not versionfold.operations(source, room):
        return
    bundles = versionfold.folded(source, room)
    right = {versions_path(room, *key): bundle for key, bundle in bundles.items()}
    for path in sorted({*projected, *right}):
        data, bundle = source.read(path), right.get(path)
        if bundle is None:
            found.error("message_version_invalid", f"{path} is of no operation", path)
        elif data != bundle_json(bundle):
            what = "missing" if data is None else "not what the operations make it"
            found.error("message_version_invalid", f"{path} is {what}", path)
        else:
            message = reader.find(bundle.origin, bundle.n)
            if message is None or needs_work(bundle, message.body, semantic=False):
                whose = "of no message" if message is None else "of another text than its message"
                found.warning("message_version_invalid", f"{path} is {whose}", path)
    found.count("versions", len(right))


def _check_view(source: Source, reader: RoomReader, state: RoomState, found: Findings) -> None:
    path = f"{state.path}/{VIEW}"
    positions = reader.positions()
    newest = reader.newest_page()
    if newest is None:
        if positions:
            found.warning("compiled_stale", f"{state.path} has no compiled view yet", path)
        return
    try:
        header = parse_header(newest[1])
    except Corrupt as error:
        found.error("compiled_parse_failed", f"{newest[0]}: {error.message}", f"{path}/{newest[0]}")
        return
    operations = reader.positions(OPERATIONS)
    if not (
        contains(positions, header.through_messages)
        and contains(operations, header.through_operations)
    ):
        found.error("view_ahead", f"the view of {state.path} is ahead of its logs", path)
        return
    covered = [
        operation
        for operation in reader.after(log=OPERATIONS)
        if covers(header.through_operations, operation.origin, operation.n)
    ]
    tree = TreeViewReader(
        source,
        state.path,
        state.origin,
        header.through_messages,
        header.through_operations,
    )
    try:
        right = build_view(fold_room(covered), tree.messages_after({}), header.through_operations)
    except (NotFound, Corrupt) as error:
        found.error("compiled_parse_failed", f"{path}: {error.message}", path)
        return
    for name in sorted({*right, *reader.pages()}):
        data, place = reader.page(name), f"{path}/{name}"
        if name not in right:
            found.error("compiled_parse_failed", f"{place} is no page of this view", place)
        elif data != right[name]:
            what = "missing" if data is None else "not what the logs make it"
            found.error("compiled_parse_failed", f"{place} is {what}", place)
    found.count("pages", len(right))
    if not contains(header.through_messages, positions):
        found.warning("compiled_stale", f"the view of {state.path} lacks newer messages", path)


def _check_ids(source: Source, reader: RoomReader, found: Findings) -> None:
    for origin in reader.origins():
        log = log_path(reader.room, MESSAGES, origin)
        seen: set[str] = set()
        for n, line in reading.records(source, log):
            try:
                record = decode_record(line)
            except Corrupt:
                continue
            if record.id in seen:
                found.error("repeated_id", f"record {n} of {log} repeats {record.id!r}", log)
            seen.add(record.id)
