"""The command names of the earlier chatroom: hidden, JSON in every case, dry runs by default."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from agent_chatroom_ledger import Ledger
from agent_chatroom_ledger.cli.originals import command_of
from agent_chatroom_ledger.cli.program import ORIGINALS

if TYPE_CHECKING:
    from pathlib import Path

    from tests.cli.conftest import Invoke


ADMINISTRATIVE = {
    "add-participant",
    "add-standin",
    "apply-compile-policy",
    "archive-room",
    "clear-compile-policy",
    "create-room",
    "duplicate-message",
    "duplicate-range",
    "exclude-messages",
    "include-messages",
    "place-message",
    "place-range",
    "remove-participant",
    "restore-room",
}


@pytest.fixture
def old(invoke: Invoke) -> Any:
    """Give `old("scan", …)`, which returns the document that the command printed."""

    def call(*words: str) -> Any:
        return msgspec.json.decode(invoke(*words).stdout_bytes)

    return call


@pytest.fixture
def chat(root: Path) -> str:
    with Ledger.open(root) as ledger:
        room = ledger.create_room("Review", members=["Ana"])
        room.post_many([{"author": "Ana", "body": str(n)} for n in range(1, 5)])
        return f"chat_{room.id.replace('-', '')}"


@pytest.mark.parametrize("name", sorted(ORIGINALS))
def test_every_one_explains_itself_and_is_hidden(invoke: Invoke, name: str) -> None:
    command = command_of(name)
    assert command.hidden
    assert command.help
    result = invoke(name, "--help")
    assert result.exit_code == 0
    assert ("--apply" in result.stdout) == (name in ADMINISTRATIVE)
    assert f"  {name} " not in invoke("--help").stdout


def test_reading_and_acknowledging(old: Any, chat: str, tmp_path: Path) -> None:
    cursor = ("--agent", "Ana", "--cursor", str(tmp_path / "ana.json"))
    assert old("scan", *cursor)["unread"][0]["unread_count"] == 4
    seen = old("mark-seen", *cursor, "--chat", chat, "--message-id", "3")
    assert seen["positions"][chat]["last_seen_message_id"] == 3
    assert old("scan", *cursor)["unread"][0]["unread_count"] == 1
    assert len(old("render-lens", "--chat-id", chat)["messages"]) == 4


def test_policy(old: Any, chat: str) -> None:
    dry = old("exclude-messages", "--chat", chat, "--message-ids", "1-2")
    assert (dry["operation_type"], dry["dry_run"]) == ("exclude_messages", True)
    assert old("compile-policy", "--chat", chat)["excluded_message_ids"] == []
    old("exclude-messages", "--chat", chat, "--message-ids", "1,2", "--apply")
    assert old("compile-policy", "--chat", chat)["excluded_message_ids"] == [1, 2]
    old("include-messages", "--chat", chat, "--message-id", "1", "--apply")
    assert old("compile-policy", "--chat", chat)["excluded_message_ids"] == [2]
    old("add-standin", "--chat", chat, "--message-ids", "3", "--message", "three", "--apply")
    assert old("compile-policy", "--chat", chat)["standins"][0]["message"] == "three"
    old("clear-compile-policy", "--chat", chat, "--apply")
    mode = ("--mode", "short-standin", "--apply")
    done = old("apply-compile-policy", "--chat", chat, "--message-ids", "1,2", *mode)
    assert done["operation_type"] == "apply_compile_policy"
    assert old("compile-policy", "--chat", chat)["excluded_message_ids"] == [1, 2]


def test_rooms_participants_placements_and_the_log(old: Any, chat: str) -> None:
    made = old("create-room", "--title", "Target", "--participant", "Ben", "--apply")
    target = made["target"]["chat_id"]
    assert old("participant-coverage", "--name", "Ben")["listed"][0]["chat_id"] == target
    old("add-participant", "--chat", chat, "--name", "Ben", "--apply")
    old("remove-participant", "--chat", chat, "--name", "Ana", "--reason", "left", "--apply")
    placing = ("--source", chat, "--target", target, "--reason", "why", "--apply")
    assert old("place-message", "--message-id", "1", *placing)["applied"] is True
    assert old("place-range", "--start", "1", "--end", "3", *placing)["actions"][0]["count"] == 2
    old("duplicate-message", "--message-id", "1", *placing)
    old("duplicate-range", "--start", "1", "--end", "2", *placing)
    assert old("render-lens", "--chat", target)["raw_message_count"] == 6
    assert old("archive-room", "--chat", target)["dry_run"] is True
    assert old("archive-room", "--chat", target, "--apply")["applied"] is True
    assert old("restore-room", "--chat", target, "--apply")["applied"] is True
    kinds = [one["operation_type"] for one in old("operation-log")["operations"]]
    assert kinds == [
        "create_room",
        "create_room",
        "add_participant",
        "remove_participant",
        "place_message",
        "place_range",
        "duplicate_message",
        "duplicate_range",
        "archive_room",
        "restore_room",
    ]
    assert len(old("operation-log", "--limit", "2")["operations"]) == 2


def test_versions_and_consumers(old: Any, chat: str, tmp_path: Path) -> None:
    levels = {str(k): {"message": "1", "char_count": 1} for k in range(10)}
    file = tmp_path / "versions.json"
    file.write_bytes(msgspec.json.encode(levels))
    message = ("--chat", chat, "--message-id", "1")
    assert old("version-audit", "--chat", chat, "--semantic")["needs_work_count"] == 4
    old("update-message-versions", *message, "--versions", str(file), "--prepared-by", "Ana")
    assert old("version-audit", "--semantic")["needs_work_count"] == 3
    agent = ("--agent", "Ana", "--cursor", str(tmp_path / "versions.cursor.json"))
    assert old("mark-version-prepped", *agent, *message)["completed"]
    consumer = ("--chat", chat, "--consumer", "Ana")
    assert old("render-consumer-lens", *consumer)["consumer_compile"]["status"] == "valid"
    assert old("consumer-state", *consumer)["consumer"] == "Ana"
    file.write_text("[", encoding="ascii")
    error = old("update-message-versions", *message, "--versions", str(file), "--prepared-by", "A")
    assert error["error"]["code"] == "invalid_input"


def test_errors_are_json_with_the_same_statuses(invoke: Invoke, old: Any) -> None:
    assert old("render-lens", "--chat", "nowhere")["error"]["code"] == "not_found"
    assert invoke("render-lens", "--chat", "nowhere").exit_code == 3
    assert invoke("place-message", "--source", "a").exit_code == 2
