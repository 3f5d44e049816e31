"""What a client's own file says about the hook."""

from __future__ import annotations

import pytest

from agent_chatroom_ledger.agenthook.entries import CLIENTS, ENTRIES, documents, is_own


def test_claude_code_has_two_stop_hooks_of_which_the_second_wakes() -> None:
    assert documents("claude") == {
        "SessionStart": [
            {"hooks": [{"type": "command", "command": "rooms hook agent", "timeout": 10}]}
        ],
        "UserPromptSubmit": [
            {"hooks": [{"type": "command", "command": "rooms hook agent", "timeout": 10}]}
        ],
        "PostToolUse": [
            {
                "matcher": "*",
                "hooks": [{"type": "command", "command": "rooms hook agent", "timeout": 10}],
            }
        ],
        "Stop": [
            {"hooks": [{"type": "command", "command": "rooms hook agent", "timeout": 10}]},
            {
                "hooks": [
                    {
                        "type": "command",
                        "command": "rooms hook agent --wake",
                        "timeout": 28_860,
                        "asyncRewake": True,
                    }
                ]
            },
        ],
    }


def test_gemini_counts_in_milliseconds() -> None:
    assert documents("gemini")["AfterAgent"] == [
        {
            "hooks": [
                {
                    "type": "command",
                    "command": "rooms hook agent --client gemini",
                    "timeout": 10_000,
                }
            ]
        }
    ]


def test_cursor_takes_flat_entries_and_bounds_what_a_stop_may_do() -> None:
    assert documents("cursor", "/opt/rooms")["stop"] == [
        {"command": "/opt/rooms hook agent --client cursor", "timeout": 10, "loop_limit": 3}
    ]


@pytest.mark.parametrize("client", CLIENTS)
def test_every_entry_is_known_again(client: str) -> None:
    for command in ("rooms", "/opt/a b/bin/rooms", "'/opt/a b/bin/rooms'", '"C:\\x y\\rooms.exe"'):
        for items in documents(client, command).values():
            for item in items:
                hooks = item.get("hooks", [item])
                assert [is_own(hook["command"]) for hook in hooks] == [True]
    assert len(ENTRIES[client]) >= 4


@pytest.mark.parametrize(
    "command",
    ["rooms hook pre-commit", "echo hook agent", "rooms-lint hook agent", "", "rooms agent hook"],
)
def test_hooks_of_others_are_not_ours(command: str) -> None:
    assert not is_own(command)
