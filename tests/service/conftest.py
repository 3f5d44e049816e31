"""A service in a temporary directory, with a room of two messages."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from agent_chatroom_ledger.service import ChatroomService

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def service(tmp_path: Path) -> ChatroomService:
    return ChatroomService(tmp_path / "rooms")


@pytest.fixture
def room(service: ChatroomService) -> dict[str, Any]:
    """A room with the members Analyst and Reviewer and two messages of Analyst."""
    made = service.create_chat("Design review", participants=["Analyst", "Reviewer"])
    service.post_message(made["state"]["chat_id"], "Analyst", "First.")
    return service.post_message(made["state"]["chat_id"], "Analyst", "Second.")


@pytest.fixture
def room_id(room: dict[str, Any]) -> str:
    found: str = room["state"]["chat_id"]
    return found
