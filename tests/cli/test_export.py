"""`rooms export`: to standard output, to a file, and as of an earlier state."""

from __future__ import annotations

import json
import os
import stat
from typing import TYPE_CHECKING

import pytest

from agent_chatroom_ledger import InvalidInput, Ledger
from agent_chatroom_ledger.exporting import export

if TYPE_CHECKING:
    from pathlib import Path

    from tests.cli.conftest import Ask, Invoke


@pytest.fixture
def talk(root: Path, invoke: Invoke) -> Invoke:
    """Give a ledger with one room in which three messages stand, the second left out."""
    with Ledger.open(root) as ledger:
        room = ledger.create_room("Design review", members=["Reviewer"])
        room.post_many([{"author": "Ann", "body": body} for body in ("one", "two", "three")])
        room.add_standin("2", "in short", by="Ann")
    return invoke


def test_every_format(talk: Invoke) -> None:
    assert "### #2 Ann" in talk("export", "design-review").stdout
    assert talk("export", "design-review", "--format", "html").stdout.endswith("</html>\n")
    lines = talk("export", "design-review", "--format", "jsonl").stdout.splitlines()
    assert [json.loads(line)["body"] for line in lines] == ["one", "two", "three"]
    document = json.loads(talk("export", "design-review", "--format", "json").stdout)
    assert [item["message"]["n"] for item in document["items"]] == [1, 2, 3]
    assert document["commit"] is None


def test_what_the_policy_shows(talk: Invoke) -> None:
    result = talk("export", "design-review", "--format", "json", "--lens")
    items = json.loads(result.stdout)["items"]
    assert [item.get("message", item.get("standin"))["body"] for item in items] == [
        "one",
        "in short",
        "three",
    ]


def test_as_of_an_earlier_state(talk: Invoke, root: Path) -> None:
    with Ledger.open(root) as ledger:
        before = ledger.commit_at("main~3")
    document = json.loads(
        talk("export", "design-review", "--format", "json", "--at", before).stdout
    )
    assert document["commit"] == before
    assert [item["message"]["n"] for item in document["items"]] == [1, 2]
    assert talk("export", "design-review", "--at", "nowhere").exit_code == 3


@pytest.mark.usefixtures("talk")
def test_to_a_file(ask: Ask, tmp_path: Path) -> None:
    place = tmp_path / "out.html"
    place.write_text("older")
    found = ask("export", "design-review", "--format", "html", "--output", str(place))
    assert found["bytes"] == place.stat().st_size > 100
    assert found["output"] == str(place)
    mask = os.umask(0)
    os.umask(mask)
    assert stat.S_IMODE(place.stat().st_mode) == 0o666 & ~mask
    assert sorted(path.name for path in tmp_path.iterdir()) == ["ledger", "out.html"]


def test_a_file_is_written_whole_or_not_at_all(talk: Invoke, tmp_path: Path) -> None:
    place = tmp_path / "out.md"
    place.write_text("older")
    result = talk("export", "no-such-room", "--output", str(place))
    assert (result.exit_code, place.read_text()) == (3, "older")
    assert talk("export", "design-review", "--output", str(tmp_path / "no" / "x")).exit_code == 1
    assert talk("export", "design-review", "--output", str(tmp_path)).exit_code == 1


def test_json_needs_a_file(talk: Invoke) -> None:
    assert talk("export", "design-review", "--json").exit_code == 2


def test_a_format_that_there_is_not(ledger: Ledger) -> None:
    with pytest.raises(InvalidInput):
        export(ledger.create_room("Here"), "pdf")
