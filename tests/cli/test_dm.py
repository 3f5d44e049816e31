"""`rooms dm` and `rooms reply-all`: to whom, from where, and what is shown."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from agent_chatroom_ledger import Ledger
from agent_chatroom_ledger.presence import waiter
from agent_chatroom_ledger.sending import NOBODY_LIVE

if TYPE_CHECKING:
    from pathlib import Path

    from tests.cli.conftest import Ask, Invoke

VERBATIM = "\r\none\r two \u2028 three\t\n\n"


def test_a_message_to_some_names_shows_what_becomes_of_it(invoke: Invoke, ask: Ask) -> None:
    result = invoke("dm", "Ben,Cy", "hi", "--as", "Ana")
    assert result.stdout == (
        f"direct/ana-ben-cy #1\n  Ben: queued ({NOBODY_LIVE})\n  Cy: queued ({NOBODY_LIVE})\n"
    )
    document = ask("dm", "Cy, Ben,Cy,Ana,", "again", "--as", "Ana")
    assert document["message"]["n"] == 2
    assert document["message"]["to"] == ["Ben", "Cy"]
    assert document["recipients"][0] == {
        "name": "Ben",
        "reach": "queued",
        "live": False,
        "note": NOBODY_LIVE,
    }
    assert document["notes"] == []


def test_who_waits_is_woken(root: Path, invoke: Invoke) -> None:
    with Ledger.open(root) as ledger, waiter(ledger, "Ben"):
        assert invoke("dm", "Ben", "hi", "--as", "Ana").stdout.endswith("  Ben: wakes\n")


def test_the_text_comes_from_an_argument_a_file_or_standard_input(ask: Ask, tmp_path: Path) -> None:
    file = tmp_path / "text"
    file.write_bytes(VERBATIM.encode())
    for words, given in (
        (["dm", "Ben", "--file", str(file)], ""),
        (["dm", "Ben", "--file", "-"], VERBATIM),
        (["dm", "Ben"], VERBATIM),
        (["dm", "Ben", VERBATIM], ""),
        (["reply-all", "direct/ana-ben#1", "--file", str(file)], ""),
        (["reply-all", "direct/ana-ben#1"], VERBATIM),
    ):
        assert ask(*words, "--as", "Ana", stdin=given)["message"]["body"] == VERBATIM


@pytest.mark.parametrize(
    ("words", "status", "said"),
    [
        (("dm", "Ana", "x", "--as", "Ana"), 1, "somebody else"),
        (("dm", ",,", "x", "--as", "Ana"), 1, "at least one"),
        (("dm", "*", "x", "--as", "Ana"), 1, "everybody"),
        (("dm", "Ben", "x", "--as", "Ana", "--file", "y"), 2, "exclude each other"),
        (("reply-all", "no-such-id", "x", "--as", "Ana"), 3, "ROOM#N"),
        (("dm",), 2, "NAME"),
    ],
    ids=str,
)
def test_what_cannot_be_sent_says_why(
    invoke: Invoke, words: tuple[str, ...], status: int, said: str
) -> None:
    result = invoke(*words)
    assert result.exit_code == status
    assert said in result.stderr


def test_a_name_with_commas_is_one_name_when_asked_for(ask: Ask) -> None:
    document = ask("dm", "Doe, Jane", "hi", "--exact", "--as", "Ana")
    assert document["message"]["to"] == ["Doe, Jane"]


def test_an_id_of_ones_own_and_what_ties_messages_together(ask: Ask) -> None:
    words = ("dm", "Ben", "hi", "--as", "Ana", "--id", "k", "--correlation", "c", "--cause", "z")
    first = ask(*words)["message"]
    assert (first["id"], first["correlation"], first["cause"]) == ("k", "c", "z")
    assert ask(*words)["message"] == first
    assert ask("dm", "Ben", "other", "--as", "Ana", "--id", "k")["error"]["code"] == "id_taken"
    answer = ("reply-all", "k", "yes", "--as", "Ben", "--id", "k2")
    assert ask(*answer)["message"] == ask(*answer)["message"]


def test_an_answer_goes_to_all_whom_it_concerns(invoke: Invoke, ask: Ask) -> None:
    sent = ask("dm", "Ben,Cy", "who?", "--as", "Ana")
    document = ask("reply-all", sent["message"]["id"], "I", "--as", "Ben")
    assert document["room"] == sent["room"]
    assert document["message"]["to"] == ["Ana", "Cy"]
    assert document["message"]["cause"] == sent["message"]["id"]
    shown = invoke("reply-all", "direct/ana-ben-cy#2", "good", "--as", "Ana").stdout
    assert shown.startswith("direct/ana-ben-cy #3\n  Ben: queued")


def test_an_ambiguous_id_names_the_places(root: Path, ask: Ask, invoke: Invoke) -> None:
    with Ledger.open(root) as ledger:
        for title in ("One", "Two"):
            ledger.create_room(title).post("Ana", "hi", id="k")
    error = ask("reply-all", "k", "yes", "--as", "Ben")["error"]
    assert (error["code"], error["fields"]["candidates"]) == ("ambiguous", ["one#1", "two#1"])
    assert invoke("reply-all", "k", "yes", "--as", "Ben").exit_code == 4
    assert ask("reply-all", "two#1", "yes", "--as", "Ben")["room"]["path"] == "rooms/two"


def test_names_cannot_drive_a_terminal(root: Path, invoke: Invoke) -> None:
    with Ledger.open(root) as ledger:
        room = ledger.agent("e\u0301vil").dm(["B<b>en"], "\x1b[2J\u202ehi").room
    for words in (("read", room.path), ("list",), ("show", room.path)):
        shown = invoke(*words).stdout
        assert "vil" in shown
        assert not set(shown) & {"\x1b", "\u202e"}


@pytest.mark.parametrize(
    "words",
    [
        ("reply-all", "\udcff", "x"),
        ("reply-all", "\udcff#1", "x"),
        ("join", "\udcff"),
        ("leave", "é\udcff"),
        ("post", "\udcff", "x"),
        ("dm", "B\udcff", "x"),
    ],
    ids=ascii,
)
def test_bytes_that_are_no_text_are_an_ordinary_error(ask: Ask, words: tuple[str, ...]) -> None:
    assert ask(*words, "--as", "Ana")["error"]["code"] in {"not_found", "invalid_input"}


def test_a_limit_of_sends_is_an_error_that_names_the_way_out(
    root: Path, ask: Ask, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Ledger.open(root) as ledger:
        ledger.layout.config.write_text("max_sends_per_session = 1\n")
        ledger.create_room("Review")
    # A person's shell has no session: each command is one of its own.
    for number in range(3):
        assert ask("post", "review", str(number), "--as", "Ana")["message"]["n"] == number + 1
    monkeypatch.setattr(
        "agent_chatroom_ledger.cli.speaking._session_here", lambda _ledger: "session-1"
    )
    ask("post", "review", "one", "--as", "Ana")
    for words in (("post", "review", "two"), ("dm", "Ben", "two"), ("reply-all", "review#1", "2")):
        error = ask(*words, "--as", "Ana")["error"]
        assert error["code"] == "send_limit"
        assert "max_sends_per_session" in error["message"]
