"""Display: no control character reaches a terminal raw, and one line stays one line."""

from __future__ import annotations

from hypothesis import example, given
from hypothesis import strategies as st

from agent_chatroom_ledger.domain.display import has_control, one_line, shown, terminal_safe
from tests.domain.samples import HOSTILE, dangerous, hostile_texts


@given(hostile_texts, st.booleans())
@example("\x1b[31m\u202e", False)  # noqa: FBT003 - Hypothesis passes examples by place
def test_nothing_dangerous_is_left(text: str, lines: bool) -> None:  # noqa: FBT001 - a drawn value
    assert not dangerous(terminal_safe(text, lines=lines), "\n\t" if lines else "")


def test_controls_are_shown_as_escapes() -> None:
    text = "a\x1b[31m\x00\r\n\t\x9b\u202e\u2028\ud800é😀"
    assert terminal_safe(text, lines=False) == (
        "a\\x1b[31m\\x00\\x0d\\x0a\\x09\\x9b\\u202e\\u2028\\ud800é😀"
    )
    assert terminal_safe("a\tb\nc\rd", lines=True) == "a\tb\nc\\x0dd"


def test_what_is_harmless_stays_as_it_is() -> None:
    for text in ("plain", "שלום", "👨\u200d👩\u200d👧", "e\u0301", "a\u00a0b"):
        assert terminal_safe(text, lines=False) == text


@given(hostile_texts, st.integers(2, 80))
def test_one_line_is_one_short_line(text: str, chars_max: int) -> None:
    line = one_line(text, chars_max)
    assert len(line) <= chars_max
    assert len(line.splitlines()) <= 1
    assert not dangerous(line)
    assert line == line.strip()


def test_one_line_shows_that_something_was_cut() -> None:
    assert one_line("a  b\n\nc", 10) == "a b c"
    assert one_line("abcdefgh", 5) == "abcd…"
    assert one_line("abcde", 5) == "abcde"
    assert one_line("ab" + " " * 10_000 + "c", 10) == "ab…"
    assert one_line("ab" + " " * 10_000, 10) == "ab"
    assert one_line("a\x1b b", 10) == "a b"


def test_has_control() -> None:
    assert [has_control(text) for text in ("plain", "a b", "😀", "é")] == [False] * 4
    assert all(has_control(f"a{c}b") for c in "\n\r\t\0\x1b\x7f\x85\u2028\u2029\u202e\ufeff\ud800")


def test_what_an_error_shows_can_always_be_encoded() -> None:
    for text in HOSTILE:
        shown(text).encode()
        assert len(shown(text)) <= 64 * 10
