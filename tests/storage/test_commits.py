"""A commit is a function of its parent and a frame, and of nothing else (invariant 5)."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from agent_chatroom_ledger.domain.frames import Frame, ViewMark
from agent_chatroom_ledger.domain.records import Record, encode_record, record_of
from agent_chatroom_ledger.domain.rooms import exclude_draft, include_draft, members_draft
from agent_chatroom_ledger.domain.tombstones import (
    archive_draft,
    decode_tombstone,
    tombstone_path,
)
from agent_chatroom_ledger.errors import Corrupt
from agent_chatroom_ledger.storage import reading
from agent_chatroom_ledger.storage.commits import CommitBuilder, commit_bytes
from agent_chatroom_ledger.storage.objects import NO_OBJECT, Objects
from agent_chatroom_ledger.storage.packs import PackBuilder
from agent_chatroom_ledger.storage.source import CommitTree
from agent_chatroom_ledger.storage.trees import hash_object
from tests.storage.samples import (
    MESSAGES,
    OPERATIONS,
    ORIGIN,
    ROOM,
    ROOM_ID,
    all_objects,
    at,
    created,
    empty_place,
    files_of,
    frame,
    git,
    history,
    message,
    put_pack,
)

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from agent_chatroom_ledger.domain.drafts import Draft
    from agent_chatroom_ledger.storage.layout import Layout


@pytest.fixture
def place(tmp_path: Path) -> Layout:
    return empty_place(tmp_path / "place")


@pytest.fixture
def store(place: Layout) -> Iterator[Objects]:
    found = Objects(place)
    yield found
    found.close()


class Bench:
    """Builds frames on a tip and stores each batch as a pack."""

    def __init__(self, place: Layout, store: Objects, tip: str = NO_OBJECT) -> None:
        self.place, self.store = place, store
        self.builder = CommitBuilder(store, ORIGIN)
        self.builder.start(tip)

    def add(self, *frames: Frame) -> list[str]:
        """Build a batch of commits; return the tip after each frame."""
        pack, tips = PackBuilder(), []
        for one in frames:
            self.builder.add(one, pack)
            tips.append(self.builder.tip)
        if len(pack):
            put_pack(self.place, pack)
            self.store.forget()
            git(self.place.root, "update-ref", "refs/heads/main", tips[-1])
        return tips


@pytest.fixture
def bench(place: Layout, store: Objects) -> Bench:
    return Bench(place, store)


def mark(messages: int, operations: int = 1) -> Frame:
    view = ViewMark(room=ROOM, messages={ORIGIN: messages}, operations={ORIGIN: operations})
    return Frame(frame=messages + 2, at=at(messages + 1), views=(view,))


def raw(place: Layout, tip: str) -> str:
    return git(place.root, "cat-file", "commit", tip).decode()


def test_git_is_content_with_a_long_history(place: Layout, bench: Bench) -> None:
    bench.add(*history(130))
    bench.add(mark(130))
    git(place.root, "fsck", "--full", "--strict")
    assert git(place.root, "rev-list", "--count", "main").strip() == b"132"
    lines = git(place.root, "log", "--format=%s", "--reverse").decode().splitlines()
    assert lines[1] == "design-review #1 Analyst: body 1"


SAME_IDS = """\
import sys
from pathlib import Path
from tests.storage.samples import empty_place, history
from tests.storage.test_commits import Bench, mark
from agent_chatroom_ledger.storage.objects import Objects
place = empty_place(Path(sys.argv[1]))
store = Objects(place)
bench = Bench(place, store)
print(*bench.add(*history(60)), *bench.add(mark(60)))
store.close()
"""


def test_the_same_parent_and_frame_give_the_same_id_anywhere(
    tmp_path: Path, bench: Bench, place: Layout, store: Objects
) -> None:
    """In one batch or one by one, in a new builder, another directory and another process."""
    frames = history(60)
    tips = [*bench.add(*frames), *bench.add(mark(60))]
    one_by_one = Bench(place, store)
    assert [tip for one in frames for tip in one_by_one.add(one)] == tips[:-1]
    in_between = Bench(place, store, tips[30])
    assert in_between.add(*frames[31:]) == tips[31:-1]
    elsewhere = subprocess.run(
        [sys.executable, "-c", SAME_IDS, str(tmp_path / "elsewhere")],
        capture_output=True,
        text=True,
        check=True,
        env={"PYTHONPATH": ":".join(sys.path), "TZ": "Asia/Tokyo", "PYTHONHASHSEED": "7"},
    )
    assert elsewhere.stdout.split() == tips


def test_a_frame_that_main_has_makes_no_commit(bench: Bench, place: Layout, store: Objects) -> None:
    frames = history(5)
    tips = bench.add(*frames)
    assert all(bench.builder.has(one) for one in frames)
    assert bench.add(*frames) == [tips[-1]] * 6
    anew = Bench(place, store, tips[-1])
    assert anew.add(*frames) == [tips[-1]] * 6
    behind = CommitBuilder(store, ORIGIN)
    behind.start(tips[2])
    assert [behind.has(one) for one in frames] == [True] * 3 + [False] * 3


def test_logs_hold_the_very_bytes_of_the_frames(bench: Bench, store: Objects) -> None:
    tip = bench.add(*history(120))[-1]
    source = CommitTree(store, tip)
    stored = [line for _, line in reading.records(source, MESSAGES)]
    assert stored == [encode_record(message(n)) for n in range(1, 121)]
    assert source.names(f"{MESSAGES}/00/00") == [
        "00000001.jsonl",
        "00000051.jsonl",
        "00000101.jsonl",
    ]


def test_only_operations_change_the_projections(bench: Bench, place: Layout) -> None:
    tips = bench.add(*history(3))
    room = [git(place.root, "rev-parse", f"{tip}:{ROOM}/room.json") for tip in tips]
    assert len(set(room)) == 1
    changed = git(place.root, "diff", "--name-only", tips[-2], tips[-1]).decode().split()
    assert changed == [f"{MESSAGES}/00/00/00000001.jsonl"]


def test_a_view_frame_that_changes_nothing_makes_no_commit(bench: Bench, place: Layout) -> None:
    bench.add(*history(3))
    (tip,) = bench.add(mark(3))
    assert bench.builder.has(mark(3))
    assert bench.add(mark(3)) == [tip]
    assert "design-review view: 1 page" in raw(place, tip)
    assert "author Ledger <" in raw(place, tip)
    (later,) = bench.add(frame(9, (MESSAGES, message(4))))
    assert not bench.builder.has(mark(4))
    assert bench.add(mark(4)) != [later]


def test_one_transaction_with_several_records_is_one_commit(bench: Bench, place: Layout) -> None:
    bench.add(*history(1))
    (tip,) = bench.add(
        frame(
            3,
            (MESSAGES, message(2)),
            (MESSAGES, message(3)),
            (f"operations/{ORIGIN}", message(1, kind="status")),
            requested_by="Reviewer",
            reason="tidy",
        )
    )
    assert git(place.root, "rev-list", "--count", "main").strip() == b"3"
    text = raw(place, tip)
    assert text.count("\nRecord: ") == 3
    assert "\nRequested-by: Reviewer\n" in text
    assert "\nReason: tidy\n" in text


WIDE = [
    "ee1f8701d4dd4a68aaa53519ed0a65439df061e6",
    "99ed7c4679096c2ace51f6886fad51c91c49419e",
    "6f2ecbe3045a39f8de62876e1cc9719d4fa2fa7d",
    "3cd1497232869daf4ac2648f8b2b581ace62fe4f",
]


def wide_frames() -> list[Frame]:
    """Frames of many records: over several segments, with operations that fold on one another."""
    said = [(MESSAGES, message(n, "long " * 500)) for n in range(1, 132)]
    other = "rooms/other"

    def operation(n: int, draft: Draft) -> Record:
        return record_of(draft, n, at(500 + n), f"op-{n}")

    changes = [
        operation(2, exclude_draft([(ORIGIN, 3), (ORIGIN, 4)], by="Analyst")),
        operation(3, members_draft(["Reviewer"], add=True, by="Analyst")),
        operation(4, include_draft([(ORIGIN, 3)], by="Analyst")),
    ]
    archived = archive_draft(room_id=ROOM_ID, title="design-review", path=ROOM, by="Analyst")
    return [
        frame(1, (OPERATIONS, created()), *said[:3]),
        frame(2, *said[3:]),
        frame(
            3,
            (OPERATIONS, changes[0]),
            (MESSAGES, message(132)),
            (f"{other}/operations/{ORIGIN}", created(other, at=at(600))),
            (OPERATIONS, changes[1]),
            (f"{other}/messages/{ORIGIN}", message(1, at=at(601))),
            (OPERATIONS, changes[2]),
        ),
        frame(
            4,
            (MESSAGES, message(133, at=at(700))),
            (f"operations/{ORIGIN}", operation(1, archived)),
        ),
    ]


def test_a_frame_of_many_records_keeps_its_commit_id(bench: Bench, store: Objects) -> None:
    """The ids that the first version gave; its tombstone counts what came just before it."""
    assert bench.add(*wide_frames()) == WIDE
    stone = decode_tombstone(CommitTree(store, WIDE[-1]).read(tombstone_path(ROOM_ID)) or b"")
    assert (stone.messages, stone.operations) == ({ORIGIN: 133}, {ORIGIN: 4})
    assert not bench.builder.editor.names(ROOM)


def test_a_frame_stores_each_file_and_each_directory_once(bench: Bench, place: Layout) -> None:
    """What no commit shows is not stored: only the last version of a segment is."""
    bench.add(*wide_frames()[:2])
    listed = git(place.root, "rev-list", "--objects", "--no-object-names", "main").decode()
    assert set(all_objects(place.root)) == set(listed.split())


def who(place: Layout, tip: str) -> list[str]:
    form = "--format=%an%n%ae%n%ad%n%cn%n%ce%n%cd"
    return git(place.root, "show", "-s", form, "--date=raw", tip).decode().splitlines()


def test_the_author_said_it_and_the_ledger_committed_it(bench: Bench, place: Layout) -> None:
    bench.add(*history(1))
    said = "2020-02-29T12:00:00.999999Z"
    record = message(2, author="Ann Lee", said_at=said)
    (tip,) = bench.add(frame(3, (MESSAGES, record)))
    name, email, said_on, committer, address, committed_on = who(place, tip)
    assert (name, committer) == ("Ann Lee", "Ledger")
    assert email.endswith(f"@{ORIGIN}")
    assert address.endswith(f"@{ORIGIN}")
    assert said_on == "1582977600 +0000"
    assert committed_on == "1795987662 +0000"


@pytest.mark.parametrize("said", ["1969-12-31T23:59:59.000000Z", "0001-01-01T00:00:00.000000Z"])
def test_what_was_said_before_1970_is_dated_1970(bench: Bench, place: Layout, said: str) -> None:
    """git knows no earlier time; the record keeps the true one."""
    bench.add(*history(1))
    (tip,) = bench.add(frame(3, (MESSAGES, message(2, said_at=said))))
    assert who(place, tip)[2] == "0 +0000"
    git(place.root, "fsck", "--full", "--strict")
    assert said in git(place.root, "show", f"{tip}:{MESSAGES}/00/00/00000001.jsonl").decode()


@pytest.mark.parametrize(
    "author", ["<>", "a <b@c> 1 +0000", "...", "ünï <", '"', "'; x,", "\u200b"]
)
def test_no_author_forges_a_header(bench: Bench, place: Layout, author: str) -> None:
    bench.add(*history(1))
    (tip,) = bench.add(frame(3, (MESSAGES, message(2, author=author))))
    git(place.root, "fsck", "--full", "--strict")
    name, email, *_ = who(place, tip)
    assert name
    assert "@" in email
    assert raw(place, tip).count("\nauthor ") == 1


def test_a_commit_without_parents_or_with_two(place: Layout) -> None:
    tree = git(place.root, "mktree").decode().strip()
    first = [git(place.root, "commit-tree", tree, "-m", str(n)).decode().strip() for n in range(2)]
    for parents in ((), tuple(first)):
        data = commit_bytes(tree, parents, "subject\n", author="A", said=1, origin=ORIGIN, at=2)
        oid = git(place.root, "hash-object", "-w", "-t", "commit", "--stdin", given=data)
        assert oid.decode().strip() == hash_object(b"commit", data).hex()
        listed = git(place.root, "rev-list", "--parents", "-1", oid.decode().strip())
        assert listed.decode().split()[1:] == list(parents)


@pytest.mark.parametrize("n", [3, 5])
def test_a_number_that_does_not_follow_is_refused(bench: Bench, n: int) -> None:
    bench.add(*history(1))
    with pytest.raises(Corrupt) as caught:
        bench.builder.add(frame(3, (MESSAGES, message(n))), PackBuilder())
    assert caught.value.code == "number_gap"


def test_another_record_of_the_same_number_is_refused(bench: Bench) -> None:
    bench.add(*history(3))
    with pytest.raises(Corrupt) as caught:
        bench.builder.add(frame(3, (MESSAGES, message(2, "another body"))), PackBuilder())
    assert caught.value.code == "forked_record"


def test_a_room_is_needed_for_its_view(bench: Bench) -> None:
    """Messages without an operation that made their room are no room's."""
    bench.add(frame(1, (MESSAGES, message(1))))
    with pytest.raises(Corrupt):
        bench.builder.add(mark(1), PackBuilder())


