"""Every line shape of the channel logs becomes the draft it should, and nothing is lost."""

from __future__ import annotations

import base64
from datetime import date
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_chatroom_ledger.adapters.irc import LINE_BYTES_MAX, LogFiles
from agent_chatroom_ledger.adapters.irc_lines import LineParser, day_of
from agent_chatroom_ledger.domain.records import Draft, check_draft
from agent_chatroom_ledger.errors import InvalidInput

DATA = Path(__file__).resolve().parents[1] / "data" / "irc"
LOGS = tuple(sorted(DATA.glob("*.log")))


class Parsed:
    """One log's lines through the parser, with the notes it made."""

    def __init__(self, *lines: bytes | str, name: str = "2005-02-06.log") -> None:
        self.notes: list[tuple[int, str]] = []
        parser = LineParser(name, lambda line, reason: self.notes.append((line, reason)))
        raw = [line.encode() if isinstance(line, str) else line for line in lines]
        found = [parser.draft(number, line) for number, line in enumerate(raw, 1)]
        self.drafts = [check_draft(draft) for draft in found if draft is not None]

    @property
    def one(self) -> Draft:
        (draft,) = self.drafts
        return draft


def irc(draft: Draft) -> object:
    return (draft.data or {}).get("irc")


def test_speech_keeps_speaker_text_and_time() -> None:
    draft = Parsed("[12:18] <wren476>  quite stable though  :) ").one
    assert (draft.author, draft.body) == ("wren476", " quite stable though  :) ")
    assert (draft.kind, draft.data) == ("message", None)
    assert draft.said_at == "2005-02-06T12:18:00.000000Z"


def test_speech_without_text_is_kept() -> None:
    draft = Parsed("[09:43] <teal400>").one
    assert (draft.author, draft.body, draft.kind) == ("teal400", "", "message")
    assert draft.data == {"irc": "speech", "line": "[09:43] <teal400>"}


@pytest.mark.parametrize(
    ("line", "author", "body"),
    [
        ("[13:56]  * ocelot533 sips a coffee", "ocelot533", "sips a coffee"),
        ("[13:56] * ocelot533 sips a coffee", "ocelot533", "sips a coffee"),
        ("[07:09]  * quokka856", "quokka856", ""),
        ("=== wren476 is starting to think", "wren476", "is starting to think"),
        ("=== crane680 hides", "crane680", "hides"),
    ],
)
def test_actions_are_messages(line: str, author: str, body: str) -> None:
    draft = Parsed(line).one
    assert (draft.author, draft.body, draft.kind, irc(draft)) == (author, body, "message", "action")


@pytest.mark.parametrize(
    ("line", "author", "shape"),
    [
        ("ibis919 [someone@mail.example]  has joined #ubuntu", "ibis919", "join"),
        ("fossa062  [someone@mail.example]  has joined #ubuntu", "fossa062", "join"),
        ("serval519 O [someone@mail.example]  has joined #ubuntu", "serval519 O", "join"),
        ("ocelot587 [[H] someone@mail.example]  has joined #a", "ocelot587", "join"),
        ("zebu253 [n=ibis912 someone@mail.example]  has left #a [Leaving]", "zebu253", "leave"),
        ('civet608 [someone@mail.example]  has left #ubuntu [""Buy.]', "civet608", "leave"),
        ("newt137 [someone@mail.example]  has quit [Ping timeout]", "newt137", "quit"),
        ("newt137 has quit (Remote closed)", "newt137", "quit"),
        ("dingo809 is now known as quokka167", "dingo809", "rename"),
        ("quokka438 gibbon670 is now known as gibbon670", "quokka438 gibbon670", "rename"),
        ("lynx730 [+o Seveas]  by ChanServ", "ChanServ", "mode"),
        ("finch129 was kicked off #a by crane680 (crane680)", "crane680", "kick"),
        ("zebu571 changed the topic of #ubuntu to: Read this | and that", "zebu571", "topic"),
        ("Topic (#a): set by Madpilot at Mon Dec  4 07:27:08 2006", "Madpilot", "topic"),
    ],
)
def test_what_happens_in_the_channel_is_history(line: str, author: str, shape: str) -> None:
    draft = Parsed("[12:20] <a> b", f"=== {line}").drafts[1]
    assert (draft.author, draft.body, draft.kind, irc(draft)) == (author, line, "event", shape)
    assert draft.said_at == "2005-02-06T12:20:00.000000Z", "the time of the line before"


