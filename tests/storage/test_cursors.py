"""Cursor files: atomic, owned, never silently begun anew."""

from __future__ import annotations

import json
import multiprocessing
from typing import TYPE_CHECKING

import pytest

from agent_chatroom_ledger.errors import Busy, Corrupt, InvalidInput
from agent_chatroom_ledger.storage import files
from agent_chatroom_ledger.storage.cursors import Cursor, CursorFile, Mark, cursor_name
from agent_chatroom_ledger.storage.layout import Layout

if TYPE_CHECKING:
    from pathlib import Path

HEAD = b'{"format":1,"schema":"agent-chatroom-ledger/cursor","consumer":"Ann"'
AT = "2026-11-29T21:27:42.123456Z"


@pytest.fixture
def layout(tmp_path: Path) -> Layout:
    found = Layout(tmp_path)
    found.cursors.mkdir(parents=True)
    found.locks.mkdir()
    return found


def moved(cursor: Cursor, n: int, room: str = "room-1") -> Cursor:
    return cursor.moved(room, {"mbp": Mark(n, f"id-{n}")}, title="T", path="rooms/t", at=AT)


def test_a_missing_file_is_a_consumer_that_has_acknowledged_nothing(layout: Layout) -> None:
    file = CursorFile(layout, "Ann")
    assert file.load().positions() == {}
    assert not file.path.exists()


def test_a_change_is_there_for_the_next_reader(layout: Layout) -> None:
    CursorFile(layout, "Ann").change(lambda cursor: moved(cursor, 5))
    again = CursorFile(layout, "Ann")
    assert again.load().positions() == {"room-1": {"mbp": 5}}
    assert again.load().marks("room-1") == {"mbp": Mark(5, "id-5")}
    assert again.load().updated_at == AT
    assert [path.name for path in layout.cursors.iterdir()] == [again.path.name]


def test_the_format_is_pinned(layout: Layout) -> None:
    file = CursorFile(layout, "Ann")
    file.change(lambda cursor: moved(cursor, 5))
    assert json.loads(file.path.read_text()) == {
        "format": 1,
        "schema": "agent-chatroom-ledger/cursor",
        "consumer": "Ann",
        "updated_at": AT,
        "positions": {
            "room-1": {
                "title": "T",
                "path": "rooms/t",
                "messages": {"mbp": {"n": 5, "id": "id-5"}},
                "at": AT,
            }
        },
    }


def test_unknown_fields_survive(layout: Layout) -> None:
    file = CursorFile(layout, "Ann")
    file.change(lambda cursor: moved(cursor, 5))
    document = json.loads(file.path.read_text())
    document["later"] = {"a": 1}
    document["positions"]["room-1"]["note"] = "kept"
    file.path.write_text(json.dumps(document))
    file.change(lambda cursor: moved(cursor, 6))
    document = json.loads(file.path.read_text())
    assert document["later"] == {"a": 1}
    assert document["positions"]["room-1"]["note"] == "kept"


def test_an_edit_that_changes_nothing_writes_nothing(layout: Layout) -> None:
    file = CursorFile(layout, "Ann")
    file.change(lambda cursor: cursor)
    assert not file.path.exists()


def test_a_file_changed_by_another_process_is_read_anew(layout: Layout) -> None:
    one, other = CursorFile(layout, "Ann"), CursorFile(layout, "Ann")
    one.change(lambda cursor: moved(cursor, 5))
    assert other.load().positions()["room-1"] == {"mbp": 5}
    one.change(lambda cursor: moved(cursor, 7))
    assert other.load().positions()["room-1"] == {"mbp": 7}


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{",
        b"[]",
        b"\xff\xfe",
        HEAD + b"}",
        HEAD + b',"positions":{"r":{"messages":{"mbp":{"n":-1,"id":"x"}}}}}',
        HEAD + b',"positions":{"r":{"messages":{"mbp":5}}}}',
    ],
)
def test_a_damaged_file_is_an_error_that_names_it_and_stays(layout: Layout, content: bytes) -> None:
    file = CursorFile(layout, "Ann")
    file.path.write_bytes(content)
    for act in (file.load, lambda: file.change(lambda cursor: moved(cursor, 1))):
        with pytest.raises(Corrupt) as caught:
            act()
        assert caught.value.code == "cursor_damaged"
        assert str(file.path) in str(caught.value)
    assert file.path.read_bytes() == content


