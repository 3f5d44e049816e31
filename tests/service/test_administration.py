"""Operations with a report: dry runs by default, and the fields that the interface promises."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from agent_chatroom_ledger.errors import Conflict

if TYPE_CHECKING:
    from pathlib import Path

    from agent_chatroom_ledger.service import ChatroomService

FIELDS = [
    "operation_id",
    "operation_type",
    "dry_run",
    "applied",
    "requested_by",
    "created_at",
    "source",
    "target",
    "actions",
    "provenance",
    "compile_policy",
    "warnings",
    "verification",
]


@pytest.fixture
def chat(service: ChatroomService) -> str:
    made = service.create_chat("Review", participants=["Ana"])
    ref: str = made["state"]["chat_id"]
    return ref


def participants(service: ChatroomService, ref: str) -> list[str]:
    found: list[str] = service.load_chat(ref)["state"]["participants"]
    return found


def check(report: dict[str, Any], *, applied: bool, kind: str) -> None:
    assert list(report) == FIELDS
    assert report["operation_type"] == kind
    assert (report["applied"], report["dry_run"]) == (applied, not applied)


def test_participants_are_added_and_removed(service: ChatroomService, chat: str) -> None:
    dry = service.add_participant_operation(chat, "Ben", threshold_chars=5_000)
    check(dry, applied=False, kind="add_participant")
    assert dry["actions"][0]["status"] == "would_add"
    assert dry["target"]["chat_id"] == chat
    assert participants(service, chat) == ["Ana"]
    done = service.add_participant_operation(chat, "Ben", threshold_chars=5_000, apply=True)
    check(done, applied=True, kind="add_participant")
    assert done["actions"][0]["status"] == "added"
    assert done["provenance"]["threshold_chars"] == 5_000
    assert participants(service, chat) == ["Ana", "Ben"]
    again = service.add_participant_operation(chat, "Ben", apply=True)
    assert again["actions"][0]["status"] == "noop"
    assert again["applied"] is False
    gone = service.remove_participant_operation(chat, "Ana", reason="left", apply=True)
    check(gone, applied=True, kind="remove_participant")
    assert gone["provenance"]["reason"] == "left"
    assert participants(service, chat) == ["Ben"]


def test_coverage_says_which_rooms_list_a_name(service: ChatroomService, chat: str) -> None:
    other = service.create_chat("Other")["state"]["chat_id"]
    found = service.participant_coverage("Ana")
    assert [room["chat_id"] for room in found["listed"]] == [chat]
    assert [room["chat_id"] for room in found["missing"]] == [other]
    assert (found["chat_count"], found["listed_count"], found["missing_count"]) == (2, 1, 1)


def test_a_room_that_is_not_there(service: ChatroomService) -> None:
    with pytest.raises(FileNotFoundError):
        service.add_participant_operation("nowhere", "Ben")


def test_a_message_is_placed_once_and_duplicated_at_will(
    service: ChatroomService, chat: str
) -> None:
    target = service.create_chat("Target")["state"]["chat_id"]
    service.post_message(chat, "Ana", "First.", kind="proposal", mentions=["Ben"])
    dry = service.place_message_operation(chat, 1, target, placement_reason="why")
    check(dry, applied=False, kind="place_message")
    assert [action["status"] for action in dry["actions"]] == ["would_place"]
    done = service.place_message_operation(chat, 1, target, placement_reason="why", apply=True)
    check(done, applied=True, kind="place_message")
    assert (done["source"]["chat_id"], done["target"]["chat_id"]) == (chat, target)
    assert done["provenance"]["placed_by"] == "ChatroomService"
    again = service.place_message_operation(chat, 1, target, placement_reason="why", apply=True)
    assert [action["status"] for action in again["actions"]] == ["skipped_duplicate"]
    assert again["warnings"]
    assert again["applied"] is False
    twice = service.duplicate_message_operation(chat, 1, target, placement_reason="why", apply=True)
    check(twice, applied=True, kind="duplicate_message")
    copies = service.load_chat(target)["messages"]
    assert [(m["speaker"], m["kind"], m["message"], m["mentions"]) for m in copies] == [
        ("Ana", "proposal", "First.", ["Ben"])
    ] * 2
    assert copies[0]["provenance"]["message"].startswith("1@")


def test_a_range_is_placed_in_one_operation(service: ChatroomService, chat: str) -> None:
    target = service.create_chat("Target")["state"]["chat_id"]
    for number in range(1, 5):
        service.post_message(chat, "Ana", f"{number}", compile_after=False)
    done = service.place_range_operation(chat, 2, 4, target, placement_reason="why", apply=True)
    check(done, applied=True, kind="place_range")
    assert done["actions"][0]["count"] == 3
    assert [m["message_id"] for m in service.load_chat(target)["messages"]] == [1, 2, 3]
    more = service.duplicate_range_operation(chat, 1, 2, target, placement_reason="w", apply=True)
    check(more, applied=True, kind="duplicate_range")
    for wrong in ("", " "):
        with pytest.raises(ValueError, match="reason"):
            service.place_range_operation(chat, 1, 2, target, placement_reason=wrong)
    with pytest.raises(ValueError, match="no 5"):
        service.place_message_operation(chat, 5, target, placement_reason="why")


def test_rooms_are_made_archived_and_restored(service: ChatroomService) -> None:
    dry = service.create_room_operation("Plans", participants=["Ana"])
    check(dry, applied=False, kind="create_room")
    assert service.list_chats() == []
    made = service.create_room_operation("Plans", participants=["Ana"], apply=True)
    check(made, applied=True, kind="create_room")
    ref = made["target"]["chat_id"]
    service.post_message(ref, "Ana", "hello")
    gone = service.archive_room_operation(ref, reason="done", apply=True)
    check(gone, applied=True, kind="archive_room")
    assert service.list_chats() == []
    (archived,) = service.list_chats("archived")
    assert (archived["chat_id"], archived["status"]) == (ref, "archived")
    assert service.load_chat(ref)["state"]["status"] == "archived"
    assert [m["message"] for m in service.load_chat(ref)["messages"]] == ["hello"]
    assert service.render_chat_lens(ref)["warnings"] == []
    check(service.restore_room_operation(ref, apply=True), applied=True, kind="restore_room")
    assert [chat["chat_id"] for chat in service.list_chats()] == [ref]


def test_archived_rooms_are_scanned_when_they_are_asked_for(
    service: ChatroomService, chat: str, tmp_path: Path
) -> None:
    service.post_message(chat, "Ana", "hello")
    assert service.archive_chat(chat)["state"]["status"] == "archived"
    cursor = tmp_path / "ana.json"
    assert service.scan_unread("Ana", cursor) == []
    for source in ("state", "canonical"):
        (item,) = service.scan_unread("Ana", cursor, status="archived", source=source)
        assert (item["chat_id"], item["unread_count"], item["status"]) == (chat, 1, "archived")
    assert len(service.scan_unread("Ana", cursor, status="all")) == 1
    assert service.restore_chat(chat)["state"]["status"] == "active"


@pytest.mark.parametrize(
    ("mode", "shown"),
    [
        ("detailed-standin", "2 messages are left out.\n#1 Ana: First.\n#2 Ben: Second."),
        ("short-standin", "2 messages are left out."),
        ("no-standin", None),
    ],
)
def test_a_policy_is_applied_in_three_modes(
    service: ChatroomService, chat: str, mode: Any, shown: str | None
) -> None:
    service.post_message(chat, "Ana", "First.")
    service.post_message(chat, "Ben", "Second.")
    dry = service.apply_compile_policy_operation(chat, [1, 2], mode=mode)
    check(dry, applied=False, kind="apply_compile_policy")
    assert len(service.render_chat_lens(chat)["messages"]) == 2
    done = service.apply_compile_policy_operation(chat, [1, 2], mode=mode, apply=True)
    check(done, applied=True, kind="apply_compile_policy")
    assert done["provenance"]["mode"] == mode
    logged = service.read_operation_log(limit=1)[0]
    check(logged, applied=True, kind="apply_compile_policy")
    assert logged["provenance"]["mode"] == mode
    texts = [m["message"] for m in service.render_chat_lens(chat)["messages"]]
    assert texts == ([] if shown is None else [shown])
    assert service.load_chat(chat)["state"]["compile"]["status"] == "clean"


def test_a_standin_of_ones_own_and_what_is_refused(service: ChatroomService, chat: str) -> None:
    service.post_message(chat, "Ana", "First.")
    service.apply_compile_policy_operation(chat, [1], standin_message="mine", apply=True)
    assert [m["message"] for m in service.render_chat_lens(chat)["messages"]] == ["mine"]
    for ids, mode in (([9], "detailed-standin"), ([9], "no-standin"), ([1], "other")):
        with pytest.raises(ValueError, match=r"9|mode"):
            service.apply_compile_policy_operation(chat, ids, mode=mode)  # type: ignore[arg-type] # what a caller may get wrong


def test_only_applied_operations_enter_the_log(service: ChatroomService, chat: str) -> None:
    service.add_participant_operation(chat, "Ben")
    done = service.add_participant_operation(chat, "Ben", apply=True)
    service.add_participant_operation(chat, "Ben", apply=True)
    log = service.read_operation_log()
    assert [report["operation_type"] for report in log] == ["create_room", "add_participant"]
    assert log[1] == done
    assert service.read_operation_log(limit=1) == [done]


def test_a_dry_run_is_the_default_of_every_operation(
    service: ChatroomService, chat: str, tmp_path: Path
) -> None:
    target = service.create_chat("Target")["state"]["chat_id"]
    service.post_message(chat, "Ana", "First.")
    place = {"placement_reason": "why"}
    before = ledger_files(tmp_path)
    dry = [
        service.create_room_operation("New"),
        service.archive_room_operation(chat),
        service.add_participant_operation(chat, "Ben"),
        service.remove_participant_operation(chat, "Ana"),
        service.place_message_operation(chat, 1, target, **place),
        service.place_range_operation(chat, 1, 1, target, **place),
        service.duplicate_message_operation(chat, 1, target, **place),
        service.duplicate_range_operation(chat, 1, 1, target, **place),
        service.apply_compile_policy_operation(chat, [1]),
    ]
    for report in dry:
        assert (report["dry_run"], report["applied"]) == (True, False)
        assert all(action["status"].startswith("would_") for action in report["actions"])
    assert ledger_files(tmp_path) == before
    service.archive_chat(chat)
    before = ledger_files(tmp_path)
    assert service.restore_room_operation(chat)["dry_run"]
    assert ledger_files(tmp_path) == before


def test_an_archived_room_takes_no_posts_and_is_verified(
    service: ChatroomService, chat: str
) -> None:
    service.archive_chat(chat)
    with pytest.raises(Conflict, match="archived"):
        service.post_message(chat, "Ana", "Late.")
    assert service.verify()["chats"] == 1


def ledger_files(folder: Path) -> dict[str, bytes]:
    """Return every file of the ledger, without what is derived or only locked."""
    private = folder / "rooms" / ".git" / "ledger"
    return {
        str(path): path.read_bytes()
        for path in sorted((folder / "rooms").rglob("*"))
        if path.is_file() and private not in path.parents
    }
