"""Verify: a sound ledger is clean, and every kind of damage has its code."""

from __future__ import annotations

import json
import os
import re
import shutil
from typing import TYPE_CHECKING

import pytest

from agent_chatroom_ledger import Ledger
from agent_chatroom_ledger.storage import journal, refs
from agent_chatroom_ledger.storage.issues import Findings
from agent_chatroom_ledger.storage.verify import verify

if TYPE_CHECKING:
    from pathlib import Path

    from agent_chatroom_ledger import Room
    from agent_chatroom_ledger.storage.layout import Layout
    from tests.conftest import Git, MakeLedger


@pytest.fixture
def room(ledger: Ledger) -> Room:
    found = ledger.create_room("Design review", members=["Analyst"])
    found.post_many([{"author": "A", "body": f"message {n}"} for n in range(1, 61)])
    found.exclude("3-4")
    ledger.create_room("Empty")
    ledger.consumer("Analyst").acknowledge(found, through=7)
    ledger.close()
    return found


@pytest.fixture
def layout(room: Room) -> Layout:
    return room.ledger.layout


def codes(layout: Layout, *, full: bool = False) -> set[str]:
    report = verify(layout, full=full)
    assert report.ok == all(issue.severity == "warning" for issue in report.issues)
    return {issue.code for issue in report.issues}


def segment(room: Room) -> Path:
    return min((room.ledger.root / room.path / "messages").rglob("*.jsonl"))


def commit_all(git: Git, root: Path) -> None:
    git(root, "add", "-A")
    git(root, "commit", "-q", "-m", "by hand")


def test_a_sound_ledger_is_clean_and_the_next_look_is_short(layout: Layout) -> None:
    first = verify(layout)
    assert (first.ok, first.issues, first.since) == (True, (), "")
    assert first.counts["records"] == 65
    assert first.counts["rooms"] == 2
    assert first.counts["cursors"] == 1
    second = verify(layout)
    assert second.ok
    assert second.since == second.main == first.main
    assert "commits" not in second.counts
    assert verify(layout, full=True).counts["commits"] == first.counts["commits"]
    with Ledger.open(layout.root) as ledger:
        ledger.room("empty").post("A", "new")
    third = verify(layout)
    assert third.ok
    assert 1 <= third.counts["commits"] <= 2
    assert third.counts["records"] == 1


@pytest.mark.broken_on_purpose
def test_a_report_is_json(layout: Layout) -> None:
    shutil.rmtree(layout.root / "rooms/empty")
    report = verify(layout)
    document = json.loads(json.dumps(report.as_dict()))
    assert document["ok"] is False
    assert document["error_count"] == report.error_count > 0
    assert set(document["issues"][0]) == {"severity", "code", "message", "path"}


@pytest.mark.broken_on_purpose
@pytest.mark.parametrize(
    ("path", "content", "code"),
    [
        ("rooms/design-review/room.json", b"{}", "state_message_mismatch"),
        ("rooms/design-review/room.json", None, "missing_state"),
        ("rooms/design-review/policy.json", b"", "state_message_mismatch"),
        ("VIEW", b"# forged\n", "compiled_parse_failed"),
        ("VIEW", None, "compiled_parse_failed"),
        ("LOG", b"x\n", "worktree_changed"),
        ("LOG", None, "worktree_missing"),
        ("ledger.json", None, "worktree_missing"),
        (".gitattributes", b"* text\n", "worktree_changed"),
        ("rooms/notes.txt", b"mine", "foreign_file"),
        (".git/HEAD", b"ref: refs/heads/other\n", "not_on_main"),
        (".git/refs/heads/main", b"garbage\n", "bad_ref"),
        (".git/refs/heads/main", b"1" * 40 + b"\n", "missing_object"),
        (".git/index", None, "index_missing"),
        (".git/index.lock", b"", "git_locked"),
    ],
)
def test_files_that_were_changed_have_their_code(
    room: Room, layout: Layout, path: str, content: bytes | None, code: str
) -> None:
    assert codes(layout) == set()
    view = next((layout.root / room.path / "view").rglob("*.md"))
    place = {"VIEW": view, "LOG": segment(room)}.get(path, layout.root / path)
    if content is None:
        place.unlink()
    else:
        place.write_bytes(content)
    assert code in codes(layout)