@pytest.mark.parametrize(
    ("field", "value", "code"),
    [
        ("consumer", "Bob", "cursor_owner"),
        ("schema", "something/else", "cursor_schema"),
        ("format", 2, "cursor_format"),
    ],
)
def test_a_file_of_another_is_refused(layout: Layout, field: str, value: object, code: str) -> None:
    file = CursorFile(layout, "Ann")
    file.change(lambda cursor: moved(cursor, 5))
    document = json.loads(file.path.read_text())
    document[field] = value
    file.path.write_text(json.dumps(document))
    with pytest.raises(InvalidInput) as caught:
        file.load()
    assert caught.value.code == code
    assert isinstance(caught.value, ValueError)


@pytest.mark.parametrize(
    "name",
    ["Ann", "../../etc/passwd", "a/b", ".", "..", "CON", "\u202eevil", "x" * 64, "🙂", "a\nb"],
)
def test_no_name_leaves_the_directory(layout: Layout, name: str) -> None:
    path = layout.cursors / cursor_name(name)
    assert path.parent == layout.cursors
    assert path.name.isascii()
    assert path.name.endswith(".json")
    assert len(path.name) < 100
    assert not path.name.startswith(".")
    assert "/" not in path.name


def test_names_that_differ_in_case_have_files_that_differ_in_more() -> None:
    names = ["ann", "Ann", "aNn", "ANN", "Ann Lee", "ann lee", "ann-lee", "ann-1", "Ann-1", "Änn"]
    found = {cursor_name(name).lower() for name in names}
    assert len(found) == len(names)
    assert cursor_name("Reviewer") == "reviewer-1.json"


def test_a_cursor_of_the_callers_own_touches_nothing_beside_it(
    layout: Layout, tmp_path: Path
) -> None:
    folder = tmp_path / "elsewhere"
    folder.mkdir()
    CursorFile(layout, "Ann", folder / "mine.json").change(lambda cursor: moved(cursor, 1))
    assert [path.name for path in folder.iterdir()] == ["mine.json"]


def test_a_cursor_that_is_a_link_stays_one(layout: Layout, tmp_path: Path) -> None:
    (tmp_path / "link.json").symlink_to(tmp_path / "real.json")
    CursorFile(layout, "Ann", tmp_path / "link.json").change(lambda cursor: moved(cursor, 1))
    assert (tmp_path / "link.json").is_symlink()
    assert (tmp_path / "real.json").is_file()


def test_a_full_disk_leaves_the_old_file(layout: Layout, monkeypatch: pytest.MonkeyPatch) -> None:
    file = CursorFile(layout, "Ann")
    file.change(lambda cursor: moved(cursor, 5))

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(files, "write_all", full)
        with pytest.raises(Busy) as caught:
            file.change(lambda cursor: moved(cursor, 6))
    assert caught.value.code == "disk_full"
    assert file.load().positions() == {"room-1": {"mbp": 5}}
    assert len(list(layout.cursors.iterdir())) == 1
    file.change(lambda cursor: moved(cursor, 6))
    assert file.load().positions() == {"room-1": {"mbp": 6}}


def _step(root: Path, room: str, steps: int) -> None:
    file = CursorFile(Layout(root), "Ann")
    for _ in range(steps):
        file.change(
            lambda cursor: moved(cursor, cursor.positions().get(room, {}).get("mbp", 0) + 1, room)
        )


def test_two_processes_of_one_consumer_lose_no_step(layout: Layout) -> None:
    context = multiprocessing.get_context("spawn")
    workers = [
        context.Process(target=_step, args=(layout.root, room, 25)) for room in ("a", "b", "a")
    ]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
        assert worker.exitcode == 0
    assert CursorFile(layout, "Ann").load().positions() == {"a": {"mbp": 50}, "b": {"mbp": 25}}
