"""What the hook hands over, when, and how it is noted."""

from __future__ import annotations

import os
import subprocess
from typing import TYPE_CHECKING

import pytest

from agent_chatroom_ledger import Ledger, queuewalk
from agent_chatroom_ledger.agenthook import answers, dialects
from agent_chatroom_ledger.agenthook.rendering import SENTENCE
from agent_chatroom_ledger.domain.identities import Client
from agent_chatroom_ledger.inbox import peek
from agent_chatroom_ledger.limits import HOOK_CONTEXT_BYTES_MAX
from agent_chatroom_ledger.presence import heard_hook, reach, who
from tests.agenthook.conftest import HOOK, event, hook_environment, hook_log, private_files
from tests.clientlike import running

if TYPE_CHECKING:
    from pathlib import Path

    from tests.agenthook.conftest import Fire, Say


def waiting(root: Path, name: str = "bob") -> list[str]:
    with Ledger.open(root, read_only=True) as ledger:
        return [item.message.body for item in peek(ledger, name, max=100)]


def test_a_room_that_has_nothing_to_give_now_holds_up_no_other(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What counts as waiting may be of a log that cannot be read now."""
    with Ledger.open(root) as ledger:
        first = ledger.agent("alice").dm("bob", "one").room.path
        ledger.agent("carol").dm("bob", "two")
        ledger.set_setting("room_delivery", "followUp")
        found = queuewalk._found
        monkeypatch.setattr(
            queuewalk,
            "_found",
            lambda room, row: (None, False) if room.path == first else found(room, row),
        )
        said = dialects.read(event("PostToolUse", tmp_path, tool_name="Bash"))
        assert said is not None
        with answers.answer(answers.Member(ledger, "bob", "bob", Client(), said)) as given:
            assert "two" in str(given.document)


def test_a_session_begins_with_who_one_is_ones_rooms_and_what_waits(fire: Fire, say: Say) -> None:
    say("first")
    say("second", "bob")
    fired = fire("SessionStart", source="startup")
    lines = fired.context.split("\n")
    assert 'you are "bob"' in lines[0]
    assert lines[1] == SENTENCE
    assert lines[2] == '{"your room":"Design review","path":"rooms/design-review"}'
    assert [(r["body"], r["to"]) for r in fired.records] == [
        ("first", "the room"),
        ("second", "you"),
    ]
    assert len(lines) == 5


def test_what_was_handed_over_is_not_handed_over_twice(fire: Fire, say: Say, root: Path) -> None:
    say("once")
    assert fire("UserPromptSubmit", prompt="x").bodies == ["once"]
    assert fire("UserPromptSubmit", prompt="x").answer is None
    assert fire("PostToolUse", tool_name="Bash").answer is None
    assert waiting(root) == []
    with Ledger.open(root, read_only=True) as ledger:
        (message,) = ledger.room("design-review").messages()
        (receipt,) = ledger.receipts.of_record(message.id)
    assert (receipt.name, receipt.door, receipt.session) == ("bob", "hook", "s-1")


def test_messages_come_after_a_tool_and_after_a_quiet_one_too(fire: Fire, say: Say) -> None:
    assert fire("PostToolUse", tool_name="Bash").answer is None
    # The second event finds that nothing has changed and asks nothing of the ledger.
    assert fire("PostToolUse", tool_name="Bash").answer is None
    say("now")
    assert fire("PostToolUse", tool_name="Bash").bodies == ["now"]
    assert fire("PostToolUse", tool_name="Bash").answer is None
    say("and now", "bob")
    assert fire("PostToolUse", tool_name="Bash").bodies == ["and now"]


def test_a_quiet_look_is_for_one_name_and_one_session(fire: Fire, say: Say, root: Path) -> None:
    say("for all")
    assert fire("PostToolUse", tool_name="Bash").bodies == ["for all"]
    assert fire("PostToolUse", tool_name="Bash").answer is None
    assert (root / ".git/ledger/agenthook/quiet").is_dir()
    assert fire("PostToolUse", name="carol", tool_name="Bash").bodies == ["for all"]


def test_settings_keep_messages_from_following_a_tool(fire: Fire, say: Say, root: Path) -> None:
    config = root / ".git" / "ledger" / "config.toml"
    config.write_text('dm_delivery = "followUp"\nroom_delivery = "followUp"\n')
    say("in the room", "bob")
    with Ledger.open(root) as ledger:
        ledger.agent("alice").dm(["bob"], "directly")
    assert fire("PostToolUse", tool_name="x").answer is None
    config.write_text('dm_delivery = "steer"\nroom_delivery = "followUp"\n')
    assert fire("PostToolUse", tool_name="x").bodies == ["directly"]
    assert fire("PostToolUse", tool_name="x").answer is None
    config.write_text('dm_delivery = "followUp"\nroom_delivery = "steer"\n')
    assert fire("PostToolUse", tool_name="x").bodies == ["in the room"]
    say("once more")
    config.write_text('dm_delivery = "followUp"\nroom_delivery = "followUp"\n')
    assert fire("PostToolUse", tool_name="x").answer is None
    assert fire("UserPromptSubmit", prompt="x").bodies == ["once more"]


@pytest.mark.parametrize("source", ["resume", "clear", "compact"])
def test_a_session_that_forgot_is_offered_again_what_was_not_seen(
    fire: Fire, say: Say, root: Path, source: str
) -> None:
    say("one")
    n = say("two")
    assert fire("UserPromptSubmit", prompt="x").bodies == ["one", "two"]
    assert fire("SessionStart", source="startup").bodies == []
    again = fire("SessionStart", source=source)
    assert again.bodies == ["one", "two"]
    assert [record["again"] for record in again.records] == [True, True]
    with Ledger.open(root) as ledger:
        ledger.agent("bob").seen("design-review", n)
    assert fire("SessionStart", source=source).bodies == []


def test_at_most_five_at_a_time_and_the_rest_is_counted(fire: Fire, say: Say) -> None:
    for number in range(7):
        say(f"message {number}")
    fired = fire("UserPromptSubmit", prompt="x")
    assert fired.bodies == [f"message {n}" for n in range(5)]
    assert fired.context.endswith(
        "\n2 more messages wait for you: rooms_inbox or `rooms inbox` hands them over."
    )
    assert fire("UserPromptSubmit", prompt="x").bodies == ["message 5", "message 6"]


def test_what_does_not_fit_stays_queued(fire: Fire, say: Say, root: Path) -> None:
    for letter in "abc":
        say(letter * 3_500)
    first = fire("UserPromptSubmit", prompt="x")
    assert [body[0] for body in first.bodies] == ["a", "b"]
    assert [body[0] for body in waiting(root)] == ["c"]
    assert [body[0] for body in fire("PostToolUse", tool_name="x").bodies] == ["c"]


def test_a_message_that_never_fits_is_cut_and_counts_as_handed_over(
    fire: Fire, say: Say, root: Path
) -> None:
    say("<é>" * 40_000)
    say("after it")
    fired = fire("UserPromptSubmit", prompt="x")
    assert len(fired.context.encode()) <= HOOK_CONTEXT_BYTES_MAX
    (record,) = fired.records
    assert record["body"].startswith("<é><é>")
    assert "of 120,000 characters" in record["cut"]
    assert "rooms read PATH --since 0 --limit 1" in record["cut"]
    assert waiting(root) == ["after it"]


def test_an_old_message_says_how_old_it_is(fire: Fire, say: Say, root: Path) -> None:
    (root / ".git" / "ledger" / "config.toml").write_text("stale_after_seconds = 1\n")
    say("old")
    with Ledger.open(root) as ledger:
        ledger.room("design-review").post("alice", "x")
    import time

    time.sleep(2.1)
    fired = fire("UserPromptSubmit", prompt="x")
    assert fired.records[0]["age"].endswith(" s")
    assert fired.records[0]["body"] == "old"


def test_nothing_is_noted_when_the_client_does_not_read(say: Say, root: Path) -> None:
    say("unheard")
    reading, writing = os.pipe()
    os.close(reading)
    done = subprocess.run(
        HOOK,
        input=event("UserPromptSubmit", root, prompt="x"),
        stdout=writing,
        stderr=subprocess.PIPE,
        env=hook_environment(),
        check=False,
    )
    os.close(writing)
    assert done.returncode == 0
    assert waiting(root) == ["unheard"]


@pytest.mark.parametrize("name", ["SessionStart", "UserPromptSubmit", "PostToolUse", "Stop"])
def test_subagents_get_no_messages_and_no_block(
    fire: Fire, say: Say, root: Path, name: str
) -> None:
    say("for bob", "bob")
    before = private_files(root)
    assert fire(name, agent_id="a1", agent_type="Explore").answer is None
    assert private_files(root) == before
    assert waiting(root) == ["for bob"]


def test_a_hook_lets_others_know_that_a_message_comes_at_the_next_turn(
    fire: Fire, root: Path
) -> None:
    fire("SessionStart", source="startup", model="some-model")
    with Ledger.open(root, read_only=True) as ledger:
        (found,) = who(ledger)
        assert reach(ledger, ["bob", "alice"]) == {"bob": "next turn", "alice": "queued"}
    assert (found.name, found.session, found.model) == ("bob", "s-1", "some-model")
    fire("UserPromptSubmit", session_id="s-2", prompt="x")
    with Ledger.open(root, read_only=True) as ledger:
        assert [found.session for found in who(ledger)] == ["s-2"]


@pytest.mark.parametrize("name", ["SessionStart", "UserPromptSubmit", "PostToolUse", "Stop"])
def test_who_is_in_no_room_hears_nothing_and_leaves_nothing(
    fire: Fire, say: Say, root: Path, name: str
) -> None:
    say("for others")
    before = private_files(root)
    assert fire(name, name="stranger") == (0, None, "")
    assert fire(name, name=None) == (0, None, "")
    assert private_files(root) == before
    assert hook_log(root) == ""


def test_whose_name_another_client_bears_is_told_so(
    fire: Fire, say: Say, root: Path, tmp_path: Path
) -> None:
    say("for the first bob", "bob")
    with running(tmp_path) as first, Ledger.open(root) as ledger:
        heard_hook(ledger, {"ROOMS_NAME": "bob"}, first.client(tmp_path))
        context = fire("SessionStart", source="startup").context
        assert fire("UserPromptSubmit", prompt="x").answer is None
        assert len(who(ledger)) == 2
    assert f'you are "bob-{os.getpid()}". Another client that is running is called "bob"' in context
    assert waiting(root) == ["for the first bob"]


def test_with_auto_join_off_nobody_is_registered(fire: Fire, say: Say, root: Path) -> None:
    (root / ".git" / "ledger" / "config.toml").write_text("auto_join = false\n")
    say("hello")
    assert fire("UserPromptSubmit", prompt="x").bodies == ["hello"]
    with Ledger.open(root, read_only=True) as ledger:
        assert who(ledger) == []


def test_the_dialect_of_cursor_gives_counts_at_a_prompt_and_bodies_after_a_tool(
    fire: Fire, say: Say, root: Path
) -> None:
    say("hello")
    fields = {"conversation_id": "c-1", "cursor_version": "3", "workspace_roots": [str(root)]}
    prompt = fire("beforeSubmitPrompt", prompt="x", **fields)
    assert prompt.answer["continue"] is True
    assert "hello" not in prompt.answer["additional_context"]
    assert prompt.answer["additional_context"].startswith("1 message ")
    assert waiting(root) == ["hello"]
    tool = fire("postToolUse", **fields)
    assert '"body":"hello"' in tool.answer["additional_context"]
    assert waiting(root) == []


def test_gemini_gets_its_own_names(fire: Fire, say: Say) -> None:
    say("hello", "bob")
    stop = fire("AfterAgent", "--client", "gemini", timestamp="t")
    assert stop.answer["decision"] == "deny"
    told = fire("AfterTool", "--client=gemini", timestamp="t", tool_name="x")
    assert told.answer["hookSpecificOutput"]["hookEventName"] == "AfterTool"
    assert told.bodies == ["hello"]