def test_many_files_may_be_written_in_one_batch(bench: Bench, place: Layout) -> None:
    """The first room is written to again before anything of the batch can be read from a pack."""
    rooms = [f"rooms/r{number:03d}" for number in range(200)]
    frames = [
        frame(number, (f"{room}/operations/{ORIGIN}", created(room, at=at(number))))
        for number, room in enumerate(rooms, 1)
    ]
    log = f"{rooms[0]}/messages/{ORIGIN}"
    frames.insert(1, frame(900, (log, message(1))))
    frames.append(frame(901, (log, message(2))))
    bench.add(*frames)
    bench.builder.lighten()
    tip = bench.add(frame(902, (log, message(3))))[-1]
    text = git(place.root, "show", f"{tip}:{log}/00/00/00000001.jsonl")
    assert text == b"".join(encode_record(message(n)) + b"\n" for n in (1, 2, 3))


def removing_everything(place: Layout, parent: str) -> str:
    """Let git make a commit on `parent` that has a file of the user's and nothing else."""
    blob = git(place.root, "hash-object", "-w", "--stdin", given="mine").decode().strip()
    tree = git(place.root, "mktree", given=f"100644 blob {blob}\tnotes").decode().strip()
    return git(place.root, "commit-tree", tree, "-p", parent, "-m", "rm").decode().strip()


