"""Claims of one name at the same moment: exactly one gets it, whoever is killed meanwhile."""

from __future__ import annotations

import os
import random
import re
import signal
import subprocess
import sys
from contextlib import suppress
from typing import TYPE_CHECKING

import pytest

from agent_chatroom_ledger import Ledger, pinning, presence
from agent_chatroom_ledger.errors import Busy, NotFound
from agent_chatroom_ledger.identity import identify
from agent_chatroom_ledger.storage import presence as book
from tests.clientlike import STAYS, Program, names, running
from tests.racing import race

if TYPE_CHECKING:
    from pathlib import Path

    from agent_chatroom_ledger.domain.identities import Client, Identity, ProcessId
    from tests.conftest import MakeLedger


def claim(ledger: Ledger, client: Client) -> str:
    return identify(ledger, {"ROOMS_NAME": "lead"}, client, claim=True).name


def test_of_many_that_claim_one_name_at_once_exactly_one_gets_it(
    make_ledger: MakeLedger, core: Path
) -> None:
    root = make_ledger().root
    programs = [Program(core, "sleeper", STAYS) for _ in range(10)]

    def one(number: int) -> str:
        with Ledger.open(root, read_only=True) as ledger:
            client = programs[number].client(core, session=f"s{number}")
            return claim(ledger, client)

    try:
        for _ in range(3):
            found = race(len(programs), one)
            assert found.count("lead") == 1
            expected = {f"lead-{program.id.pid}" for program in programs}
            assert set(found) - {"lead"} < expected
            assert len(set(found)) == len(programs)
            with Ledger.open(root) as ledger:
                assert names(ledger) == sorted(found)
                for program in programs:
                    presence.release(ledger, program.client(core))
                assert names(ledger) == []
    finally:
        for program in programs:
            program.kill()


def test_holders_that_are_killed_while_others_claim(make_ledger: MakeLedger, core: Path) -> None:
    """Whoever was told a name lives under it, and nobody else does."""
    root = make_ledger().root
    chance = random.Random(4)
    programs = [Program(core, "sleeper", STAYS) for _ in range(6)]
    try:
        for _ in range(6):
            victim = chance.randrange(len(programs))

            def one(number: int, victim: int = victim) -> str:
                with Ledger.open(root, read_only=True) as ledger:
                    if number == victim:
                        os.kill(programs[number].id.pid, 9)
                        return ""
                    return claim(ledger, programs[number].client(core))

            found = race(len(programs), one)
            programs[victim].kill()
            with Ledger.open(root) as ledger:
                living = {one.process: one.name for one in presence.who(ledger)}
                told = {
                    program.id.pid: name
                    for program, name in zip(programs, found, strict=True)
                    if name
                }
                assert living == told
                assert len(set(told.values())) == len(told)
            programs[victim] = Program(core, "sleeper", STAYS)
    finally:
        for program in programs:
            program.kill()


HOLDS = """
import sys
from pathlib import Path
from agent_chatroom_ledger.storage import presence
from agent_chatroom_ledger.storage.layout import Layout
with presence.opened(Layout(Path(sys.argv[1]))):
    print("holds", flush=True)
    sys.stdin.read()
"""


def test_a_claim_that_is_stuck_is_waited_for_a_while_and_ends_with_its_process(
    ledger: Ledger, core: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(book, "CLAIM_WAIT_SECONDS_MAX", 0.05)
    stuck = subprocess.Popen(
        [sys.executable, "-c", HOLDS, str(ledger.root)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    assert stuck.stdout is not None
    assert stuck.stdout.readline() == b"holds\n"
    stuck.send_signal(signal.SIGSTOP)
    with running(core) as program:
        for _ in range(2):
            with pytest.raises(Busy, match="presence"):
                claim(ledger, program.client(core))
        assert names(ledger) == [], "reading waits for nobody"
        stuck.kill()
        stuck.communicate()
        assert claim(ledger, program.client(core)) == "lead"


def test_doors_of_one_client_that_come_at_once_are_one_agent(
    ledger: Ledger, core: Path, tmp_path: Path
) -> None:
    """As a client's server and its first hook do."""
    with running(core) as program:

        def one(number: int) -> str:
            with Ledger.open(tmp_path / "ledger", read_only=True) as opened:
                door = "mcp" if number % 2 else "hook"
                return claim(opened, program.client(core, door=door))

        assert race(8, one) == ["lead"] * 8
        (found,) = presence.who(ledger)
        assert sorted(found.doors) == ["hook", "mcp"]
        assert found.reach == "next turn"


@pytest.mark.parametrize("seed", range(3))
def test_a_random_life_breaks_no_promise(ledger: Ledger, core: Path, seed: int) -> None:
    """Starts, kills, claims, pins, clears and releases, and after each step the same promises.

    A client has one name and a name one client; a name is what was asked for or that with a
    suffix; it stays until what is asked for changes.
    """
    chance = random.Random(seed)
    programs = [Program(core, "sleeper", STAYS) for _ in range(4)]
    sessions = [f"s{number}" for number in range(4)]
    held: dict[ProcessId, Identity] = {}
    try:
        for _ in range(120):
            number = chance.randrange(4)
            program = programs[number]
            step = chance.choices(
                ("claim", "pin", "unpin", "clear", "release", "kill"), (12, 3, 2, 2, 1, 0.7)
            )[0]
            client = program.client(core, session=sessions[number], door="hook")
            if step == "claim":
                asked = chance.choice([{}, {}, {"PI_AGENT_NAME": chance.choice("ab")}])
                found = identify(ledger, asked, client, claim=True)
                before = held.get(program.id)
                if before is not None and before.base == found.base:
                    assert found.name == before.name
                assert found.name == found.base or re.fullmatch(
                    rf"{re.escape(found.base)}-{program.id.pid}(-\d+)?", found.name
                )
                held[program.id] = found
            elif step == "pin":
                key = f"session:{chance.choice(sessions)}"
                pinning.set_pin(ledger, key, chance.choice("abc"))
            elif step == "unpin":
                with suppress(NotFound):
                    pinning.remove_pin(ledger, f"session:{chance.choice(sessions)}")
            elif step == "clear":
                sessions[number] = f"s{chance.randrange(100)}"
            elif step == "release":
                presence.release(ledger, client)
                held.pop(program.id, None)
            else:
                program.kill()
                held.pop(program.id, None)
                programs[number] = Program(core, "sleeper", STAYS)
            here = {one.process: one.name for one in presence.who(ledger)}
            assert here == {process.pid: one.name for process, one in held.items()}
            assert len(set(here.values())) == len(here)
    finally:
        for program in programs:
            program.kill()
