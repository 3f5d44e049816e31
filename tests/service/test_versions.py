"""Versions and consumer lenses through the earlier interface, as its specification says."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from agent_chatroom_ledger import Ledger
from agent_chatroom_ledger.service import ChatroomService

if TYPE_CHECKING:
    from pathlib import Path


def levels(text: str, fill: str = "v") -> dict[str, Any]:
    texts = (text, *(fill * (10 - level) for level in range(1, 10)))
    return {str(n): {"message": one, "char_count": len(one)} for n, one in enumerate(texts)}


def test_a_new_message_has_identical_levels_not_prepared(
    service: ChatroomService, room_id: str
) -> None:
    found = service.get_message_versions(room_id, 1)
    assert set(found["versions"]) == {str(level) for level in range(10)}
    assert all(v == {"message": "First.", "char_count": 6} for v in found["versions"].values())
    assert (found["semantic_prepared"], found["prepared_by"]) == (False, None)


def test_versions_are_set_with_hashes_and_by_whom(service: ChatroomService, room_id: str) -> None:
    found = service.update_message_versions(room_id, 1, levels("First."), prepared_by="Editor")
    assert found["versions"]["9"] == {"message": "v", "char_count": 1}
    assert (found["semantic_prepared"], found["prepared_by"]) == (True, "Editor")
    assert len(found["source_hash"]) == len(found["bundle_hash"]) == 64
    assert found["prepared_at"]
    assert service.get_message_versions(room_id, 1) == found


@pytest.mark.parametrize(
    "wrong",
    [
        {},
        {k: v for k, v in levels("First.").items() if k != "4"},
        levels("Another."),
        {**levels("First."), "3": {"message": "abc", "char_count": 4}},
        {**levels("First."), "3": {"message": "abc"}},
        {**levels("First."), "10": {"message": "abc", "char_count": 3}},
    ],
)
def test_anything_else_is_a_value_error(
    service: ChatroomService, room_id: str, wrong: dict[str, Any]
) -> None:
    with pytest.raises(ValueError, match=r"level|versions"):
        service.update_message_versions(room_id, 1, wrong, prepared_by="Editor")
    assert service.get_message_versions(room_id, 1)["prepared_by"] is None


def test_an_audit_counts_what_needs_work(service: ChatroomService, room_id: str) -> None:
    service.create_chat("Empty")
    assert service.audit_message_versions()["needs_work_count"] == 0
    assert service.audit_message_versions(semantic=True)["needs_work_count"] == 2
    service.update_message_versions(room_id, 1, levels("First."), prepared_by="Editor")
    service.update_message_versions(
        room_id, 2, levels("Second."), prepared_by="Script", semantic_prepared=False
    )
    found = service.audit_message_versions(room_id, semantic=True)
    assert found["needs_work_count"] == 1
    assert [item["needs_work"] for item in found["messages"]] == [False, True]
    with Ledger.open(service.root) as ledger:
        ledger.archive_room(room_id)
    assert service.audit_message_versions(semantic=True)["messages"] == []
    assert service.audit_message_versions(semantic=True, status="archived")["messages"]


def test_a_version_cursor_refuses_what_needs_work(
    service: ChatroomService, room_id: str, tmp_path: Path
) -> None:
    cursor = tmp_path / "editor.json"
    with pytest.raises(ValueError, match="need work"):
        service.mark_version_prepped("Editor", cursor, room_id, 1)
    assert not cursor.exists()
    service.update_message_versions(room_id, 1, levels("First."), prepared_by="Editor")
    found = service.mark_version_prepped("Editor", cursor, room_id, 1)
    again = service.mark_version_prepped("Editor", cursor, room_id, 2, mode="structural")
    assert found["agent_name"] == "Editor"
    assert set(again["completed"]) == {f"{room_id}:1:semantic", f"{room_id}:2:structural"}
    entry = json.loads(cursor.read_text())["completed"][f"{room_id}:1:semantic"]
    versions = service.get_message_versions(room_id, 1)
    assert entry["bundle_hash"] == versions["bundle_hash"]
    assert entry["source_hash"] == versions["source_hash"]
    with pytest.raises(ValueError, match="belongs to"):
        service.mark_version_prepped("Other", cursor, room_id, 1)
    cursor.write_text("{")
    with pytest.raises(ValueError, match="damaged"):
        service.mark_version_prepped("Editor", cursor, room_id, 1)


def test_a_consumer_lens_fits_the_oldest_first_and_is_sticky(
    service: ChatroomService, room_id: str
) -> None:
    service.update_message_versions(room_id, 1, levels("First.", ""), prepared_by="Editor")
    whole = service.render_consumer_lens(room_id, "Analyst")
    assert whole["consumer_compile"]["status"] == "valid"
    assert whole["consumer_compile"]["threshold_chars"] == 180_000
    text = json.dumps(whole["messages"], ensure_ascii=False, separators=(",", ":"))
    size = len(text)
    assert whole["consumer_compile"]["compiled_chars"] == size
    assert whole["consumer_compile"]["remaining_margin_chars"] == 180_000 - size
    assert [m["selected_version"] for m in whole["messages"]] == [0, 0]
    assert service.load_consumer_state(room_id, "Analyst")["selected_versions"] == {}
    tight = service.render_consumer_lens(room_id, "Analyst", threshold_chars=size - 1)
    assert [m["selected_version"] for m in tight["messages"]] == [1, 0]
    assert [m["message"] for m in tight["messages"]] == ["", "Second."]
    assert tight["consumer_compile"]["highest_version_used"] == 1
    again = ChatroomService(service.root).render_consumer_lens(room_id, "Analyst")
    assert [m["selected_version"] for m in again["messages"]] == [1, 0]
    state = service.load_consumer_state(room_id, "Analyst")
    assert state["selected_versions"] == {"1": 1}
    assert state["consumer_compile"]["threshold_chars"] == size - 1


def test_exhausted_is_reported_and_nobody_is_removed(
    service: ChatroomService, room_id: str
) -> None:
    found = service.render_consumer_lens(room_id, "Analyst", threshold_chars=10)
    assert found["consumer_compile"]["status"] == "exhausted"
    assert found["consumer_compile"]["highest_version_used"] == 9
    assert found["consumer_compile"]["remaining_margin_chars"] < 0
    assert "Analyst" in service.load_chat(room_id)["state"]["participants"]


def test_a_consumer_lens_shows_what_the_policy_leaves(
    service: ChatroomService, room_id: str
) -> None:
    service.add_standin(room_id, [1], "In short.", standin_id="s")
    found = service.render_consumer_lens(room_id, "Analyst", threshold_chars=10)
    assert [m["message_id"] for m in found["messages"]] == ["standin:s", 2]
    assert [m["selected_version"] for m in found["messages"]] == [0, 9]
    assert (found["message_count"], found["raw_message_count"]) == (2, 2)
    assert found["compile_policy"] == service.get_compile_policy(room_id)
