"""A server takes what a ledger writes, and nothing else (invariants 1, 2 and 5)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from agent_chatroom_ledger import Ledger, versions
from agent_chatroom_ledger.domain.versions import levels_shape
from tests.hooks.conftest import Pair, git, run
from tests.hooks.pushes import refused, taken, write_records

if TYPE_CHECKING:
    from pathlib import Path


def test_everything_that_a_ledger_does_is_taken(pair: Pair) -> None:
    with Ledger.open(pair.ledger) as ledger:
        room = ledger.room("Review")
        room.post_many([{"author": "Reviewer", "body": f"look {n}"} for n in range(60)])
        room.exclude("2-3", by="Reviewer", reason="noise")
        room.add_standin("2-3", "two checks", by="Reviewer")
        room.compile()
        other = ledger.create_room("Side / \u2603 room", folder="team/a")
        other.post("Eve <eve@x>", "what\n\nFrame: 3\nRecord: x")
        other.post("Analyst", "said before", said_at="2020-01-01T00:00:00.000000Z")
        ledger.archive_room(other, by="Reviewer", reason="done")
        ledger.restore_room(other.id, by="Reviewer")
        stone = ledger.archive_room(other.id, by="Reviewer")
        ledger.create_room("Team")
        assert ledger.restore_room(stone.id, by="Reviewer").folder == "team_2/a"
        ledger.archive_room("Review")
    pair.refresh()
    taken(pair)


def test_every_kind_of_operation_is_taken(pair: Pair) -> None:
    with Ledger.open(pair.ledger) as ledger:
        room, other = ledger.room("Review"), ledger.create_room("Planning")
        room.add_member("Builder", by="Reviewer", reason="helps")
        room.remove_member("Builder", by="Reviewer")
        room.place("1-3", other, reason="belongs there", by="Reviewer")
        room.duplicate("1", other, reason="again", by="Reviewer")
        for fill in ("short", "long " * 5_000):
            # The second is too large for a record, and becomes an artifact.
            texts = (room.message(2).body, *(f"{fill} {level}" for level in range(1, 10)))
            versions.set_versions(room, 2, levels_shape(texts), by="Editor")
        versions.restore(room, 2, "HEAD~2", by="Editor")
        ledger.archive_room(room)
        again = ledger.create_room("Review")
        again.post("Analyst", "in the old place")
        ledger.restore_room(room.id)
        ledger.room(room.id).post("Analyst", "in a new place")
    pair.refresh()
    assert list(pair.copy.glob("artifacts/*/*"))
    assert (pair.copy / "rooms" / "review_2").is_dir()
    taken(pair)


def test_a_commit_of_the_users_own_files_is_taken(pair: Pair) -> None:
    (pair.copy / "README.md").write_text("About this ledger\n")
    pair.commit()
    git(pair.copy, "switch", "-q", "-c", "notes")
    (pair.copy / "notes.md").write_text("More\n")
    pair.commit()
    git(pair.copy, "switch", "-q", "main")
    (pair.copy / "other.md").write_text("Else\n")
    pair.commit()
    git(pair.copy, "merge", "-q", "--no-edit", "notes")
    taken(pair)
    with Ledger.open(pair.ledger) as ledger:
        ledger.room("Review").post("Analyst", "on the old tip")


def test_other_branches_and_tags_are_the_users_own(pair: Pair) -> None:
    git(pair.copy, "switch", "-q", "-c", "scratch")
    pair.segment().write_text("{}\n")
    pair.commit()
    git(pair.copy, "tag", "here")
    assert pair.push("scratch", "here").returncode == 0
    assert pair.push(":scratch").returncode == 0


def test_a_forced_push_is_refused(pair: Pair) -> None:
    git(pair.copy, "reset", "-q", "--hard", "HEAD~2")
    refused(pair, "forced_push", "--force", "main")
    (pair.copy / "README.md").write_text("another line of history\n")
    pair.commit()
    refused(pair, "forced_push", "--force", "main")


def test_an_unrelated_history_is_refused(pair: Pair, tmp_path: Path) -> None:
    Ledger.open(tmp_path / "another", create=True).close()
    git(pair.copy, "fetch", "-q", str(tmp_path / "another"), "main")
    refused(pair, "forced_push", "--force", "FETCH_HEAD:main")


def test_deleting_main_is_refused(pair: Pair) -> None:
    git(pair.bare, "config", "receive.denyDeleteCurrent", "ignore")
    refused(pair, "main_deleted", ":main")


def test_an_edited_message_is_refused(pair: Pair) -> None:
    segment = pair.segment()
    segment.write_text(segment.read_text().replace("check 1", "check 9"))
    pair.commit()
    refused(pair, "log_changed")


def test_an_edited_message_under_a_ledgers_commit_is_refused(pair: Pair) -> None:
    """The last commit is made again with the same message and author, and another old line."""
    git(pair.copy, "reset", "-q", "--hard", git(pair.copy, "log", "--format=%H", "--grep=#3", "-1"))
    segment = pair.segment()
    segment.write_text(segment.read_text().replace("check 0", "check 7"))
    git(pair.copy, "add", "-A")
    amend(pair)
    git(pair.bare, "update-ref", "refs/heads/main", git(pair.copy, "rev-parse", "HEAD~1"))
    refused(pair, "log_changed")


def amend(pair: Pair, **options: str) -> None:
    """Make the last commit again, with its own author, committer and times unless told others."""
    shown = git(pair.copy, "log", "-1", "--format=%an%n%ae%n%ad%n%cn%n%ce%n%cd", "--date=raw")
    keys = ("AUTHOR_NAME", "AUTHOR_EMAIL", "AUTHOR_DATE")
    keys += ("COMMITTER_NAME", "COMMITTER_EMAIL", "COMMITTER_DATE")
    found = dict(zip((f"GIT_{key}" for key in keys), shown.split("\n"), strict=True))
    tree = git(pair.copy, "write-tree")
    message = git(pair.copy, "log", "-1", "--format=%B")
    parent = git(pair.copy, "rev-parse", "HEAD~1")
    found |= options
    commit = git(pair.copy, "commit-tree", tree, "-p", parent, "-m", message, **found)
    git(pair.copy, "reset", "-q", "--hard", commit)


def last_message(pair: Pair) -> None:
    """Let the copy end with the commit of message 4, which the server has not."""
    with Ledger.open(pair.ledger) as ledger:
        ledger.room("Review").post("Analyst", "check 3")
    pair.refresh()
    git(pair.copy, "reset", "-q", "--hard", git(pair.copy, "log", "--format=%H", "--grep=#4", "-1"))


def test_amending_without_a_change_gives_the_same_commit(pair: Pair) -> None:
    last_message(pair)
    before = git(pair.copy, "rev-parse", "HEAD")
    amend(pair)
    assert git(pair.copy, "rev-parse", "HEAD") == before
    taken(pair)


@pytest.mark.parametrize(
    "forged",
    [
        {"GIT_AUTHOR_NAME": "Reviewer"},
        {"GIT_AUTHOR_EMAIL": "analyst@elsewhere"},
        {"GIT_AUTHOR_DATE": "1700000000 +0000"},
        {"GIT_COMMITTER_DATE": "1700000000 +0000"},
        {"GIT_COMMITTER_NAME": "Mallory", "GIT_COMMITTER_EMAIL": "m@x"},
    ],
)
def test_a_forged_author_line_is_refused(pair: Pair, forged: dict[str, str]) -> None:
    last_message(pair)
    amend(pair, **forged)
    refused(pair, "forged_author")


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("check 3", "check 4"),
        ("Kind: message", "Kind: decision"),
        ("Room: rooms/review", "Room: rooms/review2"),
        ("Message: 4@", "Message: 5@"),
        ("Frame: ", "Frames: "),
    ],
)
def test_a_forged_subject_or_trailer_is_refused(pair: Pair, old: str, new: str) -> None:
    last_message(pair)
    message = git(pair.copy, "log", "-1", "--format=%B").replace(old, new)
    shown = git(pair.copy, "log", "-1", "--format=%an%n%ae%n%ad%n%cn%n%ce%n%cd", "--date=raw")
    keys = ("AUTHOR_NAME", "AUTHOR_EMAIL", "AUTHOR_DATE")
    keys += ("COMMITTER_NAME", "COMMITTER_EMAIL", "COMMITTER_DATE")
    found = dict(zip((f"GIT_{key}" for key in keys), shown.split("\n"), strict=True))
    git(pair.copy, "commit", "-q", "--amend", "-m", message, **found)
    before = pair.main()
    assert pair.push().returncode != 0
    assert pair.main() == before


def test_a_removed_room_without_a_tombstone_is_refused(pair: Pair) -> None:
    git(pair.copy, "rm", "-rq", "rooms/review")
    pair.commit()
    refused(pair, "room_missing")


def test_a_tombstone_by_hand_is_refused(pair: Pair) -> None:
    git(pair.copy, "rm", "-rq", "rooms/review")
    (pair.copy / "archive" / "ab").mkdir(parents=True)
    (pair.copy / "archive" / "ab" / "x.json").write_text("{}\n")
    pair.commit()
    refused(pair, "foreign_file")


@pytest.mark.parametrize(
    ("name", "code"),
    [
        ("room.json", "state_message_mismatch"),
        ("policy.json", "state_message_mismatch"),
        ("view", "compiled_parse_failed"),
    ],
)
def test_a_projection_that_is_not_the_fold_is_refused(pair: Pair, name: str, code: str) -> None:
    path = pair.copy / "rooms" / "review" / name
    if path.is_dir():
        path = next(path.glob("*/*.md"))
    path.write_text(path.read_text() + "\n")
    pair.commit()
    refused(pair, code)


def test_a_projection_that_is_not_the_fold_under_a_ledgers_commit_is_refused(pair: Pair) -> None:
    last_message(pair)
    path = pair.copy / "rooms" / "review" / "policy.json"
    path.write_text(path.read_text() + "\n")
    git(pair.copy, "add", "-A")
    amend(pair)
    refused(pair, "projection_mismatch")


def test_records_by_hand_are_refused(pair: Pair) -> None:
    segment = pair.segment()
    line = segment.read_text().split("\n")[-2].replace('"n":3', '"n":4')
    segment.write_text(segment.read_text() + line + "\n")
    pair.commit()
    refused(pair, "foreign_records")


@pytest.mark.parametrize(
    ("path", "code"),
    [
        ("ledger.json", "ledger_file"),
        (".gitattributes", "ledger_file"),
        ("rooms/review/notes.txt", "foreign_file"),
        ("rooms/fake/room.json", "foreign_file"),
        ("operations/other/00/00/00000001.jsonl", "foreign_records"),
        ("rooms/review/messages/Evil/00/00/00000001.jsonl", "foreign_file"),
        ("artifacts/ab/abcd", "foreign_file"),
        ("Rooms/review/notes.txt", "foreign_file"),
        ("Archive", "foreign_file"),
    ],
)
def test_the_ledgers_own_files_are_not_for_hands(pair: Pair, path: str, code: str) -> None:
    (pair.copy / path).parent.mkdir(parents=True, exist_ok=True)
    (pair.copy / path).write_text("something\n")
    pair.commit()
    refused(pair, code)


@pytest.mark.parametrize("number", ["²", "9" * 5_000])
def test_what_is_no_number_in_a_trailer_is_text(pair: Pair, number: str) -> None:
    message = f"by hand\n\nFrame: {number}\n"
    git(pair.copy, "commit", "-q", "--allow-empty", "-m", message)
    taken(pair)
    message = f"by hand\n\nMessage: {number}@other\nRecord: x\nFrame: 1\n"
    git(pair.copy, "commit", "-q", "--allow-empty", "-m", message)
    refused(pair, "bad_commit")


def test_a_link_in_the_place_of_a_log_is_refused(pair: Pair) -> None:
    segment = pair.segment()
    segment.unlink()
    segment.symlink_to("/etc/passwd")
    pair.commit()
    refused(pair, "symlink")


def test_what_a_later_commit_puts_back_is_taken(pair: Pair) -> None:
    segment = pair.segment()
    segment.write_text("")
    pair.commit()
    git(pair.copy, "revert", "--no-edit", "HEAD")
    taken(pair)


def test_a_repaired_ledger_can_be_pushed(pair: Pair) -> None:
    git(pair.ledger, "rm", "-q", "--cached", "rooms/review/policy.json")
    git(pair.ledger, "commit", "-q", "-m", "Oops")
    with Ledger.open(pair.ledger) as ledger:
        assert ledger.verify(repair=True).ok
        ledger.room("Review").post("Analyst", "going on")
    pair.refresh()
    taken(pair)


def test_a_ledgers_commit_on_top_of_damage_is_refused(pair: Pair) -> None:
    path = pair.ledger / "rooms" / "review" / "room.json"
    path.write_text(path.read_text() + "\n")
    git(pair.ledger, "commit", "-q", "-a", "-m", "Oops")
    with Ledger.open(pair.ledger) as ledger:
        ledger.room("Review").post("Analyst", "built on it")
    pair.refresh()
    refused(pair, "state_message_mismatch")
    with Ledger.open(pair.ledger) as ledger:
        assert ledger.verify(repair=True).ok


@pytest.mark.parametrize(
    ("fields", "limit"),
    [
        ({"body": "x" * 262_145}, "262144"),
        ({"data": {"x": "y" * 70_000}}, "65536"),
        ({"to": tuple(f"n{k}" for k in range(300))}, "256"),
        ({"author": "two\nlines"}, "author"),
        ({"body": "a\0b"}, "NUL"),
    ],
)
def test_a_record_beyond_the_limits_is_refused(
    pair: Pair, fields: dict[str, Any], limit: str
) -> None:
    write_records(pair, fields)
    assert limit in refused(pair, "bad_commit")


def test_a_time_beyond_tomorrow_is_refused(pair: Pair) -> None:
    write_records(pair, {"at": "2100-01-01T00:00:00.000000Z"})
    refused(pair, "time_ahead")


def test_a_time_that_runs_back_is_refused(pair: Pair) -> None:
    write_records(pair, {"at": "2020-01-01T00:00:00.000000Z"})
    refused(pair, "time_runs_back")


def test_a_second_push_in_a_quarantine_reads_what_was_there(pair: Pair) -> None:
    """Few objects stay loose in the quarantine, and their parents are in its alternates."""
    for n in range(3):
        with Ledger.open(pair.ledger) as ledger:
            ledger.room("Review").post("Analyst", f"more {n}")
        pair.refresh()
        taken(pair)


def test_a_pusher_writes_under_his_own_origins_only(pair: Pair) -> None:
    with Ledger.open(pair.ledger) as ledger:
        origin = ledger.origin
    config = pair.bare / "rooms-hooks.toml"
    config.write_text(f'pusher = "PUSHER"\n[pushers]\nalice = ["{origin[:3]}*"]\nbob = ["ci-*"]\n')
    last_message(pair)
    for name in ("bob", "nobody", ""):
        done = run(pair.copy, "push", "origin", "main", PUSHER=name)
        assert done.returncode != 0
        assert "origin_not_allowed" in done.stderr
    assert run(pair.copy, "push", "origin", "main", PUSHER="alice").returncode == 0


@pytest.mark.parametrize("text", ["format = 2", "[pushers]\nx = 3", "not toml", "other = 1"])
def test_a_configuration_that_cannot_be_used_stops_every_push(pair: Pair, text: str) -> None:
    (pair.bare / "rooms-hooks.toml").write_text(text)
    last_message(pair)
    done = pair.push()
    assert done.returncode != 0
    assert "rooms-hooks.toml cannot be used" in done.stderr


def test_the_update_hook_judges_alike(pair: Pair) -> None:
    hooks = pair.bare / "hooks"
    text = (hooks / "pre-receive").read_text()
    command = next(line for line in text.split("\n") if line.startswith("rooms="))
    (hooks / "pre-receive").unlink()
    (hooks / "update").write_text(f'#!/bin/sh\n{command}\nexec "$rooms" hook update "$@"\n')
    (hooks / "update").chmod(0o755)
    last_message(pair)
    taken(pair)
    segment = pair.segment()
    segment.write_text(segment.read_text().replace("check 1", "check 9"))
    pair.commit()
    refused(pair, "log_changed")


def test_records_within_the_limits_are_taken(pair: Pair) -> None:
    write_records(pair, {"body": "x" * 262_144}, {"data": {"x": "y" * 60_000}}, {"to": ("*",)})
    taken(pair)


def test_another_origins_log_is_refused(pair: Pair) -> None:
    write_records(pair, {"body": "in another's name"}, origin="evil-0000")
    refused(pair, "foreign_origin")


@pytest.mark.parametrize(
    ("log", "kind", "data", "code"),
    [
        ("operations/{}", "room.restore", {"path": "rooms/back"}, "room_missing"),
        ("operations/{}", "room.restore", {"path": "rooms/review/in"}, "folder_is_room"),
        ("operations/{}", "room.restore", {"path": "rooms/Review"}, "bad_commit"),
        ("rooms/review/operations/{}", "room.move", {"path": "rooms/there"}, "room_misplaced"),
    ],
)
def test_a_room_comes_and_moves_only_by_a_tombstone(
    pair: Pair, log: str, kind: str, data: dict[str, str], code: str
) -> None:
    data = {"id": "x1", "from": "rooms/review", "commit": pair.main(), **data}
    write_records(pair, {"kind": kind, "data": data}, log=log)
    refused(pair, code)


def test_a_large_push_is_taken_and_says_how_far_it_is(pair: Pair) -> None:
    """A tenth of what the benchmark `push` measures."""
    with Ledger.open(pair.ledger, commit="group") as ledger:
        room = ledger.room("Review")
        room.post_many([{"author": "Analyst", "body": f"{n} " * 20} for n in range(1_000)])
    pair.refresh()
    done = pair.push()
    assert done.returncode == 0, done.stderr
    assert "1,000 of 1,0" in done.stderr
