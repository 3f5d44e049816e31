"""Versions of messages as lines of text, and as the parts of JSON documents."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from agent_chatroom_ledger.cli.shapes import room_shape, time_text
from agent_chatroom_ledger.cli.terminal import plain
from agent_chatroom_ledger.cli.transcript import INDENT
from agent_chatroom_ledger.domain.display import one_line, terminal_safe

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from agent_chatroom_ledger.cli.terminal import Paint
    from agent_chatroom_ledger.domain.worddiff import Piece
    from agent_chatroom_ledger.versions import AuditItem, Bundle, LevelDiff, VersionEntry

_TEXT_CHARS = 60
_COMMIT_CHARS = 10


def bundle_lines(ref: str, bundle: Bundle, paint: Paint) -> Iterator[str]:
    """Show ten levels, the beginning of each."""
    if bundle.prepared:
        how = "for their meaning" if bundle.semantic else "by rule"
        who = f"set by {plain(bundle.prepared_by)}, {bundle.prepared_at}, prepared {how}"
    else:
        who = "nobody has prepared them: all are the message"
    yield f"{paint.strong(f'#{ref}')} {paint.faint(who)}"
    width = len(f"{max(map(len, bundle.levels)):,}")
    for level, text in enumerate(bundle.levels):
        yield f"  {level}  {len(text):{width},}  {plain(one_line(text, _TEXT_CHARS))}"


def audit_shape(item: AuditItem) -> dict[str, Any]:
    """Give the state of one message's versions, without their texts."""
    bundle = item.bundle
    return {
        "room": room_shape(item.room),
        "ref": item.message.ref,
        "needs_work": item.needs_work,
        "reasons": list(item.reasons),
        "semantic_prepared": bundle.semantic,
        "prepared_by": bundle.prepared_by,
        "prepared_at": bundle.prepared_at,
        "source_hash": bundle.source_hash,
        "bundle_hash": bundle.bundle_hash,
    }


def audit_lines(items: Sequence[AuditItem]) -> Iterator[str]:
    """Name the messages that need work, and count them."""
    needing = [item for item in items if item.needs_work]
    for item in needing:
        place = plain(item.room.path.removeprefix("rooms/"))
        yield f"{place} #{item.message.ref}: {', '.join(item.reasons)}"
    yield f"{len(needing)} of {len(items)} messages need work"


def entry_shape(entry: VersionEntry) -> dict[str, Any]:
    """Give one operation on versions."""
    return {
        "operation": entry.operation,
        "at": time_text(entry.at),
        "by": entry.by,
        "reason": entry.reason,
        "commit": entry.commit,
        "versions": None if entry.bundle is None else entry.bundle.as_dict(),
    }


def entry_lines(entries: Iterable[VersionEntry], paint: Paint) -> Iterator[str]:
    """Show operations on versions, one line each."""
    for entry in entries:
        commit = entry.commit[:_COMMIT_CHARS] if entry.commit else "pending"
        head = f"{paint.faint(commit)} {entry.at:%Y-%m-%d %H:%M:%S}Z {plain(entry.by)}: "
        if entry.bundle is None:
            what = "taken back"
        else:
            lengths = " ".join(str(len(text)) for text in entry.bundle.levels)
            how = "semantic" if entry.bundle.semantic else "structural"
            what = f"{entry.bundle.bundle_hash[:_COMMIT_CHARS]} {how}, characters {lengths}"
        yield head + what + (f" ({plain(entry.reason)})" if entry.reason else "")


def diff_shape(diff: LevelDiff) -> dict[str, Any]:
    """Give one level that differs."""
    return {
        "level": diff.level,
        "old_chars": diff.old_chars,
        "new_chars": diff.new_chars,
        "pieces": [{"change": piece.change, "text": piece.text} for piece in diff.pieces],
    }


def diff_lines(diffs: Sequence[LevelDiff], paint: Paint) -> Iterator[str]:
    """Show the levels that differ, with the words marked as git marks them."""
    if not diffs:
        yield "No level differs."
    for diff in diffs:
        yield paint.strong(f"level {diff.level}: {diff.old_chars} -> {diff.new_chars} characters")
        for line in terminal_safe(_marked(diff.pieces), lines=True).split("\n"):
            yield INDENT + line


def _marked(pieces: Iterable[Piece]) -> str:
    from agent_chatroom_ledger.domain.worddiff import word_diff_text

    return word_diff_text(pieces)
