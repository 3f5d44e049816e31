"""Who speaks: names that are found anew, and names that are given for good."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
import pytest

from agent_chatroom_ledger.errors import Forbidden, NotFound
from agent_chatroom_ledger.mcp.speakers import (
    ClientInfo,
    House,
    NamedSpeaker,
    OwnSpeaker,
    known_as,
)
from agent_chatroom_ledger.presence import heard_hook

if TYPE_CHECKING:
    from pathlib import Path

    from agent_chatroom_ledger import Ledger

CLIENT = ClientInfo("pytest", "1")


def names(ledger: Ledger) -> list[str]:
    return [one.name for one in ledger.agent("watcher").who()]


def test_a_given_name_is_here_from_its_first_call_until_it_is_let_go(ledger: Ledger) -> None:
    speaker = NamedSpeaker(House(lambda: ledger), "ana")
    assert names(ledger) == []
    assert speaker.agent(CLIENT).name == "ana"
    (here,) = ledger.agent("watcher").who()
    assert (here.name, here.client, here.doors) == ("ana", "pytest", ("mcp",))
    speaker.close()
    assert names(ledger) == []


def test_a_given_name_is_spoken_whoever_lives_under_it(ledger: Ledger, tmp_path: Path) -> None:
    house = House(lambda: ledger)
    first = OwnSpeaker(house, {"ROOMS_NAME": "ana"}, str(tmp_path), of_client=False)
    second = NamedSpeaker(house, "ana")
    assert first.agent(None).name == second.agent(CLIENT).name == "ana"
    assert names(ledger) == ["ana"]
    second.close()
    assert names(ledger) == ["ana"]
    first.close()
    assert names(ledger) == []


def test_many_names_live_in_one_server(ledger: Ledger) -> None:
    house = House(lambda: ledger)
    speakers = [NamedSpeaker(house, name) for name in ("ana", "ben", "carl")]
    for speaker in speakers:
        speaker.agent(CLIENT)
    assert names(ledger) == ["ana", "ben", "carl"]
    speakers[1].close()
    assert names(ledger) == ["ana", "carl"]


def test_the_name_of_a_client_is_found_anew_at_every_call(ledger: Ledger, tmp_path: Path) -> None:
    environment = {"ROOMS_NAME": "ana"}
    speaker = OwnSpeaker(House(lambda: ledger), environment, str(tmp_path))
    first = speaker.agent(CLIENT)
    assert speaker.agent(CLIENT) is first
    environment["ROOMS_NAME"] = "anna"
    assert speaker.agent(CLIENT).name == "anna"
    assert names(ledger) == ["anna"]
    speaker.close()
    assert names(ledger) == []


def test_the_session_is_the_one_that_a_hook_told_last(ledger: Ledger, tmp_path: Path) -> None:
    ledger.set_setting("max_sends_per_session", 1)
    room = ledger.create_room("Review")
    environment = {"ROOMS_NAME": "ana"}
    speaker = OwnSpeaker(House(lambda: ledger), environment, str(tmp_path))
    speaker.agent(CLIENT)
    client = speaker.client()
    assert client is not None
    for session in ("first", "after /clear"):
        heard_hook(ledger, environment, msgspec.structs.replace(client, session=session))
        speaker.agent(CLIENT).post(room, "one")
        with pytest.raises(Forbidden):
            ledger.agent("ana", session=session, door="cli").post(room, "by a command")
        with pytest.raises(Forbidden):
            speaker.agent(CLIENT).post(room, "two")
    speaker.close()


def test_what_an_option_says_is_stronger_than_the_environment(
    ledger: Ledger, tmp_path: Path
) -> None:
    speaker = OwnSpeaker(
        House(lambda: ledger), {"ROOMS_NAME": "ana"}, str(tmp_path), explicit="ben"
    )
    assert speaker.agent(None).name == "ben"
    speaker.close()


def test_a_house_without_a_ledger_is_asked_again(ledger: Ledger) -> None:
    there = False

    def opener() -> Ledger:
        if not there:
            raise NotFound("None yet.")
        return ledger

    house = House(opener)
    with pytest.raises(NotFound):
        house.ledger()
    there = True
    assert house.ledger() is ledger


@pytest.mark.parametrize(
    ("said", "known"),
    [
        ("claude-code", "claude-code"),
        (" x\n\x1b[2J ", "x??[2J"),
        ("", "unnamed"),
        ("y" * 99, "y" * 64),
    ],
)
def test_what_a_client_calls_itself_is_short_and_visible(said: str, known: str) -> None:
    assert known_as(said) == known