@pytest.mark.broken_on_purpose
def test_a_change_that_keeps_size_and_time_is_found_by_a_full_look(
    room: Room, layout: Layout
) -> None:
    path = segment(room)
    status = path.stat()
    data = path.read_bytes()
    with path.open("r+b") as stream:
        stream.write(data.replace(b"message 1", b"message 9"))
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))
    assert "worktree_changed" in codes(layout, full=True)


@pytest.mark.broken_on_purpose
def test_links_are_named_and_not_followed(room: Room, layout: Layout, tmp_path: Path) -> None:
    path = segment(room)
    path.rename(tmp_path / "moved.jsonl")
    path.symlink_to(tmp_path / "moved.jsonl")
    assert "symlink" in codes(layout)
    path.unlink()
    (tmp_path / "moved.jsonl").rename(path)
    (layout.root / "rooms/link").symlink_to("/etc")
    assert codes(layout) == {"symlink"}
    assert verify(layout).ok
    (layout.root / "rooms/link").unlink()
    place = layout.root / "rooms/design-review"
    place.rename(tmp_path / "room")
    place.symlink_to(tmp_path / "room")
    assert "symlink" in codes(layout)


@pytest.mark.broken_on_purpose
@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        (b"message 1", b"another 1", {"log_changed"}),
        (b'{"n":2,', b'{"n":7,', {"log_changed", "number_mismatch"}),
        (b'{"n":60,', b'{"n":60;', {"log_changed", "message_parse_failed"}),
    ],
)
def test_a_foreign_commit_that_changes_a_log(
    room: Room, layout: Layout, git: Git, old: bytes, new: bytes, expected: set[str]
) -> None:
    verify(layout)
    for path in (layout.root / room.path / "messages").rglob("*.jsonl"):
        path.write_bytes(path.read_bytes().replace(old, new))
    commit_all(git, layout.root)
    assert expected <= codes(layout)
    assert expected <= codes(layout, full=True)


@pytest.mark.broken_on_purpose
def test_a_record_of_a_time_that_is_none_is_named(room: Room, layout: Layout, git: Git) -> None:
    """It has the form of a time, and every reader skips it."""
    for path in (layout.root / room.path / "messages").rglob("*.jsonl"):
        data = re.sub(rb'"at":"(\d{4})-\d\d-\d\d', rb'"at":"\1-19-39', path.read_bytes())
        path.write_bytes(data)
    commit_all(git, layout.root)
    assert "message_parse_failed" in codes(layout, full=True)


def test_a_view_that_lags_behind_is_a_warning(room: Room, layout: Layout, git: Git) -> None:
    root = layout.root
    old = git(root, "rev-parse", "HEAD").strip()
    with Ledger.open(root) as ledger:
        ledger.room(room.path).post("A", "one more")
        ledger.room(room.path).compile()
    git(root, "checkout", "-q", old, "--", f"{room.path}/view")
    git(root, "commit", "-q", "-m", "an older view")
    assert codes(layout) == {"compiled_stale"}
    assert verify(layout).ok
    git(root, "rm", "-rq", f"{room.path}/view")
    git(root, "commit", "-q", "-m", "no view")
    assert codes(layout) == {"compiled_stale"}


@pytest.mark.broken_on_purpose
def test_a_view_that_is_ahead_of_its_log_is_an_error(room: Room, layout: Layout, git: Git) -> None:
    root = layout.root
    old = git(root, "rev-parse", "HEAD").strip()
    with Ledger.open(root) as ledger:
        ledger.room(room.path).post("A", "one more")
        ledger.room(room.path).compile()
    git(root, "checkout", "-q", old, "--", f"{room.path}/messages")
    git(root, "commit", "-q", "-m", "an older log")
    assert {"view_ahead", "log_changed"} <= codes(layout)


