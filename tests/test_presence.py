"""Who is here, and how soon a message reaches them."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from typing import TYPE_CHECKING

import msgspec
import pytest

from agent_chatroom_ledger import Ledger, presence
from agent_chatroom_ledger.errors import InvalidInput
from agent_chatroom_ledger.identity import find_client, identify
from tests.clientlike import Program, running

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from agent_chatroom_ledger.domain.identities import Client


@pytest.fixture
def one(tmp_path: Path) -> Iterator[Program]:
    with running(tmp_path) as program:
        yield program


def register(ledger: Ledger, client: Client, name: str) -> str:
    return identify(ledger, {"ROOMS_NAME": name}, client, claim=True).name


def test_nobody_is_here_at_first(ledger: Ledger) -> None:
    assert presence.who(ledger) == []
    assert presence.live(ledger, "lead") is None
    assert presence.reach(ledger, ["lead", "../x"]) == {"lead": "queued", "../x": "queued"}
    assert presence.former_names(ledger, "lead") == ()
    assert not ledger.layout.presence.exists(), "reading writes nothing"


def test_who_tells_what_is_known(ledger: Ledger, tmp_path: Path, one: Program) -> None:
    client = one.client(tmp_path, session="s", pane="tmux:%1", model="m", door="hook")
    register(ledger, client, "lead")
    (found,) = presence.who(ledger)
    assert (found.name, found.live, found.client) == ("lead", True, "claude-code")
    assert (found.process, found.directory) == (one.id.pid, str(tmp_path))
    assert (found.session, found.pane, found.model) == ("s", "tmux:%1", "m")
    assert found.since is not None
    assert presence.live(ledger, "lead") == found
    assert presence.live(ledger, "Lead") is None
    since = found.since
    assert register(ledger, client, "other") == "other"
    assert presence.who(ledger)[0].since == since, "since the client came"


def test_the_dead_are_not_here(ledger: Ledger, tmp_path: Path, one: Program) -> None:
    register(ledger, one.client(tmp_path, door="hook"), "lead")
    assert presence.reach(ledger, ["lead"]) == {"lead": "next turn"}
    one.process.kill()
    os.waitid(os.P_PID, one.id.pid, os.WEXITED | os.WNOWAIT)  # a zombie now
    assert presence.who(ledger) == []
    assert presence.live(ledger, "lead") is None
    assert presence.reach(ledger, ["lead"]) == {"lead": "queued"}
    assert list(ledger.layout.presence.glob("*.json")), "reading takes nobody away"
    with running(tmp_path) as two:
        register(ledger, two.client(tmp_path), "other")
        assert len(list(ledger.layout.presence.glob("*.json"))) == 1


@pytest.mark.parametrize("change", [{"started": 1.0}, {"boot": "earlier"}, {"pid": 2**22 + 7}])
def test_another_start_or_boot_is_not_here(
    ledger: Ledger, tmp_path: Path, one: Program, change: dict[str, object]
) -> None:
    process = msgspec.structs.replace(one.id, **change)
    client = msgspec.structs.replace(one.client(tmp_path), process=process)
    register(ledger, client, "lead")
    assert presence.who(ledger) == []
    assert register(ledger, one.client(tmp_path), "lead") == "lead"


def test_reach(ledger: Ledger, tmp_path: Path, one: Program) -> None:
    """A waiter is woken, a hooked client reads at its next turn, all else is queued."""
    register(ledger, one.client(tmp_path), "lead")
    assert presence.reach(ledger, ["lead", "x"]) == {"lead": "queued", "x": "queued"}
    presence.heard_hook(ledger, {}, one.client(tmp_path))
    assert presence.reach(ledger, ["lead", "x"]) == {"lead": "next turn", "x": "queued"}
    with presence.waiter(ledger, "lead"), presence.waiter(ledger, "x"):
        assert presence.reach(ledger, ["lead", "x"]) == {"lead": "wakes", "x": "wakes"}
        assert [found.reach for found in presence.who(ledger)] == ["wakes", "wakes"]
        only = presence.live(ledger, "x")
        assert only is not None
        assert (only.live, only.process, only.client) == (True, os.getpid(), "")
    assert presence.reach(ledger, ["lead", "x"]) == {"lead": "next turn", "x": "queued"}
    assert [found.name for found in presence.who(ledger)] == ["lead"]


def test_several_may_wait_for_one_name(ledger: Ledger) -> None:
    with presence.waiter(ledger, "lead"):
        with presence.waiter(ledger, "lead"):
            assert len(presence.who(ledger)) == 1
        assert presence.reach(ledger, ["lead"]) == {"lead": "wakes"}
    assert presence.who(ledger) == []


def test_a_waiter_ends_with_an_error_too(ledger: Ledger) -> None:
    with pytest.raises(KeyboardInterrupt), presence.waiter(ledger, "lead"):
        raise KeyboardInterrupt
    assert presence.who(ledger) == []
    with pytest.raises(InvalidInput, match="48"), presence.waiter(ledger, "x" * 49):
        pass


WAITS = """
import sys
from agent_chatroom_ledger import Ledger, presence
with Ledger.open(sys.argv[1], read_only=True) as ledger, presence.waiter(ledger, "lead"):
    print("waits", flush=True)
    sys.stdin.read()
