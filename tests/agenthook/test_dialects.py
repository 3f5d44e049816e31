"""The events of four clients, as they send them, and the answers that they take."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_chatroom_ledger.agenthook import dialects
from agent_chatroom_ledger.agenthook.dialects import Event, read
from agent_chatroom_ledger.agenthook.entries import CLIENTS, ENTRIES

# Read off Claude Code 2.1.197; Codex 0.171.0's own schemas; Gemini CLI 0.61.0's reference; Cursor's
# documentation.
CLAUDE = {
    "session_id": "0b27bbae-672a-48b7-952b-b1f8fbdbaf03",
    "transcript_path": "/home/u/.claude/projects/-p/0b27bbae.jsonl",
    "cwd": "/home/u/p",
    "permission_mode": "default",
}
CODEX = {
    "session_id": "0199-cd",
    "transcript_path": None,
    "cwd": "/home/u/p",
    "model": "gpt-5",
    "permission_mode": "default",
}
GEMINI = {
    "session_id": "g-1",
    "transcript_path": "/t",
    "cwd": "/home/u/p",
    "timestamp": "2026-11-30T00:00:00Z",
}
CURSOR = {
    "conversation_id": "c-1",
    "generation_id": "g-1",
    "model": "some-model",
    "cursor_version": "3.20.17",
    "workspace_roots": ["/home/u/p", "/home/u/q"],
    "user_email": None,
    "transcript_path": None,
}


@pytest.mark.parametrize(
    ("fields", "client", "kind"),
    [
        (
            {**CLAUDE, "hook_event_name": "SessionStart", "source": "startup"},
            "claude-code",
            "start",
        ),
        ({**CLAUDE, "hook_event_name": "UserPromptSubmit", "prompt": "x"}, "claude-code", "prompt"),
        (
            {**CLAUDE, "hook_event_name": "PostToolUse", "tool_name": "Bash", "tool_response": {}},
            "claude-code",
            "tool",
        ),
        ({**CLAUDE, "hook_event_name": "Stop", "stop_hook_active": False}, "claude-code", "stop"),
        ({**CLAUDE, "hook_event_name": "SubagentStop"}, "claude-code", "other"),
        ({**CLAUDE, "hook_event_name": "Anything"}, "claude-code", "other"),
        ({**CODEX, "hook_event_name": "PostToolUse", "turn_id": "t"}, "codex", "tool"),
        ({**CODEX, "hook_event_name": "UserPromptSubmit", "turn_id": "t"}, "codex", "prompt"),
        ({**CODEX, "hook_event_name": "Stop", "turn_id": "t"}, "codex", "stop"),
        ({**GEMINI, "hook_event_name": "SessionStart", "source": "startup"}, "gemini-cli", "start"),
        ({**GEMINI, "hook_event_name": "BeforeAgent", "prompt": "x"}, "gemini-cli", "prompt"),
        ({**GEMINI, "hook_event_name": "AfterTool", "tool_name": "x"}, "gemini-cli", "tool"),
        ({**GEMINI, "hook_event_name": "AfterAgent"}, "gemini-cli", "stop"),
        ({**CURSOR, "hook_event_name": "sessionStart", "session_id": "c-1"}, "cursor", "start"),
        ({**CURSOR, "hook_event_name": "beforeSubmitPrompt", "prompt": "x"}, "cursor", "prompt"),
        ({**CURSOR, "hook_event_name": "postToolUse"}, "cursor", "tool"),
        ({**CURSOR, "hook_event_name": "stop", "status": "completed"}, "cursor", "stop"),
    ],
    ids=lambda value: value.get("hook_event_name") if isinstance(value, dict) else value,
)
def test_events_are_known_by_themselves(fields: dict[str, Any], client: str, kind: str) -> None:
    event = read(json.dumps(fields).encode())
    assert (event.client, event.kind) == (client, kind)
    assert event.name == fields["hook_event_name"]
    assert event.directory == "/home/u/p"
    assert event.session == fields.get("conversation_id", fields.get("session_id"))
    assert not event.subagent


def test_a_session_start_of_codex_is_told_by_the_option() -> None:
    data = json.dumps({**CODEX, "hook_event_name": "SessionStart", "source": "clear"}).encode()
    assert read(data, "codex").client == "codex"
    assert read(data, "codex").source == "clear"
    # Without it the dialect is the same all the same.
    assert read(data).client == "claude-code"
    assert read(data, "no such client").client == "claude-code"


@pytest.mark.parametrize("client", CLIENTS)
def test_every_event_that_a_client_calls_the_hook_for_has_a_meaning(client: str) -> None:
    kinds = {read(json.dumps({"hook_event_name": e.event}).encode()).kind for e in ENTRIES[client]}
    assert kinds == {"start", "prompt", "tool", "stop"}


@pytest.mark.parametrize("value", ["a-1", 7, ["x"], {"a": 1}, False])
def test_any_agent_id_is_a_subagent(value: object) -> None:
    data = json.dumps({**CLAUDE, "hook_event_name": "PostToolUse", "agent_id": value}).encode()
    assert read(data).subagent
    assert read(data.replace(b"agent_id", b"agent_no")).subagent is False


def test_a_prompt_of_the_client_itself_is_known() -> None:
    prompt = {**CLAUDE, "hook_event_name": "UserPromptSubmit"}
    told = "<task-notification>\n<summary>Stop hook feedback</summary>\n</task-notification>"
    assert read(json.dumps({**prompt, "prompt": told}).encode()).woken
    assert not read(json.dumps({**prompt, "prompt": f"what is {told}"}).encode()).woken


def test_who_goes_on_and_who_failed() -> None:
    stop = {**CLAUDE, "hook_event_name": "Stop"}
    assert read(json.dumps({**stop, "stop_hook_active": True}).encode()).goes_on
    assert not read(json.dumps({**stop, "stop_hook_active": "yes"}).encode()).goes_on
    mine = {**CURSOR, "hook_event_name": "stop"}
    assert read(json.dumps({**mine, "loop_count": 1}).encode()).goes_on
    assert read(json.dumps({**mine, "status": "aborted"}).encode()).failed
    assert not read(json.dumps({**mine, "status": "completed"}).encode()).failed


@pytest.mark.parametrize(
    "data",
    [
        b'{"hook_event_name":"Stop","prompt":"half an emoji \\ud83d","session_id":"s"}',
        b'\xef\xbb\xbf{"hook_event_name":"Stop","session_id":"s"}',
        b'{"hook_event_name":"Stop","session_id":"s","x":NaN}',
        b'{"hook_event_name":"Stop","session_id":"s","x":"\xff\xfe"}',
    ],
)
def test_what_a_strict_parser_refuses_is_read_all_the_same(data: bytes) -> None:
    assert read(data)._replace(client="") == Event("", "stop", "Stop", session="s")


@pytest.mark.parametrize(
    "data",
    [b"", b"{", b"[]", b"null", b'"Stop"', b"\x00", b"[" * 100_000, b'{"a":' * 100_000],
    ids=lambda data: repr(data[:10]),
)
def test_what_is_no_event_is_refused(data: bytes) -> None:
    with pytest.raises(ValueError, match="the event is no JSON"):
        read(data)


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=3), inner),
    max_leaves=4,
)


@given(st.dictionaries(st.sampled_from(sorted(dialects._KNOWN)), VALUES))
def test_fields_of_any_type_make_an_event(fields: dict[str, Any]) -> None:
    event = read(json.dumps(fields).encode())
    for text in (event.session, event.directory, event.model):
        assert text is None or (text and "\n" not in text)


@pytest.mark.parametrize("name", ["SessionStart", "UserPromptSubmit", "PostToolUse"])
@pytest.mark.parametrize("client", ["claude-code", "codex"])
def test_context_names_its_event(client: str, name: str) -> None:
    event = read(json.dumps({"hook_event_name": name}).encode(), client)
    assert dialects.takes_messages(event)
    assert dialects.context(event, "text") == {
        "hookSpecificOutput": {"hookEventName": name, "additionalContext": "text"}
    }


def test_cursor_is_told_at_a_prompt_only_what_may_get_lost() -> None:
    prompt = read(b'{"hook_event_name":"beforeSubmitPrompt"}')
    assert not dialects.takes_messages(prompt)
    assert dialects.context(prompt, "t") == {"continue": True, "additional_context": "t"}
    tool = read(b'{"hook_event_name":"postToolUse"}')
    assert dialects.takes_messages(tool)
    assert dialects.context(tool, "t") == {"additional_context": "t"}


@pytest.mark.parametrize(
    ("name", "answer"),
    [
        ("Stop", {"decision": "block", "reason": "r"}),
        ("AfterAgent", {"decision": "deny", "reason": "r"}),
        ("stop", {"followup_message": "r"}),
    ],
)
def test_a_stop_is_blocked_in_the_words_of_the_client(name: str, answer: dict[str, str]) -> None:
    assert dialects.block(read(json.dumps({"hook_event_name": name}).encode()), "r") == answer


@given(st.text(max_size=50))
def test_an_answer_is_one_line_of_json(text: str) -> None:
    data = dialects.encode({"reason": text})
    assert data.count(b"\n") == 1
    assert json.loads(data) == {"reason": text}
