"""The ledger: opening, creating and finding rooms, listing, following, the audit trail."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
import uuid
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest

import agent_chatroom_ledger
from agent_chatroom_ledger import Conflict, Forbidden, InvalidInput, Ledger, NotFound
from agent_chatroom_ledger.limits import FOLDER_ROOMS_MAX

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from agent_chatroom_ledger import Message
    from tests.conftest import Git, MakeLedger


def test_a_directory_without_a_ledger_is_not_opened(tmp_path: Path) -> None:
    for options in ({}, {"read_only": True}, {"create": True, "read_only": True}):
        with pytest.raises(NotFound):
            Ledger.open(tmp_path / "nothing", **options)
    assert not (tmp_path / "nothing").exists()


def test_creating_where_there_is_one_opens_it(make_ledger: MakeLedger) -> None:
    first = make_ledger()
    first.create_room("Here")
    first.close()
    assert [room.title for room in make_ledger().rooms()] == ["Here"]


def test_an_unknown_mode_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput):
        Ledger.open(tmp_path / "x", create=True, commit="never")


def test_rooms_of_one_title_get_numbers(ledger: Ledger) -> None:
    paths = [ledger.create_room("Design review").path for _ in range(3)]
    assert paths == ["rooms/design-review", "rooms/design-review_2", "rooms/design-review_3"]
    assert ledger.create_room("DESIGN REVIEW").path == "rooms/design-review_4"
    assert ledger.create_room("Design review", folder="team/ops").path == (
        "rooms/team/ops/design-review"
    )


@pytest.mark.parametrize(
    "title",
    ["CON", "..", "a/b", "🙂🙂", "مرحبا", "operations", "x" * 200, "Ünïcode ﬁ", "<b>&", "- x -"],
)
def test_any_title_gives_a_safe_directory_and_is_kept(ledger: Ledger, title: str) -> None:
    room = ledger.create_room(title)
    assert room.title == title
    assert (ledger.root / room.path).resolve().parent == ledger.root / "rooms"
    assert ledger.room(room.path) == room


@pytest.mark.parametrize(
    "arguments",
    [
        {"title": ""},
        {"title": "  "},
        {"title": "a\nb"},
        {"title": "x" * 10_000},
        {"title": "x", "folder": "../up"},
        {"title": "x", "folder": "/abs"},
        {"title": "x", "folder": "a/CON/b"},
        {"title": "x", "folder": ".git"},
        {"title": "x", "members": ["a\nb"]},
        {"title": "x", "members": "Analyst"},
        {"title": "x", "by": ""},
    ],
)
def test_what_breaks_a_rule_makes_no_room(ledger: Ledger, arguments: dict[str, Any]) -> None:
    with pytest.raises(InvalidInput):
        ledger.create_room(**arguments)
    assert ledger.rooms() == []


def test_a_room_holds_no_rooms_and_a_folder_has_one_spelling(ledger: Ledger) -> None:
    ledger.create_room("Team")
    with pytest.raises(Conflict):
        ledger.create_room("x", folder="team")
    ledger.create_room("x", folder="Ops")
    with pytest.raises(Conflict):
        ledger.create_room("y", folder="ops")
    assert ledger.create_room("Ops").path == "rooms/ops_2"


def test_an_id_makes_creating_idempotent(ledger: Ledger) -> None:
    key = str(uuid.uuid4())
    first = ledger.create_room("Here", id=key)
    assert ledger.create_room("Here", id=key) == first
    with pytest.raises(Conflict):
        ledger.create_room("There", id=key)
    assert len(ledger.rooms()) == 1


def test_creating_is_one_commit_with_two_records(ledger: Ledger) -> None:
    room = ledger.create_room("Here", members=["A"], by="Ann", reason="because")
    (entry,) = [entry for entry in ledger.log(room) if entry.operations]
    assert len(entry.records) == 2
    assert (entry.author, entry.requested_by, entry.reason) == ("Ann", "Ann", "because")


def test_a_crowded_folder_takes_new_rooms_apart(make_ledger: MakeLedger) -> None:
    ledger = make_ledger(commit="group")
    for n in range(FOLDER_ROOMS_MAX):
        ledger.create_room(f"Room {n}", folder="f")
    late = ledger.create_room("Late one", folder="f")
    again = ledger.create_room("Late one", folder="f")
    assert late.path.startswith("rooms/f/~")
    assert again.path.endswith("/late-one_2")
    ledger.flush()
    assert ledger.room("f/late-one") == late
    assert ledger.create_room("Room 7", folder="f").path.endswith("/room-7_2")
    assert len(ledger.rooms()) == FOLDER_ROOMS_MAX + 3


def test_a_room_is_found_by_everything_it_is_called(ledger: Ledger) -> None:
    room = ledger.create_room("Design review", folder="team")
    ledger.create_room("Other", folder="team")
    names = [
        "team/design-review",
        "rooms/team/design-review",
        "design-review",
        "Design review",
        room.id,
        f"chat_{uuid.UUID(room.id).hex}",
        " team/design-review/ ",
    ]
    assert {ledger.room(name) for name in names} == {room}
    assert ledger.room(room) is room


def test_an_ambiguous_or_unknown_name_lists_candidates(ledger: Ledger) -> None:
    ledger.create_room("Design review")
    ledger.create_room("Design review", folder="team")
    with pytest.raises(Conflict) as ambiguous:
        ledger.room("Design review")
    assert ambiguous.value.code == "ambiguous"
    assert ambiguous.value.fields["candidates"] == ["design-review", "team/design-review"]
    with pytest.raises(NotFound) as unknown:
        ledger.room("desing-review")
    assert unknown.value.fields["candidates"] == ["design-review", "team/design-review"]
    for name in ("", "  ", "../..", "rooms", "rooms/..", "team"):
        with pytest.raises((NotFound, InvalidInput)):
            ledger.room(name)


def test_the_list_says_what_is_where(ledger: Ledger) -> None:
    room = ledger.create_room("Design review", members=["Ann"])
    ledger.create_room("Empty")
    message = room.post_many([{"author": "A", "body": str(n)} for n in range(3)])[-1]
    review, empty = ledger.rooms()
    assert (review.title, review.last, review.last_at) == ("Design review", 3, message.at)
    assert (review.members, review.positions) == (("Ann",), {ledger.origin: 3})
    assert (empty.last, empty.last_at) == (0, None)
    before = ledger.rooms(at=ledger.log(room)[-1].commit)
    assert [(room.title, room.last) for room in before] == [("Design review", 0)]


def test_a_reader_writes_nothing(ledger: Ledger) -> None:
    room = ledger.create_room("Here")
    room.post("Ann", "hello")
    ledger.close()
    before = _files(ledger.root)
    with Ledger.open(ledger.root, read_only=True) as reader:
        assert [message.body for message in reader.room("here").messages()] == ["hello"]
        assert reader.rooms()[0].last == 1
        assert reader.consumer("Bob").unread()[0].count == 1
        assert reader.verify(full=True).ok
        assert reader.log("here")
        assert reader.read_only
        for act in (
            lambda: reader.room("here").post("Ann", "more"),
            lambda: reader.create_room("There"),
            lambda: reader.room("here").exclude(1),
            lambda: reader.room("here").compile(),
        ):
            with pytest.raises(Forbidden) as caught:
                act()
            assert caught.value.code == "read_only"
    assert _files(ledger.root) == before


def _files(root: Path) -> dict[str, tuple[int, int]]:
    found = {}
    for path in sorted(root.rglob("*")):
        status = path.lstat()
        found[str(path)] = (status.st_mtime_ns if path.is_file() else 0, status.st_size)
    return found


def test_a_reader_sees_what_is_only_in_the_journal(make_ledger: MakeLedger) -> None:
    ledger = make_ledger(commit="group")
    room = ledger.create_room("Here")
    room.post("Ann", "hello")
    with Ledger.open(ledger.root, read_only=True) as reader:
        assert [message.body for message in reader.room("here").messages()] == ["hello"]
        room.post("Ann", "more")
        assert reader.consumer("Bob").unread()[0].count == 2
        room.exclude(1)
        assert len(reader.room("here").lens().items) == 1


def test_following_gives_every_message_once(ledger: Ledger) -> None:
    room, other = ledger.create_room("Here"), ledger.create_room("Other")
    seen = room.post("Ann", "before")
    got: list[Message] = []
    everything: list[Message] = []

    def follow(stream: Iterator[Message], into: list[Message], count: int) -> None:
        for message in stream:
            into.append(message)
            if len(into) == count:
                return

    with Ledger.open(ledger.root, read_only=True) as reader:
        threads = [
            threading.Thread(
                target=follow, args=(reader.follow("here", since={ledger.origin: seen.n}), got, 31)
            ),
            threading.Thread(target=follow, args=(reader.follow(), everything, 33)),
        ]
        room.post("Ann", "between")
        for thread in threads:
            thread.start()
        time.sleep(0.2)
        for n in range(30):
            room.post("Ann", str(n))
            if n % 10 == 0:
                other.post("Bob", str(n))
            if n % 7 == 0:
                ledger.flush()
        for thread in threads:
            thread.join(timeout=20)
            assert not thread.is_alive()
    assert [message.body for message in got] == ["between", *map(str, range(30))]
    assert len(everything) == 33


def test_the_audit_trail_says_who_did_what(ledger: Ledger) -> None:
    room = ledger.create_room("Here")
    room.post("Ann", "hello")
    room.post("Bob", "world")
    ledger.create_room("Other").post("Ann", "elsewhere")
    room.exclude(1, by="Cleo", reason="noise")
    entries = [entry for entry in ledger.log(room) if entry.records]
    assert [entry.author for entry in entries] == ["Cleo", "Bob", "Ann", "Ledger"]
    assert entries[0].kinds == ("policy.exclude",)
    assert (entries[0].requested_by, entries[0].reason) == ("Cleo", "noise")
    assert entries[1].messages == (f"2@{ledger.origin}",)
    assert entries[1].rooms == (room.path,)
    assert [entry.subject for entry in ledger.log(room, author="BOB")] == ["here #2 Bob: world"]
    assert len(ledger.log(limit=2)) == 2
    assert ledger.log(since=datetime.now(UTC) + timedelta(hours=1)) == []
    assert ledger.log()[-1].frame is None
    with pytest.raises(NotFound):
        ledger.log("nowhere")


def test_a_commit_by_hand_of_any_time_hides_nothing_that_came_since(
    ledger: Ledger, git: Git, monkeypatch: pytest.MonkeyPatch
) -> None:
    ledger.create_room("Here").post("Ann", "hello")
    ledger.flush()
    since = datetime.now(UTC) - timedelta(hours=1)
    monkeypatch.setenv("GIT_COMMITTER_DATE", "2001-01-01T00:00:00Z")
    git(ledger.root, "commit", "-q", "--allow-empty", "-m", "By hand")
    found = [entry.kinds[-1] for entry in ledger.log(since=since) if entry.kinds]
    assert found == ["message", "room.create"]


def test_a_patch_shows_what_was_added(ledger: Ledger) -> None:
    room = ledger.create_room("Here")
    room.post("Ann", "hello")
    second = room.post("Ann", "world\nend")
    room.exclude(1)
    entries = [entry for entry in ledger.log(room, patch=True) if entry.records]
    excluded, said, first, created = (entry.patch or "" for entry in entries)
    log = f"rooms/here/messages/{ledger.origin}/00/00/00000001.jsonl"
    assert said == (f"--- a/{log}\n+++ b/{log}\n@@ -1,0 +2,1 @@\n+{second.line.decode()}\n")
    assert "--- /dev/null\n" in first
    assert f'+    "1@{ledger.origin}"\n' in excluded
    assert "+++ b/rooms/here/room.json\n" in created
    assert entries[0].as_dict()["patch"] == excluded


def test_revisions_are_understood(ledger: Ledger, git: Git) -> None:
    room = ledger.create_room("Here")
    room.post("Ann", "hello")
    ledger.flush()
    git(ledger.root, "tag", "-a", "v1", "-m", "a tag")
    git(ledger.root, "branch", "side", "HEAD~1")
    room.post("Ann", "more")
    ledger.flush()
    now = len(room.messages(at="HEAD"))
    assert now == len(room.messages(at="main")) == len(room.messages(at="@")) == 2
    assert len(room.messages(at="v1")) == len(room.messages(at="refs/tags/v1")) == 1
    assert len(room.messages(at="v1^")) <= 1
    assert room.messages(at="side") is not None
    for name in ("nothing", "HEAD~5000", "deadbeef", "..", "", "refs/heads/../main"):
        with pytest.raises((NotFound, InvalidInput)):
            room.messages(at=name)
    with pytest.raises(InvalidInput):
        room.messages(at=datetime(2026, 1, 1))  # noqa: DTZ001 - what is tested


def test_a_closed_ledger_says_so(ledger: Ledger) -> None:
    room = ledger.create_room("Here")
    ledger.close()
    ledger.close()
    for act in (room.messages, ledger.rooms, lambda: room.post("Ann", "x")):
        with pytest.raises(InvalidInput) as caught:
            act()
        assert caught.value.code == "closed"


def test_a_clone_shows_the_same_and_writes_as_another(
    ledger: Ledger, git: Git, tmp_path: Path, make_ledger: MakeLedger
) -> None:
    room = ledger.create_room("Here")
    room.post("Ann", "hello")
    ledger.flush()
    git(tmp_path, "clone", "-q", str(ledger.root), "clone")
    with Ledger.open(tmp_path / "clone", read_only=True) as reader:
        assert reader.origin == ""
        assert reader.room("here").messages() == room.messages()
    clone = make_ledger("clone", create=False)
    assert clone.origin not in {"", ledger.origin}
    mine = clone.room("here")
    assert mine.messages() == room.messages()
    said = mine.post("Bob", "from the clone")
    assert said.ref == f"1@{clone.origin}"
    assert [message.body for message in mine.messages()] == ["hello", "from the clone"]
    assert mine.messages(last=1) == [said]
    assert mine.messages(since={ledger.origin: 1}) == [said]
    assert [m.body for m in mine.messages(since=said)] == ["hello"]


def test_reading_imports_neither_dulwich_nor_rich_nor_sqlite(ledger: Ledger) -> None:
    ledger.create_room("Here").post("Ann", "hello")
    ledger.close()
    program = (
        "import sys\n"
        "from agent_chatroom_ledger import Ledger\n"
        "with Ledger.open(sys.argv[1], read_only=True) as ledger:\n"
        "    assert ledger.room('here').messages(last=50)[0].body == 'hello'\n"
        "    ledger.consumer('Bob').unread(rooms=['here'])\n"
        "heavy = {'dulwich', 'rich', 'sqlite3', 'asyncio', 'subprocess'} & set(sys.modules)\n"
        "assert not heavy, heavy\n"
        "with Ledger.open(sys.argv[1], read_only=True) as ledger:\n"
        "    assert ledger.consumer('Bob').unread()\n"
        "assert 'dulwich' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", program, str(ledger.root)], check=True, timeout=60)


def test_the_public_names_are_there() -> None:
    for name in agent_chatroom_ledger.__all__:
        assert getattr(agent_chatroom_ledger, name) is not None
    assert set(agent_chatroom_ledger.__all__) == set(dir(agent_chatroom_ledger))
    with pytest.raises(AttributeError):
        _ = agent_chatroom_ledger.nothing
