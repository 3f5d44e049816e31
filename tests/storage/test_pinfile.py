"""The file of pins: read whole, replaced whole, never taken for none when it is damaged."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from agent_chatroom_ledger.domain.identities import ProcessId
from agent_chatroom_ledger.domain.pins import Pin
from agent_chatroom_ledger.errors import Busy, Corrupt, Forbidden, InvalidInput
from agent_chatroom_ledger.storage import pinfile
from agent_chatroom_ledger.storage.locks import FileLock
from tests.racing import race

if TYPE_CHECKING:
    from agent_chatroom_ledger.storage.layout import Layout

AT = "2026-11-30T00:00:00.000000Z"


def pin(key: str, name: str = "lead") -> Pin:
    return Pin(key=key, name=name, set_at=AT, claimed_by=ProcessId(1, 2.5, "b"), claimed_at=AT)


def test_pins_come_back_as_they_went_in(layout: Layout) -> None:
    assert pinfile.load(layout) == {}
    pinfile.change(layout, lambda pins: {**pins, "cwd:/ä": pin("cwd:/ä")})
    pinfile.change(layout, lambda pins: {**pins, "pane:x": pin("pane:x", "b")})
    assert pinfile.load(layout) == {"cwd:/ä": pin("cwd:/ä"), "pane:x": pin("pane:x", "b")}
    pinfile.change(layout, lambda pins: {"pane:x": pins["pane:x"]})
    assert set(pinfile.load(layout)) == {"pane:x"}


def test_what_cannot_be_read_is_named_with_the_way_out(layout: Layout) -> None:
    layout.pins.mkdir(parents=True)
    for attempt in (lambda: pinfile.load(layout), lambda: pinfile.change(layout, lambda _: None)):
        with pytest.raises(Forbidden, match="ROOMS_NAME says who you are") as caught:
            attempt()
        assert str(layout.pins) in caught.value.message


def test_nothing_changed_is_nothing_written(layout: Layout) -> None:
    pinfile.change(layout, lambda pins: pins)
    assert not layout.pins.exists()
    pinfile.change(layout, lambda pins: {**pins, "pane:x": pin("pane:x")})
    before = layout.pins.stat().st_ino
    pinfile.change(layout, lambda _: None)
    pinfile.change(layout, lambda pins: pins)
    assert layout.pins.stat().st_ino == before


def test_what_a_newer_version_added_survives(layout: Layout) -> None:
    pinfile.change(layout, lambda pins: {**pins, "pane:x": pin("pane:x")})
    document = json.loads(layout.pins.read_text())
    document["later"] = 1
    document["pins"]["pane:x"]["colour"] = "red"
    layout.pins.write_text(json.dumps(document))
    pinfile.change(layout, lambda pins: {**pins, "pane:y": pin("pane:y")})
    after = json.loads(layout.pins.read_text())
    assert after["later"] == 1
    assert after["pins"]["pane:x"]["colour"] == "red"


@pytest.mark.parametrize(
    "content", ["", "{", "[]", '{"format": 1}', '{"format": 1, "schema": "x", "pins": {}}', "\xff"]
)
def test_a_damaged_file_is_an_error_that_names_it(layout: Layout, content: str) -> None:
    layout.pins.write_bytes(content.encode("latin-1"))
    for call in (lambda: pinfile.load(layout), lambda: pinfile.change(layout, lambda _: {})):
        with pytest.raises(Corrupt, match="move it away") as found:
            call()
        assert found.value.fields["path"] == str(layout.pins)
    assert layout.pins.read_bytes() == content.encode("latin-1")


def test_a_newer_format_is_left_alone(layout: Layout) -> None:
    layout.pins.write_text(json.dumps({"format": 2, "schema": pinfile.SCHEMA, "pins": {}}))
    with pytest.raises(InvalidInput, match="newer"):
        pinfile.load(layout)


def test_there_are_at_most_1000_pins(layout: Layout) -> None:
    full = {f"pane:{n}": pin(f"pane:{n}") for n in range(1000)}
    pinfile.change(layout, lambda _: full)
    with pytest.raises(InvalidInput, match="1000"):
        pinfile.change(layout, lambda pins: {**pins, "pane:x": pin("pane:x")})
    assert len(pinfile.load(layout)) == 1000


def test_a_lock_that_is_held_too_long_is_busy(
    layout: Layout, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pinfile, "CLAIM_WAIT_SECONDS_MAX", 0.05)
    layout.locks.mkdir(exist_ok=True)
    with FileLock(layout.locks / "pins.lock"), pytest.raises(Busy):
        pinfile.change(layout, lambda _: {})


def test_many_writers_lose_nothing(layout: Layout) -> None:
    def one(number: int) -> None:
        for turn in range(5):
            key = f"pane:{number}-{turn}"
            pinfile.change(layout, lambda pins, key=key: {**pins, key: pin(key)})

    race(6, one)
    assert len(pinfile.load(layout)) == 30
