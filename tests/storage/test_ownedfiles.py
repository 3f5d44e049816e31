"""Files of one reader: whole, durable, locked; foreign and damaged ones are named and kept."""

from __future__ import annotations

import json
import threading
from typing import TYPE_CHECKING, Any

import pytest

from agent_chatroom_ledger.errors import Corrupt, InvalidInput
from agent_chatroom_ledger.storage.ownedfiles import LENSES, PREPARATIONS, OwnedFile

if TYPE_CHECKING:
    from pathlib import Path

    from agent_chatroom_ledger.storage.layout import Layout


def owned(layout: Layout, owner: str = "Reviewer", **options: Any) -> OwnedFile:
    return OwnedFile(layout, owner, schema=LENSES, section="rooms", **options)


def noting(name: str) -> Any:
    def edit(document: dict[str, Any]) -> dict[str, Any]:
        return {**document, "rooms": {**document["rooms"], name: {}}}

    return edit


def test_a_missing_file_is_a_reader_of_whom_nothing_is_known(layout: Layout) -> None:
    file = owned(layout)
    assert file.load()["rooms"] == {}
    assert not file.path.exists()
    assert file.change(lambda _: None)["rooms"] == {}
    assert not file.path.exists()


def test_what_is_written_is_read_and_further_fields_stay(layout: Layout) -> None:
    file = owned(layout)
    file.change(noting("one"))
    document = json.loads(file.path.read_text())
    file.path.write_text(json.dumps({**document, "colour": "blue"}))
    file.change(noting("two"))
    found = owned(layout).load()
    assert (set(found["rooms"]), found["colour"]) == ({"one", "two"}, "blue")
    assert [path.name for path in file.path.parent.iterdir()] == [file.path.name]


def test_the_two_schemas_lie_apart_and_are_not_taken_for_each_other(layout: Layout) -> None:
    lens = owned(layout)
    prepared = OwnedFile(layout, "Reviewer", schema=PREPARATIONS, section="completed")
    assert lens.path != prepared.path
    lens.change(noting("one"))
    other = OwnedFile(layout, "Reviewer", schema=PREPARATIONS, section="completed", path=lens.path)
    with pytest.raises(InvalidInput, match="version cursor"):
        other.load()


def test_a_file_may_lie_where_the_caller_wants_it(layout: Layout, tmp_path: Path) -> None:
    place = tmp_path / "mine.json"
    owned(layout, path=place).change(noting("one"))
    assert json.loads(place.read_text())["consumer"] == "Reviewer"
    assert [path.name for path in tmp_path.iterdir() if path.is_file()] == ["mine.json"]


@pytest.mark.broken_on_purpose
@pytest.mark.parametrize(
    ("change", "code"),
    [
        ({"consumer": "Other"}, "consumer_state_owner"),
        ({"schema": "something"}, "consumer_state_schema"),
        ({"format": 2}, "consumer_state_format"),
    ],
)
def test_a_foreign_file_is_refused_and_kept(
    layout: Layout, change: dict[str, Any], code: str
) -> None:
    file = owned(layout)
    file.change(noting("one"))
    file.path.write_text(json.dumps({**json.loads(file.path.read_text()), **change}))
    before = file.path.read_bytes()
    for call in (file.load, lambda: file.change(noting("two"))):
        with pytest.raises(InvalidInput) as refused:
            call()
        assert refused.value.code == code
    assert file.path.read_bytes() == before


@pytest.mark.broken_on_purpose
@pytest.mark.parametrize("content", ["", "{", "[]", '"x"', "\x00", '{"rooms": []}'])
def test_a_damaged_file_is_an_error_and_no_first_run(layout: Layout, content: str) -> None:
    file = owned(layout)
    file.change(noting("one"))
    if content.startswith('{"rooms"'):
        content = json.dumps({**json.loads(file.path.read_text()), "rooms": {"a": 3}})
    file.path.write_text(content)
    with pytest.raises(Corrupt) as damaged:
        file.load()
    assert damaged.value.code == "consumer_state_invalid"
    assert str(file.path) in damaged.value.message
    assert file.path.read_text() == content


def test_no_step_of_another_thread_is_undone(layout: Layout) -> None:
    def work(name: str) -> None:
        for number in range(5):
            owned(layout).change(noting(f"{name}{number}"))

    threads = [threading.Thread(target=work, args=(name,)) for name in "abc"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(owned(layout).load()["rooms"]) == 15
