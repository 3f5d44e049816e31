"""Who is here: entries of the living, waiters by their locks, one writer at a time."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from typing import TYPE_CHECKING

import msgspec
import pytest

from agent_chatroom_ledger.domain.identities import ProcessId
from agent_chatroom_ledger.errors import Busy
from agent_chatroom_ledger.storage import presence, processes
from agent_chatroom_ledger.storage.presence import Entry
from tests.clientlike import running

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from agent_chatroom_ledger.storage.layout import Layout

AT = "2026-11-30T00:00:00.000000Z"
NOBODY = ProcessId(2**22 + 7, 1.0, "b")


def entry(name: str, process: ProcessId, **facts: str) -> Entry:
    return Entry(name=name, base=name, source="derived", process=process, since=AT, **facts)


def files_of(layout: Layout) -> set[str]:
    return {str(path.relative_to(layout.presence)) for path in layout.presence.rglob("*.json")}


def test_nobody_is_here_at_first_and_reading_makes_nothing(layout: Layout) -> None:
    assert presence.entries(layout) == []
    assert presence.waiters(layout) == []
    assert presence.entry_of(layout, "a") is None
    assert not layout.presence.exists()


def test_reading_leaves_the_dead_and_a_writer_takes_them_away(layout: Layout) -> None:
    me = processes.current()
    with presence.opened(layout) as book:
        book.write(entry("dead", NOBODY))
        book.write(entry("alive", me))
    (layout.presence / "junk.json").write_text("{")
    assert [found.name for found in presence.entries(layout)] == ["alive", "dead"]
    before = files_of(layout)
    assert before == files_of(layout)
    assert len(before) == 3
    with presence.opened(layout) as book:
        assert [found.name for found in book.entries()] == ["alive"]
    assert [found.name for found in presence.entries(layout)] == ["alive"]
    assert len(files_of(layout)) == 1


def test_what_is_no_file_of_ours_stops_nobody(layout: Layout) -> None:
    for folder in (layout.presence, layout.presence / "waiting"):
        (folder / "folder.json").mkdir(parents=True)
        (folder / "gone.json").symlink_to("nowhere")
    me = processes.current()
    with presence.opened(layout) as book:
        book.write(entry("lead", me))
    with presence.waiting(layout, "lead", AT, me):
        assert [found.name for found in presence.waiters(layout)] == ["lead"]
    assert [found.name for found in presence.entries(layout)] == ["lead"]


def test_what_a_newer_version_wrote_is_not_taken_away(layout: Layout) -> None:
    layout.presence.mkdir()
    (layout.presence / "later.json").write_text('{"format": 2}')
    with presence.opened(layout):
        pass
    assert files_of(layout) == {"later.json"}


def test_a_client_has_one_entry(layout: Layout) -> None:
    me = processes.current()
    with presence.opened(layout) as book:
        book.write(entry("one", me))
        book.write(entry("two", me))
        book.write(entry("three", me, seat="http:three"))
    assert [found.name for found in presence.entries(layout)] == ["three", "two"]


def test_names_that_a_file_system_confuses_are_two(layout: Layout) -> None:
    me = processes.current()
    names = ["Lead", "lead", "../lead", "a/b", "LEAD", "lead.", "ß", "x" * 48]
    with presence.opened(layout) as book:
        for name in names:
            book.write(entry(name, me, seat=name))
    assert {found.name for found in presence.entries(layout)} == set(names)
    lowered = {name.lower() for name in files_of(layout)}
    assert len(lowered) == len(names)
    assert all("/" not in name for name in lowered)


def test_who_comes_second_is_counted_on(layout: Layout, tmp_path: Path) -> None:
    """A name with a suffix may be taken as well, by somebody who bears it as his own."""
    me = processes.current()
    with running(tmp_path) as first, running(tmp_path) as second:
        with presence.opened(layout) as book:
            book.write(entry("lead", first.id))
            book.write(entry(f"lead-{me.pid}", second.id))
        with presence.opened(layout) as book:
            assert book.free_name("lead", me, "") == f"lead-{me.pid}-2"
            assert book.free_name("lead", first.id, "") == "lead"
        first.kill()
        with presence.opened(layout) as book:
            assert book.free_name("lead", me, "") == "lead"


def test_a_list_that_is_held_too_long_is_busy_and_never_taken_over(
    layout: Layout, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(presence, "CLAIM_WAIT_SECONDS_MAX", 0.05)
    with presence.opened(layout):
        old = layout.locks / "presence.lock"
        os.utime(old, (0, 0))
        with pytest.raises(Busy), presence.opened(layout):
            pass
    with presence.opened(layout):
        pass


WAITS = """
import sys
from pathlib import Path
from agent_chatroom_ledger.storage import presence, processes
from agent_chatroom_ledger.storage.layout import Layout
with presence.waiting(Layout(Path(sys.argv[1])), sys.argv[2], "AT", processes.current()):
    print("waits", flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def waits(layout: Layout) -> Iterator[subprocess.Popen[bytes]]:
    """Give another process that waits for messages to "lead"."""
    command = [sys.executable, "-c", WAITS, str(layout.root), "lead"]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert process.stdout is not None
    assert process.stdout.readline() == b"waits\n"
    yield process
    process.kill()
    process.communicate()


def test_who_waits_is_known_by_a_lock(layout: Layout, waits: subprocess.Popen[bytes]) -> None:
    (found,) = presence.waiters(layout)
    assert found.name == "lead"
    assert found.process.pid == waits.pid
    waits.communicate()
    assert presence.waiters(layout) == []
    assert not files_of(layout)


def test_a_killed_waiter_waits_no_more(layout: Layout, waits: subprocess.Popen[bytes]) -> None:
    waits.send_signal(signal.SIGKILL)
    waits.wait()
    assert presence.waiters(layout) == []
    assert files_of(layout)
    with presence.opened(layout):
        pass
    assert not files_of(layout)


def test_a_stopped_waiter_still_waits(layout: Layout, waits: subprocess.Popen[bytes]) -> None:
    waits.send_signal(signal.SIGSTOP)
    os.waitid(os.P_PID, waits.pid, os.WSTOPPED | os.WNOWAIT)
    with presence.opened(layout):
        pass
    assert len(presence.waiters(layout)) == 1


def test_a_forked_child_does_not_wait_and_takes_nothing_away(layout: Layout) -> None:
    me = processes.current()
    with presence.waiting(layout, "lead", AT, me):
        child = os.fork()
        if child:
            assert os.waitpid(child, 0)[1] == 0
            assert len(presence.waiters(layout)) == 1
    if not child:  # pragma: no cover - in the child
        os._exit(0)
    assert presence.waiters(layout) == []


def test_a_name_somebody_waits_under_is_not_free(
    layout: Layout, waits: subprocess.Popen[bytes], tmp_path: Path
) -> None:
    """Nor to anybody but the client that the waiting process belongs to."""
    me = processes.current()
    with running(tmp_path) as other, presence.opened(layout) as book:
        assert book.free_name("lead", other.id, "") == f"lead-{other.id.pid}"
        assert book.free_name("lead", me, "") == "lead", "it is a child of mine"
    waits.communicate()
    with running(tmp_path) as other, presence.opened(layout) as book:
        assert book.free_name("lead", other.id, "") == "lead"


def test_a_waiter_whose_client_has_gone_keeps_no_name(layout: Layout, tmp_path: Path) -> None:
    with (
        running(tmp_path) as gone,
        running(tmp_path) as other,
        presence.waiting(layout, "lead", AT, gone.id),
    ):
        gone.kill()
        with presence.opened(layout) as book:
            assert book.free_name("lead", other.id, "") == "lead"


def test_an_entry_is_a_documented_file(layout: Layout) -> None:
    with presence.opened(layout) as book:
        book.write(entry("lead", ProcessId(7, 1.5, "b"), directory="/w", client="codex"))
    document = msgspec.json.decode((layout.presence / "lead-0.json").read_bytes())
    assert document["format"] == 1
    assert document["process"] == {"pid": 7, "started": 1.5, "boot": "b"}
    assert (document["name"], document["client"], document["directory"]) == ("lead", "codex", "/w")
