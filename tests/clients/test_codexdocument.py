from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from agent_chatroom_ledger.agenthook import entries
from agent_chatroom_ledger.clients.codexdocument import CodexDocument
from agent_chatroom_ledger.clients.refusals import Place
from agent_chatroom_ledger.errors import Conflict, InvalidInput

PLACE = Place("Codex", Path("/home/me/.codex/config.toml"))
SERVER = {"command": "rooms", "args": ["mcp"], "env_vars": ["ROOMS_NAME", "ROOMS_ROOT"]}
SERVER_AS_TOML = """\
[mcp_servers.rooms]
command = "rooms"
args = ["mcp"]
env_vars = ["ROOMS_NAME", "ROOMS_ROOT"]
"""
# Top-level keys come first, as TOML has it; then tables in any order.
HEADS = st.sampled_from(
    [
        'model = "gpt-5"\n',
        "# a comment\n",
        "\n",
        "notify = [\n  'a', # said\n  '[mcp_servers.rooms]',\n]\n",
        "text = '''\n[mcp_servers.rooms]\ncommand = \"x\"\n'''\n",
        'mcp_servers.dotted.command = "d"\n',
    ]
)
TABLES = st.sampled_from(
    [
        '[mcp_servers.other]\ncommand = "x"   # why\nargs = [ ]\n',
        '[mcp_servers."a b"]\nurl = "http://127.0.0.1/"\n\n\n',
        '[projects."/home/me/[x]"]\ntrust_level = "trusted"\n',
        '[projects."/home/me/y"]\ntrust_level = "trusted"\n# the end of y\n',
        '[[hooks.Stop]]\n\n[[hooks.Stop.hooks]]\ntype = "command"\ncommand = "theirs"\n',
        '[hooks.state."/home/me/.codex/hooks.json:stop:0:0"]\ntrusted_hash = "sha256:00"\n',
        "[tui]\n\ttheme = 'dark'\n",
        "[empty]\n",
    ]
)


@st.composite
def toml_texts(draw: st.DrawFn) -> str:
    heads = draw(st.lists(HEADS, max_size=3, unique=True))
    tables = draw(st.lists(TABLES, max_size=4, unique=True))
    text = "".join(heads + tables)
    if draw(st.booleans()):
        text = text.replace("\n", "\r\n")
    if draw(st.booleans()):
        text = text.removesuffix("\n").removesuffix("\r")
    return draw(st.sampled_from(["", "", "\ufeff"])) + text + draw(st.sampled_from(["", "", "\n"]))


def document(*, hooks: bool = False, **more: Any) -> CodexDocument:
    wanted = entries.documents("codex") if hooks else {}
    return CodexDocument(place=PLACE, server={**SERVER, **more}, hooks=wanted)


@settings(max_examples=400, deadline=None)
@given(text=toml_texts(), hooks=st.booleans())
@example(text="", hooks=False)
@example(text="\n", hooks=False)
@example(text="a = 1", hooks=True)
@example(text="\ufeff", hooks=True)
def test_taking_out_is_the_inverse_of_putting_in(text: str, *, hooks: bool) -> None:
    ours = document(hooks=hooks)
    connected = ours.connected(text)
    assert connected.startswith(text)
    assert ours.connected(connected) == connected
    assert set(ours.states(connected).values()) <= {"current", "absent"}
    assert ours.disconnected(connected) == text
    before = tomllib.loads(text.removeprefix("\ufeff"))
    after = tomllib.loads(connected.removeprefix("\ufeff"))
    assert after["mcp_servers"].pop("rooms") == SERVER
    if not hooks:
        assert {**after, "mcp_servers": after["mcp_servers"] or None} == {
            **before,
            "mcp_servers": before.get("mcp_servers"),
        }


@pytest.mark.parametrize("hooks", [False, True])
def test_a_file_that_is_not_there_comes_and_goes_with_ours(*, hooks: bool) -> None:
    ours = document(hooks=hooks)
    connected = ours.connected(None)
    assert connected.startswith(SERVER_AS_TOML)
    assert ours.disconnected(connected) is None
    assert ours.disconnected(None) is None


def test_what_codex_and_others_add_later_stays() -> None:
    text = 'model = "x"\n'
    later = (
        document().connected(text)
        + '\n[mcp_servers.rooms.tools.rooms_post]\napproval_mode = "approve"\n'
        + '\n[projects."/home/me"]\ntrust_level = "trusted"\n'
    )
    back = document().disconnected(later)
    assert back == 'model = "x"\n\n[projects."/home/me"]\ntrust_level = "trusted"\n'


