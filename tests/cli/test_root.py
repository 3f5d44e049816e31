"""Which ledger a command works on: option, environment, directory, the user's own."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from agent_chatroom_ledger import Ledger
from agent_chatroom_ledger.cli.root import find, missing

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def made(tmp_path: Path) -> Path:
    path = tmp_path / "a"
    Ledger.open(path, create=True).close()
    return path


def test_the_option_goes_first(made: Path, tmp_path: Path) -> None:
    root = find(str(made), {"ROOMS_ROOT": str(tmp_path)}, tmp_path)
    assert root == (made, "option", True)


def test_the_variable_goes_before_the_directory(made: Path, tmp_path: Path) -> None:
    other = tmp_path / "elsewhere"
    assert find(None, {"ROOMS_ROOT": str(other)}, made) == (other, "environment", False)


def test_an_empty_variable_says_nothing(made: Path) -> None:
    assert find(None, {"ROOMS_ROOT": ""}, made).source == "directory"


def test_the_nearest_directory_upwards(made: Path) -> None:
    below = made / "rooms" / "somewhere" / "deep"
    below.mkdir(parents=True)
    assert find(None, {}, below) == (made, "directory", True)


def test_a_named_directory_is_not_searched_upwards(made: Path) -> None:
    below = made / "rooms"
    below.mkdir(exist_ok=True)
    assert find(str(below), {}, made).exists is False


def test_the_users_own_comes_last(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    root = find(None, {}, tmp_path)
    assert (root.source, root.exists) == ("default", False)
    assert root.path == tmp_path / "data" / "agent-chatroom-ledger"


@pytest.mark.parametrize(("option", "hint"), [("/nowhere", "--root"), (None, "rooms init")])
def test_a_missing_ledger_names_the_way_out(option: str | None, hint: str, tmp_path: Path) -> None:
    error = missing(find(option, {}, tmp_path))
    assert hint in error.message
    assert error.exit_status == 3
