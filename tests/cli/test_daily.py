"""Talking and looking: post, read, tail, unread, seen, list, show, lens, log, compile."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from agent_chatroom_ledger import Ledger

if TYPE_CHECKING:
    from pathlib import Path

    from tests.cli.conftest import Ask, Invoke
    from tests.conftest import Git


@pytest.fixture
def talk(root: Path, invoke: Invoke) -> Invoke:
    """Give a ledger with one room in which three messages stand."""
    with Ledger.open(root) as ledger:
        room = ledger.create_room("Design review", members=["Reviewer"])
        for who, text in (("Analyst", "one"), ("Reviewer", "two"), ("Analyst", "three")):
            room.post(who, text)
    return invoke


def test_post_says_where_the_message_stands(talk: Invoke) -> None:
    result = talk("post", "design-review", "four", "--as", "Analyst")
    assert (result.exit_code, result.stdout) == (0, "design-review #4\n")


def test_read_shows_the_conversation(talk: Invoke) -> None:
    lines = talk("read", "design-review").stdout.splitlines()
    assert lines[0].startswith("-- 20")
    assert [line.partition("Z ")[2] for line in lines[1:]] == [
        "Analyst: one",
        "Reviewer: two",
        "Analyst: three",
    ]


@pytest.mark.parametrize(
    ("options", "numbers"),
    [
        ((), [1, 2, 3]),
        (("--since", "1"), [2, 3]),
        (("--last", "1"), [3]),
        (("--limit", "2"), [1, 2]),
        (("--since", "1", "--limit", "1"), [2]),
        (("--kind", "decision"), []),
        (("--kind", "message", "--last", "2"), [2, 3]),
        (("--at", "HEAD~3"), [1]),
        (("--at", "now"), [1, 2, 3]),
    ],
)
@pytest.mark.usefixtures("talk")
def test_read_takes_a_part(ask: Ask, options: tuple[str, ...], numbers: list[int]) -> None:
    found = ask("read", "design-review", *options)
    assert [message["n"] for message in found["messages"]] == numbers


def test_read_refuses_both_ends_at_once(talk: Invoke) -> None:
    assert talk("read", "design-review", "--last", "1", "--limit", "1").exit_code == 2


@pytest.mark.usefixtures("talk")
@pytest.mark.parametrize("name", ["design-review", "rooms/design-review", "Design review"])
def test_rooms_are_named_by_path_slug_and_title(ask: Ask, name: str) -> None:
    assert ask("read", name)["room"]["path"] == "rooms/design-review"


@pytest.mark.usefixtures("talk")
def test_rooms_are_named_by_id(ask: Ask) -> None:
    room = ask("show", "design-review")["id"]
    assert ask("read", room)["room"]["id"] == room
    assert ask("read", "chat_" + room.replace("-", ""))["room"]["id"] == room


@pytest.mark.usefixtures("talk")
def test_two_readers_have_a_cursor_each(ask: Ask) -> None:
    assert ask("unread", "--as", "Analyst")["total"] == 3
    seen = ask("seen", "design-review", "--as", "Analyst", "--through", "2")
    assert seen["moved"] is True
    assert list(seen["position"].values()) == [2]
    assert ask("unread", "--as", "Analyst")["total"] == 1
    assert ask("unread", "--as", "Reviewer")["total"] == 3
    ask("seen", "design-review", "--as", "Analyst")
    assert ask("unread", "--as", "Analyst") == {"consumer": "Analyst", "total": 0, "rooms": []}


@pytest.mark.usefixtures("talk")
def test_a_cursor_moves_back_only_when_told(ask: Ask) -> None:
    ask("seen", "design-review", "--as", "Analyst")
    assert ask("seen", "design-review", "--as", "Analyst", "--through", "1")["moved"] is False
    back = ask("seen", "design-review", "--as", "Analyst", "--through", "1", "--rewind")
    assert (back["moved"], list(back["position"].values())) == (True, [1])
    ask("seen", "design-review", "--as", "Analyst", "--through", "0", "--rewind")
    assert ask("unread", "--as", "Analyst")["total"] == 3


@pytest.mark.usefixtures("talk")
def test_seen_past_the_end_is_an_error(ask: Ask) -> None:
    error = ask("seen", "design-review", "--as", "Analyst", "--through", "9")["error"]
    assert error["code"] == "past_end"


@pytest.mark.usefixtures("talk")
def test_unread_can_show_the_messages(ask: Ask) -> None:
    items = ask("unread", "--as", "A", "--messages", "--limit", "2")["rooms"]
    assert [message["body"] for message in items[0]["messages"]] == ["one", "two"]
    assert items[0]["count"] == 3


def test_unread_in_words(talk: Invoke) -> None:
    shown = talk("unread", "--as", "A", "--messages").stdout.splitlines()
    assert shown[0] == "3 unread in design-review, which goes to #3"
    assert shown[2].endswith("Analyst: one")
    talk("seen", "design-review", "--as", "A")
    assert talk("unread", "--as", "A").stdout == "Nothing unread.\n"


@pytest.mark.usefixtures("talk")
def test_unread_looks_at_named_rooms_and_at_ones_own(ask: Ask) -> None:
    ask("post", "other", "hello", "--as", "A", "--create")
    assert ask("unread", "--as", "B")["total"] == 4
    assert ask("unread", "other", "--as", "B")["total"] == 1
    assert ask("unread", "--as", "B", "--members-only")["total"] == 0
    assert ask("unread", "--as", "Reviewer", "--members-only")["total"] == 3


def test_a_cursor_may_be_kept_elsewhere(talk: Invoke, ask: Ask, tmp_path: Path) -> None:
    file = str(tmp_path / "mine.json")
    assert ask("seen", "design-review", "--as", "A", "--cursor", file)["cursor"] == file
    assert ask("unread", "--as", "A", "--cursor", file)["total"] == 0
    assert ask("unread", "--as", "A")["total"] == 3
    assert talk("unread", "--as", "B", "--cursor", file).exit_code == 1


@pytest.mark.usefixtures("talk")
def test_a_fresh_clone_is_read_and_acknowledged(
    ask: Ask, root: Path, tmp_path: Path, git: Git
) -> None:
    git(tmp_path, "clone", "-q", str(root), "clone")
    there = ("--root", str(tmp_path / "clone"))
    assert len(ask("read", "design-review", *there)["messages"]) == 3
    assert ask("unread", "--as", "A", *there)["total"] == 3
    assert ask("seen", "design-review", "--as", "A", *there)["moved"] is True
    assert ask("unread", "--as", "A", *there)["total"] == 0
    assert ask("post", "design-review", "four", "--as", "A", *there)["message"]["ref"][:2] == "1@"


def test_who_comes_from_the_environment(
    talk: Invoke, ask: Ask, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ROOMS_NAME", "Builder")
    assert talk("post", "design-review", "hello").exit_code == 0
    assert ask("read", "design-review", "--last", "1")["messages"][0]["author"] == "Builder"
    assert ask("unread")["consumer"] == "Builder"


def test_who_says_nothing_has_a_name_of_the_directory(
    talk: Invoke, ask: Ask, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = tmp_path / "Builder two"
    place.mkdir()
    monkeypatch.chdir(place)
    name = ask("unread")["consumer"]
    assert re.fullmatch("Builder-two-[0-9a-f]{4}", name)
    assert talk("post", "design-review", "hello").exit_code == 0
    assert ask("read", "design-review", "--last", "1")["messages"][0]["author"] == name
    assert ask("seen", "design-review")["consumer"] == name
    monkeypatch.chdir(tmp_path)
    assert ask("unread")["consumer"] != name


@pytest.mark.usefixtures("talk")
def test_list_names_rooms_and_their_newest(ask: Ask, invoke: Invoke) -> None:
    ask("post", "team/ops/deploy", "hello", "--as", "A", "--create")
    rooms = ask("list")["rooms"]
    assert [room["path"] for room in rooms] == ["rooms/design-review", "rooms/team/ops/deploy"]
    assert list(rooms[0]["newest"].values()) == [3]
    assert [room["folder"] for room in ask("list", "--folder", "team")["rooms"]] == ["team/ops"]
    assert ask("list", "--folder", "tea")["rooms"] == []
    assert len(ask("list", "--member", "Reviewer")["rooms"]) == 1
    assert "team/ops/deploy" in invoke("list").stdout


def test_list_of_an_empty_ledger(invoke: Invoke, ask: Ask) -> None:
    assert invoke("list").stdout == "No rooms.\n"
    assert ask("list") == {"rooms": []}


@pytest.mark.usefixtures("talk")
def test_show_tells_what_a_room_is(ask: Ask, invoke: Invoke) -> None:
    room = ask("show", "design-review")
    assert room["title"] == "Design review"
    assert room["members"] == ["Reviewer"]
    assert room["visible_path"].endswith(".md")
    assert "members    Reviewer" in invoke("show", "design-review").stdout


@pytest.mark.usefixtures("talk")
def test_lens_applies_the_policy_and_read_does_not(ask: Ask, invoke: Invoke) -> None:
    ask("policy", "exclude", "design-review", "2", "--apply")
    ask("policy", "standin", "design-review", "3", "--text", "summed up", "--apply")
    items = ask("lens", "design-review")["items"]
    assert [item.get("message", {}).get("n") for item in items] == [1, None]
    assert items[1]["standin"]["body"] == "summed up"
    assert "[for 1 message] System [system]: summed up" in invoke("lens", "design-review").stdout
    assert len(ask("read", "design-review")["messages"]) == 3


@pytest.mark.usefixtures("talk")
def test_lens_needs_no_view(ask: Ask, root: Path) -> None:
    page = next((root / "rooms/design-review/view").rglob("*.md"))
    page.write_text("broken")
    assert len(ask("lens", "design-review")["items"]) == 3
    pages = ask("compile", "design-review")
    assert pages["visible_path"] == str(page)
    assert "### #3 Analyst" in page.read_text(encoding="utf-8")


@pytest.mark.usefixtures("talk")
def test_log_is_the_audit_trail(ask: Ask, invoke: Invoke, root: Path, git: Git) -> None:
    entries = ask("log", "design-review")["entries"]
    in_git = git(root, "log", "--format=%H", "--", "rooms/design-review").split()
    assert [entry["commit"] for entry in entries] == in_git
    subjects = [entry["subject"] for entry in entries]
    assert "design-review #3 Analyst: three" in subjects
    assert len(ask("log", "-n", "2")["entries"]) == 2
    analyst = ask("log", "--author", "analyst")["entries"]
    assert {entry["author"] for entry in analyst} == {"Analyst"}
    assert ask("log", "--since", "1h")["entries"] == ask("log")["entries"]
    shown = invoke("log", "design-review", "--patch").stdout
    assert '    +{"n":3,' in shown
    assert all("patch" in entry for entry in ask("log", "--patch")["entries"])


def test_tail_shows_the_newest(talk: Invoke, ask: Ask) -> None:
    assert talk("tail", "design-review", "-n", "1").stdout.splitlines()[1].endswith(": three")
    assert [m["n"] for m in ask("tail", "design-review", "-n", "2")["messages"]] == [2, 3]
    assert ask("tail", "design-review", "-n", "0")["messages"] == []


@pytest.mark.usefixtures("talk")
def test_unread_at_an_earlier_state(ask: Ask) -> None:
    found = ask("unread", "--as", "Reviewer", "--at", "HEAD~3", "--messages")
    assert [message["n"] for item in found["rooms"] for message in item["messages"]] == [1]
    assert ask("unread", "design-review", "--as", "Reviewer", "--at", "now")["total"] == 3
    assert ask("unread", "--as", "Reviewer", "--at", "nowhere")["error"]["code"] == "not_found"
