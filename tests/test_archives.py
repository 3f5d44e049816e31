"""Archived rooms: a tombstone and a removed directory, and the very same tree back."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import pytest

from agent_chatroom_ledger import Ledger, places, restoring
from agent_chatroom_ledger.archives import tombstones
from agent_chatroom_ledger.domain.names import room_directory
from agent_chatroom_ledger.domain.tombstones import encode_tombstone
from agent_chatroom_ledger.errors import Conflict, LedgerError, NotFound
from agent_chatroom_ledger.inbox import peek, waiting_counts
from agent_chatroom_ledger.storage import failpoints
from tests.storage.processes import Silent

if TYPE_CHECKING:
    from pathlib import Path

    from tests.conftest import Git, MakeLedger

NOT_PLANS = ["rooms/other", "rooms/team/design-review"]
BODIES = [f"body {number}" for number in range(120)]


@pytest.fixture
def ledger(make_ledger: MakeLedger) -> Ledger:
    ledger = make_ledger()
    room = ledger.create_room("Design review", folder="team", members=["Analyst"])
    room.post_many([{"author": "Analyst", "body": body} for body in BODIES])
    ledger.create_room("Other").post("Analyst", "elsewhere")
    ledger.flush()
    return ledger


def test_archiving_leaves_a_tombstone_and_history(ledger: Ledger, git: Git) -> None:
    room = ledger.room("team/design-review")
    stone = ledger.archive_room(room, by="Reviewer", reason="done")
    assert (stone.title, stone.members, stone.archived_by) == (
        "Design review",
        ("Analyst",),
        "Reviewer",
    )
    assert stone.messages == {ledger.origin: len(BODIES)}
    assert not (ledger.root / room.path).exists()
    assert git(ledger.root, "status", "--porcelain") == ""
    assert git(ledger.root, "ls-tree", "-r", "--name-only", "HEAD", "rooms/team") == ""
    git(ledger.root, "fsck", "--full", "--strict")
    subject = git(ledger.root, "log", "-1", "--format=%s%n%(trailers:key=Room)", "HEAD")
    assert subject.startswith("design-review archive: Design review")
    assert "rooms/team/design-review" in subject


def test_an_archived_room_lists_and_reads(ledger: Ledger) -> None:
    room_id = ledger.room("team/design-review").id
    ledger.archive_room("team/design-review")
    assert [summary.path for summary in ledger.rooms()] == ["rooms/other"]
    (summary,) = ledger.rooms(status="archived")
    assert (summary.id, summary.status, summary.last) == (room_id, "archived", len(BODIES))
    for name in ("Design review", "design-review", "team/design-review", room_id):
        room = ledger.room(name)
        assert room.status == "archived"
        assert [message.body for message in room.messages()] == BODIES
        assert len(room.lens().items) == len(BODIES)
    assert ledger.verify(full=True).ok


def test_writing_to_an_archived_room_is_refused(ledger: Ledger) -> None:
    before = ledger.room("team/design-review")
    ledger.archive_room(before)
    for room in (before, ledger.room("design-review")):
        with pytest.raises(Conflict, match="archived") as caught:
            room.post("Analyst", "too late")
        assert caught.value.code == "archived"
        with pytest.raises(Conflict, match="archived"):
            room.exclude(1, by="Analyst")
        with pytest.raises(Conflict, match="archived"):
            ledger.archive_room(room)
    with pytest.raises(NotFound):
        ledger.archive_room("nothing of the kind")


def test_restoring_brings_back_the_same_tree(ledger: Ledger, git: Git) -> None:
    tree = git(ledger.root, "rev-parse", "HEAD:rooms/team/design-review")
    ledger.archive_room("team/design-review")
    room = ledger.restore_room("Design review", by="Reviewer")
    assert room.path == "rooms/team/design-review"
    assert git(ledger.root, "rev-parse", "HEAD:rooms/team/design-review") == tree
    assert git(ledger.root, "ls-tree", "-r", "--name-only", "HEAD", "archive") == ""
    assert git(ledger.root, "status", "--porcelain") == ""
    assert room.post("Analyst", "back again").n == len(BODIES) + 1
    assert ledger.rooms(status="archived") == []
    with pytest.raises(Conflict, match="not archived"):
        ledger.restore_room(room)


def test_the_index_of_git_lists_what_main_holds(ledger: Ledger, git: Git) -> None:
    """After each step, for a room that stands between others and lies in several directories."""
    for name in ("a-b", "a", "a.b", "a0"):
        ledger.create_room(name).post_many([{"author": "Ann", "body": str(n)} for n in range(120)])
    ledger.flush()
    whole = git(ledger.root, "ls-files", "--stage")
    for step in (ledger.archive_room, ledger.restore_room) * 2:
        step("a")
        form = "%(objectmode) %(objectname) 0%x09%(path)"
        listed = git(ledger.root, "ls-files", "--stage")
        assert listed == git(ledger.root, "ls-tree", "-r", f"--format={form}", "HEAD")
        assert git(ledger.root, "status", "--porcelain") == ""
        assert ("\trooms/a/messages/" in listed) == (step == ledger.restore_room)
    assert [line for line in whole.split("\n") if "\trooms/a/" in line] == [
        line for line in listed.split("\n") if "\trooms/a/" in line
    ]


@pytest.mark.parametrize(
    "room_id",
    [
        "a/b",
        "../../../../evil",
        ".",
        "..",
        "a\\b",
        "é" * 128,
        "con",
        "nul.x",
        ".git",
        "AB",
        "x" * 128,
    ],
)
def test_whatever_its_id_a_room_is_archived_and_comes_back(
    ledger: Ledger, git: Git, room_id: str
) -> None:
    """Callers give ids of their own, which are no names of files."""
    room = ledger.create_room("Kept", id=room_id)
    room.post("Ana", "hello")
    ledger.archive_room(room)
    (stone,) = tombstones(ledger.look()[0])
    assert stone.id == room_id
    ledger.flush()
    names = git(ledger.root, "ls-tree", "-r", "--name-only", "main").split("\n")
    (name,) = [name for name in names if name.startswith("archive/")]
    assert len(name.split("/")) == 3
    assert not list(ledger.root.parent.rglob("evil*"))
    git(ledger.root, "fsck", "--full", "--strict")
    assert ledger.verify().issues == ()
    with Ledger.open(ledger.root) as again:
        assert again.restore_room(room_id).path == room.path
        assert [m.body for m in again.room(room_id).messages()] == ["hello"]


@pytest.mark.parametrize("writable", [True, False], ids=["file", "reader"])
def test_a_new_room_in_the_place_of_an_archived_one_has_nothing_of_it(
    ledger: Ledger, *, writable: bool
) -> None:
    old = ledger.create_room("Plans", members=["Ben"])
    for number in range(3):
        old.post("Ana", f"old {number}", to=["Eve"], id=f"old-{number}")
    ledger.index.follow()
    reader = Ledger.open(ledger.root, read_only=not writable)
    assert reader.consumer("Ben").unread()
    ledger.archive_room(old)
    new = ledger.create_room("Plans", members=["Ben"])
    for one in (ledger, reader):
        # The index follows before there is a message.
        one.index.follow()
        assert [found.room.path for found in one.consumer("Ben").unread()] == NOT_PLANS
    for number in range(5):
        new.post("Ana", f"new {number}", id=f"new-{number}")
    for one in (ledger, reader):
        bodies = [item.message.body for item in peek(one, "Ben")]
        assert bodies == [f"new {number}" for number in range(5)]
        assert waiting_counts(one, "Ben") == {new.path: 5}
        assert peek(one, "Eve") == []
    assert new.post("Ana", "new 0", id="new-0").n == 1
    reader.close()


def test_archiving_twice_and_restoring_twice(ledger: Ledger, git: Git) -> None:
    for turn in range(3):
        ledger.archive_room("design-review")
        room = ledger.restore_room("design-review")
        assert room.post("Analyst", f"turn {turn}").n == len(BODIES) + 1 + turn
    ledger.flush()
    assert git(ledger.root, "status", "--porcelain") == ""


def test_a_taken_path_gives_another(ledger: Ledger) -> None:
    old = ledger.room("design-review").id
    ledger.archive_room("design-review")
    new = ledger.create_room("Design review", folder="team")
    new.post("Analyst", "another room of the same name")
    room = ledger.restore_room(old)
    assert room.path == "rooms/team/design-review_2"
    assert room.id == old
    assert room.state().path == room.path
    assert [message.body for message in room.messages()] == BODIES
    assert [message.body for message in new.messages()] == ["another room of the same name"]
    assert room.post("Analyst", "goes on").n == len(BODIES) + 1
    assert ledger.verify(full=True).ok


@pytest.mark.parametrize(
    ("folder", "title", "others", "path"),
    [
        ("team", "x", [("", "team")], "team_2/x"),
        ("team", "x", [("", "team"), ("", "team 2")], "team_2/x"),
        ("team", "x", [("", "team"), ("", "team_2")], "team_3/x"),
        ("a/team", "x", [("a", "team")], "a/team_2/x"),
        ("a/team", "x", [("", "a")], "a_2/team/x"),
        ("Team", "x", [("team", "y")], "Team_2/x"),
        ("", "straße", [("", "strasse")], "straße_2"),
        ("team", "x", [("team", "x"), ("team", "x")], "team/x_3"),
        ("team", "x", [("team", "y")], "team/x"),
    ],
)
def test_no_room_comes_back_inside_another_or_beside_its_like(
    make_ledger: MakeLedger, folder: str, title: str, others: list[tuple[str, str]], path: str
) -> None:
    """What others made meanwhile is in the way under every spelling some file system merges."""
    ledger = make_ledger()
    room = ledger.create_room(title, folder=folder)
    room.post("Ann", "hello")
    stone = ledger.archive_room(room)
    for where, name in others:
        ledger.create_room(name, folder=where)
    plan = restoring.plan_unarchive(ledger, ledger.room(stone.id))
    assert plan.report["target"]["path"] == f"rooms/{path}"
    assert any(path in warning for warning in plan.warnings) == (f"rooms/{path}" != stone.path)
    back = ledger.restore_room(stone.id)
    assert (back.path, back.state().path) == (f"rooms/{path}", f"rooms/{path}")
    assert back.path in [found.path for found in ledger.rooms()]
    assert [message.body for message in ledger.room(path).messages()] == ["hello"]


def test_a_room_of_a_crowded_folder_gets_a_number_and_its_directory(
    make_ledger: MakeLedger, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(places, "FOLDER_ROOMS_MAX", 1)
    ledger = make_ledger()
    ledger.create_room("First")
    stone = ledger.archive_room(ledger.create_room("Design review"))
    assert stone.path == room_directory("", "design-review", crowded=True)
    ledger.create_room("Design review")
    back = ledger.restore_room(stone.id)
    assert back.path == room_directory("", "design-review_2", crowded=True)


@pytest.mark.parametrize("point", ["writer.appended", "commit.moved", "checkpoint.durable"])
def test_others_read_on_while_a_room_comes_back_elsewhere(ledger: Ledger, point: str) -> None:
    """The room is there with all of its log, or it is not there yet; no number is missing."""
    old = ledger.archive_room("design-review").id
    ledger.create_room("Design review", folder="team").post("Analyst", "a new one")
    ledger.index.follow()
    ledger.flush()
    seen: list[list[str]] = []

    def look(name: str) -> None:
        del name
        failpoints.disarm()
        with Ledger.open(ledger.root, read_only=True) as other:
            seen.append([room.path for room in other.rooms()])
            seen.append([row.path for row in ledger.index.rooms()])
            seen.append([found.room.path for found in other.consumer("Ann").unread()])

    failpoints.arm(point, look)
    try:
        room = ledger.restore_room(old)
    finally:
        failpoints.disarm()
    assert seen == [["rooms/other", "rooms/team/design-review"]] * 3
    assert [message.body for message in room.messages()] == BODIES
    with Ledger.open(ledger.root, read_only=True) as other:
        unread = {found.room.path: found.count for found in other.consumer("Ann").unread()}
        assert unread[room.path] == len(BODIES)


def test_the_view_of_what_was_said_just_before_is_made_when_it_is_back(ledger: Ledger) -> None:
    """A room that leaves before the next checkpoint leaves with an older view."""
    ledger.writer()._background = Silent()
    room = ledger.room("design-review")
    room.post("Analyst", "the last word")
    ledger.archive_room(room)
    back = ledger.restore_room("design-review")
    assert any("> the last word" in page.read_text() for page in _pages(ledger, back.path))
    assert ledger.verify().issues == ()


def _pages(ledger: Ledger, room: str) -> list[Path]:
    return sorted((ledger.root / room / "view").rglob("*.md"))


@pytest.mark.parametrize("again", [False, True])
def test_what_is_restored_at_the_same_moment_left_its_tombstone(
    ledger: Ledger, *, again: bool
) -> None:
    """Whoever archives gets what his own commit made, whatever main has when the call returns."""
    room = ledger.room("design-review")
    room.post("Analyst", "one more")
    with Ledger.open(ledger.root) as other:

        def meanwhile(_: str) -> None:
            failpoints.disarm()
            other.writer().checkpoint()
            other.restore_room(room.id, by="Bob")
            if again:
                other.room(room.id).post("Bob", "and one")
                other.archive_room(room.id, by="Bob", reason="really")

        failpoints.arm("writer.appended", meanwhile)
        stone = ledger.archive_room(room, by="Ann", reason="done")
        assert (stone.archived_by, stone.reason, stone.members) == ("Ann", "done", ("Analyst",))
        assert stone.messages == {ledger.origin: len(BODIES) + 1}
        text = ledger.source_at(stone.commit).read(f"{stone.path}/room.json")
        assert text is not None
        assert other.room(room.id).status == ("archived" if again else "active")
        if again:
            return
        # What the tombstone says is what the one in the tree said.
        committed = {stone for name in _commits(ledger) for stone in _stones(ledger, name)}
        assert encode_tombstone(stone) in committed


def _commits(ledger: Ledger) -> list[str]:
    return [entry.commit for entry in ledger.log()]


def _stones(ledger: Ledger, commit: str) -> list[bytes]:
    source = ledger.source_at(commit)
    return [encode_tombstone(stone) for stone in tombstones(source)]


def test_archiving_and_posting_in_many_threads(make_ledger: MakeLedger) -> None:
    """A direct message brings its room back, as often as somebody archives it."""
    ledger = make_ledger()
    ann = ledger.agent("Ann")
    ann.dm(["Bob"], "first")
    told: list[LedgerError] = []

    def post(number: int) -> None:
        with Ledger.open(ledger.root) as mine:
            for n in range(4):
                try:
                    mine.agent("Ann").dm(["Bob"], f"{number} {n}")
                except LedgerError as error:
                    told.append(error)

    def archive() -> None:
        with Ledger.open(ledger.root) as mine:
            for _ in range(6):
                try:
                    (found,) = mine.rooms() or [None]
                    if found is not None:
                        stone = mine.archive_room(found.id, by="Carl")
                        assert (stone.id, stone.archived_by) == (found.id, "Carl")
                except LedgerError as error:
                    told.append(error)

    with ThreadPoolExecutor() as pool:
        done = [pool.submit(post, number) for number in range(2)]
        done += [pool.submit(archive) for _ in range(2)]
        for one in done:
            one.result()
    # Somebody else was first: that is all that anybody may hear.
    assert {error.code for error in told} <= {"archived", "not_archived", "not_found"}, told
    ledger.flush()
    assert ledger.verify().issues == ()


def test_another_process_sees_it_at_once(ledger: Ledger) -> None:
    with Ledger.open(ledger.root) as other:
        room = other.room("design-review")
        room.post("Analyst", "still active")
        ledger.archive_room("design-review")
        with pytest.raises(Conflict, match="archived"):
            room.post("Analyst", "too late")
        ledger.restore_room("design-review")
        assert other.room("design-review").post("Analyst", "again").n == len(BODIES) + 2


@pytest.mark.parametrize(
    "point",
    [
        "writer.appended",
        "commit.stored",
        "commit.moved",
        "attic.aside",
        "attic.moved",
        "checkpoint.files",
        "checkpoint.synced",
        "checkpoint.durable",
        "checkpoint.marked",
        "journal.rotate_written",
        "checkpoint.rotated",
        "attic.back",
        "attic.returned",
    ],
)
@pytest.mark.parametrize("archived", [False, True])
def test_a_crash_at_any_point(ledger: Ledger, git: Git, point: str, *, archived: bool) -> None:
    """After a kill the room is archived or it is not, in every answer, and nothing is lost."""
    if archived:
        ledger.archive_room("design-review")
    ledger.index.follow()

    class Killed(BaseException):
        pass

    def kill(name: str) -> None:
        # On a busy machine the checkpoint that waits for a pause may come first, in its thread.
        if threading.current_thread() is threading.main_thread():
            raise Killed(name)

    failpoints.arm(point, kill)
    try:
        (ledger.restore_room if archived else ledger.archive_room)("design-review")
    except Killed:
        pass
    finally:
        failpoints.disarm()
    with Ledger.open(ledger.root) as again:
        room = again.room("design-review")
        assert [message.body for message in room.messages()] == BODIES
        again.flush()
        assert git(ledger.root, "status", "--porcelain") == ""
        listed = [summary.path for summary in again.rooms()]
        again.index.rebuild()
        assert listed == [summary.path for summary in again.rooms()]
        assert (room.path in listed) == (room.status == "active")
        if room.status == "archived":
            room = again.restore_room(room)
        assert room.post("Analyst", "after the crash").n == len(BODIES) + 1
        assert again.verify(full=True).ok


def test_a_clone_reads_and_restores(ledger: Ledger, git: Git) -> None:
    ledger.archive_room("design-review")
    ledger.flush()
    git(ledger.root.parent, "clone", "-q", str(ledger.root), "copy")
    with Ledger.open(ledger.root.parent / "copy") as copy:
        assert [message.body for message in copy.room("design-review").messages()] == BODIES
        room = copy.restore_room("design-review")
        room.post("Analyst", "in the clone")
        assert len(room.messages()) == len(BODIES) + 1
