"""Hostile texts, strategies and small builders that the tests of the domain share."""

from __future__ import annotations

import unicodedata
from pathlib import Path
from typing import TYPE_CHECKING

from hypothesis import strategies as st

from agent_chatroom_ledger.domain.clock import from_micros
from agent_chatroom_ledger.domain.records import (
    MESSAGES,
    OPERATIONS,
    Draft,
    Message,
    encode_record,
    message_of,
    record_of,
)
from agent_chatroom_ledger.domain.rooms import create_draft

if TYPE_CHECKING:
    from collections.abc import Iterable

GOLDEN = Path(__file__).parent / "golden"
# 2026-11-29T21:27:42Z
BEGIN = 1_795_987_662_000_000
PRIMARY = "mbp-3f2a"
OTHER = "ci-9a1c"
LOG = f"rooms/design-review/messages/{PRIMARY}"
OPERATIONS_LOG = f"rooms/design-review/operations/{PRIMARY}"

# Every text here tries to be something that it is not: a header, a trailer, a path, a line, a code.
HOSTILE = (
    "",
    " ",
    "\n",
    "a\nb",
    "a\r\nb",
    "a\rb",
    "a\x00b",
    "a\tb",
    "a\x0bb\x0cc\x1cd\x1de\x1ef",
    "a\x85b\u2028c\u2029d",
    "\x1b[2J\x1b]0;owned\x07",
    "\x9b31m",
    "x <evil@example.com> 1 +0000\ncommitter y <z@w> 2 +0000",
    "<>",
    "><",
    "a> 0 +0000\n\nforged",
    "..",
    "../../etc/passwd",
    "/etc/passwd",
    "a/b\\c",
    ".git",
    ".GIT/config",
    ".g\u200cit",
    "CON",
    "nul.txt",
    "com\u00b9",
    "trailing.",
    "-rf",
    "~3f",
    "room.json",
    "messages",
    "\U0001f600\U0001f468\u200d\U0001f469\u200d\U0001f467",
    "\u05e9\u05dc\u05d5\u05dd \u05e2\u05d5\u05dc\u05dd",
    "\u202eevil\u202c",
    "\u2066isolate\u2069",
    "e\u0301",
    "\ufb01\u0130\u0131\u00df\u1e9e",
    "\ufeffbom",
    "\ud800",
    "a\udfffb",
    "### #1 Analyst · 00:00:00Z · message\n\n> forged",
    "\n### #1 Analyst",
    "\n\nRoom: rooms/forged\nMessage: 9@forged",
    "Reason: forged\nKind: forged",
    "# title\n\n- format: 1",
    "--> <script>alert(1)</script> ```\n~~~",
    "*",
    "x" * 10_000,
    "\u00e9" * 10_000,
)

hostile_texts = st.one_of(
    st.sampled_from(HOSTILE),
    st.text(max_size=80),
    st.text(alphabet=st.characters(categories=("Cc", "Cf", "Zl", "Zp", "Zs", "Cs")), max_size=12),
    st.lists(st.sampled_from(HOSTILE), min_size=2, max_size=3).map("".join),
)
# What a body may hold: anything but NUL and lone surrogates.
bodies = st.text(alphabet=st.characters(codec="utf-8", exclude_characters="\0"))
origins = st.sampled_from((PRIMARY, OTHER))
numbers = st.integers(1, 99_999_999)


_BIDI = set("\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")


def dangerous(text: str, allowed: str = "") -> list[str]:
    """Return the characters of a text that a terminal must never see raw."""
    return [
        c
        for c in text
        if c not in allowed and (unicodedata.category(c) in {"Cc", "Cs", "Zl", "Zp"} or c in _BIDI)
    ]


def message(
    n: int,
    body: str = "18 checks passed",
    *,
    origin: str = PRIMARY,
    micros: int | None = None,
    log: str = MESSAGES,
    draft: Draft | None = None,
    record_id: str = "",
) -> Message:
    """Return message ``n``, by default ``n`` seconds after the tests' beginning."""
    said = draft or Draft(author="Analyst", body=body)
    at = from_micros(BEGIN + n * 1_000_000 if micros is None else micros)
    record = record_of(said, n, at, record_id or f"{log}-{origin}-{n}")
    return message_of(encode_record(record), origin, log, origin == PRIMARY)


def operation(n: int, draft: Draft, *, origin: str = PRIMARY, micros: int | None = None) -> Message:
    """Return operation ``n`` of a room."""
    return message(n, origin=origin, micros=micros, log=OPERATIONS, draft=draft)


def creation(title: str = "Design review", members: Iterable[str] = ()) -> Draft:
    """Return the operation that creates the tests' room."""
    return create_draft(
        room_id="0193a1b2-0000-7000-8000-000000000001",
        title=title,
        path="rooms/design-review",
        members=members,
        by="Analyst",
    )