def test_a_bot_answering_in_another_channel_is_speech_and_kept_whole() -> None:
    line = "[01:09] (dingo353/#hoopoe398) otter137: have you seen it ?"
    draft = Parsed(line).one
    assert (draft.author, draft.body) == ("dingo353", "otter137: have you seen it ?")
    assert draft.data == {"irc": "elsewhere", "line": line}


def test_a_line_of_no_known_shape_is_stored_whole_and_reported() -> None:
    parsed = Parsed("[02:44] <zebu499> between my LAN and my Xubunt", "u box.")
    assert parsed.drafts[1].body == "u box."
    assert parsed.drafts[1].kind == "event"
    assert [line for line, _ in parsed.notes] == [2]


def test_a_time_that_is_none_is_a_line_of_no_known_shape() -> None:
    parsed = Parsed("[25:01] <a> b")
    assert parsed.one.body == "[25:01] <a> b"
    assert len(parsed.notes) == 1


def test_blank_lines_are_reported_and_not_stored() -> None:
    parsed = Parsed("", "   ", "[00:00] <a> b")
    assert len(parsed.drafts) == 1
    assert [line for line, _ in parsed.notes] == [1, 2]


def test_lines_before_the_first_time_begin_the_day() -> None:
    draft = Parsed("=== a [h]  has joined #b").one
    assert draft.said_at == "2005-02-06T00:00:00.000000Z"


def test_a_clock_that_runs_far_back_has_passed_midnight() -> None:
    drafts = Parsed("[23:59] <a> b", "[00:00] <a> b", "=== a waves", "[12:00] <a> b").drafts
    assert [draft.said_at for draft in drafts] == [
        "2005-02-06T23:59:00.000000Z",
        "2005-02-07T00:00:00.000000Z",
        "2005-02-07T00:00:00.000000Z",
        "2005-02-07T12:00:00.000000Z",
    ]


def test_a_clock_set_back_a_little_stays_within_the_day() -> None:
    drafts = Parsed("[12:30] <a> b", "[12:29] <a> b").drafts
    assert drafts[1].said_at == "2005-02-06T12:29:00.000000Z"


@pytest.mark.parametrize("bad", [b"\xff\xfe", b"a\x00b", b"\xed\xa0\x80", b"\xe2\x82"])
def test_bytes_that_are_no_text_are_stored_readably_and_exactly(bad: bytes) -> None:
    line = b"[12:18] <wren476> so " + bad + b" it is"
    parsed = Parsed(line)
    draft = parsed.one
    assert draft.author == "wren476"
    assert draft.body.startswith("so ")
    assert draft.body.endswith(" it is")
    assert draft.data is not None
    assert base64.b64decode(draft.data["bytes"]) == line
    ((number, reason),) = parsed.notes
    assert number == 1
    assert "byte" in reason


@pytest.mark.parametrize(
    ("name", "author"),
    [
        ("a\tb", "ab"),
        ("  a ", "a"),
        ("x" * 65, "x" * 64),
        ("", "irc"),
        ("*", "irc"),
        ("a\u202eb", "ab"),
    ],
)
def test_a_name_that_no_author_may_have_is_cleaned_and_kept(name: str, author: str) -> None:
    draft = Parsed(f"[12:18] <{name}> hello").one
    assert (draft.author, draft.body) == (author, "hello")
    assert draft.data is not None
    assert draft.data["name"] == name


def test_ids_are_of_file_line_and_content() -> None:
    same = "[12:18] <a> b"
    first, second = Parsed(same, same).drafts
    assert first.id != second.id
    assert Parsed(same).one.id == first.id
    assert Parsed("[12:18] <a> c").one.id != first.id
    assert Parsed(same, name="2005-02-07.log").one.id != first.id
    odd = Parsed(same, name=f"2005-02-07 {'ü' * 100}.log").one
    assert odd.id is not None
    assert odd.id.isascii()


