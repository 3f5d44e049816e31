"""Views read from and updated in any tree: the same pages, however they came about."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent_chatroom_ledger.domain.frames import Frame, ViewMark
from agent_chatroom_ledger.domain.records import record_of
from agent_chatroom_ledger.domain.rooms import exclude_draft, include_draft
from agent_chatroom_ledger.errors import NotFound
from agent_chatroom_ledger.storage.commits import CommitBuilder
from agent_chatroom_ledger.storage.layout import Layout
from agent_chatroom_ledger.storage.objects import NO_OBJECT, Objects
from agent_chatroom_ledger.storage.packs import PackBuilder
from agent_chatroom_ledger.storage.viewpages import (
    TreeViewReader,
    update_pages,
    view_covers,
    whole_view,
)
from tests.storage.samples import (
    MESSAGES,
    OPERATIONS,
    ORIGIN,
    ROOM,
    at,
    created,
    files_of,
    frame,
    message,
)

if TYPE_CHECKING:
    from agent_chatroom_ledger.domain.records import Record
    from agent_chatroom_ledger.storage.trees import TreeEditor


class Room:
    """A room in a tree under construction, with messages over several days."""

    def __init__(self, objects: Objects) -> None:
        self.builder = CommitBuilder(objects, ORIGIN)
        self.builder.start(NO_OBJECT)
        self.pack = PackBuilder()
        self.messages, self.operations, self.frames = 0, 1, 0
        self._add((OPERATIONS, created()))

    def _add(self, *entries: tuple[str, Record]) -> None:
        self.frames += 1
        self.builder.add(frame(self.frames, *entries), self.pack)

    @property
    def tree(self) -> TreeEditor:
        return self.builder.editor

    def post(self, times: int = 1, body: str = "") -> None:
        for _ in range(times):
            self.messages += 1
            day = 1 + self.messages // 70
            time = f"2026-12-{day:02d}T00:00:00.{self.frames:06d}Z"
            self._add((MESSAGES, message(self.messages, body, at=time)))

    def change(self, n: int, *, back: bool = False) -> None:
        self.operations += 1
        draft = (include_draft if back else exclude_draft)([(ORIGIN, n)], by="Reviewer")
        time = f"2026-12-28T00:00:00.{self.frames:06d}Z"
        self._add((OPERATIONS, record_of(draft, self.operations, time, f"op-{self.operations}")))

    def mark(self) -> ViewMark:
        return ViewMark(
            room=ROOM,
            messages={ORIGIN: self.messages} if self.messages else {},
            operations={ORIGIN: self.operations},
        )

    def compile(self) -> bool:
        self.frames += 1
        one = Frame(frame=self.frames, at=at(self.frames), views=(self.mark(),))
        return self.builder.add(one, self.pack)

    def pages(self) -> dict[str, bytes]:
        prefix = f"{ROOM}/view/"
        found = files_of(self.tree, prefix[:-1])
        return {path.removeprefix(prefix): data for path, data in found.items()}

    def whole(self) -> dict[str, bytes]:
        return whole_view(self.tree, self.builder.room(ROOM))


@pytest.fixture
def room(tmp_path: Path) -> Room:
    return Room(Objects(Layout(tmp_path)))


STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("post"), st.integers(1, 80)),
        st.tuples(st.just("exclude"), st.integers(1, 100)),
        st.tuples(st.just("include"), st.integers(1, 100)),
        st.tuples(st.just("compile"), st.none()),
    ),
    max_size=10,
)


@given(STEPS)
@settings(max_examples=30, deadline=None)
def test_a_view_compiled_step_by_step_is_the_view_built_at_once(
    steps: list[tuple[str, int | None]],
) -> None:
    room = Room(Objects(Layout(Path("/none"))))  # nothing is stored, so nothing is read
    for kind, number in steps:
        if kind == "post":
            room.post(number or 1)
        elif kind == "compile":
            room.compile()
        elif number is not None and number <= room.messages:
            room.change(number, back=kind == "include")
    room.compile()
    assert room.pages() == room.whole()
    assert view_covers(room.tree, room.mark())


def test_a_room_without_messages_has_no_pages(room: Room) -> None:
    assert view_covers(room.tree, room.mark())
    assert not room.compile()
    assert room.pages() == {}


def test_a_message_or_an_operation_is_not_covered_until_compiled(room: Room) -> None:
    room.post()
    assert not view_covers(room.tree, room.mark())
    assert room.compile()
    assert view_covers(room.tree, room.mark())
    room.change(1)
    assert not view_covers(room.tree, room.mark())
    assert room.compile()
    assert not room.compile()


def test_an_append_rewrites_the_newest_page_and_an_exclusion_the_page_it_is_on(room: Room) -> None:
    room.post(140)
    room.compile()
    before = room.pages()
    assert len(before) > 3
    room.post()
    changed = update_pages(room.tree, room.builder.room(ROOM), room.mark(), room.builder.origin)
    assert len(changed) == 1
    room.compile()
    room.change(5)
    first, newest = min(before), max(before)
    changed = update_pages(room.tree, room.builder.room(ROOM), room.mark(), room.builder.origin)
    assert set(changed) <= {first, newest, max(room.pages())}
    assert first in changed


def test_a_reader_stops_at_its_positions(room: Room) -> None:
    room.post(60)
    reader = TreeViewReader(room.tree, ROOM, ORIGIN, {ORIGIN: 55}, {ORIGIN: 1})
    assert [m.n for m in reader.messages_after({ORIGIN: 48})] == list(range(49, 56))
    assert [m.n for m in reader.operations_after({})] == [1]
    assert reader.message(ORIGIN, 57).body == "body 57"
    with pytest.raises(NotFound):
        reader.message(ORIGIN, 61)
    assert reader.newest_page() is None
    assert reader.page("2026/12-01.0.md") is None
    assert reader.pages_of_day("2026/12-01") == []


def test_pages_are_ordered_by_day_and_number(room: Room) -> None:
    """The tenth page of a day comes after the second."""
    room.post(12, body="x" * 40_000)
    room.compile()
    days = sorted({name.rpartition(".")[0].rpartition(".")[0] for name in room.pages()})
    reader = TreeViewReader(room.tree, ROOM, ORIGIN, {}, {})
    names = reader.pages_of_day(days[0])
    assert [int(name.split(".")[1]) for name in names] == list(range(12))
    newest = reader.newest_page()
    assert newest is not None
    assert newest[0] == names[-1]


@pytest.mark.parametrize("damage", [b"", b"no header", b"\xff\xfe"])
def test_a_damaged_page_is_built_again(room: Room, damage: bytes) -> None:
    room.post(60)
    room.compile()
    newest = max(room.pages())
    room.tree.write(f"{ROOM}/view/{newest}", damage, room.pack)
    room.post()
    room.compile()
    assert room.pages() == room.whole()


def test_foreign_files_beside_the_pages_are_no_matter(room: Room) -> None:
    room.post()
    room.compile()
    for name in ("2026/notes.md", "2026/99-99.x.md", "zzz.md"):
        room.tree.write(f"{ROOM}/view/{name}", b"mine", room.pack)
    assert view_covers(room.tree, room.mark())
    room.post()
    assert room.compile()
    assert set(room.whole()) < set(room.pages())


def test_a_line_that_is_no_record_is_skipped(room: Room) -> None:
    room.post(3)
    path = f"{MESSAGES}/00/00/00000001.jsonl"
    data = (room.tree.read(path) or b"").replace(b'"author":"Analyst"', b'"author":""', 1)
    room.tree.write(path, data, room.pack)
    assert room.compile()
    assert b"body 1" not in b"".join(room.pages().values())
    assert b"body 3" in b"".join(room.pages().values())
