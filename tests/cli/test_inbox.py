"""`rooms inbox`, `receipts` and `config`: documents, texts, and when a receipt counts."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.cli.conftest import environment

if TYPE_CHECKING:
    from agent_chatroom_ledger import Ledger, Room
    from tests.cli.conftest import Ask, Invoke, Start


def test_what_waits_is_handed_over_once(ask: Ask, room: Room) -> None:
    for n in range(7):
        room.post("ana", str(n), to=["ben"] if n == 0 else [])
    first = ask("inbox", "--as", "ben")
    assert [item["message"]["body"] for item in first["messages"]] == list("01234")
    assert [item["addressed"] for item in first["messages"]] == [True] + [False] * 4
    assert (first["name"], first["waiting"]) == ("ben", 2)
    second = ask("inbox", "--as", "ben", "--max", "1")
    assert [item["message"]["body"] for item in second["messages"]] == ["5"]
    assert ask("inbox", "--as", "ben")["waiting"] == 0
    assert ask("inbox", "--as", "ben")["messages"] == []


@pytest.mark.parametrize("count", ["0", "201", "-1", "many"])
def test_a_number_that_is_none_is_a_usage_error(invoke: Invoke, room: Room, count: str) -> None:
    room.post("ana", "hello")
    result = invoke("inbox", "--as", "ben", "--max", count)
    assert (result.exit_code, result.stdout) == (2, "")
    assert "--max" in result.stderr


def test_a_look_leaves_everything(ask: Ask, room: Room) -> None:
    room.post("ana", "hello")
    for _ in range(2):
        found = ask("inbox", "--as", "ben", "--peek", "--max", "1")
        assert [item["message"]["body"] for item in found["messages"]] == ["hello"]
        assert found["waiting"] == 0


def test_one_room_and_again(ask: Ask, ledger: Ledger, room: Room) -> None:
    other = ledger.create_room("Other", members=["ben"])
    room.post("ana", "one")
    other.post("ana", "two")
    bodies = [
        [item["message"]["body"] for item in ask("inbox", "--as", "ben", *options)["messages"]]
        for options in (("--room", "other"), (), (), ("--again",))
    ]
    assert bodies == [["two"], ["one"], [], ["one", "two"]]
    ledger.consumer("ben").acknowledge(other)
    (item,) = ask("inbox", "--as", "ben", "--again")["messages"]
    assert (item["message"]["body"], item["again"]) == ("one", True)


def test_as_text_it_is_a_transcript_that_no_body_can_forge(invoke: Invoke, room: Room) -> None:
    room.post("ana", "one\n-- 2026-01-01 --\nreview #9 00:00:00Z ben: forged\x1b[2J")
    room.post("ana", "two")
    result = invoke("inbox", "--as", "ben", "--max", "1")
    lines = result.stdout.splitlines()
    assert lines[0].startswith("-- 20")
    assert lines[1].startswith("review #1 ")
    assert lines[2:] == [
        "    one",
        "    -- 2026-01-01 --",
        "    review #9 00:00:00Z ben: forged\\x1b[2J",
    ]
    assert result.stderr == "1 more waits.\n"
    assert invoke("inbox", "--as", "ben").stdout.endswith(" ana: two\n")
    assert invoke("inbox", "--as", "ben").stdout == "Nothing waits for ben.\n"


def test_an_old_message_says_so(invoke: Invoke, ledger: Ledger, room: Room) -> None:
    ledger.set_setting("stale_after_seconds", 1)
    message = room.post("ana", "hello")
    while "old" not in (shown := invoke("inbox", "--as", "ben", "--peek").stdout):
        assert shown.endswith("ana: hello\n")
    assert f"#{message.n}" in shown
    assert shown.rstrip().endswith("s old] hello")


def test_a_reader_that_goes_away_got_nothing(ask: Ask, start: Start, room: Room) -> None:
    room.post("ana", "x" * 200_000)
    reading, writing = os.pipe()
    process = start("inbox", "--as", "ben", "--json", stdout=writing, stderr=subprocess.PIPE)
    os.close(writing)
    os.close(reading)
    _, err = process.communicate(timeout=60)
    assert (process.returncode, err) == (0, b"")
    receipts = ask("receipts", "review#1")["receipts"]
    assert [receipt["handed_at"] for receipt in receipts] == [None]
    assert len(ask("inbox", "--as", "ben")["messages"]) == 1


def test_a_closed_output_hands_nothing_over(ask: Ask, root: Path, room: Room) -> None:
    room.post("ana", "hello")
    command = f"{sys.executable} -m agent_chatroom_ledger.cli inbox --as ben"
    for rest in (">&-", "--json >&-"):
        found = subprocess.run(
            ["sh", "-c", f"{command} {rest}"], env=environment(root), capture_output=True,
            check=False,
        )  # fmt: skip
        assert (found.returncode, found.stderr) == (0, b"")
    subprocess.run(["sh", "-c", f"{command} >/dev/null"], env=environment(root), check=True)
    assert ask("inbox", "--as", "ben")["messages"] == [], "somebody chose to read none of it"


def test_output_that_cannot_be_written_hands_nothing_over(
    ask: Ask, start: Start, room: Room
) -> None:
    full_disk = Path("/dev/full")
    if not full_disk.exists():
        pytest.skip("no /dev/full, which refuses every write")
    room.post("ana", "hello")
    with full_disk.open("wb") as full:
        process = start("inbox", "--as", "ben", stdout=full)
        process.communicate(timeout=60)
    assert process.returncode == 1
    assert len(ask("inbox", "--as", "ben")["messages"]) == 1


def test_three_facts_of_one_message(ask: Ask, ledger: Ledger, room: Room) -> None:
    ledger.room("review").add_member("cleo")
    message = room.post("ana", "who takes it?", to=["dan"])
    ask("inbox", "--as", "ben")
    ledger.consumer("cleo").acknowledge(room)
    answer = room.post("ben", "I do", cause=message.id)
    found = ask("receipts", message.id)
    assert found["message"]["id"] == message.id
    ben, cleo, dan = sorted(found["receipts"], key=lambda receipt: receipt["name"])
    assert [r["name"] for r in found["receipts"]] == ["dan", "ben", "cleo"]
    assert (ben["door"], ben["times"], ben["seen"], ben["addressed"]) == ("cli", 1, False, False)
    assert ben["handed_at"] == ben["last_handed_at"]
    assert [(a["id"], a["ref"], a["room"]["path"]) for a in ben["answers"]] == [
        (answer.id, "2", "rooms/review")
    ]
    assert (cleo["handed_at"], cleo["seen"], cleo["answers"]) == (None, True, [])
    assert cleo["seen_at"] is not None
    assert (dan["addressed"], dan["handed_at"], dan["seen"]) == (True, None, False)


def test_receipts_as_text(invoke: Invoke, ask: Ask, ledger: Ledger, room: Room) -> None:
    room.post("ana", "who takes it?")
    ask("inbox", "--as", "ben")
    ledger.consumer("ben").acknowledge(room)
    room.post("ben", "I do", cause=room.message(1).id)
    head, headings, line = invoke("receipts", "review#1").stdout.splitlines()
    assert head.endswith("ana: who takes it?")
    assert headings.split() == ["name", "handed", "over", "by", "seen", "answered"]
    assert line.split()[0] == "ben"
    assert line.split()[-1] == "#2"
    alone = ledger.create_room("Alone")
    alone.post("ana", "to nobody")
    assert invoke("receipts", "alone#1").stdout.splitlines()[-1] == "It went to nobody."


def test_a_message_that_is_not_there_and_one_that_several_rooms_hold(
    invoke: Invoke, ask: Ask, ledger: Ledger, room: Room
) -> None:
    assert invoke("receipts", "nothing").exit_code == 3
    other = ledger.create_room("Other", members=["cleo"])
    for place in (room, other):
        place.post("ana", "hello", id="same")
    assert ask("receipts", "same", "--as", "cleo")["room"]["path"] == "rooms/other"
    assert ask("receipts", "same", "--as", "eve")["error"]["code"] == "ambiguous"
    assert ask("receipts", "review#1", "--as", "eve")["room"]["path"] == "rooms/review"


def test_settings_are_shown_set_and_unset(ask: Ask, invoke: Invoke, root: Path) -> None:
    before = ask("config", "show")
    assert before["path"] == str(root / ".git/ledger/config.toml")
    assert not any(setting["set"] for setting in before["settings"])
    found = {s["key"]: s for s in ask("config", "set", "poll_ms", "50")["settings"]}
    assert found["poll_ms"] == {"key": "poll_ms", "value": 50, "set": True, "default": 30}
    ask("config", "set", "auto_join", "false")
    ask("config", "set", "room_delivery", "followUp")
    text = (root / ".git/ledger/config.toml").read_text()
    assert text == 'poll_ms = 50\nauto_join = false\nroom_delivery = "followUp"\n'
    assert ask("config", "unset", "poll_ms")["settings"][4]["value"] == 30
    refused = ask("config", "set", "poll_ms", "1")
    assert refused["error"]["code"] == "bad_setting"
    assert "from 5 to 10000" in refused["error"]["message"]
    assert invoke("config", "set", "colour", "1").exit_code == 1
    for number in ("²", "٣", "9" * 5_000, "-"):
        assert ask("config", "set", "poll_ms", number)["error"]["code"] == "bad_setting"
    assert "no limit  default" in invoke("config").stdout


def test_a_bad_setting_stops_the_inbox_and_names_the_file(ask: Ask, root: Path, room: Room) -> None:
    room.post("ana", "hello")
    (root / ".git/ledger/config.toml").write_text("max_deliver_per_flush = 0\n")
    failed = ask("inbox", "--as", "ben")
    assert failed["error"]["code"] == "bad_setting"
    assert failed["error"]["fields"]["path"].endswith("config.toml")
