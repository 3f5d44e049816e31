"""Subjects and trailers: a transcript in ``git log``, and nothing in it that a body could forge."""

from __future__ import annotations

import re
import unicodedata

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_chatroom_ledger.domain.frames import Frame, FrameRecord, ViewMark
from agent_chatroom_ledger.domain.records import Draft, Record, encode_record, record_of
from agent_chatroom_ledger.domain.rooms import (
    clear_draft,
    exclude_draft,
    members_draft,
    standin_draft,
)
from agent_chatroom_ledger.domain.subjects import frame_message, record_message, view_message
from agent_chatroom_ledger.limits import SUBJECT_CHARS_MAX
from tests.domain.samples import (
    LOG,
    OPERATIONS_LOG,
    OTHER,
    PRIMARY,
    creation,
    dangerous,
    hostile_texts,
)

AT = "2026-11-29T21:27:42.123456Z"
TRAILER = re.compile(r"(Room|Message|Operation|Kind|Record|Frame|Requested-by|Reason): [^\n]*")


def record(draft: Draft, n: int = 57, record_id: str = "0193a1b2") -> Record:
    return record_of(draft, n, AT, record_id)


def frame(*records: tuple[str, Record], **fields: str) -> Frame:
    raw = tuple(FrameRecord(log, msgspec.Raw(encode_record(r))) for log, r in records)
    return Frame(frame=12, records=raw, **fields)  # type: ignore[arg-type]  # texts only


def test_a_message_reads_like_a_transcript() -> None:
    said = record(Draft(author="Analyst", body="18 checks\n\n passed\t✓"))
    assert record_message(LOG, said, 12) == (
        "design-review #57 Analyst: 18 checks passed ✓\n"
        "\n"
        "Room: rooms/design-review\n"
        "Message: 57@mbp-3f2a\n"
        "Kind: message\n"
        "Record: 0193a1b2\n"
        "Frame: 12\n"
    )


@pytest.mark.parametrize(
    ("draft", "subject"),
    [
        (creation(), "design-review create: Design review (Analyst)"),
        (
            exclude_draft([(PRIMARY, 3)], by="Reviewer"),
            "design-review policy: exclude #3 (Reviewer)",
        ),
        (
            exclude_draft([(PRIMARY, 1), (PRIMARY, 2), (OTHER, 9)], by="Reviewer"),
            "design-review policy: exclude #9 #1-2 (Reviewer)",
        ),
        (clear_draft(by="Reviewer"), "design-review policy: clear (Reviewer)"),
        (
            standin_draft(standin_id="s", replaces=[(PRIMARY, 4)], body="x", by="Reviewer"),
            "design-review policy: standin #4 (Reviewer)",
        ),
        (
            members_draft(["Ops"], add=True, by="Reviewer"),
            "design-review members: add Ops (Reviewer)",
        ),
        (
            exclude_draft([(PRIMARY, n) for n in range(1, 100, 2)], by="Reviewer"),
            "design-review policy: exclude #1 #3 #5 #7 #9 #11 #13 #15 #17… (Reviewer)",
        ),
    ],
)
def test_an_operation_says_what_it_does(draft: Draft, subject: str) -> None:
    message = record_message(OPERATIONS_LOG, record(draft, 2), 12)
    assert message.split("\n")[0] == subject
    assert "\nOperation: 2@mbp-3f2a\n" in message


def test_what_has_no_words_shows_its_kind() -> None:
    message = record_message(LOG, record(Draft(author="Analyst", kind="status")), 1)
    assert message.startswith("design-review #57 Analyst: (status)\n")


def test_long_names_leave_room_for_what_was_said() -> None:
    log = f"rooms/{'x' * 80}/messages/{PRIMARY}"
    subject = record_message(log, record(Draft(author="A" * 64, body="b" * 500)), 1).split("\n")[0]
    assert len(subject) == SUBJECT_CHARS_MAX
    assert "bbbbbbb" in subject
    assert subject.endswith("…")


def test_an_administrative_operation_names_who_and_why() -> None:
    entry = (OPERATIONS_LOG, record(clear_draft(by="Reviewer"), 2))
    message = frame_message(
        frame(entry, requested_by="Reviewer", reason="a\nKind: forged"), [entry]
    )
    assert message.endswith(
        "Kind: policy.clear\nRecord: 0193a1b2\nFrame: 12\n"
        "Requested-by: Reviewer\nReason: a Kind: forged\n"
    )


def test_a_frame_of_several_records_speaks_of_the_rooms_operation_first() -> None:
    entries = [
        (f"operations/{PRIMARY}", record(creation(), 9, "one")),
        (LOG, record(Draft(author="Analyst", body="hello"), 1, "two")),
        (OPERATIONS_LOG, record(creation(), 1, "three")),
    ]
    message = frame_message(frame(*entries), entries)
    assert message == (
        "design-review create: Design review (Analyst) (+2)\n"
        "\n"
        "Operation: 9@mbp-3f2a\nKind: room.create\nRecord: one\n"
        "Room: rooms/design-review\nMessage: 1@mbp-3f2a\nKind: message\nRecord: two\n"
        "Room: rooms/design-review\nOperation: 1@mbp-3f2a\nKind: room.create\nRecord: three\n"
        "Frame: 12\n"
    )
    assert frame_message(frame(*entries[:2]), entries[:2]).startswith("design-review #1 Analyst")
    assert frame_message(frame(entries[0]), entries[:1]).startswith("ledger create: Design review")


def test_a_view_says_how_many_pages_or_rooms_changed() -> None:
    mark = ViewMark(room="rooms/a/design-review", messages={}, operations={})
    made = Frame(frame=14, at=AT, views=(mark,))
    assert view_message(made, {mark.room: 2}) == (
        "design-review view: 2 pages\n\nRoom: rooms/a/design-review\nFrame: 14\n"
    )
    assert view_message(made, {mark.room: 1}).startswith("design-review view: 1 page\n")
    assert view_message(made, {"rooms/a": 1, "rooms/b": 2, "rooms/c": 3}) == (
        "views: 3 rooms\n\nRoom: rooms/a\nRoom: rooms/b\nRoom: rooms/c\nFrame: 14\n"
    )


@given(
    body=hostile_texts,
    author=hostile_texts,
    title=hostile_texts,
    requested_by=hostile_texts,
    reason=hostile_texts,
    log=st.sampled_from((LOG, OPERATIONS_LOG, f"operations/{PRIMARY}")),
    kind=st.sampled_from(("message", "room.create", "policy.exclude", "members.add", "event")),
)
def test_nothing_that_was_said_forges_a_line(
    body: str, author: str, title: str, requested_by: str, reason: str, log: str, kind: str
) -> None:
    """Even from records that were never checked, such as those that another program wrote."""
    said = record(
        Draft(
            author=author,
            body=body,
            kind=kind,
            data={"title": title, "messages": [title, body], "standin": None},
        ),
        record_id=title or "x",
    )
    entries = [(log, said)]
    messages = [
        record_message(log, said, 12, requested_by, reason),
        frame_message(Frame(frame=12, requested_by=requested_by, reason=reason), entries * 2),
    ]
    for message in messages:
        message.encode()
        subject, blank, *trailers = message.split("\n")
        assert 0 < len(subject) <= SUBJECT_CHARS_MAX
        assert blank == trailers[-1] == ""
        assert all(TRAILER.fullmatch(line) for line in trailers[:-1])
        assert not dangerous(message, "\n")
        assert not any(unicodedata.category(c) == "Zl" for c in message)
        assert len(re.findall("(?m)^Frame: ", message)) == 1
        assert "\nFrame: 12\n" in message