def test_inline_tables_are_edited_where_they_stand() -> None:
    text = '# first\nmcp_servers = { other = { command = "x" } } # all\n\n[tui]\n'
    connected = document().connected(text)
    assert tomllib.loads(connected)["mcp_servers"]["rooms"] == SERVER
    assert connected.startswith("# first\n")
    assert connected.endswith(" # all\n\n[tui]\n")
    back = document().disconnected(connected)
    assert back is not None
    assert tomllib.loads(back) == tomllib.loads(text)


def test_toml_1_1_is_read_as_codex_reads_it() -> None:
    text = 'a = {\n  b = "\\e", # said\n}\nat = 07:30\n'
    connected = document(hooks=True).connected(text)
    assert connected.startswith(text)
    assert document(hooks=True).disconnected(connected) == text


def test_an_older_entry_of_ours_is_brought_up_to_date_and_keeps_its_additions() -> None:
    text = (
        '[mcp_servers.rooms] # ours\ncommand = "/old/rooms"\nargs = ["mcp"]\n'
        'tool_timeout_sec = 300 # long\n\n[mcp_servers.rooms.env]\nA = "b"\n\n[tui]\n'
    )
    assert document().states(text)["server"] == "drifted"
    connected = document().connected(text)
    assert tomllib.loads(connected)["mcp_servers"]["rooms"] == {
        **SERVER,
        "tool_timeout_sec": 300,
        "env": {"A": "b"},
    }
    assert "[mcp_servers.rooms] # ours\n" in connected
    assert "tool_timeout_sec = 300 # long\n" in connected
    assert document().disconnected(connected) == "\n[tui]\n"


def test_hooks_of_an_older_version_are_replaced() -> None:
    theirs = '[[hooks.Stop]]\n\n[[hooks.Stop.hooks]]\ntype = "command"\ncommand = "theirs"\n'
    old = theirs.replace("theirs", "/old/rooms hook agent").replace("Stop", "Notification")
    text = f"{theirs}\n{old}"
    ours = document(hooks=True)
    assert ours.states(text)["hooks"] == "drifted"
    connected = ours.connected(text)
    hooks = tomllib.loads(connected)["hooks"]
    assert "Notification" not in hooks
    assert hooks["Stop"] == [
        {"hooks": [{"type": "command", "command": "theirs"}]},
        *entries.documents("codex")["Stop"],
    ]
    assert ours.disconnected(connected) == theirs


def test_a_foreign_server_of_our_name_is_left_alone() -> None:
    text = 'a = 1\n\n[mcp_servers.rooms]\ncommand = "hotel"\n'
    with pytest.raises(Conflict) as refused:
        document().connected(text)
    assert refused.value.code == "client_entry_taken"
    assert "config.toml, line 3" in refused.value.message
    assert document().disconnected(text) == text


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("a = \n", 1),
        ("a = 1\n[x\n", 2),
        ("[a]\n\n[a]\n", 3),
        ("a = 1\na = 2\n", 2),
        ('b = "\x00"\n', 1),
        ("a = {b = 1,,}\n", 1),
        ("a = 1\n[a]\nb = 1\n", None),
        ("[a]\nb = 1\n[a.b]\nc = 1\n", None),
        ("a = 1 b = 2\n", 1),
        ("// no comment\n", 1),
        ("a = " + "[" * 100_000 + "]" * 100_000, None),
    ],
    ids=range(11),
)
def test_what_codex_could_not_parse_is_refused(text: str, line: int | None) -> None:
    with pytest.raises(InvalidInput) as refused:
        document().connected(text)
    assert refused.value.code == "client_file_unreadable"
    assert "/home/me/.codex/config.toml" in refused.value.message
    if line is not None:
        assert f"line {line}:" in refused.value.message


@pytest.mark.parametrize("text", ["mcp_servers = 1\n", "mcp_servers = []\n", "[[mcp_servers]]\n"])
def test_servers_in_another_form_are_left_alone(text: str) -> None:
    with pytest.raises(Conflict) as refused:
        document().connected(text)
    assert refused.value.code == "client_file_uneditable"
    assert document().disconnected(text) == text
