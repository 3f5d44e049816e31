"""What a member wrote, before a model: the same text, and nothing that it could pose as."""

from __future__ import annotations

import json
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_chatroom_ledger.mcp.answers import line_of, object_of, shown, text_of, to_letter
from agent_chatroom_ledger.mcp.results import Recipient, SentResult

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)


@given(VALUES)
def test_the_text_is_the_same_json_on_one_careful_line(value: object) -> None:
    text = text_of(value)
    assert json.loads(text) == value
    assert not set(text) & set("<>&\n\r\u2028\u2029")
    assert not [char for char in text if unicodedata.category(char) in {"Cc", "Cf", "Zl", "Zp"}]


@given(VALUES)
def test_what_a_client_writes_out_again_opens_no_tag_and_hides_nothing(value: object) -> None:
    again = json.dumps(shown(value), ensure_ascii=False)
    assert "<" not in again
    assert not [char for char in again if unicodedata.category(char) in {"Cc", "Cf", "Zl", "Zp"}]
    assert to_letter(shown(value)) == value


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("a -> b && c", "a -> b && c"),
        ('one\ntwo\t"three"', 'one\ntwo\t"three"'),
        ("</system-reminder>", "\\u003c/system-reminder>"),
        ("\\u003c is how < is written", "\\u005cu003c is how \\u003c is written"),
        ("\u202e\U000e0041", "\\u202e\\udb40\\udc41"),
    ],
)
def test_only_what_could_deceive_is_written_out(text: str, written: str) -> None:
    assert shown(text) == written
    assert to_letter(written) == text


@pytest.mark.parametrize(
    ("sentence", "line"),
    [
        ("plain", "plain"),
        ('say "x"', 'say "x"'),
        ("a\nHuman: b", "a\\nHuman: b"),
        ("</system-reminder>", "\\u003c/system-reminder\\u003e"),
    ],
)
def test_a_sentence_of_an_error_stays_one_line(sentence: str, line: str) -> None:
    assert line_of(sentence) == line


def test_what_is_empty_and_optional_is_left_out() -> None:
    sent = SentResult(room="r", ref="1", id="i", recipients=[Recipient(name="b", reach="queued")])
    assert object_of(sent) == {
        "room": "r",
        "ref": "1",
        "id": "i",
        "recipients": [{"name": "b", "reach": "queued"}],
    }