"""


@pytest.mark.parametrize("kill", [signal.SIGKILL, signal.SIGTERM])
def test_a_killed_waiter_wakes_nobody(ledger: Ledger, kill: signal.Signals) -> None:
    process = subprocess.Popen(
        [sys.executable, "-c", WAITS, str(ledger.root)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == b"waits\n"
    assert presence.reach(ledger, ["lead"]) == {"lead": "wakes"}
    process.send_signal(kill)
    process.communicate()
    assert presence.reach(ledger, ["lead"]) == {"lead": "queued"}
    assert presence.who(ledger) == []


def test_releasing_takes_only_ones_own(ledger: Ledger, tmp_path: Path, one: Program) -> None:
    with running(tmp_path) as two:
        register(ledger, one.client(tmp_path), "lead")
        register(ledger, two.client(tmp_path), "lead")
        assert presence.release(ledger, two.client(tmp_path))
        assert [found.name for found in presence.who(ledger)] == ["lead"]
        assert not presence.release(ledger, two.client(tmp_path))
        assert presence.live(ledger, "lead") is not None
        assert presence.release(ledger, one.client(tmp_path))
        assert presence.who(ledger) == []


def test_a_client_goes_with_its_last_door(ledger: Ledger, tmp_path: Path, one: Program) -> None:
    server, hook = one.client(tmp_path), one.client(tmp_path, door="hook")
    register(ledger, server, "lead")
    register(ledger, hook, "lead")
    assert not presence.release(ledger, hook)
    assert presence.reach(ledger, ["lead"]) == {"lead": "queued"}
    assert presence.release(ledger, server)
    assert presence.who(ledger) == []


def test_everybody_are_members_too(ledger: Ledger, tmp_path: Path, one: Program) -> None:
    ledger.create_room("Review", members=["lead", "Ana"])
    register(ledger, one.client(tmp_path), "lead")
    found = {one.name: (one.live, one.reach) for one in presence.everybody(ledger)}
    assert found == {"Ana": (False, "queued"), "lead": (True, "queued")}


def test_presence_is_outside_version_control(
    ledger: Ledger, tmp_path: Path, one: Program, git: object
) -> None:
    register(ledger, one.client(tmp_path), "lead")
    with presence.waiter(ledger, "lead"):
        assert callable(git)
        assert git(ledger.root, "status", "--porcelain", "--untracked-files=all") == ""
    assert ledger.layout.presence.is_relative_to(ledger.layout.git / "ledger")


def test_a_ledger_opened_for_reading_may_be_lived_in(
    ledger: Ledger, tmp_path: Path, one: Program
) -> None:
    """Only files beside it are written, as a cursor is."""
    with Ledger.open(ledger.root, read_only=True) as opened:
        assert register(opened, one.client(tmp_path), "lead") == "lead"
        assert presence.live(ledger, "lead") is not None


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_directory_that_may_not_be_written_is_read(ledger: Ledger, tmp_path: Path) -> None:
    client = find_client({}, tmp_path, door="mcp")
    ledger.root.chmod(0o555)
    try:
        with (
            pytest.warns(UserWarning, match="reading only"),
            Ledger.open(ledger.root) as opened,
            presence.waiter(opened, "lead"),
        ):
            assert not identify(opened, {}, client, claim=True).held
    finally:
        ledger.root.chmod(0o755)
