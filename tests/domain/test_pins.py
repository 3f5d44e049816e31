"""Which pin is followed: the rule alone, with the machine given as data."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from agent_chatroom_ledger.domain.agentnames import derived_name
from agent_chatroom_ledger.domain.identities import Client, ProcessId
from agent_chatroom_ledger.domain.pins import (
    Pin,
    Surroundings,
    check_pin_key,
    choose,
    key_of,
)
from agent_chatroom_ledger.errors import InvalidInput

if TYPE_CHECKING:
    from agent_chatroom_ledger.domain.pins import Choice

ME = ProcessId(1, 1.0, "b")
GONE = ProcessId(2, 2.0, "b")
OTHER = ProcessId(3, 3.0, "b")
CLIENT = Client(process=ME, session="s", pane="tmux:%1", directory="/w/core")
AT = "2026-11-30T00:00:00.000000Z"


def pins(*names: tuple[str, str], claimed_by: ProcessId | None = None) -> dict[str, Pin]:
    return {key: Pin(key=key, name=name, set_at=AT, claimed_by=claimed_by) for key, name in names}


def chosen(
    found: dict[str, Pin],
    spoken: tuple[str, str] | None = None,
    client: Client = CLIENT,
    clients: int = 1,
) -> Choice:
    around = Surroundings(lambda process: process != GONE, lambda _: clients)
    return choose(spoken, found, client, around)


ALL = (("session:s", "by-session"), ("pane:tmux:%1", "by-pane"), ("cwd:/w/core", "by-cwd"))


def test_the_precedence() -> None:
    """Environment, session, pane, directory, derived."""
    spoken = chosen(pins(*ALL), ("env", "PI_AGENT_NAME"))
    assert (spoken.name, spoken.source, spoken.pin) == ("env", "PI_AGENT_NAME", None)
    assert [chosen(pins(*ALL[n:])).source for n in range(4)] == [
        "session",
        "pane",
        "cwd",
        "derived",
    ]
    assert [chosen(pins(*ALL[n:])).name for n in range(3)] == ["by-session", "by-pane", "by-cwd"]
    assert chosen({}).name == derived_name("/w/core")


@pytest.mark.parametrize("clients", [0, 2, 7])
def test_a_directorys_pin_is_followed_by_one_client_only(clients: int) -> None:
    found = chosen(pins(ALL[2]), clients=clients)
    assert found.source == "derived"
    assert f"{clients} live clients" in found.warnings[0]


def test_a_live_holder_keeps_a_directorys_pin_when_another_comes() -> None:
    assert chosen(pins(ALL[2], claimed_by=ME), clients=2).name == "by-cwd"
    other = Client(process=OTHER, directory="/w/core")
    assert chosen(pins(ALL[2], claimed_by=ME), client=other, clients=2).source == "derived"


@pytest.mark.parametrize("pin", ALL[1:])
def test_no_other_process_inherits_a_claimed_pane_or_directory(pin: tuple[str, str]) -> None:
    assert chosen(pins(pin, claimed_by=ME)).name == pin[1]
    for claimer, why in ((GONE, "has ended"), (OTHER, "is alive")):
        found = chosen(pins(pin, claimed_by=claimer))
        assert found.source == "derived"
        assert why in found.warnings[0]


def test_a_session_goes_on_after_a_restart_and_is_not_shared() -> None:
    assert chosen(pins(ALL[0], claimed_by=GONE)).name == "by-session"
    assert chosen(pins(ALL[0], claimed_by=OTHER)).source == "derived"


def test_a_new_session_inherits_nothing() -> None:
    cleared = Client(process=ME, session="t", directory="/w/core")
    assert chosen(pins(ALL[0], claimed_by=ME), client=cleared).source == "derived"


def test_a_stronger_pin_that_is_not_followed_lets_a_weaker_one_through() -> None:
    found = {**pins(ALL[1], claimed_by=GONE), **pins(ALL[2])}
    assert chosen(found).name == "by-cwd"
    assert len(chosen(found).warnings) == 1


def test_a_spoken_name_keeps_the_limit() -> None:
    with pytest.raises(InvalidInput, match="PI_ROOMS_NAME has 49"):
        chosen({}, ("x" * 49, "PI_ROOMS_NAME"))


@pytest.mark.parametrize(
    "key", ["", "cwd", "cwd:", "cwd: ", "room:x", "pane:a\nb", "session:\x1b", "cwd:/" + "x" * 5000]
)
def test_a_key_is_one_of_three_kinds(key: str) -> None:
    with pytest.raises(InvalidInput):
        check_pin_key(key)


def test_keys_of_a_client() -> None:
    assert [key_of(kind, CLIENT) for kind in ("session", "pane", "cwd")] == [k for k, _ in ALL]
    assert key_of("pane", Client(directory="/")) is None
