"""Swapping a ref's file in one step, and without the system's help."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

import pytest

from agent_chatroom_ledger.storage import exchange
from tests.storage.samples import empty_place

if TYPE_CHECKING:
    from pathlib import Path

    from agent_chatroom_ledger.storage.layout import Layout


@pytest.fixture
def place(tmp_path: Path) -> Layout:
    return empty_place(tmp_path / "place")


def value(number: int) -> bytes:
    return f"{number:040x}\n".encode()


@pytest.fixture(params=["swapped", "replaced"])
def system(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Run a test with the system's swap and without it."""
    kind: str = request.param
    if kind == "replaced":
        monkeypatch.setattr(exchange, "_renameat2", None)
    elif exchange._renameat2 is None:
        pytest.skip("this system cannot swap two files")
    return kind


@pytest.mark.usefixtures("system")
def test_the_file_holds_what_was_put_last(place: Layout) -> None:
    path = place.git / "refs/heads/main"
    for number in range(200):
        status = exchange.put(place, str(path), value(number))
        assert path.read_bytes() == value(number)
        now = path.stat()
        assert (status.st_ino, status.st_size) == (now.st_ino, now.st_size)
    assert len(list(place.tmp.iterdir())) <= 64
    exchange.forget_slots(place)
    exchange.forget_slots(place)
    assert not list(place.tmp.iterdir())


@pytest.mark.usefixtures("system")
def test_a_reader_of_the_file_before_keeps_what_it_opened(place: Layout) -> None:
    path = place.git / "refs/heads/main"
    exchange.put(place, str(path), value(1))
    with path.open("rb") as opened:
        for number in range(2, 60):
            exchange.put(place, str(path), value(number))
        assert opened.read() == value(1)


@pytest.mark.usefixtures("system")
def test_a_copy_made_of_hard_links_keeps_its_bytes(place: Layout) -> None:
    path, copy = place.git / "refs/heads/main", place.root / "copy"
    exchange.put(place, str(path), value(1))
    os.link(path, copy)
    for number in range(2, 140):
        exchange.put(place, str(path), value(number))
    assert copy.read_bytes() == value(1)


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="there is no swap elsewhere")
def test_another_writer_of_the_process_may_close_at_any_moment(
    place: Layout, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It deletes the slots that both share, also the one that a move has just filled."""
    path = place.git / "refs/heads/main"
    exchange.put(place, str(path), value(1))
    swap = exchange._renameat2
    assert swap is not None

    def after_closing(*given: object) -> int:
        exchange.forget_slots(place)
        return swap(*given)  # type: ignore[arg-type]  # handed on as given

    monkeypatch.setattr(exchange, "_renameat2", after_closing)
    status = exchange.put(place, str(path), value(2))
    assert path.read_bytes() == value(2)
    assert status.st_ino == path.stat().st_ino


def test_a_missing_directory_is_the_callers_to_make(place: Layout) -> None:
    with pytest.raises(FileNotFoundError):
        exchange.put(place, f"{place.git}/refs/none/main", value(1))
