"""Importing channel logs: every line once, in order, with its speaker and its time."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from agent_chatroom_ledger.adapters.irc import import_irc
from agent_chatroom_ledger.errors import InvalidInput, NotFound

if TYPE_CHECKING:
    from agent_chatroom_ledger import Ledger
    from tests.conftest import Git

DATA = Path(__file__).resolve().parents[1] / "data" / "irc"
LOGS = sorted(DATA.glob("*.log"))
LINES = sum(len(path.read_bytes().splitlines()) for path in LOGS)


def test_every_line_becomes_a_record(ledger: Ledger) -> None:
    room = ledger.create_room("Channel")
    report = import_irc(ledger, room, LOGS)
    assert (report.files, report.lines) == (3, LINES)
    assert report.messages + report.events == LINES
    assert (report.skipped, report.bad_count, report.bad_lines) == (0, 0, ())
    messages = room.messages()
    assert [message.n for message in messages] == list(range(1, LINES + 1))
    first = messages[0]
    assert (first.author, first.body) == ("wren476", "dingo809, quite stable though  :)")
    assert first.said_at is not None
    assert first.said_at.isoformat() == "2004-11-15T12:18:00+00:00"
    assert sum(message.kind == "event" for message in messages) == report.events


def test_each_line_is_a_commit_of_its_speaker_at_its_time(ledger: Ledger, git: Git) -> None:
    import_irc(ledger, ledger.create_room("Channel"), LOGS)
    trail = git(
        ledger.root, "log", "--reverse", "--format=%an|%aI|%s", "--", "rooms/channel/messages"
    ).splitlines()
    assert len(trail) == LINES
    author, time, subject = trail[0].split("|", 2)
    assert author == "wren476"
    assert time.startswith("2004-11-15T12:18:00")
    assert subject.startswith("channel #1 wren476: dingo809, quite stable")
    assert git(ledger.root, "status", "--porcelain") == ""


def test_importing_again_adds_nothing(ledger: Ledger, git: Git) -> None:
    room = ledger.create_room("Channel")
    import_irc(ledger, room, LOGS)
    main = git(ledger.root, "rev-parse", "main")
    report = import_irc(ledger, room, LOGS)
    assert (report.messages, report.events, report.skipped) == (0, 0, LINES)
    assert git(ledger.root, "rev-parse", "main") == main


def test_a_log_that_has_grown_adds_its_new_lines(ledger: Ledger, tmp_path: Path) -> None:
    log = tmp_path / LOGS[0].name
    lines = LOGS[0].read_bytes().splitlines(keepends=True)
    room = ledger.create_room("Channel")
    log.write_bytes(b"".join(lines[:20]))
    import_irc(ledger, room, [log])
    log.write_bytes(b"".join(lines))
    report = import_irc(ledger, room, [log])
    assert report.skipped == 20
    assert report.messages + report.events == len(lines) - 20
    assert len(room.messages()) == len(lines)


def test_the_size_of_a_chunk_changes_nothing(ledger: Ledger) -> None:
    one, other = ledger.create_room("One"), ledger.create_room("Other")
    assert import_irc(ledger, one, LOGS, chunk=7) == import_irc(ledger, other, LOGS)
    assert [(m.id, m.body) for m in one.messages()] == [(m.id, m.body) for m in other.messages()]
    for chunk in (0, 10_001):
        with pytest.raises(InvalidInput, match="chunk"):
            import_irc(ledger, one, LOGS, chunk=chunk)


def test_a_room_that_is_named_is_made_when_it_is_missing(ledger: Ledger) -> None:
    import_irc(ledger, "logs/Channel", LOGS[:1])
    room = ledger.room("logs/channel")
    assert (room.title, room.folder) == ("Channel", "logs")
    assert import_irc(ledger, "logs/channel", LOGS[:1]).skipped == len(room.messages())


def test_bad_lines_are_named_by_file_and_line(ledger: Ledger, tmp_path: Path) -> None:
    log = tmp_path / "2005-02-06.log"
    log.write_bytes(b"[12:18] <a> fine\n\n[12:19] <b> \xff\x00 not fine\nnot a line\n")
    room = ledger.create_room("Channel")
    report = import_irc(ledger, room, [log])
    assert [(bad.file, bad.line) for bad in report.bad_lines] == [(log.name, n) for n in (2, 3, 4)]
    assert report.bad_count == 3
    assert (report.lines, report.messages, report.events) == (4, 2, 1)
    assert report.as_dict()["bad_count"] == 3
    assert room.messages()[1].body == "\\xff\\x00 not fine"


def test_events_are_never_unread(ledger: Ledger) -> None:
    report = import_irc(ledger, "Channel", LOGS)
    (item,) = ledger.consumer("Reviewer").unread()
    assert item.count == report.messages


def test_nothing_is_written_when_a_path_is_wrong(ledger: Ledger, tmp_path: Path) -> None:
    room = ledger.create_room("Channel")
    with pytest.raises(NotFound, match=r"2005-02-06\.log"):
        import_irc(ledger, room, [LOGS[0], tmp_path / "2005-02-06.log"])
    nameless = tmp_path / "channel.log"
    shutil.copy(LOGS[0], nameless)
    with pytest.raises(InvalidInput, match="day"):
        import_irc(ledger, room, [LOGS[0], nameless])
    assert room.messages() == []


def test_progress_runs_up_to_the_whole(ledger: Ledger) -> None:
    told: list[tuple[int, int]] = []
    import_irc(
        ledger, "Channel", LOGS, progress=lambda done, total: told.append((done, total)), chunk=50
    )
    total = sum(path.stat().st_size for path in LOGS)
    assert told == sorted(told)
    assert told[-1] == (total, total)
    assert all(whole == total for _, whole in told)
