"""Views: an update gives the bytes of a whole build and reads only what it must (invariant 2)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent_chatroom_ledger.domain import pages as pages_module
from agent_chatroom_ledger.domain.order import order_key
from agent_chatroom_ledger.domain.policy import StandIn
from agent_chatroom_ledger.domain.positions import covers
from agent_chatroom_ledger.domain.rooms import (
    clear_draft,
    exclude_draft,
    fold_room,
    include_draft,
    members_draft,
    standin_draft,
)
from agent_chatroom_ledger.domain.views import (
    build_view,
    page_order,
    parse_header,
    update_view,
)
from agent_chatroom_ledger.errors import NotFound
from tests.domain.samples import BEGIN, OTHER, PRIMARY, creation, message, operation

if TYPE_CHECKING:
    from collections.abc import Iterator

    from agent_chatroom_ledger.domain.positions import Position
    from agent_chatroom_ledger.domain.records import Draft, Message
    from agent_chatroom_ledger.domain.rooms import RoomState

SECOND = 1_000_000
DAY = 86_400 * SECOND


class MemoryRoom:
    """A room in memory: its logs, its pages, and how many pages and messages were asked for."""

    def __init__(self) -> None:
        self.messages: list[Message] = []
        self.operations: list[Message] = [operation(1, creation(), micros=BEGIN)]
        self.pages: dict[str, bytes] = {}
        self.pages_read = 0
        self.messages_read = 0

    def newest_page(self) -> tuple[str, bytes] | None:
        if not self.pages:
            return None
        name = max(self.pages, key=page_order)
        self.pages_read += 1
        return name, self.pages[name]

    def page(self, name: str) -> bytes | None:
        self.pages_read += 1
        return self.pages.get(name)

    def pages_of_day(self, day: str) -> list[str]:
        return sorted((n for n in self.pages if n.startswith(f"{day}.")), key=page_order)

    def _after(self, log: list[Message], position: Position) -> Iterator[Message]:
        for record in sorted(log, key=order_key):
            if not covers(position, record.origin, record.n):
                self.messages_read += 1
                yield record

    def messages_after(self, position: Position) -> Iterator[Message]:
        return self._after(self.messages, position)

    def operations_after(self, position: Position) -> Iterator[Message]:
        return self._after(self.operations, position)

    def message(self, origin: str, n: int) -> Message:
        for found in self.messages:
            if (found.origin, found.n) == (origin, n):
                return found
        raise NotFound(f"{n}@{origin}")

    def reached(self, log: list[Message]) -> dict[str, int]:
        position: dict[str, int] = {}
        for record in log:
            position[record.origin] = max(record.n, position.get(record.origin, 0))
        return position

    def state(self, through: Position) -> RoomState:
        return fold_room(o for o in self.operations if covers(through, o.origin, o.n))

    def whole(self, messages: Position, operations: Position) -> dict[str, bytes]:
        known = [m for m in self.messages if covers(messages, m.origin, m.n)]
        return build_view(self.state(operations), known, operations)

    def update(
        self, messages: Position | None = None, operations: Position | None = None
    ) -> dict[str, bytes | None]:
        """Bring the pages up to date, and hold them to a whole build."""
        through = self.reached(self.messages) if messages is None else messages
        operated = self.reached(self.operations) if operations is None else operations
        changed = update_view(self.state(operated), self, through, operated, PRIMARY)
        for name, data in changed.items():
            assert self.pages.get(name) != data, "only pages that differ"
            if data is None:
                del self.pages[name]
            else:
                self.pages[name] = data
        assert self.pages == self.whole(through, operated)
        assert update_view(self.state(operated), self, through, operated, PRIMARY) == {}
        return changed

    def say(self, count: int, *, origin: str = PRIMARY, step: int = SECOND, start: int = 0) -> None:
        """Add messages of an origin, ``step`` apart, after its last one or from ``start`` on."""
        mine = [m for m in self.messages if m.origin == origin]
        micros = start or (_micros(mine[-1]) if mine else BEGIN)
        for k in range(1, count + 1):
            self.messages.append(
                message(len(mine) + k, f"text {k}", origin=origin, micros=micros + k * step)
            )

    def ask(self, draft: Draft, origin: str = PRIMARY) -> None:
        """Add an operation."""
        mine = [o for o in self.operations if o.origin == origin]
        micros = (_micros(mine[-1]) if mine else BEGIN) + SECOND
        self.operations.append(operation(len(mine) + 1, draft, origin=origin, micros=micros))


def _micros(record: Message) -> int:
    return int(record.at.timestamp() * 1000) * 1000


@pytest.fixture(scope="module", autouse=True)
def small_pages() -> Iterator[None]:
    """Split days at three records or 700 bytes, so that short examples have many pages."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pages_module, "PAGE_RECORDS_MAX", 3)
        patch.setattr(pages_module, "PAGE_BYTES_MAX", 700)
        yield


