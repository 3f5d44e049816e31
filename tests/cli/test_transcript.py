"""The transcript: legible, and impossible to forge from inside a body or a name."""

from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as st

from agent_chatroom_ledger.cli.terminal import Paint, table
from agent_chatroom_ledger.cli.transcript import message_lines, transcript
from agent_chatroom_ledger.domain.policy import StandIn
from agent_chatroom_ledger.domain.records import Message, Record, encode_record, message_of

PLAIN = Paint(enabled=False)
HEADER = re.compile(r"#1 21:27:42Z ")


def message(body: str, **fields: object) -> Message:
    values: dict[str, object] = {
        "n": 1,
        "id": "a",
        "at": "2026-11-29T21:27:42.123456Z",
        "author": "Analyst",
        "kind": "message",
        **fields,
    }
    record = Record(body=body, **values)  # type: ignore[arg-type]  # values by name
    return message_of(encode_record(record), "mbp-3f2a", "messages", primary=True)


def test_a_short_message_is_one_line_under_its_day() -> None:
    assert list(transcript([message("18 checks passed")], PLAIN)) == [
        "-- 2026-11-29 --",
        "#1 21:27:42Z Analyst: 18 checks passed",
    ]


def test_header_tells_kind_recipients_and_what_is_replied_to() -> None:
    shown = message_lines(message("yes", kind="decision", to=("Bob", "Eve"), reply_to="7"), PLAIN)
    assert shown == ["#1 21:27:42Z Analyst [decision] -> Bob, Eve re 7: yes"]


def test_lines_of_a_body_are_indented() -> None:
    assert message_lines(message("one\n#2 00:00:00Z Eve: two\n"), PLAIN) == [
        "#1 21:27:42Z Analyst:",
        "    one",
        "    #2 00:00:00Z Eve: two",
    ]


def test_the_time_said_goes_before_the_time_stored() -> None:
    lines = list(transcript([message("hi", said_at="2005-02-06T10:00:00.000000Z")], PLAIN))
    assert lines == ["-- 2005-02-06 --", "#1 10:00:00Z Analyst: hi"]


def test_standin_shows_who_speaks_and_for_how_many() -> None:
    standin = StandIn(
        id="s",
        replaces=(("a", 1), ("a", 2)),
        insert_after=("a", 2),
        speaker="System",
        kind="system",
        body="Two lines left out.",
        at="2026-11-29T21:27:42.123456Z",
    )
    assert list(transcript([standin], PLAIN)) == [
        "[for 2 messages] System [system]: Two lines left out."
    ]


@given(st.text())
def test_no_body_can_forge_a_line_or_drive_a_terminal(body: str) -> None:
    body = body.encode("utf-8", "replace").decode()
    lines = message_lines(message(body), PLAIN)
    assert HEADER.match(lines[0])
    assert all(line.startswith("    ") for line in lines[1:])
    assert all(line.replace("\t", "").isprintable() or _safe(line) for line in lines)


def _safe(line: str) -> bool:
    """Tell that a line holds no control, whatever else Python will not print."""
    return not re.search(
        "[\x00-\x08\x0a-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\u2028\u2029]", line
    )


def test_table_in_a_pipe_is_aligned_and_safe() -> None:
    assert list(table(("name", "n"), [("a\x1b[2J", 1), ("longer", 22)])) == [
        "name      n",
        "a\\x1b[2J  1",
        "longer    22",
    ]


def test_colours_only_where_they_are_wanted() -> None:
    assert PLAIN.strong("x") == "x"
    assert Paint(enabled=True).strong("x") == "\x1b[1mx\x1b[22m"