@pytest.mark.broken_on_purpose
def test_a_foreign_commit_that_adds_a_record(room: Room, layout: Layout, git: Git) -> None:
    path = max((layout.root / room.path / "messages").rglob("*.jsonl"))
    line = path.read_bytes().splitlines()[-1]
    path.write_bytes(path.read_bytes() + line.replace(b'{"n":60,', b'{"n":61,') + b"\n")
    commit_all(git, layout.root)
    assert {"foreign_records", "time_runs_back", "repeated_id"} <= codes(layout)


@pytest.mark.broken_on_purpose
@pytest.mark.parametrize(
    ("name", "content", "code"),
    [
        ("room.json", b"{}", "state_parse_failed"),
        ("policy.json", None, "missing_state"),
        ("policy.json", b'{\n  "excluded": [],\n  "format": 1,\n  "standins": []\n}\n', ""),
        ("view", b"# forged\n", "compiled_parse_failed"),
        ("segment", b"", "number_gap"),
        ("stray", b"x\n", "foreign_segment"),
    ],
)
def test_a_foreign_commit_that_breaks_a_room(
    room: Room, layout: Layout, git: Git, name: str, content: bytes | None, code: str
) -> None:
    folder = layout.root / room.path
    path = {
        "view": max((folder / "view").rglob("*.md")),
        "segment": segment(room),
        "stray": segment(room).with_name("notes.jsonl"),
    }.get(name, folder / name)
    if content is None:
        path.unlink()
    else:
        path.write_bytes(content)
    commit_all(git, layout.root)
    assert (code or "state_message_mismatch") in codes(layout)


@pytest.mark.broken_on_purpose
def test_a_room_that_leaves_without_a_tombstone(layout: Layout, git: Git) -> None:
    git(layout.root, "rm", "-rq", "rooms/empty")
    git(layout.root, "commit", "-q", "-m", "by hand")
    assert "room_missing" in codes(layout)


def test_a_foreign_commit_of_other_files_is_no_damage(layout: Layout, git: Git) -> None:
    (layout.root / "NOTES.md").write_text("mine\n")
    commit_all(git, layout.root)
    assert codes(layout) == set()


@pytest.mark.broken_on_purpose
def test_a_rewound_main(layout: Layout, git: Git) -> None:
    git(layout.root, "reset", "-q", "--hard", "HEAD~5")
    assert "rewound" in codes(layout)


