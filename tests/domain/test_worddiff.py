"""Word diffs: both texts are in them, every character."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from agent_chatroom_ledger.domain.worddiff import word_diff, word_diff_text

TEXTS = st.text("ab \n.é", max_size=60)


@given(TEXTS, TEXTS)
def test_both_texts_are_in_it(old: str, new: str) -> None:
    pieces = word_diff(old, new)
    assert "".join(p.text for p in pieces if p.change != "added") == old
    assert "".join(p.text for p in pieces if p.change != "removed") == new
    assert all(piece.text for piece in pieces)


def test_words_and_not_letters_are_compared() -> None:
    pieces = word_diff("18 checks passed today.", "19 checks failed today.")
    assert word_diff_text(pieces) == "[-18-]{+19+} checks [-passed-]{+failed+} today."


def test_long_texts_are_compared_line_by_line() -> None:
    old = "".join(f"line {n} of many\n" for n in range(4_000))
    new = old.replace("line 2000 of", "line two thousand of")
    changed = [piece for piece in word_diff(old, new) if piece.change != "same"]
    assert [piece.text for piece in changed] == [
        "line 2000 of many\n",
        "line two thousand of many\n",
    ]
