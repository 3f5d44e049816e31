"""Unread scans, cursors and verification through the earlier interface."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from agent_chatroom_ledger import Ledger
from agent_chatroom_ledger.service import ChatroomService
from tests.service.test_policy import snapshot

if TYPE_CHECKING:
    from collections.abc import Callable


@pytest.fixture
def cursor(tmp_path: Path) -> Path:
    return tmp_path / "reviewer.cursor.json"


def test_a_first_scan_finds_everything(
    service: ChatroomService, room_id: str, cursor: Path
) -> None:
    (item,) = service.scan_unread("Reviewer", cursor)
    assert item["chat_id"] == room_id
    assert item["chat_title"] == "Design review"
    assert item["status"] == "active"
    assert item["last_message_id"] == 2
    assert item["last_seen_message_id"] == 0
    assert item["unread_count"] == 2
    assert item["warnings"] == []
    assert not cursor.exists(), "scanning moves nothing"


def test_each_reader_has_a_cursor_of_its_own(
    service: ChatroomService, room_id: str, cursor: Path, tmp_path: Path
) -> None:
    service.mark_seen("Reviewer", cursor, room_id, message_id=1)
    (item,) = service.scan_unread("Reviewer", cursor)
    assert (item["unread_count"], item["last_seen_message_id"]) == (1, 1)
    (item,) = service.scan_unread("Analyst", tmp_path / "analyst.cursor.json")
    assert item["unread_count"] == 2


def test_a_cursor_outlives_the_service(
    service: ChatroomService, room_id: str, cursor: Path
) -> None:
    service.mark_seen("Reviewer", cursor, room_id)
    again = ChatroomService(service.root)
    assert again.scan_unread("Reviewer", cursor) == []
    again.post_message(room_id, "Analyst", "Third.")
    (item,) = again.scan_unread("Reviewer", cursor)
    assert item["unread_count"] == 1


def test_only_rooms_that_list_the_agent_unless_audited(
    service: ChatroomService, room_id: str, tmp_path: Path
) -> None:
    mine = tmp_path / "stranger.cursor.json"
    assert service.scan_unread("Stranger", mine) == []
    (item,) = service.scan_unread("Stranger", mine, participant_gated=False)
    assert (item["chat_id"], item["unread_count"]) == (room_id, 2)


@pytest.mark.broken_on_purpose
@pytest.mark.parametrize("source", ["canonical", "messages"])
def test_the_records_are_counted_even_when_the_state_is_broken(
    service: ChatroomService, room: dict[str, Any], room_id: str, cursor: Path, source: str
) -> None:
    Path(room["state_path"]).write_text("{", encoding="utf-8")
    (item,) = service.scan_unread("Reviewer", cursor, source=source)
    assert (item["chat_id"], item["unread_count"]) == (room_id, 2)
    assert item["warnings"], "it says that the state could not be read"


def test_another_source_or_status_is_refused(
    service: ChatroomService, room_id: str, cursor: Path
) -> None:
    with pytest.raises(ValueError, match="source"):
        service.scan_unread("Reviewer", cursor, source="rumour")
    with pytest.raises(ValueError, match="source"):
        service.mark_seen("Reviewer", cursor, room_id, source="rumour")
    with pytest.raises(ValueError, match="status"):
        service.scan_unread("Reviewer", cursor, status="rumour")
    assert service.scan_unread("Reviewer", cursor, status="archived") == []


def test_marking_returns_the_cursor(service: ChatroomService, room_id: str, cursor: Path) -> None:
    found = service.mark_seen("Reviewer", cursor, room_id, message_id=2)
    assert found["agent_name"] == "Reviewer"
    assert found["updated_at"]
    position = found["positions"][room_id]
    assert position["last_seen_message_id"] == 2
    assert position["last_seen_at"]
    assert position["chat_title"] == "Design review"


def test_marking_keeps_the_other_rooms(
    service: ChatroomService, room_id: str, cursor: Path
) -> None:
    other = service.create_chat("Another room", participants=["Reviewer"])["state"]["chat_id"]
    service.post_message(other, "Analyst", "Hello.")
    service.mark_seen("Reviewer", cursor, room_id)
    found = service.mark_seen("Reviewer", cursor, other)
    assert set(found["positions"]) == {room_id, other}


def test_marking_touches_only_the_cursor_file(
    service: ChatroomService, room_id: str, cursor: Path
) -> None:
    before = snapshot(service.root)
    service.mark_seen("Reviewer", cursor, room_id)
    assert snapshot(service.root) == before
    assert cursor.is_file()


def test_a_message_that_does_not_exist_cannot_be_seen(
    service: ChatroomService, room_id: str, cursor: Path
) -> None:
    with pytest.raises(ValueError, match="3"):
        service.mark_seen("Reviewer", cursor, room_id, message_id=3)
    assert not cursor.exists()


def test_the_cursor_of_another_agent_is_refused(
    service: ChatroomService, room_id: str, cursor: Path
) -> None:
    service.mark_seen("Reviewer", cursor, room_id)
    held = cursor.read_bytes()
    with pytest.raises(ValueError, match="Reviewer"):
        service.mark_seen("Analyst", cursor, room_id)
    with pytest.raises(ValueError, match="Reviewer"):
        service.scan_unread("Analyst", cursor)
    assert cursor.read_bytes() == held


@pytest.mark.parametrize(
    "content", ["", "{", "[]", '{"agent": "Reviewer"}', json.dumps({"schema": "other/cursor"})]
)
def test_a_cursor_of_another_schema_is_refused(
    service: ChatroomService, room_id: str, cursor: Path, content: str
) -> None:
    cursor.write_text(content, encoding="utf-8")
    with pytest.raises(ValueError, match=cursor.name):
        service.mark_seen("Reviewer", cursor, room_id)
    with pytest.raises(ValueError, match=cursor.name):
        service.scan_unread("Reviewer", cursor)
    assert cursor.read_text(encoding="utf-8") == content


@pytest.mark.usefixtures("room")
def test_a_sound_ledger_verifies(service: ChatroomService) -> None:
    report = service.verify()
    assert report["ok"] is True
    assert report["error_count"] == 0
    assert report["issues"] == []
    assert report["chats"] == 1


def missing(path: Path) -> None:
    path.unlink()


def broken(path: Path) -> None:
    path.write_text("{", encoding="utf-8")


@pytest.mark.broken_on_purpose
@pytest.mark.parametrize(
    ("name", "harm", "code"),
    [
        ("room.json", missing, "missing_state"),
        ("room.json", broken, "state_message_mismatch"),
        ("messages/*/*/*/*.jsonl", broken, "worktree_changed"),
        ("view/*/*.md", broken, "compiled_parse_failed"),
    ],
)
def test_a_broken_ledger_says_what_is_wrong(
    service: ChatroomService,
    room: dict[str, Any],
    name: str,
    harm: Callable[[Path], None],
    code: str,
) -> None:
    folder = Path(room["state_path"]).parent
    (path,) = folder.glob(name)
    harm(path)
    report = service.verify()
    assert report["ok"] is False
    assert report["error_count"] >= 1
    (issue,) = [issue for issue in report["issues"] if issue["code"] == code]
    assert issue["severity"] == "error"
    assert issue["message"]
    assert issue["path"] == path.relative_to(service.root).as_posix()


@pytest.mark.broken_on_purpose
def test_a_broken_cursor_of_a_consumer_is_found(service: ChatroomService, room_id: str) -> None:
    with Ledger.open(service.root) as ledger:
        consumer = ledger.consumer("Reviewer")
        consumer.acknowledge(room_id)
    broken(consumer.cursor_path)
    codes = [issue["code"] for issue in service.verify()["issues"]]
    assert codes == ["consumer_state_invalid"]


@pytest.mark.broken_on_purpose
def test_a_stale_state_is_not_believed(service: ChatroomService, tmp_path: Path) -> None:
    """Titles, members, counts and the lens come from the records, whatever files say."""
    room = service.create_chat("Stale", participants=["Reviewer"])
    chat = room["state"]["chat_id"]
    for text in ("one", "two"):
        service.post_message(chat, "Reviewer", text)
    folder = Path(room["state_path"]).parent
    state, policy = folder / "room.json", folder / "policy.json"
    state.write_text(state.read_text().replace("Stale", "Forged").replace("Reviewer", "Nobody"))
    service.exclude_messages(chat, [1])
    hidden = policy.read_bytes()
    service.include_messages(chat, [1])
    policy.write_bytes(hidden)
    (item,) = service.scan_unread("Reviewer", tmp_path / "cursor.json", source="canonical")
    assert (item["chat_title"], item["unread_count"]) == ("Stale", 2)
    assert "not what its records make it" in item["warnings"][0]
    lens = service.render_chat_lens(chat)
    assert [message["message_id"] for message in lens["messages"]] == [1, 2]
    assert "not what its records make it" in lens["warnings"][0]


def test_marking_an_earlier_message_does_not_move_back(
    service: ChatroomService, room_id: str, cursor: Path
) -> None:
    service.mark_seen("Reviewer", cursor, room_id, message_id=2)
    found = service.mark_seen("Reviewer", cursor, room_id, message_id=1)
    assert found["positions"][room_id]["last_seen_message_id"] == 2
