"""Excluding, stand-ins, compiling and lenses through the earlier interface."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.service.test_rooms import ids

if TYPE_CHECKING:
    from agent_chatroom_ledger.service import ChatroomService


def snapshot(root: Path) -> dict[str, tuple[bytes, int]]:
    """Every file of a ledger with its content and time of change; locks hold nothing."""
    return {
        str(path): (path.read_bytes(), path.stat().st_mtime_ns)
        for path in sorted(root.rglob("*"))
        if path.is_file() and path.parent.name != "locks"
    }


def test_excluding_leaves_out_and_never_erases(service: ChatroomService, room_id: str) -> None:
    service.exclude_messages(room_id, [1])
    assert service.get_compile_policy(room_id)["excluded_message_ids"] == [1]
    lens = service.render_chat_lens(room_id)
    assert ids(lens["messages"]) == [2]
    assert (lens["message_count"], lens["raw_message_count"]) == (1, 2)
    loaded = service.load_chat(room_id)
    assert ids(loaded["messages"]) == [1, 2]
    page = Path(loaded["visible_path"]).read_text(encoding="utf-8")
    assert "Second." in page
    assert "First." not in page


def test_the_last_id_of_a_view_stays_the_canonical_one(
    service: ChatroomService, room_id: str
) -> None:
    service.exclude_messages(room_id, [2])
    lens = service.render_chat_lens(room_id)
    assert ids(lens["messages"]) == [1]
    assert lens["last_message_id"] == 2


def test_included_messages_show_again(service: ChatroomService, room_id: str) -> None:
    service.exclude_messages(room_id, [1, 2])
    service.include_messages(room_id, [1])
    assert ids(service.render_chat_lens(room_id)["messages"]) == [1]
    assert service.get_compile_policy(room_id)["excluded_message_ids"] == [2]


@pytest.mark.parametrize("call", ["exclude_messages", "include_messages"])
def test_ids_that_do_not_exist_are_named_and_nothing_is_written(
    service: ChatroomService, room_id: str, call: str
) -> None:
    before = snapshot(service.root)
    with pytest.raises(ValueError, match="7") as refused:
        getattr(service, call)(room_id, [1, 7, 9])
    assert "9" in str(refused.value)
    changed = {path for path, held in snapshot(service.root).items() if before.get(path) != held}
    assert not [path for path in changed if "/.git/" not in path]
    assert service.get_compile_policy(room_id)["excluded_message_ids"] == []


def test_a_standin_for_ids_that_do_not_exist_is_refused(
    service: ChatroomService, room_id: str
) -> None:
    with pytest.raises(ValueError, match="8"):
        service.add_standin(room_id, [1, 8], "Both.")
    with pytest.raises(ValueError, match="8"):
        service.add_standin(room_id, [1], "One.", insert_after_message_id=8)
    assert service.get_compile_policy(room_id)["standins"] == []


def test_a_standin_excludes_what_it_replaces_and_follows_the_last_of_it(
    service: ChatroomService, room_id: str
) -> None:
    service.post_message(room_id, "Analyst", "Third.")
    service.add_standin(room_id, [1, 2], "Two messages, in short.", standin_id="short")
    first, last = service.render_chat_lens(room_id)["messages"]
    assert first["message_id"] == "standin:short"
    assert first["synthetic"] is True
    assert first["replaces_message_ids"] == [1, 2]
    assert (first["speaker"], first["kind"]) == ("System", "system")
    assert first["message"] == "Two messages, in short."
    assert last["message_id"] == 3
    policy = service.get_compile_policy(room_id)
    assert policy["excluded_message_ids"] == [1, 2]
    (standin,) = policy["standins"]
    assert standin["standin_id"] == "short"
    assert standin["insert_after_message_id"] == 2


def test_a_standin_can_stand_elsewhere_and_speak_for_itself(
    service: ChatroomService, room_id: str
) -> None:
    service.add_standin(
        room_id, [1], "Later.", insert_after_message_id=2, speaker="Editor", kind="status"
    )
    found = service.render_chat_lens(room_id)["messages"]
    assert [item["message"] for item in found] == ["Second.", "Later."]
    assert (found[1]["speaker"], found[1]["kind"]) == ("Editor", "status")
    assert found[1]["message_id"].startswith("standin:")


def test_clearing_the_policy_shows_everything(service: ChatroomService, room_id: str) -> None:
    service.add_standin(room_id, [1], "One.")
    service.clear_compile_policy(room_id)
    policy = service.get_compile_policy(room_id)
    assert (policy["excluded_message_ids"], policy["standins"]) == ([], [])
    assert ids(service.render_chat_lens(room_id)["messages"]) == [1, 2]


def test_a_lens_says_what_room_it_is_of(service: ChatroomService, room_id: str) -> None:
    lens = service.render_chat_lens(room_id)
    assert lens["chat_id"] == room_id
    assert lens["chat_title"] == "Design review"
    assert lens["status"] == "active"
    assert lens["last_message_id"] == 2
    assert lens["compile_policy"] == service.get_compile_policy(room_id)
    assert lens["warnings"] == []


def test_a_lens_changes_no_file(service: ChatroomService, room_id: str) -> None:
    before = snapshot(service.root)
    service.render_chat_lens(room_id)
    service.load_chat(room_id)
    service.list_chats()
    assert snapshot(service.root) == before


@pytest.mark.broken_on_purpose
def test_a_lens_works_while_the_view_is_broken_or_missing(
    service: ChatroomService, room: dict[str, Any], room_id: str
) -> None:
    service.exclude_messages(room_id, [1])
    page = Path(room["visible_path"])
    page.write_text("broken\n", encoding="utf-8")
    assert ids(service.render_chat_lens(room_id)["messages"]) == [2]
    shutil.rmtree(page.parent)
    assert ids(service.render_chat_lens(room_id)["messages"]) == [2]


def test_compiling_mends_a_broken_view(
    service: ChatroomService, room: dict[str, Any], room_id: str
) -> None:
    page = Path(room["visible_path"])
    right = page.read_bytes()
    page.write_text("broken\n", encoding="utf-8")
    assert service.load_chat(room_id)["state"]["compile"]["status"] == "dirty"
    compiled = service.compile_chat(room_id)
    assert page.read_bytes() == right
    assert compiled["state"]["compile"]["status"] == "clean"
    assert compiled["visible_path"] == str(page)
    page.unlink()
    service.compile_chat(room_id)
    assert page.read_bytes() == right


def test_a_blank_standin_is_refused(service: ChatroomService, room_id: str) -> None:
    for blank in ("", " \n"):
        with pytest.raises(ValueError, match="blank"):
            service.add_standin(room_id, [1], blank)
    assert len(service.render_chat_lens(room_id)["messages"]) == 2


def test_another_source_of_a_lens_is_refused(service: ChatroomService, room_id: str) -> None:
    with pytest.raises(ValueError, match="source"):
        service.render_chat_lens(room_id, source="cache")
