"""Claims of one name at the same moment: exactly one gets it, whoever is killed meanwhile."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from agent_chatroom_ledger import Ledger, presence
from agent_chatroom_ledger.errors import Busy
from agent_chatroom_ledger.identity import identify
from agent_chatroom_ledger.storage import presence as book
from tests.clientlike import STAYS, Program, running
from tests.racing import race

if TYPE_CHECKING:
    from pathlib import Path

    from agent_chatroom_ledger.domain.identities import Client
    from tests.conftest import MakeLedger


@pytest.fixture
def core(tmp_path: Path) -> Path:
    folder = tmp_path / "core"
    folder.mkdir()
    return folder


def claim(ledger: Ledger, client: Client) -> str:
    return identify(ledger, {"ROOMS_NAME": "lead"}, client, claim=True).name


def names(ledger: Ledger) -> list[str]:
    return [found.name for found in presence.who(ledger)]


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
