"""Under which name a command acts: that of the agent whose client runs it, with real processes."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING

import msgspec
import pytest

from agent_chatroom_ledger import presence
from agent_chatroom_ledger.domain.agentnames import derived_name
from agent_chatroom_ledger.domain.identities import Client
from agent_chatroom_ledger.identity import find_client, whoami
from agent_chatroom_ledger.storage import processes
from tests.clientlike import Program, claim

if TYPE_CHECKING:
    from pathlib import Path

    from agent_chatroom_ledger import Ledger


ASKS = """
import os, sys
from pathlib import Path
from agent_chatroom_ledger.identity import whoami
print(whoami(Path(sys.argv[1]), os.environ, os.getcwd()).name)
"""


def asked_from_below(ledger: Ledger, folder: Path, **environment: str) -> str:
    """Return the name of a command that a child of this process runs through shells."""
    script = '"$1" -c "$2" "$3"; true'
    words = ["sh", "-c", f"sh -c '{script}' x \"$@\"; true", "x", sys.executable, ASKS]
    found = subprocess.run(
        [*words, str(ledger.root)],
        cwd=folder,
        env={**os.environ, **environment},
        capture_output=True,
        check=True,
    )
    return found.stdout.decode().strip()


def test_a_command_acts_as_the_agent_that_runs_it(ledger: Ledger, core: Path, one: Program) -> None:
    """Here this very process is the agent; the command stands in another directory."""
    below = core / "src"
    below.mkdir()
    assert asked_from_below(ledger, below) == derived_name(str(below))
    client = Client(process=processes.current(), directory=str(core), door="mcp")
    claim(ledger, one.client(core), ROOMS_NAME="lead")
    found = claim(ledger, client, ROOMS_NAME="lead")
    assert found.name == f"lead-{os.getpid()}"
    assert asked_from_below(ledger, below) == found.name, "its client's name holds for it"
    assert asked_from_below(ledger, below, ROOMS_NAME="lead") == found.name, "suffix and all"
    assert asked_from_below(ledger, below, ROOMS_NAME="bob") == "bob", "said here and now"


def test_a_command_acts_in_the_session_that_its_client_names(
    ledger: Ledger, core: Path, one: Program
) -> None:
    """Where no ancestor is an agent's client, as in a sandbox."""
    client = one.client(core, session="s", door="hook")
    claim(ledger, client, ROOMS_NAME="lead")
    assert asked_from_below(ledger, core, CLAUDE_CODE_SESSION_ID="s") == "lead"
    assert asked_from_below(ledger, core, CLAUDE_CODE_SESSION_ID="t") != "lead"
    assert asked_from_below(ledger, core, CODEX_THREAD_ID="s") != "lead", "another client's word"
    codex = Client(process=processes.current(), directory=str(core), name="codex", door="mcp")
    claim(ledger, codex, ROOMS_NAME="inner")
    found = asked_from_below(ledger, core, CLAUDE_CODE_SESSION_ID="s")
    assert found == "inner", "an ancestor knows better than what was inherited from outside"


@pytest.mark.skipif(sys.platform != "linux", reason="only there processes have namespaces")
def test_a_command_in_a_sandbox_acts_as_its_agent(ledger: Ledger, core: Path, one: Program) -> None:
    sandbox = ["unshare", "--user", "--map-root-user", "--pid", "--fork", "--mount-proc"]
    if subprocess.run([*sandbox, "true"], capture_output=True, check=False).returncode:
        pytest.skip("this system lets nobody make a namespace of processes")
    client = Client(process=processes.current(), directory=str(core), name="codex", session="s")
    claim(ledger, one.client(core), ROOMS_NAME="lead")
    mine = claim(ledger, msgspec.structs.replace(client, door="hook"), ROOMS_NAME="lead").name
    assert mine == f"lead-{os.getpid()}"
    found = subprocess.run(
        [*sandbox, sys.executable, "-c", ASKS, str(ledger.root)],
        cwd=core,
        env={**os.environ, "CODEX_THREAD_ID": "s"},
        capture_output=True,
        check=True,
    )
    assert found.stdout.decode().strip() == mine
    assert presence.live(ledger, mine) is not None


def test_a_person_beside_an_agent_is_somebody_else(
    ledger: Ledger, core: Path, one: Program
) -> None:
    held = claim(ledger, one.client(core)).name
    name = asked_from_below(ledger, core)
    assert name.startswith(f"{held}-")
    assert asked_from_below(ledger, core) == name, "and the next time the same"
    assert asked_from_below(ledger, core, ROOMS_NAME=held) == held, "a name is a claim, no proof"


def test_a_command_without_a_ledger_has_a_name_too(core: Path) -> None:
    assert whoami(None, {}, core).name == derived_name(str(core))
    assert whoami(None, {"ROOMS_NAME": "x"}, core).name == "x"
    assert whoami(None, {"ROOMS_NAME": "x"}, core, "y").source == "option"


def test_a_link_to_a_directory_is_that_directory(core: Path, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(core)
    assert whoami(None, {}, tmp_path / "link").name == derived_name(str(core))


def test_what_clients_say_of_themselves_is_bounded(core: Path) -> None:
    found = find_client(
        {"TMUX_PANE": "%1\x1b[31m", "CLAUDE_CODE_SESSION_ID": "x" * 1000},
        core,
        door="mcp",
        name="claude-code\n\x1b[31m" + "x" * 500,
        model="m" * 500,
    )
    assert found.pane is None
    assert found.session is None
    assert len(found.name) <= 64
    assert found.name.isprintable()
    assert len(found.model or "") <= 64
