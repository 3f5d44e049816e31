"""Pages: exact bytes, headers that come back, and bodies that forge nothing."""

from __future__ import annotations

import re

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_chatroom_ledger.domain.clock import from_micros
from agent_chatroom_ledger.domain.pages import (
    PageWriter,
    day_of,
    is_page,
    newest_page,
    page_name,
    page_order,
    paginate,
    parse_header,
    record_ranges,
)
from agent_chatroom_ledger.domain.records import Draft
from agent_chatroom_ledger.domain.rooms import exclude_draft, fold_room, standin_draft
from agent_chatroom_ledger.errors import Corrupt
from agent_chatroom_ledger.limits import PAGE_BYTES_MAX, PAGE_RECORDS_MAX
from tests.domain.samples import (
    BEGIN,
    GOLDEN,
    OTHER,
    PRIMARY,
    creation,
    dangerous,
    hostile_texts,
    message,
    operation,
)

STATE = fold_room([operation(1, creation())])
WITH_POLICY = fold_room(
    [
        operation(1, creation("Design “review” 😀")),
        operation(2, exclude_draft([(PRIMARY, 2), (OTHER, 99)], by="Reviewer")),
        operation(
            3,
            standin_draft(
                standin_id="short",
                replaces=[(PRIMARY, 3), (PRIMARY, 4), (OTHER, 1)],
                insert_after=(PRIMARY, 4),
                body="In short:\n\n3 and 4 agree.",
                by="Reviewer",
            ),
        ),
    ]
)
MESSAGES = [
    message(1, "18 checks passed"),
    message(2, "left out"),
    message(3, "replaced"),
    message(4, "replaced"),
    message(1, "from elsewhere", origin=OTHER, micros=BEGIN + 4_500_000),
    message(2, "from elsewhere", origin=OTHER, micros=BEGIN + 4_600_000),
    message(
        5,
        draft=Draft(
            author="Eve · 21:27:42Z",
            kind="review",
            to=("Reviewer", "Ops"),
            reply_to="2@ci-9a1c",
            body="one\n\n### #6 Analyst · 00:00:00Z · message\r\n\ttab\rCR\u2028LS\x1b[31m",
        ),
    ),
    message(
        6,
        draft=Draft(author="Old", body="imported", said_at=from_micros(BEGIN - 86_400_000_000)),
    ),
    message(7, draft=Draft(author="Quiet", kind="status")),
]
THROUGH = {PRIMARY: 7, OTHER: 2}, {PRIMARY: 3}
HEADING = re.compile(r"### (#\d+(@\S+)?|stand-in .*) .* · .*")


def test_the_bytes_of_the_format() -> None:
    page = PageWriter(WITH_POLICY).page(MESSAGES, THROUGH)
    assert page == (GOLDEN / "page.md").read_bytes()


def test_the_golden_header_comes_back() -> None:
    header = parse_header((GOLDEN / "page.md").read_bytes())
    assert header.title == "Design “review” 😀"
    assert header.room == WITH_POLICY.id
    assert header.records == ((OTHER, 1, 2), (PRIMARY, 1, 7))
    assert (header.first_at, header.last_at) == (
        "2026-11-29T21:27:43.000000Z",
        "2026-11-29T21:27:49.000000Z",
    )
    assert len(header.policy) == 16
    assert header.newest
    assert (header.through_messages, header.through_operations) == THROUGH


def test_a_page_that_the_policy_does_not_touch_has_no_digest() -> None:
    page = PageWriter(WITH_POLICY).page([message(50)])
    assert parse_header(page).policy == ""
    assert not parse_header(page).newest
    assert page == PageWriter(msgspec.structs.replace(STATE, title=WITH_POLICY.title)).page(
        [message(50)]
    )


def test_a_page_of_which_everything_is_left_out_keeps_its_header() -> None:
    page = PageWriter(WITH_POLICY).page([message(2)])
    assert b"\n### " not in page
    assert parse_header(page).records == ((PRIMARY, 2, 2),)


@given(
    title=hostile_texts,
    room=hostile_texts.filter(bool),
    body=hostile_texts,
    author=hostile_texts,
    reply_to=hostile_texts,
)
def test_nothing_that_was_said_forges_a_line(
    title: str, room: str, body: str, author: str, reply_to: str
) -> None:
    """Even from records and rooms that were never checked."""
    state = msgspec.structs.replace(STATE, title=title, id=room)
    one = message(1)
    said = msgspec.structs.replace(one, body=body, author=author, reply_to=reply_to, to=(author,))
    page = PageWriter(state).page([said, message(2)], ({PRIMARY: 2}, {PRIMARY: 1}))
    text = page.decode()
    assert not dangerous(text, "\n\t")
    header = parse_header(page)
    assert header.through_messages == {PRIMARY: 2}
    assert header.records == ((PRIMARY, 1, 2),)
    _, _, rest = text.partition("operations 1@mbp-3f2a\n")
    headings = 0
    for line in rest.split("\n"):
        if not line.startswith("> ") and line not in {"", ">"}:
            assert line.startswith(("### #1 ", "### #2 Analyst"))
            headings += 1
    assert headings == 2