def test_a_room_that_somebody_removed_is_taken_back(
    place: Layout, store: Objects, bench: Bench
) -> None:
    before = bench.add(*history(3))[-1]
    removed = removing_everything(place, before)
    later = Bench(place, store, removed)
    tips = later.add(
        frame(5, (f"operations/{ORIGIN}", message(1))), frame(6, (MESSAGES, message(4)))
    )
    tip = tips[-1]
    assert f"\nRestored-from: {before}\n" in raw(place, tip)
    assert Bench(place, store, tips[0]).add(frame(6, (MESSAGES, message(4)))) == [tip]
    source = CommitTree(store, tip)
    assert reading.last_number(source, MESSAGES) == 4
    assert reading.last_number(source, OPERATIONS) == 1
    git(place.root, "fsck", "--full", "--strict")


def test_a_room_is_not_taken_back_for_a_record_that_does_not_follow(
    place: Layout, store: Objects, bench: Bench
) -> None:
    before = bench.add(*history(3))[-1]
    removed = removing_everything(place, before)
    later = Bench(place, store, removed)
    with pytest.raises(Corrupt):
        later.builder.add(frame(5, (MESSAGES, message(9))), PackBuilder())


def test_the_view_of_a_room_that_was_removed_makes_no_commit(
    place: Layout, store: Objects, bench: Bench
) -> None:
    before = bench.add(*history(3))[-1]
    removed = removing_everything(place, before)
    assert Bench(place, store, removed).add(mark(3)) == [removed]