_origin = st.sampled_from((PRIMARY, PRIMARY, OTHER))
_step = st.sampled_from((1, SECOND, SECOND, DAY // 3, DAY))
_body = st.sampled_from(("short", "two\nlines", "x" * 600, "\x1b[0m\u2028> quoted", ""))
_picks = st.lists(st.integers(0, 30), min_size=1, max_size=4)
_actions = st.one_of(
    st.tuples(st.just("message"), _origin, _step, _body),
    st.tuples(st.just("message"), _origin, _step, _body),
    st.tuples(st.just("message"), _origin, _step, _body),
    st.tuples(st.sampled_from(("exclude", "include", "standin")), _origin, _picks, st.integers(0)),
    st.tuples(st.sampled_from(("clear", "members")), _origin, _picks, st.integers(0)),
)


def _act(room: MemoryRoom, clocks: dict[str, int], action: tuple[object, ...]) -> None:
    """Do one drawn action; each origin has a clock of its own, so records come late."""
    what, origin, detail, extra = action
    assert isinstance(origin, str)
    if what == "message":
        assert isinstance(detail, int)
        assert isinstance(extra, str)
        clocks[origin] += detail
        n = 1 + sum(m.origin == origin for m in room.messages)
        room.messages.append(message(n, extra, origin=origin, micros=clocks[origin]))
        return
    assert isinstance(detail, list)
    known = [(m.origin, m.n) for m in room.messages]
    picked = [known[k % len(known)] for k in detail] if known else []
    drafts = {
        "clear": lambda: clear_draft(by="Reviewer"),
        "members": lambda: members_draft(["Reviewer"], add=True, by="Reviewer"),
        "exclude": lambda: exclude_draft(picked, by="Reviewer"),
        "include": lambda: include_draft(picked, by="Reviewer"),
        "standin": lambda: standin_draft(
            standin_id=f"s{extra}", replaces=picked, body="in short", by="Reviewer"
        ),
    }
    if picked or what in {"clear", "members"}:
        room.ask(drafts[str(what)](), origin)


@settings(max_examples=300, deadline=None)
@given(
    batches=st.lists(st.lists(_actions, max_size=9), min_size=1, max_size=6),
    lags=st.lists(st.integers(0, 3), min_size=12, max_size=12),
)
def test_an_update_equals_a_whole_build(
    batches: list[list[tuple[object, ...]]], lags: list[int]
) -> None:
    """Whatever is said and decided in whatever split, by two origins whose clocks run apart.

    An update may stop before the newest records; it never goes back.
    """
    room = MemoryRoom()
    clocks = {PRIMARY: BEGIN, OTHER: BEGIN}
    messages: dict[str, int] = {}
    operations = {PRIMARY: 1}
    for batch, lag in zip(batches, lags, strict=False):
        for action in batch:
            _act(room, clocks, action)
        for through, log in ((messages, room.messages), (operations, room.operations)):
            for origin, n in room.reached(log).items():
                through[origin] = max(through.get(origin, 0), n - lag)
        room.update(
            {origin: n for origin, n in messages.items() if n > 0},
            {origin: n for origin, n in operations.items() if n > 0},
        )
    room.update()


def test_a_room_without_messages_has_no_pages() -> None:
    room = MemoryRoom()
    assert room.update() == {}
    room.ask(members_draft(["Reviewer"], add=True, by="Analyst"))
    assert room.update() == {}


def test_an_append_rewrites_the_newest_page_only() -> None:
    room = MemoryRoom()
    room.say(3 * 40 + 1)
    room.update()
    room.pages_read = room.messages_read = 0
    room.say(1)
    through = room.reached(room.messages)
    changed = update_view(room.state({PRIMARY: 1}), room, through, {PRIMARY: 1}, PRIMARY)
    assert list(changed) == ["2026/11-29.40.md"]
    assert room.pages_read == 1
    assert room.messages_read == 2, "the new one, and the one on the newest page before it"


def test_an_excluded_message_on_an_old_page_rewrites_that_page_and_the_newest_header() -> None:
    room = MemoryRoom()
    room.say(3 * 40)
    room.update()
    before = dict(room.pages)
    room.ask(exclude_draft([(PRIMARY, 5)], by="Reviewer"))
    room.pages_read = room.messages_read = 0
    assert set(room.update()) == {"2026/11-29.1.md", "2026/11-29.39.md"}
    assert room.pages_read < 60, "the page is found by halving, once per update and check"
    assert b"### #5 " not in room.pages["2026/11-29.1.md"]
    assert b"### #4 " in room.pages["2026/11-29.1.md"]
    assert parse_header(room.pages["2026/11-29.1.md"]).policy
    room.ask(include_draft([(PRIMARY, 5)], by="Reviewer"))
    room.update()
    old = {name: data for name, data in room.pages.items() if name != "2026/11-29.39.md"}
    assert old.items() <= before.items(), "as if nothing had ever been left out"


def test_clearing_a_policy_brings_back_every_page() -> None:
    room = MemoryRoom()
    room.say(30)
    room.update()
    before = dict(room.pages)
    room.ask(exclude_draft([(PRIMARY, n) for n in (1, 2, 3, 11, 29)], by="Reviewer"))
    room.ask(standin_draft(standin_id="a", replaces=[(PRIMARY, 15)], body="x", by="Reviewer"))
    room.update()
    room.ask(clear_draft(by="Reviewer"))
    room.update()
    newest = "2026/11-29.9.md"
    assert {**room.pages, newest: b""} == {**before, newest: b""}


def test_a_standin_appears_after_its_anchor_on_the_anchors_page() -> None:
    room = MemoryRoom()
    room.say(9)
    room.ask(
        standin_draft(
            standin_id="short",
            replaces=[(PRIMARY, 1), (PRIMARY, 2), (PRIMARY, 8)],
            insert_after=(PRIMARY, 4),
            body="what 1, 2 and 8 said",
            by="Reviewer",
        )
    )
    room.update()
    page = room.pages["2026/11-29.1.md"].decode()
    assert (
        page.index("### #4 ") < page.index("### stand-in short for #1-2 #8") < page.index("### #5 ")
    )
    assert "> what 1, 2 and 8 said\n" in page
    assert "### #8 " not in room.pages["2026/11-29.2.md"].decode()


def test_a_late_record_of_another_origin_reflows_its_day_from_there() -> None:
    room = MemoryRoom()
    room.say(12, start=BEGIN)
    room.say(12, start=BEGIN + 3 * DAY)
    room.update()
    newest = max(room.pages, key=page_order)
    room.say(1, origin=OTHER, start=BEGIN + 6 * SECOND)
    changed = room.update()
    assert set(changed) == {f"2026/11-29.{k}.md" for k in (2, 3, 4)} | {newest}


def test_a_day_whose_pages_shrink_loses_the_last_one() -> None:
    """A record that comes between two long ones may end a page where the old split did not."""
    room = MemoryRoom()
    bodies = ["x", "y" * 650, "z", "z", "y" * 650, "z", "z"]
    for n, body in enumerate(bodies, 1):
        room.messages.append(message(n, body))
    room.update()
    for n in range(1, 4):
        room.messages.append(message(n, "l", origin=OTHER, micros=BEGIN + SECOND + n))
        room.update()


@pytest.mark.parametrize(
    "damage",
    [
        b"",
        b"# Design review\n\nnothing else\n",
        b"\xff\xfe",
        b"<<<<<<< ours\n",
    ],
)
def test_a_damaged_newest_page_is_built_anew(damage: bytes) -> None:
    room = MemoryRoom()
    room.say(10)
    room.update()
    name = max(room.pages, key=page_order)
    good = room.pages[name]
    room.pages[name] = damage
    assert room.update() == {name: good}


def test_a_newest_page_that_is_missing_or_foreign_is_mended() -> None:
    room = MemoryRoom()
    room.say(10)
    room.update()
    good = dict(room.pages)
    del room.pages[max(good, key=page_order)]
    room.update()
    room.pages["2031/01-01.0.md"] = b"foreign"
    assert room.update() == {"2031/01-01.0.md": None}
    room.pages["2026/11-29.9.md"] = good[max(good, key=page_order)]
    assert room.update() == {"2026/11-29.9.md": None}
    assert room.pages == good


def test_a_gap_in_a_days_pages_is_mended_when_it_is_met() -> None:
    room = MemoryRoom()
    room.say(10)
    room.update()
    del room.pages["2026/11-29.1.md"]
    room.say(1)
    assert "2026/11-29.1.md" in room.update()


def test_a_view_that_reaches_further_than_asked_for_is_built_anew() -> None:
    room = MemoryRoom()
    room.say(10)
    room.ask(exclude_draft([(PRIMARY, 2)], by="Reviewer"))
    room.update()
    room.update({PRIMARY: 4})
    room.update({PRIMARY: 4}, {PRIMARY: 1})
    assert len(room.pages) == 2


def test_a_view_of_another_room_is_built_anew() -> None:
    room = MemoryRoom()
    room.say(2)
    room.update()
    room.operations = [operation(1, creation("Renamed by hand"), micros=BEGIN)]
    assert b"# Renamed by hand\n" in (room.update()["2026/11-29.0.md"] or b"")


def test_ids_that_two_origins_wrote_are_shown_once_by_a_whole_build() -> None:
    first = message(1, "first", record_id="same")
    second = message(1, "second", origin=OTHER, record_id="same")
    third = message(2, "third")
    state = MemoryRoom().state({PRIMARY: 1})
    (page,) = build_view(state, [third, second, first], {PRIMARY: 1}).values()
    shown = first if order_key(first) < order_key(second) else second
    assert page.count(b"\n### ") == 2
    assert shown.body.encode() in page
    header = parse_header(page)
    assert header.through_messages == {OTHER: 1, PRIMARY: 2}
    assert (OTHER, 1, 1) in header.records or (PRIMARY, 1, 2) in header.records


def test_only_the_newest_page_says_how_far_the_view_reaches() -> None:
    room = MemoryRoom()
    room.say(7)
    room.update()
    headers = [parse_header(room.pages[name]) for name in sorted(room.pages, key=page_order)]
    assert [header.newest for header in headers] == [False, False, True]
    assert headers[0].records == ((PRIMARY, 1, 3),)
    assert headers[0].through_messages == {}
    assert headers[2].through_messages == {PRIMARY: 7}
    assert headers[2].through_operations == {PRIMARY: 1}


def test_standins_are_values() -> None:
    room = MemoryRoom()
    room.say(1)
    room.ask(standin_draft(standin_id="a", replaces=[(PRIMARY, 1)], body="x", by="Reviewer"))
    (standin,) = room.state(room.reached(room.operations)).policy.standins
    assert isinstance(standin, StandIn)
    assert standin.insert_after == (PRIMARY, 1)