@pytest.mark.parametrize(
    ("name", "day"),
    [("2004-11-15.log", date(2004, 11, 15)), ("2004-11-15_03.log", date(2004, 11, 15))],
)
def test_the_day_comes_from_the_file_name(name: str, day: date) -> None:
    assert day_of(name) == day


@pytest.mark.parametrize(
    "name", ["ubuntu.log", "2004-13-01.log", "04-11-15.log", "2004-11-150.log", "1969-12-31.log"]
)
def test_a_file_name_without_a_day_is_refused(name: str) -> None:
    with pytest.raises(InvalidInput, match="day"):
        day_of(name)


def line_of(draft: Draft) -> bytes:
    """Return the log line that a draft was made of."""
    data = draft.data or {}
    if "bytes" in data:
        return base64.b64decode(data["bytes"])
    if "line" in data:
        return str(data["line"]).encode()
    name, shape = data.get("name", draft.author), data.get("irc")
    assert draft.said_at is not None
    time = f"[{draft.said_at[11:16]}] "
    if data.get("untimed"):
        line = f"=== {name} {draft.body}" if shape == "action" else f"=== {draft.body}"
    elif shape == "action":
        line = f"{time} * {name} {draft.body}" if draft.body else f"{time} * {name}"
    elif shape == "notice":
        line = f"{time}-{name}- {draft.body}"
    elif shape == "unknown":
        line = draft.body
    else:
        line = f"{time}<{name}> {draft.body}"
    return line.encode()


@pytest.mark.parametrize("path", LOGS, ids=lambda path: path.name)
def test_every_line_of_a_log_can_be_told_from_its_record(path: Path) -> None:
    found = [line_of(check_draft(draft)) for draft in LogFiles((path,)).drafts()]
    assert found == path.read_bytes().splitlines()


@given(st.lists(st.binary(max_size=60).filter(lambda line: b"\n" not in line), max_size=8))
def test_any_bytes_make_drafts_that_may_be_said(lines: list[bytes]) -> None:
    parsed = Parsed(*lines)
    assert len(parsed.drafts) + sum("blank" in reason for _, reason in parsed.notes) == len(lines)


@given(st.text(max_size=80), st.text(max_size=20))
def test_any_speech_makes_a_draft_that_may_be_said(body: str, name: str) -> None:
    line = f"[12:18] <{name}> {body}".encode(errors="surrogatepass")
    assert len(Parsed(line.replace(b"\n", b"")).drafts) == 1


@pytest.mark.parametrize("end", [b"", b"\n", b"\r\n"])
@pytest.mark.parametrize("length", [LINE_BYTES_MAX - 20, LINE_BYTES_MAX, 3 * LINE_BYTES_MAX + 7])
def test_a_line_too_long_is_stored_in_pieces(tmp_path: Path, length: int, end: bytes) -> None:
    head = "[12:18] <a> "
    text = ("ä€" * length)[: length // 2]
    path = tmp_path / "2005-02-06.log"
    path.write_bytes(f"{head}{text}".encode() + end + b"[12:19] <b> next" + end)
    logs = LogFiles((path,))
    drafts = [check_draft(draft) for draft in logs.drafts()]
    if not end:
        assert "".join(draft.body for draft in drafts) == f"{text}[12:19] <b> next"
        return
    assert logs.lines == 2
    assert drafts[-1].body == "next"
    assert "".join(draft.body for draft in drafts[:-1]) == text
    assert len({draft.id for draft in drafts}) == len(drafts)
    assert logs.bad_count == (len(drafts) > 2)


def test_a_byte_order_mark_and_carriage_returns_are_marks_of_the_file(tmp_path: Path) -> None:
    path = tmp_path / "2005-02-06.log"
    path.write_bytes(b"\xef\xbb\xbf[12:18] <a> b\r\n[12:19] <a> c\r\n")
    logs = LogFiles((path,))
    assert [draft.body for draft in logs.drafts()] == ["b", "c"]
    assert not logs.bad_lines