def test_a_cut_off_segment_is_not_built_on(place: Layout, store: Objects) -> None:
    builder, pack = CommitBuilder(store, ORIGIN), PackBuilder()
    builder.start(NO_OBJECT)
    builder.editor.write(f"{MESSAGES}/00/00/00000001.jsonl", b'{"n":1', pack)
    with pytest.raises(Corrupt, match="cut off"):
        builder.add(frame(1, (MESSAGES, message(1))), pack)
    assert place.packs.is_dir()


def test_a_builder_forgets_its_directories_when_they_are_many(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench.add(*history(3))
    before = files_of(bench.builder.editor)
    monkeypatch.setattr("agent_chatroom_ledger.storage.commits._NODES_MAX", 3)
    bench.builder.lighten()
    assert bench.builder.editor.nodes == 1
    assert files_of(bench.builder.editor) == before
    bench.add(frame(5, (MESSAGES, message(4))))


def test_a_record_keeps_its_bytes_whatever_fields_it_has(bench: Bench, place: Layout) -> None:
    """A newer version's fields are stored as they came."""
    import msgspec

    from agent_chatroom_ledger.domain.frames import FrameRecord

    line = encode_record(message(1)).replace(b'"author"', b'"mood":"good","author"')
    assert isinstance(msgspec.json.decode(line, type=Record), Record)
    bench.add(frame(1, (OPERATIONS, created())))
    (tip,) = bench.add(Frame(frame=2, records=(FrameRecord(MESSAGES, msgspec.Raw(line)),)))
    assert git(place.root, "show", f"{tip}:{MESSAGES}/00/00/00000001.jsonl") == line + b"\n"
