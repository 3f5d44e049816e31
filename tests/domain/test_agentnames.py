"""Names of agents: derived ones always fit, and so does every suffix."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_chatroom_ledger.domain.agentnames import check_agent_name, derived_name, suffixed
from agent_chatroom_ledger.errors import InvalidInput

PIDS = st.integers(1, 2**32 - 1)


def test_a_derived_name_is_the_directory_and_four_hex_digits() -> None:
    assert re.fullmatch("m2-core-[0-9a-f]{4}", derived_name("/home/me/Code/m2-core"))
    assert derived_name("/home/me/Code/m2-core/") != derived_name("/home/you/m2-core")


def test_a_restart_keeps_the_name_and_a_namesake_has_another() -> None:
    assert derived_name("/a/core") == derived_name("/a/core")
    assert derived_name("/a/core") != derived_name("/b/core")


@pytest.mark.parametrize(
    ("directory", "word"),
    [
        ("/", "agent"),
        ("", "agent"),
        ("/a/..", "agent"),
        ("/a/.hidden", "hidden"),
        ("/a/ two words ", "two-words"),
        ("/a/\x1b[31mred\x07", "31mred"),
        ("/a/Änderung", "Änderung"),
        ("/a/Ä", "Ä"),
        ("/a/日本語", "日本語"),
        ("/a/<b>,*", "b"),
        ("C:\\Users\\me\\proj", "proj"),
        ("/a/x\u202ey", "x-y"),
        ("/a/\udcff\ud800", "agent"),
        ("/a/" + "l" * 300, "l" * 43),
        ("/a/" + "-" * 300, "agent"),
    ],
)
def test_a_hostile_directory_gives_a_name_that_may_be(directory: str, word: str) -> None:
    name = derived_name(directory)
    assert name.rpartition("-")[0] == word
    assert check_agent_name(name) == name


@given(st.text(), PIDS, st.integers(1, 10_000))
def test_whatever_a_directory_is_called_its_name_fits(
    directory: str, pid: int, attempt: int
) -> None:
    name = derived_name(directory)
    assert check_agent_name(name) == name
    assert re.fullmatch(r"[\w.\u0300-\U0010ffff-]+", name)
    second = suffixed(name, pid, attempt)
    assert check_agent_name(second) == second


@given(st.text(min_size=1, max_size=48), PIDS, st.integers(1, 10_000))
def test_a_suffix_is_never_cut(name: str, pid: int, attempt: int) -> None:
    second = suffixed(name, pid, attempt)
    assert len(second) <= 48
    assert second.endswith(f"-{pid}" if attempt == 1 else f"-{pid}-{attempt}")


def test_a_name_has_at_most_48_characters() -> None:
    assert check_agent_name("x" * 48) == "x" * 48
    with pytest.raises(InvalidInput, match="at most 48") as refused:
        check_agent_name("x" * 49, "ROOMS_NAME")
    assert refused.value.fields["limit"] == 48
    assert refused.value.fields["field"] == "ROOMS_NAME"


@pytest.mark.parametrize("name", ["", " ", "a\nb", "*", " a", "\x1b[31m"])
def test_a_name_is_an_authors_name(name: str) -> None:
    with pytest.raises(InvalidInput):
        check_agent_name(name)
