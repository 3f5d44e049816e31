from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from agent_chatroom_ledger.agenthook import entries
from agent_chatroom_ledger.clients.jsondocument import JsonDocument
from agent_chatroom_ledger.clients.jsonfile import JsonText
from agent_chatroom_ledger.clients.refusals import Place
from agent_chatroom_ledger.errors import Conflict, InvalidInput
from tests.clients.documents import json_texts

PLACE = Place("A client", Path("/home/me/.client/settings.json"))
SERVER = {"type": "stdio", "command": "rooms", "args": ["mcp"]}


def document(client: str = "claude", **changes: Any) -> JsonDocument:
    given_: dict[str, Any] = {
        "place": PLACE,
        "server": SERVER,
        "hooks": entries.documents(client),
        "allow": ("permissions", "allow"),
        "allowed": "mcp__rooms",
        "allowing": True,
    }
    return JsonDocument(**{**given_, **changes})


def others(text: str) -> Any:
    """Read a document that has comments, as the client would, to compare what it says."""
    return JsonText(PLACE, text, comments=True).data


@settings(max_examples=400, deadline=None)
@given(text=json_texts(), allowing=st.booleans())
@example(text="{}", allowing=True)
@example(text="{\n}\n", allowing=True)
@example(text='{"hooks": {}, "mcpServers":{ }}', allowing=True)
@example(text="", allowing=True)
@example(text="\n", allowing=False)
@example(text="\ufeff", allowing=False)
def test_taking_out_is_the_inverse_of_putting_in(text: str, *, allowing: bool) -> None:
    ours = document(allowing=allowing)
    connected = ours.connected(text)
    assert ours.connected(connected) == connected
    assert set(ours.states(connected).values()) <= {"current", "absent"}
    assert ours.disconnected(connected) == text
    before = json.loads(text.removeprefix("\ufeff") or "{}") if text.strip("\ufeff \n") else {}
    after = json.loads(connected.removeprefix("\ufeff"))
    for key, value in before.items():
        assert after[key] == value or key in {"hooks", "mcpServers", "permissions"}
    for event, groups in before.get("hooks", {}).items():
        assert after["hooks"][event][: len(groups)] == groups
    for name, server in before.get("mcpServers", {}).items():
        assert after["mcpServers"][name] == server


@settings(max_examples=200, deadline=None)
@given(text=json_texts(comments=True), client=st.sampled_from(["gemini", "cursor"]))
def test_comments_stay_where_they_are_allowed(text: str, client: str) -> None:
    ours = document(client, comments=True, version=1 if client == "cursor" else None)
    connected = ours.connected(text)
    assert ours.connected(connected) == connected
    back = ours.disconnected(connected)
    assert back is not None
    assert others(back) == others(text)
    for comment in ("// said, {", "/* } */", '// \u00e9 "'):
        assert back.count(comment) == text.count(comment) <= connected.count(comment)


@settings(max_examples=100, deadline=None)
@given(text=json_texts())
def test_what_others_add_later_stays(text: str) -> None:
    ours = document()
    connected = JsonText(PLACE, ours.connected(text))
    added = connected.set_member(("mcpServers",), "later", {"command": "x"})
    added = added.append(("hooks", "Stop"), {"hooks": [{"type": "command", "command": "y"}]})
    added = added.append(("permissions", "allow"), "Bash")
    back = ours.disconnected(added.whole)
    assert back is not None
    data = others(back)
    assert data["mcpServers"]["later"] == {"command": "x"}
    assert data["hooks"]["Stop"][-1] == {"hooks": [{"type": "command", "command": "y"}]}
    assert data["permissions"]["allow"][-1] == "Bash"
    assert set(ours.states(back).values()) == {"absent"}


def test_a_file_that_is_not_there_comes_and_goes_with_ours() -> None:
    for client in entries.CLIENTS:
        ours = document(client, version=1 if client == "cursor" else None)
        connected = ours.connected(None)
        assert connected.endswith("}\n")
        assert ours.connected(connected) == connected
        assert ours.disconnected(connected) is None
    assert document().disconnected(None) is None


def test_an_older_entry_of_ours_is_brought_up_to_date_and_keeps_its_additions() -> None:
    old = {
        "mcpServers": {
            "rooms": {"command": "/old/bin/rooms", "args": ["mcp"], "env": {"A": "b"}},
        },
        "hooks": {
            "Stop": [
                {"hooks": [{"type": "command", "command": "theirs.sh"}]},
                {"hooks": [{"type": "command", "command": "/old/bin/rooms hook agent"}]},
            ],
            "Notification": [{"hooks": [{"type": "command", "command": "rooms hook agent"}]}],
        },
    }
    ours = document(allowing=False)
    text = json.dumps(old, indent=2)
    assert ours.states(text) == {"server": "drifted", "hooks": "drifted", "permission": "absent"}
    data = json.loads(ours.connected(text))
    assert data["mcpServers"]["rooms"] == {**SERVER, "env": {"A": "b"}}
    assert data["hooks"]["Stop"] == [old["hooks"]["Stop"][0], *entries.documents("claude")["Stop"]]
    assert "Notification" not in data["hooks"]
    assert ours.states(json.dumps(data))["hooks"] == "current"


