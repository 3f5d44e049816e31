"""A loaded room is a dict like any other, only that its messages are read when asked for."""

from __future__ import annotations

import copy
import json
import pickle
from typing import TYPE_CHECKING, Any

import pytest

from agent_chatroom_ledger.adapters.chatroom import LoadedChat

if TYPE_CHECKING:
    from collections.abc import Callable

WHOLE = {"state": {"chat_id": "chat_1"}, "messages": [{"message_id": 1}]}


class Counted:
    """Messages that know how often they were read."""

    def __init__(self) -> None:
        self.times = 0

    def __call__(self) -> list[dict[str, Any]]:
        self.times += 1
        return [{"message_id": 1}]


@pytest.fixture
def reads() -> Counted:
    return Counted()


@pytest.fixture
def chat(reads: Counted) -> LoadedChat:
    return LoadedChat(reads, state={"chat_id": "chat_1"})


def test_nothing_is_read_for_the_state(chat: LoadedChat, reads: Counted) -> None:
    assert chat["state"] == {"chat_id": "chat_1"}
    assert set(chat) == {"state", "messages"}
    assert len(chat) == 2
    assert "messages" in chat
    assert chat.get("nothing", 3) == 3
    with pytest.raises(KeyError):
        chat["nothing"]
    assert reads.times == 0


@pytest.mark.parametrize(
    "look",
    [
        dict,
        lambda chat: {**chat},
        copy.copy,
        copy.deepcopy,
        lambda chat: chat.copy(),
        lambda chat: chat | {},
        lambda chat: dict(chat.items()),
        lambda chat: dict(zip(chat, chat.values(), strict=True)),
        lambda chat: {key: chat[key] for key in chat},
        lambda chat: {key: chat.get(key) for key in chat},
        lambda chat: {key: chat.pop(key) for key in list(chat)},
        lambda chat: json.loads(json.dumps(chat)),
        lambda chat: json.loads(json.dumps(chat, indent=1, sort_keys=True)),
        lambda chat: pickle.loads(pickle.dumps(chat)),  # noqa: S301 - our own bytes
        lambda chat: eval(repr(chat)),  # noqa: S307 - our own text
    ],
)
def test_however_one_looks_the_messages_are_there(
    chat: LoadedChat, reads: Counted, look: Callable[[LoadedChat], object]
) -> None:
    assert look(chat) == WHOLE
    assert reads.times == 1


def test_equality_is_that_of_dicts(chat: LoadedChat, reads: Counted) -> None:
    assert chat == WHOLE
    assert WHOLE == chat  # noqa: SIM300 - the other side is asked first
    assert chat == LoadedChat(Counted(), state={"chat_id": "chat_1"})
    assert chat != {"state": 1}
    assert reads.times == 1


def test_what_is_set_stays(chat: LoadedChat) -> None:
    chat["messages"] = []
    assert chat == {**WHOLE, "messages": []}
