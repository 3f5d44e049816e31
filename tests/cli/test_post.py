"""Posting: where the text comes from, what goes with it, and what is refused."""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING

import pytest

from agent_chatroom_ledger import Ledger
from agent_chatroom_ledger.limits import BODY_BYTES_MAX

if TYPE_CHECKING:
    from pathlib import Path

    from tests.cli.conftest import Ask, Invoke, Start

VERBATIM = "\r\none\r two \u2028\u0085 three\t\n\n"


@pytest.fixture(autouse=True)
def room(root: Path) -> None:
    with Ledger.open(root) as ledger:
        ledger.create_room("A room")


def body(ask: Ask) -> str:
    found: str = ask("read", "a-room", "--last", "1")["messages"][0].get("body", "")
    return found


def test_standard_input_is_taken_byte_for_byte(ask: Ask) -> None:
    ask("post", "a-room", "--as", "A", stdin=VERBATIM.encode())
    assert body(ask) == VERBATIM


def test_a_file_is_taken_byte_for_byte(ask: Ask, tmp_path: Path) -> None:
    file = tmp_path / "text"
    file.write_bytes(VERBATIM.encode())
    ask("post", "a-room", "--as", "A", "--file", str(file))
    assert body(ask) == VERBATIM


def test_a_dash_is_standard_input(ask: Ask) -> None:
    ask("post", "a-room", "--as", "A", "--file", "-", stdin=b"through a pipe")
    assert body(ask) == "through a pipe"


def test_text_may_begin_with_a_dash(invoke: Invoke, ask: Ask) -> None:
    assert invoke("post", "a-room", "--as", "A", "--", "-v").exit_code == 0
    assert body(ask) == "-v"


def test_text_and_file_exclude_each_other(invoke: Invoke) -> None:
    result = invoke("post", "a-room", "text", "--as", "A", "--file", "x")
    assert result.exit_code == 2


def test_a_missing_file_is_named(ask: Ask, tmp_path: Path) -> None:
    path = str(tmp_path / "nowhere")
    error = ask("post", "a-room", "--as", "A", "--file", path)["error"]
    assert (error["code"], error["fields"]) == ("system", {"path": path})


def test_bytes_that_are_no_text_are_refused_with_their_place(ask: Ask) -> None:
    error = ask("post", "a-room", "--as", "A", stdin=b"abc\xff")["error"]
    assert error["code"] == "invalid_input"
    assert error["fields"]["offset"] == 3


@pytest.mark.parametrize(("size", "code"), [(BODY_BYTES_MAX, 0), (BODY_BYTES_MAX + 1, 1)])
def test_the_limit_of_a_body(invoke: Invoke, ask: Ask, size: int, code: int) -> None:
    result = invoke("post", "a-room", "--as", "A", stdin=b"x" * size)
    assert result.exit_code == code
    if code:
        assert str(BODY_BYTES_MAX) in result.stderr
    else:
        assert len(body(ask)) == size


def test_nothing_typed_is_an_empty_message_or_refused(ask: Ask) -> None:
    found = ask("post", "a-room", "--as", "A", stdin=b"")
    assert "error" in found or found["message"].get("body", "") == ""


def test_everything_that_goes_with_a_message(ask: Ask, tmp_path: Path) -> None:
    ask("post", "a-room", "first", "--as", "A")
    data = tmp_path / "data.json"
    data.write_text('{"from": "a file"}')
    message = ask(
        "post", "a-room", "yes", "--as", "A", "--kind", "decision", "--to", "B", "--to", "C",
        "--mention", "D", "--reply-to", "1", "--correlation", "build-7", "--cause", "some-id",
        "--status", "done", "--id", "my-id", "--data", '{"a": [1, null]}',
    )["message"]  # fmt: skip
    assert message["kind"] == "decision"
    assert message["to"] == ["B", "C"]
    assert message["mentions"] == ["D"]
    assert message["reply_to"].startswith("1@")
    assert (message["correlation"], message["cause"]) == ("build-7", "some-id")
    assert (message["status"], message["id"]) == ("done", "my-id")
    assert message["data"] == {"a": [1, None]}
    filed = ask("post", "a-room", "x", "--as", "A", "--data", f"@{data}")["message"]
    assert filed["data"] == {"from": "a file"}


@pytest.mark.parametrize("data", ["[1]", "{", "nonsense", '{"a": NaN}'])
def test_data_must_be_an_object(ask: Ask, data: str) -> None:
    error = ask("post", "a-room", "x", "--as", "A", "--data", data)["error"]
    assert error["fields"]["field"] == "data"


def test_the_same_id_again_is_no_second_message(ask: Ask) -> None:
    first = ask("post", "a-room", "x", "--as", "A", "--id", "k")
    assert ask("post", "a-room", "x", "--as", "A", "--id", "k") == first
    error = ask("post", "a-room", "other", "--as", "A", "--id", "k")["error"]
    assert error["code"] == "id_taken"


def test_create_makes_a_missing_room_in_its_folder(ask: Ask) -> None:
    found = ask("post", "team/ops/Big Deploy", "x", "--as", "A", "--create")
    assert found["room"]["path"] == "rooms/team/ops/big-deploy"
    again = ask("post", "team/ops/Big Deploy", "y", "--as", "A", "--create")
    assert again["room"] == found["room"]
    assert again["message"]["n"] == 2
    assert ask("read", "team/ops/Big Deploy")["room"] == found["room"]


def test_without_create_a_missing_room_is_an_error(ask: Ask) -> None:
    error = ask("post", "a-rom", "x", "--as", "A")["error"]
    assert (error["code"], error["fields"]["candidates"]) == ("not_found", ["a-room"])


def test_processes_that_create_at_once_make_one_room(ask: Ask, start: Start) -> None:
    running = [start("post", "fresh", str(k), "--as", "A", "--create") for k in range(5)]
    assert [process.wait(60) for process in running] == [0] * 5
    for process in running:
        process.communicate()
    assert [room["path"] for room in ask("list")["rooms"]] == ["rooms/a-room", "rooms/fresh"]
    bodies = [message["body"] for message in ask("read", "fresh")["messages"]]
    assert sorted(bodies) == ["0", "1", "2", "3", "4"]


def test_a_pipe_into_a_real_process(ask: Ask, start: Start) -> None:
    process = start("post", "a-room", "--as", "A", stdin=subprocess.PIPE)
    out, err = process.communicate(VERBATIM.encode())
    assert (process.returncode, out, err) == (0, b"a-room #1\n", b"")
    assert body(ask) == VERBATIM


@pytest.mark.parametrize("author", ["", "a\nb", "x" * 65, "\x1b[31m", " a"])
def test_authors_that_cannot_be_are_refused(invoke: Invoke, author: str) -> None:
    result = invoke("post", "a-room", "x", "--as", author)
    assert result.exit_code in {1, 2}
    assert "\x1b" not in result.stderr