def test_a_hook_of_ours_in_a_group_of_somebody_else_goes_alone() -> None:
    theirs = {"type": "command", "command": "theirs.sh"}
    mine = {"type": "command", "command": "rooms hook agent", "timeout": 10}
    text = json.dumps({"hooks": {"Stop": [{"matcher": "", "hooks": [mine, theirs, mine]}]}})
    back = document().disconnected(text)
    assert back is not None
    assert json.loads(back) == {"hooks": {"Stop": [{"matcher": "", "hooks": [theirs]}]}}


def test_a_foreign_server_of_our_name_is_left_alone() -> None:
    text = '{\n  "mcpServers": {\n    "rooms": {"command": "hotel-booking"}\n  }\n}\n'
    with pytest.raises(Conflict) as refused:
        document().connected(text)
    assert refused.value.code == "client_entry_taken"
    assert "settings.json, line 3" in refused.value.message
    back = document(hooks={}, allow=None).disconnected(text)
    assert back == text


@pytest.mark.parametrize(
    ("text", "line", "why"),
    [
        ('{\n  // a comment\n  "a": 1\n}', 2, "comment"),
        ('{\n  "a": 1,\n}', None, "comma before a closing bracket"),
        ('{\n  "a": [1,]\n}', None, "comma before a closing bracket"),
        ('{\n  "a": 1\n', 3, ""),
        ("{'a': 1}", 1, ""),
        ('{"a": NaN}', None, "NaN"),
        ('{"a": 01}', 1, ""),
        ('{"a": "\t"}', 1, ""),
        ('{"a": 1} {"b": 2}', 1, ""),
        ("[]", 1, "no JSON object"),
        ("null", 1, "no JSON object"),
        ('{"a":' + "[" * 100_000 + "]" * 100_000 + "}", None, "too deeply"),
        ('{"hooks": []}', 1, "hooks is not an object"),
        ('{\n"hooks": {\n"Stop": {}}}', 3, "hooks.Stop is not an array"),
        ('{"mcpServers": null,\n"mcpServers": "x"}', 2, "mcpServers is not an object"),
        ('{"permissions": {"allow": "x"}}', 1, "permissions.allow is not an array"),
    ],
    ids=range(16),
)
def test_what_the_client_could_not_use_is_refused(text: str, line: int | None, why: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        document().connected(text)
    assert refused.value.code == "client_file_unreadable"
    assert "/home/me/.client/settings.json" in refused.value.message
    assert why in refused.value.message
    if line is not None:
        assert f"line {line}" in refused.value.message


def test_deep_nesting_is_edited_up_to_what_is_read_at_all() -> None:
    text = '{"a":' + "[" * 100 + "]" * 100 + "}"
    assert document().disconnected(document().connected(text)) == text
    for depth in (700, 900, 990, 2_000):
        text = '{"a":' + "[" * depth + "]" * depth + "}"
        with pytest.raises(InvalidInput, match="too deeply"):
            document().connected(text)


def test_of_a_key_that_stands_twice_the_last_counts_as_it_does_for_the_client() -> None:
    text = '{"mcpServers": {"a": {}}, "mcpServers": {"b": {}}}'
    connected = document(hooks={}, allow=None).connected(text)
    assert json.loads(connected)["mcpServers"] == {"b": {}, "rooms": SERVER}
    assert connected.startswith('{"mcpServers": {"a": {}}, "mcpServers": {"b": {}, ')
    assert document(hooks={}, allow=None).disconnected(connected) == text


def test_a_comment_behind_the_last_value_stays_with_it() -> None:
    text = '{\n  "mcpServers": {\n    "a": {} // about a\n    // the end\n  }\n}\n'
    ours = document(
        comments=True, hooks={}, allow=None, server={"command": "rooms", "args": ["mcp"]}
    )
    connected = ours.connected(text)
    assert '"a": {}, // about a\n    "rooms": {' in connected
    assert ours.disconnected(connected) == text


def test_indentation_is_that_of_the_file() -> None:
    text = '{\n\t"mcpServers": {\n\t\t"a": {}\n\t}\n}\n'
    connected = document(hooks={}, allow=None).connected(text)
    assert '\n\t\t"rooms": {\n\t\t\t"type": "stdio",' in connected


def test_a_large_file_is_edited() -> None:
    projects = {f"/home/me/{n}": {"history": [{"display": "x" * 200}] * 10} for n in range(1_000)}
    text = json.dumps({"projects": projects, "mcpServers": {}}, indent=2)
    ours = document(hooks={}, allow=None)
    assert ours.disconnected(ours.connected(text)) == text
