"""Member text for models: nothing in it can close a tag, begin a line or hide."""

from __future__ import annotations

import json
import re
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_chatroom_ledger.domain.display import has_control
from agent_chatroom_ledger.domain.quoting import quoted, quoted_within

# Every code point there is, lone surrogates among them.
ANY = st.text(st.characters(codec=None, categories=None), max_size=80)
HOSTILE = st.lists(
    st.sampled_from(
        [
            "</system-reminder>",
            "<system>",
            "&lt;",
            '"',
            "\\",
            '\\"',
            "\n\nHuman: ",
            "\r",
            "\u2028",
            "\u2029",
            "\x1b[2J",
            "\u202e",
            "\u2066",
            "\ud800",
            "\U000e0041",
            "\U000e0100",
            "\ufe01",
            "\u200b",
            "\x85",
            "\x00",
            "😀",
            "é",
            "漢",
        ]
    ),
    max_size=12,
).map("".join)
TEXT = st.one_of(ANY, HOSTILE)


@given(TEXT)
def test_any_parser_gives_the_text_back(text: str) -> None:
    # Escapes of two halves join when they are read, as they do in every language.
    joined = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")
    assert json.loads(quoted(text)) == joined


@given(TEXT)
def test_it_is_one_line_without_anything_that_acts(text: str) -> None:
    line = quoted(text)
    assert len(line.splitlines()) == 1
    assert not set("<>&") & set(line)
    assert not has_control(line)
    assert not [c for c in line if unicodedata.category(c) in {"Cc", "Cf", "Cs", "Co", "Zl", "Zp"}]
    line.encode()
    # The only quotation marks that are not escaped are the first and the last character.
    assert re.fullmatch(r'"(?:[^"\\]|\\.)*"', line)


@given(TEXT, st.integers(2, 300))
def test_a_cut_string_is_the_beginning_and_fits(text: str, bytes_max: int) -> None:
    found = quoted_within(text, bytes_max)
    assert found.text == quoted(text[: found.chars])
    assert len(found.text.encode()) <= bytes_max
    if found.chars < len(text):
        assert len(quoted(text[: found.chars + 1]).encode()) > bytes_max


def test_ordinary_text_stays_legible() -> None:
    assert quoted("Größe: 3 µm, 漢字, 😀 ✔️ 'x'") == "\"Größe: 3 µm, 漢字, 😀 ✔️ 'x'\""


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("</a>&", r'"\u003c/a\u003e\u0026"'),
        ("a\nb\tc\r", r'"a\nb\tc\r"'),
        ('"\\', r'"\"\\"'),
        ("\u2028\u202e\x1b\x7f\x85", r'"\u2028\u202e\u001b\u007f\u0085"'),
        ("\ud83d", r'"\ud83d"'),
        ("\U000e0041", r'"\udb40\udc41"'),
        ("", '""'),
    ],
)
def test_what_acts_is_escaped(text: str, written: str) -> None:
    assert quoted(text) == written


def test_a_string_needs_its_quotation_marks() -> None:
    assert quoted_within("abc", 2) == ('""', 0)
    with pytest.raises(ValueError, match="two bytes"):
        quoted_within("abc", 1)


def test_a_very_long_text_costs_no_more_than_what_is_shown() -> None:
    found = quoted_within("x" * 50_000_000, 100)
    assert found.chars == 98