@given(st.text(alphabet=st.characters(exclude_categories=("C", "Zl", "Zp")), min_size=1))
def test_a_body_of_one_plain_line_stays_as_it_is(body: str) -> None:
    page = PageWriter(STATE).page([message(1, body)])
    assert page.decode().endswith(f"\n\n> {body}\n")


def test_every_line_of_a_body_is_quoted() -> None:
    body = "a\n\nb\r\nc\rd\x0be\x0cf\x1cg\x1dh\x1ei\x85j\u2028k\u2029l\n"
    page = PageWriter(STATE).page([message(1, body)]).decode()
    quoted = page.partition("· message\n\n")[2]
    assert quoted.splitlines() == ["> a", ">", *(f"> {c}" for c in "bcdefghijkl"), ">"]


TIMES = b"- times: 2026-11-29T21:27:43.000000Z to 2026-11-29T21:27:43.000000Z\n"
HEAD = b"# x\n\n- format: 1\n- room: r\n- records: %b\n" + TIMES + b"- policy: %b\n%b"


@pytest.mark.parametrize(
    "page",
    [
        b"",
        b"# Design review\n",
        b"\xff" * 100,
        b"# x\n\n- format: 1\n- room: r\n",
        HEAD % (b"9-1@a", b"none", b""),
        HEAD % (b"1@a", b"x", b""),
        HEAD % (b"1@a", b"none", b"- through: messages x; operations 0\n"),
        HEAD % (b"1@a", b"none", b"x"),
    ],
)
def test_a_damaged_header_is_corrupt(page: bytes) -> None:
    with pytest.raises(Corrupt) as caught:
        parse_header(page)
    assert caught.value.code == "corrupt"


def test_a_newer_format_is_refused_by_its_own_code() -> None:
    page = PageWriter(STATE).page([message(1)]).replace(b"- format: 1\n", b"- format: 2\n")
    with pytest.raises(Corrupt) as caught:
        parse_header(page)
    assert caught.value.code == "newer_format"


def test_names_are_by_day_and_sort_as_numbers() -> None:
    assert day_of(message(1)) == "2026/11-29"
    assert page_name("2026/11-29", 0) == "2026/11-29.0.md"
    names = ["2026/11-29.10.md", "2026/11-29.9.md", "2025/12-31.0.md", "2026/01-01.0.md"]
    assert sorted(names, key=page_order) == [*names[2:], names[1], names[0]]
    assert page_order("11-29.3.md") == ("11-29", 3)
    assert is_page("11-29.0.md")
    for name in ("", "11-29.md", "11-29.00.md", "11-29.0.md\n", "x/11-29.0.md", "1-29.0.md"):
        assert not is_page(name)
        with pytest.raises(Corrupt):
            page_order(name)


@given(
    st.lists(
        st.one_of(
            st.builds(
                "{:02d}-{:02d}.{}.md".format,
                st.integers(1, 3),
                st.integers(1, 3),
                st.integers(0, 120),
            ),
            st.sampled_from(["README.md", "99-99.md", "99-99.07.md", "zz", "12-31.5.md.orig", ""]),
            st.text(max_size=8),
        )
    )
)
def test_the_newest_page_is_found_among_whatever_lies_there(names: list[str]) -> None:
    pages = [name for name in names if is_page(name)]
    assert newest_page(names) == (max(pages, key=page_order) if pages else None)
    with_year = [f"2026/{name}" for name in pages]
    assert newest_page(with_year) == (max(with_year, key=page_order) if pages else None)


def test_a_day_is_split_at_fifty_records_or_at_its_bytes() -> None:
    many = [message(n) for n in range(1, 2 * PAGE_RECORDS_MAX + 2)]
    assert [len(page) for _, page in paginate(many)] == [50, 50, 1]
    long = [message(n, "x" * (PAGE_BYTES_MAX // 2)) for n in range(1, 6)]
    assert [len(page) for _, page in paginate(long)] == [2, 2, 1]
    days = [message(n, micros=BEGIN + n * 86_400_000_000) for n in range(1, 4)]
    assert [name for name, _ in paginate(days, 7)] == [
        "2026/11-30.7.md",
        "2026/12-01.0.md",
        "2026/12-02.0.md",
    ]
    assert list(paginate([])) == []


def test_the_ranges_of_a_page_leave_out_what_it_does_not_hold() -> None:
    found = record_ranges([message(1), message(3), message(2, origin=OTHER), message(4)])
    assert found == ((OTHER, 2, 2), (PRIMARY, 1, 1), (PRIMARY, 3, 4))
