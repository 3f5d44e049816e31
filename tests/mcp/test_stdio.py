"""The server as a real process, over standard streams."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest
from mcp import Client, StdioServerParameters

from agent_chatroom_ledger import Ledger
from tests.mcp.conftest import (
    COMMAND,
    HANDSHAKE,
    MODERN,
    SECONDS_MAX,
    SOURCES,
    Piped,
    Tools,
    environment,
    until,
)

if TYPE_CHECKING:
    from pathlib import Path


def parameters(root: Path, name: str | None = None, *words: str) -> StdioServerParameters:
    command, *rest = COMMAND
    return StdioServerParameters(
        command=command, args=[*rest, *words], env=environment(root, name), cwd=root.parent
    )


@pytest.mark.anyio
async def test_the_official_client_talks_to_a_real_process(root: Path, mode: str) -> None:
    with Ledger.open(root) as ledger:
        ledger.create_room("Review", members=["ana"]).post("ben", "hello")
    async with Client(parameters(root, "ana"), mode=mode) as client:
        assert client.protocol_version == (HANDSHAKE if mode == "legacy" else MODERN)
        assert len((await client.list_tools()).tools) == 12
        ana = Tools(client)
        assert (await ana.call("rooms_who"))["you"] == "ana"
        taken = await ana.call("rooms_inbox", wait_seconds=5)
        (message,) = taken["messages"]
        (receipt,) = (await ana.call("rooms_receipts", id=message["id"]))["recipients"]
        assert receipt["name"] == "ana"
        assert "handed_over" in receipt
        assert (await client.list_resources()).resources[0].uri == "room:///review"
        assert (await client.list_prompts()).prompts
    with Ledger.open(root) as ledger:
        assert ledger.agent("ana").inbox() == []


def test_the_first_questions_are_answered_while_the_sdk_is_loaded(
    root: Path, tmp_path: Path
) -> None:
    # An SDK whose import waits for a line: nothing of it can have been loaded before.
    gate = tmp_path / "gate"
    os.mkfifo(gate)
    package = tmp_path / "slow" / "mcp"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text(f"open({str(gate)!r}).readline()\nraise SystemExit(7)\n")
    sources = environment(root)["PYTHONPATH"]
    path = os.pathsep.join([str(package.parent), sources])
    with Piped(root, "ana", PYTHONPATH=path) as server:
        shaken = server.shake()
        assert shaken["protocolVersion"] == HANDSHAKE
        assert shaken["serverInfo"]["name"] == "rooms"
        assert len(server.ask("tools/list")["tools"]) == 12
        assert server.ask("ping") == {}
        with gate.open("w") as stream:
            stream.write("\n")
        assert server.process.wait(SECONDS_MAX) == 7


def test_an_answer_is_given_once_and_the_conversation_goes_on(root: Path) -> None:
    with Piped(root, "ana") as server:
        server.shake()
        first = server.ask("tools/list")
        assert server.call("rooms_who")["you"] == "ana"
        # The SDK has the whole conversation by now, and answers in its turn.
        number = server.request("tools/list")
        answer = server.receive()
        assert answer is not None
        assert answer["id"] == number
        assert answer["result"] == first


def test_a_wait_holds_up_nothing_and_is_cancelled(root: Path) -> None:
    with Ledger.open(root) as ledger:
        room = ledger.create_room("Review", members=["ana"])
        with Piped(root, "ana") as server:
            server.shake()
            wait = server.request("tools/call", name="rooms_inbox", arguments={"wait_seconds": 100})
            assert server.call("rooms_who")["you"] == "ana"
            server.send({"method": "notifications/cancelled", "params": {"requestId": wait}})
            assert server.ask("ping") == {}
            room.post("ben", "later")
            taken = server.call("rooms_inbox", wait_seconds=100)
            assert [one["body"] for one in taken["messages"]] == ["later"]


def test_a_server_that_is_killed_while_it_waits_takes_nothing_with_it(root: Path) -> None:
    with Ledger.open(root) as ledger:
        room = ledger.create_room("Review", members=["ana"])
        with Piped(root, "ana") as server:
            server.shake()
            server.request("tools/call", name="rooms_inbox", arguments={"wait_seconds": 100})
            until(lambda: "wakes" in [one.reach for one in ledger.agent("ben").who()])
            server.kill()
            server.process.wait()
            assert "wakes" not in [one.reach for one in ledger.agent("ben").who()]
        room.post("ben", "hello")
        assert [item.message.body for item in ledger.agent("ana").inbox(peek=True)] == ["hello"]


def test_an_answer_that_was_not_read_to_its_end_was_not_handed_over(root: Path) -> None:
    with Ledger.open(root) as ledger:
        room = ledger.create_room("Review", members=["ana"])
        # More than a pipe holds, so the server stands in the middle of its write.
        message = room.post("ben", "x" * 200_000)
        with Piped(root, "ana") as server:
            server.shake()
            number = server.request("tools/call", name="rooms_inbox", arguments={})
            assert server.process.stdout is not None
            assert server.process.stdout.read1(10)
            (receipt,) = ledger.agent("ben").receipts(message.id).receipts
            assert receipt.handed_at is None
            server.kill()
            server.process.wait()
        assert len(ledger.agent("ana").inbox(peek=True)) == 1
        with Piped(root, "ana") as server:
            server.shake()
            number = server.request("tools/call", name="rooms_inbox", arguments={})
            answer = server.receive()
            assert answer is not None
            assert answer["id"] == number
            until(lambda: ledger.agent("ana").inbox(peek=True) == [])
        (receipt,) = ledger.agent("ben").receipts(message.id).receipts
        assert (receipt.times, receipt.door) == (1, "mcp")


def test_the_name_is_that_of_the_client_and_is_claimed_while_it_runs(root: Path) -> None:
    with Ledger.open(root) as ledger:
        agent = ledger.agent("watcher")
        with Piped(root, "ana") as server:
            server.shake()
            # Before any call: the client has introduced itself.
            until(lambda: bool(agent.who()))
            assert server.call("rooms_who") == {"you": "ana", "others": []}
            (here,) = agent.who()
            assert (here.name, here.process, here.doors) == ("ana", os.getpid(), ("mcp",))
            with Piped(root, "ana") as second:
                # One client process is one agent, whichever of its servers it talks to.
                second.shake()
                assert second.call("rooms_who")["you"] == "ana"
            assert server.process.stdin is not None
            server.process.stdin.close()
            assert server.process.wait(SECONDS_MAX) == 0
        assert agent.who() == []


def test_one_program_may_run_several_agents_who_do_not_hear_each_other(root: Path) -> None:
    with Ledger.open(root) as ledger:
        carl = ledger.agent("carl")
        with Piped(root, "ana") as ana, Piped(root, "ben") as ben:
            for server, name in ((ana, "ana"), (ben, "ben")):
                server.shake()
                until(lambda name=name: name in [one.name for one in carl.who()])
            for server, name in ((ana, "ana"), (ben, "ben"), (ana, "ana")):
                assert server.call("rooms_who")["you"] == name
                assert server.call("rooms_inbox") == {"messages": [], "waiting": 0}
            assert [one.name for one in carl.who()] == ["ana", "ben"]
            carl.dm(["ana"], "for ana")
            carl.dm(["ben"], "for ben")
            for server, body in ((ben, "for ben"), (ana, "for ana")):
                (message,) = server.call("rooms_inbox")["messages"]
                assert message["body"] == body


def test_with_auto_join_off_only_who_takes_part_is_here(root: Path) -> None:
    with Ledger.open(root) as ledger:
        ledger.layout.config.write_text("auto_join = false\n")
        agent = ledger.agent("watcher")
        with Piped(root, "ana") as server:
            server.shake()
            assert server.call("rooms_who")["you"] == "ana"
            assert server.call("rooms_inbox") == {"messages": [], "waiting": 0}
            assert agent.who() == []
            server.call("rooms_create", title="Review")
            assert [one.name for one in agent.who()] == ["ana"]


def test_a_second_client_of_one_name_speaks_beside_the_first(root: Path) -> None:
    program = (
        "import sys; from tests.mcp.conftest import Piped; from pathlib import Path\n"
        "with Piped(Path(sys.argv[1]), 'ana') as server:\n"
        "    server.shake(); print(server.call('rooms_who'), flush=True)\n"
    )
    with Piped(root, "ana") as server:
        server.shake()
        server.call("rooms_who")
        done = subprocess.run(
            [sys.executable, "-c", program, str(root)],
            env=environment(root, PYTHONPATH=os.pathsep.join([str(SOURCES), str(SOURCES.parent)])),
            capture_output=True,
            text=True,
            check=True,
        )
    assert "'you': 'ana-" in done.stdout
    assert "ana is held by somebody else" in done.stdout


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_a_wait_and_the_presence(root: Path, number: signal.Signals) -> None:
    with Ledger.open(root) as ledger, Piped(root, "ana") as server:
        server.shake()
        server.call("rooms_who")
        server.request("tools/call", name="rooms_inbox", arguments={"wait_seconds": 100})
        server.ask("ping")
        server.process.send_signal(number)
        assert server.process.wait(SECONDS_MAX) == 0
        assert ledger.agent("watcher").who() == []


def test_without_a_ledger_the_tools_say_how_to_get_one(tmp_path: Path) -> None:
    root = tmp_path / "later"
    with Piped(root, "ana") as server:
        server.shake()
        result = server.ask("tools/call", name="rooms_who", arguments={})
        assert result["isError"] is True
        assert "rooms init" in result["content"][0]["text"]
        Ledger.open(root, create=True).close()
        assert server.call("rooms_who")["you"] == "ana"


def test_what_writes_to_standard_output_does_not_reach_the_client(root: Path) -> None:
    program = (
        "from agent_chatroom_ledger.mcp.greeting import Wire\n"
        "wire = Wire.of_standard_streams('1')\n"
        "print('stray', flush=True)\n"
        "import sys; assert sys.stdin.read() == ''\n"
        "wire.write(b'line\\n')\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        input=b"for the wire",
        env=environment(root),
        capture_output=True,
        check=True,
    )
    assert done.stdout == b"line\n"
    assert done.stderr == b"stray\n"


def test_without_the_extra_it_says_what_to_install(root: Path) -> None:
    program = (
        "import sys; sys.modules['mcp'] = None\n"
        "import importlib.util as u; found = u.find_spec\n"
        "u.find_spec = lambda name, *rest: None if name == 'mcp' else found(name, *rest)\n"
        "from agent_chatroom_ledger.cli.program import run; sys.exit(run(['mcp']))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        stdin=subprocess.DEVNULL,
        env=environment(root),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert "pip install 'agent-chatroom-ledger[mcp]'" in done.stderr


def test_no_other_command_loads_the_sdk(root: Path) -> None:
    program = (
        "import sys\nfrom agent_chatroom_ledger.cli.program import run\n"
        "status = run(sys.argv[1:])\n"
        "print(*sorted({name.split('.')[0] for name in sys.modules}), file=sys.stderr)\n"
        "sys.exit(status)\n"
    )
    with Ledger.open(root) as ledger:
        ledger.create_room("Review", members=["ana"]).post("ben", "hello")
    for words in (
        ("--help",),
        ("mcp", "--help"),
        ("post", "review", "x", "--as", "ben"),
        ("inbox", "--as", "ana"),
        ("dm", "ana", "x", "--as", "ben"),
        ("who",),
        ("tokens", "list"),
    ):
        done = subprocess.run(
            [sys.executable, "-c", program, *words],
            env=environment(root),
            capture_output=True,
            text=True,
            check=True,
        )
        loaded = set(done.stderr.split("\n")[-2].split())
        assert not loaded & {"mcp", "mcp_types", "anyio", "pydantic", "uvicorn"}, words
