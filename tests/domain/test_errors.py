"""Errors: one root with a code, a message and fields; children that are built-in errors too."""

from __future__ import annotations

import pickle

import pytest

from agent_chatroom_ledger.domain.records import decode_record
from agent_chatroom_ledger.errors import (
    Busy,
    Conflict,
    Corrupt,
    Forbidden,
    InvalidInput,
    LedgerError,
    NotFound,
    NotYetCommitted,
)
from tests.domain.samples import creation, message

EXPECTED = [
    (InvalidInput, "invalid_input", 1, ValueError),
    (NotFound, "not_found", 3, FileNotFoundError),
    (Conflict, "conflict", 4, LedgerError),
    (Busy, "busy", 5, LedgerError),
    (Forbidden, "forbidden", 1, PermissionError),
    (Corrupt, "corrupt", 6, LedgerError),
    (NotYetCommitted, "not_yet_committed", 5, Busy),
]


@pytest.mark.parametrize(("kind", "code", "status", "promised"), EXPECTED)
def test_each_child_has_its_code_its_status_and_its_older_kind(
    kind: type[LedgerError], code: str, status: int, promised: type[Exception]
) -> None:
    error = kind("what happened", room="rooms/a", limit=3)
    assert isinstance(error, LedgerError)
    assert isinstance(error, promised)
    assert (error.code, error.exit_status) == (code, status)
    assert str(error) == error.message == "what happened"
    assert error.as_dict() == {
        "code": code,
        "message": "what happened",
        "fields": {"room": "rooms/a", "limit": 3},
    }


def test_half_characters_are_shown_as_escapes() -> None:
    """Bytes on a command line that are no text come as such, and no encoding takes them."""
    error = NotFound(
        "no \udcff", id="\udcff", candidates=["a", "é\ud800"], nested={"k": ("\udcff",)}
    )
    assert error.as_dict() == {
        "code": "not_found",
        "message": r"no \udcff",
        "fields": {"id": r"\udcff", "candidates": ["a", r"é\ud800"], "nested": {"k": [r"\udcff"]}},
    }


def test_one_error_may_have_a_code_of_its_own() -> None:
    error = Corrupt("newer", code="newer_format", format=2)
    assert error.code == "newer_format"
    assert error.fields == {"format": 2}
    assert Corrupt("other").code == "corrupt"


@pytest.mark.parametrize("kind", [entry[0] for entry in EXPECTED])
def test_errors_survive_pickling(kind: type[LedgerError]) -> None:
    """A committer in another process sends its errors back."""
    error = pickle.loads(pickle.dumps(kind("why", code="special", n=1)))  # noqa: S301 - our own
    assert type(error) is kind
    assert (str(error), error.code, error.fields) == ("why", "special", {"n": 1})


def test_what_is_durable_already_comes_with_the_error() -> None:
    assert NotYetCommitted("later").records == ()
    line = message(1, draft=creation()).line
    said = decode_record(line)
    error = NotYetCommitted("later", records=(said,))
    assert error.records == (said,)
    assert "records" not in error.fields
