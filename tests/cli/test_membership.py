"""`rooms join`, `rooms leave`, and how coming and going is shown."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from agent_chatroom_ledger import Ledger

if TYPE_CHECKING:
    from pathlib import Path

    from tests.cli.conftest import Ask, Invoke


@pytest.fixture(autouse=True)
def room(root: Path) -> None:
    with Ledger.open(root) as ledger:
        ledger.create_room("Review", members=["Ana"])


def test_joining_and_leaving_show_what_changed(invoke: Invoke, ask: Ask) -> None:
    assert invoke("join", "review", "--as", "Ben").stdout == "Ben joined review\n"
    assert invoke("join", "review", "--as", "Ben").stdout == "Ben is a member of review\n"
    assert ask("members", "review")["members"] == ["Ana", "Ben"]
    assert invoke("leave", "review", "--as", "Ben").stdout == "Ben left review\n"
    assert invoke("leave", "review", "--as", "Ben").stdout == "Ben is no member of review\n"
    assert ask("members", "review")["members"] == ["Ana"]


def test_the_documents_hold_the_event(ask: Ask) -> None:
    joined = ask("join", "review", "--as", "Ben")
    assert (joined["joined"], joined["member"]) == (True, "Ben")
    assert joined["event"]["kind"] == "event"
    assert joined["event"]["data"] == {"event": "joined", "member": "Ben"}
    again = ask("join", "review", "--as", "Ben")
    assert (again["joined"], again["event"]) == (False, None)
    left = ask("leave", "review", "--as", "Ben")
    assert (left["left"], left["discarded"], left["event"]["n"]) == (True, 0, 2)


def test_what_waits_is_discarded_and_counted_or_kept(invoke: Invoke, ask: Ask) -> None:
    for number in range(3):
        ask("post", "review", str(number), "--as", "Ben")
    assert ask("leave", "review", "--as", "Ana", "--keep-queued")["discarded"] == 0
    assert invoke("leave", "review", "--as", "Ana").stdout == (
        "Ana is no member of review; 3 messages that waited in the inbox will not be handed over\n"
    )
    ask("join", "review", "--as", "Ana")
    ask("post", "review", "4", "--as", "Ben")
    assert invoke("leave", "review", "--as", "Ana").stdout == (
        "Ana left review; 1 message that waited in the inbox will not be handed over\n"
    )


def test_coming_and_going_are_sentences_of_the_transcript(invoke: Invoke) -> None:
    invoke("join", "review", "--as", "Ben")
    invoke("post", "review", "hi", "--as", "Ben")
    invoke("leave", "review", "--as", "Ben")
    invoke("post", "review", "Ana left the room", "--as", "Eve", "--kind", "event")
    for words in (("read", "review"), ("tail", "review")):
        shown = re.sub(r"\d\d:\d\d:\d\dZ", "TIME", invoke(*words).stdout).splitlines()[1:]
        assert shown == [
            "#1 TIME · Ben joined the room",
            "#2 TIME Ben: hi",
            "#3 TIME · Ben left the room",
            "#4 TIME Eve [event]: Ana left the room",
        ]


def test_a_post_of_a_stranger_says_that_answers_do_not_come(invoke: Invoke, ask: Ask) -> None:
    result = invoke("post", "review", "hello", "--as", "Eve")
    assert result.stdout == "review #1\n"
    assert "Eve is no member of review: answers there will not reach its inbox" in result.stderr
    document = ask("post", "review", "hello", "--as", "Eve")
    assert "rooms join review" in document["notes"][0]
    assert [one["name"] for one in document["recipients"]] == ["Ana"]
    assert invoke("post", "review", "hello", "--as", "Ana").stderr == ""


def test_a_room_that_nobody_is_a_member_of_needs_no_such_word(invoke: Invoke) -> None:
    invoke("leave", "review", "--as", "Ana")
    assert invoke("post", "review", "hello", "--as", "Eve").stderr == ""


@pytest.mark.parametrize("words", [("join", "nowhere"), ("leave", "nowhere")], ids=" ".join)
def test_a_room_that_is_not_there(invoke: Invoke, words: tuple[str, ...]) -> None:
    assert invoke(*words, "--as", "Ben").exit_code == 3


def test_a_direct_room_is_neither_joined_nor_left(invoke: Invoke, ask: Ask) -> None:
    ask("dm", "Ben", "hi", "--as", "Ana")
    for words in (("join", "direct/ana-ben", "--as", "Cy"), ("leave", "direct/ana-ben")):
        name = () if "--as" in words else ("--as", "Ben")
        assert ask(*words, *name)["error"]["code"] == "direct_room"
        assert invoke(*words, *name).exit_code == 4


def test_direct_rooms_are_shown_like_rooms(invoke: Invoke, ask: Ask) -> None:
    ask("dm", "Ben", "hi", "--as", "Ana")
    listed = {room["path"]: room for room in ask("list")["rooms"]}
    assert listed["rooms/direct/ana-ben"]["title"] == "Ana, Ben"
    assert listed["rooms/direct/ana-ben"]["folder"] == "direct"
    assert [room["path"] for room in ask("list", "--folder", "direct")["rooms"]] == [
        "rooms/direct/ana-ben"
    ]
    assert ask("show", "direct/ana-ben")["members"] == ["Ana", "Ben"]
    assert ask("unread", "--as", "Ben")["total"] == 1
    assert ask("unread", "--as", "Cy")["total"] == 0
    assert ask("unread", "direct/ana-ben", "--as", "Cy")["total"] == 1
    assert "Ana -> Ben: hi" in invoke("read", "Ana, Ben").stdout
