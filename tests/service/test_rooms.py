"""Rooms and messages through the earlier interface, statement by statement of its spec."""

from __future__ import annotations

import re
import subprocess
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from agent_chatroom_ledger.service import ChatroomService

if TYPE_CHECKING:
    from collections.abc import Sequence


def ids(messages: Sequence[dict[str, Any]]) -> list[object]:
    return [message["message_id"] for message in messages]


def test_the_recipe_runs_verbatim(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    service = ChatroomService(Path("./my-rooms"))
    room = service.create_chat("Synthetic Review", participants=["Reviewer"])
    room_id = room["state"]["chat_id"]
    service.post_message(room_id, "Reviewer", "A synthetic observation.")
    lens = service.render_chat_lens(room_id)
    service.mark_seen(
        "Reviewer",
        Path("./reviewer.cursor.json"),
        room_id,
        message_id=lens["last_message_id"],
    )
    assert service.scan_unread("Reviewer", Path("./reviewer.cursor.json")) == []
    assert (tmp_path / "my-rooms" / "ledger.json").is_file()
    assert (tmp_path / "reviewer.cursor.json").is_file()


def test_a_new_room_has_its_state_and_paths(service: ChatroomService, tmp_path: Path) -> None:
    room = service.create_chat("Design review", participants=["Analyst", "Reviewer"])
    assert set(room) >= {"state", "messages", "visible_path", "state_path", "messages_dir"}
    state = room["state"]
    assert re.fullmatch(r"chat_[0-9a-f]{32}", state["chat_id"])
    assert state["chat_title"] == "Design review"
    assert state["status"] == "active"
    assert state["participants"] == ["Analyst", "Reviewer"]
    assert state["last_message_id"] == 0
    assert state["last_message_at"] is None
    assert state["compile"]["last_compiled_message_id"] == 0
    assert state["compile_policy"]["excluded_message_ids"] == []
    assert state["compile_policy"]["standins"] == []
    assert datetime.fromisoformat(state["created_at"]).tzinfo is not None
    assert datetime.fromisoformat(state["updated_at"]) >= datetime.fromisoformat(
        state["created_at"]
    )
    assert room["messages"] == []
    assert Path(room["state_path"]).name == "room.json"
    assert Path(room["state_path"]).is_file()
    folder = Path(room["state_path"]).parent
    assert folder.relative_to(tmp_path / "rooms").parts[:2] == ("rooms", "Parking_Lot")
    assert Path(room["messages_dir"]) == folder / "messages"


def test_rooms_are_made_in_the_folder_that_is_named(service: ChatroomService) -> None:
    room = service.create_chat("Design review", "projects/alpha")
    assert Path(room["state_path"]).parts[-5:-2] == ("rooms", "projects", "alpha")


@pytest.mark.parametrize("title", ["", "   ", "\n"])
def test_a_blank_title_is_refused(service: ChatroomService, title: str) -> None:
    with pytest.raises(ValueError, match="title"):
        service.create_chat(title)
    assert service.list_chats() == []


def test_the_same_title_makes_a_second_room(service: ChatroomService) -> None:
    first, second = service.create_chat("Design review"), service.create_chat("Design review")
    assert first["state"]["chat_id"] != second["state"]["chat_id"]
    assert Path(second["state_path"]).parent.name == (Path(first["state_path"]).parent.name + "_2")


def test_a_room_is_loaded_by_id_and_by_path(
    service: ChatroomService, room: dict[str, Any], room_id: str, tmp_path: Path
) -> None:
    folder = Path(room["state_path"]).parent
    inside = folder.relative_to(tmp_path / "rooms")
    for ref in (room_id, folder, str(folder), inside, inside.as_posix()):
        assert service.load_chat(ref) == room


def test_an_unknown_room_is_not_found(service: ChatroomService, tmp_path: Path) -> None:
    for ref in ("chat_" + "0" * 32, "rooms/nowhere", tmp_path, tmp_path / "rooms" / "rooms" / "no"):
        with pytest.raises(FileNotFoundError):
            service.load_chat(ref)


def test_rooms_are_listed_in_summary(service: ChatroomService, room: dict[str, Any]) -> None:
    state = room["state"]
    (summary,) = service.list_chats("active")
    assert summary["chat_id"] == state["chat_id"]
    assert summary["chat_title"] == "Design review"
    assert summary["status"] == "active"
    assert summary["last_message_id"] == 2
    assert summary["last_message_at"] == state["last_message_at"]
    assert summary["compile_status"] == "clean"
    assert service.list_chats("archived") == []
    assert service.list_chats("all") == [summary]
    with pytest.raises(ValueError, match="status"):
        service.list_chats("nonsense")


def test_posting_returns_the_room_as_loading_does(
    service: ChatroomService, room: dict[str, Any], room_id: str
) -> None:
    assert room == service.load_chat(room_id)
    assert room["state"]["last_message_id"] == 2
    assert room["state"]["last_message_at"] == room["messages"][-1]["created_at"]
    assert ids(room["messages"]) == [1, 2]
    first = room["messages"][0]
    assert (first["speaker"], first["kind"], first["message"]) == ("Analyst", "message", "First.")


def test_numbers_continue_in_a_new_service(service: ChatroomService, room_id: str) -> None:
    again = ChatroomService(service.root)
    assert ids(again.post_message(room_id, "Reviewer", "Third.")["messages"]) == [1, 2, 3]
    assert ids(service.post_message(room_id, "Analyst", "Fourth.")["messages"]) == [1, 2, 3, 4]


@pytest.mark.parametrize("blank", ["", "  ", "\n\t"])
def test_blank_speakers_and_messages_are_refused(
    service: ChatroomService, room_id: str, blank: str
) -> None:
    with pytest.raises(ValueError, match="speaker"):
        service.post_message(room_id, blank, "Hello.")
    with pytest.raises(ValueError, match="message"):
        service.post_message(room_id, "Analyst", blank)
    assert ids(service.load_chat(room_id)["messages"]) == [1, 2]


def test_only_members_when_that_is_required(service: ChatroomService, room_id: str) -> None:
    with pytest.raises(PermissionError):
        service.post_message(room_id, "Stranger", "Hello.", require_participant=True)
    service.post_message(room_id, "Reviewer", "Hello.", require_participant=True)
    assert ids(service.load_chat(room_id)["messages"]) == [1, 2, 3]


def test_posting_makes_nobody_a_member(service: ChatroomService, room_id: str) -> None:
    room = service.post_message(room_id, "Stranger", "Hello.")
    assert room["state"]["participants"] == ["Analyst", "Reviewer"]


@pytest.mark.parametrize("kind", ["message", "proposal", "review", "decision", "status", "system"])
def test_the_kinds_of_speech(service: ChatroomService, room_id: str, kind: str) -> None:
    room = service.post_message(room_id, "Analyst", "Hello.", kind=kind, mentions=["Reviewer"])
    assert room["messages"][-1]["kind"] == kind
    assert room["messages"][-1]["mentions"] == ["Reviewer"]


def test_other_kinds_are_refused(service: ChatroomService, room_id: str) -> None:
    with pytest.raises(ValueError, match="kind"):
        service.post_message(room_id, "Analyst", "Hello.", kind="event")


def test_text_is_kept_verbatim(service: ChatroomService, room_id: str) -> None:
    text = "  two\r\nlines \n\u2028and more  "
    assert service.post_message(room_id, "Analyst", text)["messages"][-1]["message"] == text


def test_the_view_is_compiled_after_a_post_or_left_dirty(
    service: ChatroomService, room_id: str
) -> None:
    done = service.post_message(room_id, "Analyst", "Third.")
    assert done["state"]["compile"]["status"] == "clean"
    assert done["state"]["compile"]["last_compiled_message_id"] == 3
    assert done["state"]["compile"]["last_compiled_at"]
    assert "Third." in Path(done["visible_path"]).read_text(encoding="utf-8")
    left = service.post_message(room_id, "Analyst", "Fourth.", compile_after=False)
    assert left["state"]["last_message_id"] == 4
    compiled = service.compile_chat(room_id)
    assert compiled["state"]["compile"]["status"] == "clean"
    assert "Fourth." in Path(compiled["visible_path"]).read_text(encoding="utf-8")


def test_every_post_is_a_commit_and_git_status_is_clean(
    service: ChatroomService, room_id: str
) -> None:
    def git(*args: str) -> str:
        done = subprocess.run(
            ["git", *args], cwd=service.root, check=True, capture_output=True, text=True
        )
        return done.stdout

    before = int(git("rev-list", "--count", "main"))
    service.post_message(room_id, "Reviewer", "A synthetic observation.", compile_after=False)
    assert int(git("rev-list", "--count", "main")) >= before + 1
    assert "Reviewer: A synthetic observation." in git("log", "--format=%s", "-3")
    assert git("status", "--porcelain") == ""


def test_a_view_that_lags_behind_is_dirty(service: ChatroomService, room_id: str) -> None:
    left = service.post_message(room_id, "Reviewer", "not compiled yet", compile_after=False)
    assert left["state"]["compile"]["status"] == "dirty"
    service.compile_chat(room_id)
    assert service.load_chat(room_id)["state"]["compile"]["status"] == "clean"