@pytest.mark.broken_on_purpose
def test_a_damaged_object(layout: Layout, git: Git) -> None:
    (pack, *_) = sorted(
        (layout.git / "objects/pack").glob("*.pack"), key=lambda p: -p.stat().st_size
    )
    data = bytearray(pack.read_bytes())
    data[len(data) // 2] ^= 0xFF
    pack.chmod(0o644)
    pack.write_bytes(data)
    assert codes(layout) & {"missing_object", "bad_object", "message_parse_failed"}
    assert "unable" not in git(layout.root, "rev-parse", "HEAD")


@pytest.mark.broken_on_purpose
def test_git_add_of_something_else(layout: Layout, git: Git) -> None:
    (layout.root / "rooms/design-review/room.json").write_bytes(b"{}")
    git(layout.root, "add", "-A")
    assert {"index_differs", "state_message_mismatch"} <= codes(layout)


@pytest.mark.broken_on_purpose
@pytest.mark.parametrize(
    ("change", "code"),
    [
        (lambda text: text[:-30], "consumer_state_invalid"),
        (lambda text: text.replace('"n": 7', '"n": 700'), "consumer_state_invalid"),
        (lambda text: text.replace('"n": 7', '"n": 8'), "consumer_state_invalid"),
        (lambda text: text.replace("ledger/cursor", "ledger/other"), "consumer_state_invalid"),
        (lambda _: "", "consumer_state_invalid"),
    ],
)
def test_cursors_are_checked(room: Room, layout: Layout, change, code: str) -> None:  # type: ignore[no-untyped-def]  # noqa: ANN001
    with Ledger.open(layout.root, read_only=True) as ledger:
        path = ledger.consumer("Analyst").cursor_path
    path.write_text(change(path.read_text()))
    assert codes(layout) == {code}
    assert room.id in path.read_text() or not path.read_text()


def test_a_cursor_of_a_room_that_is_not_here_is_a_warning(room: Room, layout: Layout) -> None:
    path = next(layout.cursors.glob("*.json"))
    path.write_text(path.read_text().replace(room.id, "another"))
    assert codes(layout) == {"cursor_room_unknown"}


def test_readers_of_a_room_that_is_archived_or_has_moved_are_in_order(room: Room) -> None:
    """Where it lay another room may be, in which nobody has read that far."""
    with Ledger.open(room.ledger.root) as ledger:
        ledger.agent("Analyst").inbox(max=5)
        stone = ledger.archive_room(room.id)
        assert ledger.verify().issues == ()
        ledger.create_room("Design review").post("A", "another room")
        assert ledger.verify().issues == ()
        moved = ledger.restore_room(stone.id)
        assert moved.path == f"{room.path}_2"
        assert ledger.verify().issues == ()


def test_a_room_that_moved_is_missed_where_it_was_put_last(room: Room, git: Git) -> None:
    """A repair must not bring back whoever was archived from the place that it had before."""
    root = room.ledger.root
    with Ledger.open(root) as ledger:
        stone = ledger.archive_room(room.id)
        other = ledger.create_room("Design review")
        moved = ledger.restore_room(stone.id).path
        gone = ledger.archive_room(other)
        assert ledger.verify().issues == ()
    git(root, "rm", "-rq", moved)
    git(root, "commit", "-qm", "gone")
    with Ledger.open(root) as ledger:
        assert [i.path for i in ledger.verify().issues if i.code == "room_missing"] == [moved]
        assert ledger.verify(repair=True).ok
        assert ledger.room(stone.id).path == moved
        assert [found.id for found in ledger.rooms(status="archived")] == [gone.id]


@pytest.mark.broken_on_purpose
def test_receipts_are_checked(room: Room, layout: Layout) -> None:
    from agent_chatroom_ledger.storage.receipts import Receipts

    origin = room.origin
    store = Receipts(layout)
    store.drop("Ben", room.id, {origin: 7})
    store.drop("Ben", "a room that is not here", {origin: 70})
    assert codes(layout) == set()
    store.drop("Ben", room.id, {origin: 70})
    assert codes(layout) == {"receipts_ahead"}
    store.close()
    layout.receipts.write_bytes(layout.receipts.read_bytes()[:5_000])
    assert codes(layout) == {"receipts_damaged"}


def test_the_journal_is_checked(layout: Layout) -> None:
    newest = journal.generation_path(layout, journal.generations(layout)[-1])
    good = newest.read_bytes()
    newest.write_bytes(good + b"torn")
    assert codes(layout) == {"journal_torn"}
    newest.write_bytes(b"x" * 30 + b"\n" + good)
    assert "journal_rot" in codes(layout)
    newest.write_bytes(good)
    assert codes(layout) == set()


def test_frames_that_wait_are_a_warning(make_ledger: MakeLedger) -> None:
    ledger = make_ledger("grouped", commit="group")
    room = ledger.create_room("Here")
    held = refs.head(ledger.layout)
    with ledger.writer().committer.lock:
        room.post("A", "waits")
        report = verify(ledger.layout, remember=False)
        assert {issue.code for issue in report.issues} >= {"journal_pending"}
    assert held == refs.MAIN
    assert ledger.verify().ok


def test_verify_remembers_nothing_unsound(room: Room, layout: Layout) -> None:
    path = segment(room)
    good = path.read_bytes()
    path.write_bytes(b"x\n")
    assert not verify(layout).ok
    assert not (layout.private / "verified").exists()
    path.write_bytes(good)
    verify(layout, remember=False)
    assert not (layout.private / "verified").exists()
    (layout.private / "verified").write_text("nonsense")
    assert verify(layout).since == ""
    (layout.private / "verified").write_text("1" * 40)
    assert verify(layout).ok


def test_a_flood_is_cut_and_counted() -> None:
    found = Findings()
    for n in range(1000):
        found.error("many", f"number {n}")
    report = found.report(main="", since="")
    assert len(report.issues) == Findings.PER_CODE_MAX + 1
    assert "800 more" in report.issues[-1].message
