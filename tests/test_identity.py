"""Who am I: precedence, suffixes, sessions, restarts, forks and races, with real processes."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import msgspec
import pytest

from agent_chatroom_ledger import Ledger, identity, pinning, presence
from agent_chatroom_ledger.domain.agentnames import derived_name
from agent_chatroom_ledger.domain.identities import Client
from agent_chatroom_ledger.errors import Busy, InvalidInput
from agent_chatroom_ledger.identity import identify
from agent_chatroom_ledger.storage import pinfile, processes
from agent_chatroom_ledger.storage import presence as book
from agent_chatroom_ledger.storage.locks import FileLock
from tests.clientlike import Program, claim, names, running

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture
def two(core: Path) -> Iterator[Program]:
    with running(core) as program:
        yield program


# --- what says who one is ----------------------------------------------------------------------


def test_the_precedence(ledger: Ledger, core: Path, one: Program) -> None:
    """`--as`, ROOMS_NAME, PI_ROOMS_NAME, PI_AGENT_NAME, session, pane, directory, derived."""
    client = one.client(core, session="s", pane="tmux:%1")
    for key, name in (("session:s", "S"), ("pane:tmux:%1", "P"), (f"cwd:{core}", "C")):
        pinning.set_pin(ledger, key, name)
    environment = {"PI_AGENT_NAME": "a", "PI_ROOMS_NAME": "r", "ROOMS_NAME": "n"}

    def seen(explicit: str | None = None) -> tuple[str, str]:
        found = identify(ledger, environment, client, explicit, claim=False)
        return found.name, found.source

    order = [seen("me"), seen()]
    for variable in ("ROOMS_NAME", "PI_ROOMS_NAME", "PI_AGENT_NAME"):
        environment.pop(variable)
        order.append(seen())
    for key in ("session:s", "pane:tmux:%1", f"cwd:{core}"):
        pinning.remove_pin(ledger, key)
        order.append(seen())
    assert order == [
        ("me", "option"),
        ("n", "ROOMS_NAME"),
        ("r", "PI_ROOMS_NAME"),
        ("a", "PI_AGENT_NAME"),
        ("S", "session"),
        ("P", "pane"),
        ("C", "cwd"),
        (derived_name(str(core)), "derived"),
    ]


def test_a_pin_never_overrides_the_environment(ledger: Ledger, core: Path, one: Program) -> None:
    client = one.client(core)
    assert claim(ledger, client, PI_AGENT_NAME="env").name == "env"
    pinning.set_pin(ledger, f"cwd:{core}", "pinned")
    assert claim(ledger, client, PI_AGENT_NAME="env").name == "env"
    (pin,) = pinning.list_pins(ledger)
    assert (pin.state, pin.process) == ("overridden", None)


def test_a_name_heard_through_one_door_holds_for_all(
    ledger: Ledger, core: Path, one: Program
) -> None:
    """A client may hand its environment to hooks and not to servers."""
    server = one.client(core)
    assert claim(ledger, server).source == "derived"
    hook = one.client(core, door="hook")
    assert claim(ledger, hook, ROOMS_NAME="lead").name == "lead"
    assert claim(ledger, server).name == "lead"
    assert claim(ledger, server, PI_AGENT_NAME="weaker").name == "lead"
    assert claim(ledger, server, ROOMS_NAME="other").name == "other"
    assert names(ledger) == ["other"]


def test_pins_are_read_at_every_call(ledger: Ledger, core: Path, one: Program) -> None:
    client = one.client(core)
    assert claim(ledger, client).source == "derived"
    pinning.set_pin(ledger, f"cwd:{core}", "first")
    assert claim(ledger, client).name == "first"
    pinning.set_pin(ledger, f"cwd:{core}", "second")
    assert claim(ledger, client).name == "second"
    pinning.remove_pin(ledger, f"cwd:{core}")
    assert claim(ledger, client).source == "derived"
    assert names(ledger) == [derived_name(str(core))]


def test_a_name_of_the_environment_has_at_most_48_characters(
    ledger: Ledger, core: Path, one: Program
) -> None:
    with pytest.raises(InvalidInput, match="ROOMS_NAME has 49"):
        claim(ledger, one.client(core), ROOMS_NAME="x" * 49)


# --- a live holder keeps its name --------------------------------------------------------------


def test_who_comes_second_gets_a_suffix_and_overwrites_nothing(
    ledger: Ledger, core: Path, one: Program, two: Program
) -> None:
    holder, contender = one.client(core), two.client(core)
    assert claim(ledger, holder, ROOMS_NAME="lead").name == "lead"
    found = claim(ledger, contender, ROOMS_NAME="lead")
    assert (found.name, found.base, found.held) == (f"lead-{two.id.pid}", "lead", True)
    assert claim(ledger, holder, ROOMS_NAME="lead").name == "lead"
    assert names(ledger) == ["lead", f"lead-{two.id.pid}"]


def test_a_suffix_lasts_for_the_session(
    ledger: Ledger, core: Path, one: Program, two: Program
) -> None:
    claim(ledger, one.client(core), ROOMS_NAME="lead")
    contender = two.client(core)
    mine = claim(ledger, contender, ROOMS_NAME="lead").name
    one.kill()
    assert claim(ledger, contender, ROOMS_NAME="lead").name == mine
    assert claim(ledger, contender, ROOMS_NAME="boss").name == "boss", "a changed name resolves"
    two.kill()
    with running(core) as again:
        assert claim(ledger, again.client(core), ROOMS_NAME="lead").name == "lead", "a restart too"


def test_a_long_name_keeps_its_suffix(
    ledger: Ledger, core: Path, one: Program, two: Program
) -> None:
    claim(ledger, one.client(core), ROOMS_NAME="x" * 48)
    found = claim(ledger, two.client(core), ROOMS_NAME="x" * 48)
    assert len(found.name) == 48
    assert found.name.endswith(f"-{two.id.pid}")


def test_a_contender_never_stamps_a_pin(
    ledger: Ledger, core: Path, one: Program, two: Program
) -> None:
    claim(ledger, one.client(core), ROOMS_NAME="lead")
    pinning.set_pin(ledger, "pane:tmux:%1", "lead")
    contender = two.client(core, pane="tmux:%1")
    assert claim(ledger, contender).name == f"lead-{two.id.pid}"
    assert pinfile.load(ledger.layout)["pane:tmux:%1"].claimed_by is None


def test_a_dead_holders_name_is_free(
    ledger: Ledger, core: Path, one: Program, two: Program
) -> None:
    claim(ledger, one.client(core), ROOMS_NAME="lead")
    one.kill()
    assert claim(ledger, two.client(core), ROOMS_NAME="lead").name == "lead"


def test_a_number_that_is_used_again_holds_nothing(
    ledger: Ledger, core: Path, one: Program, two: Program
) -> None:
    earlier = msgspec.structs.replace(one.id, started=one.id.started - 60)
    claim(ledger, Client(process=earlier, directory=str(core), door="mcp"), ROOMS_NAME="lead")
    assert names(ledger) == []
    assert claim(ledger, two.client(core), ROOMS_NAME="lead").name == "lead"


def test_several_agents_of_one_process_have_seats(ledger: Ledger, core: Path, one: Program) -> None:
    """As those behind one HTTP server do."""
    first = one.client(core, seat="token:a")
    second = one.client(core, seat="token:b")
    assert identify(ledger, {}, first, "a", claim=True).name == "a"
    assert identify(ledger, {}, second, "b", claim=True).name == "b"
    assert identify(ledger, {}, first, "a", claim=True).name == "a"
    assert names(ledger) == ["a", "b"]


# --- sessions ----------------------------------------------------------------------------------


def test_sessions_are_aliases_that_hooks_rebind(ledger: Ledger, core: Path, one: Program) -> None:
    server = one.client(core, session="stale")
    claim(ledger, server)
    pinning.set_pin(ledger, "session:fresh", "lead")
    hook = one.client(core, door="hook", session="fresh")
    assert presence.heard_hook(ledger, {}, hook).name == "lead"
    assert claim(ledger, server).name == "lead", "the server's own id is known to be stale"
    (found,) = presence.who(ledger)
    assert (found.session, found.doors) == ("fresh", ("mcp", "hook"))
    cleared = one.client(core, door="hook", session="cleared")
    assert presence.heard_hook(ledger, {}, cleared).source == "derived", "it inherits nothing"
    assert presence.who(ledger)[0].session == "cleared"


def test_a_sessions_pin_survives_a_restart_and_is_stamped_anew(
    ledger: Ledger, core: Path, one: Program, two: Program
) -> None:
    pinning.set_pin(ledger, "session:s", "lead")
    assert claim(ledger, one.client(core, session="s")).name == "lead"
    assert pinfile.load(ledger.layout)["session:s"].claimed_by == one.id
    one.kill()
    assert claim(ledger, two.client(core, session="s")).name == "lead"
    assert pinfile.load(ledger.layout)["session:s"].claimed_by == two.id


def test_a_fork_that_shows_the_old_session_inherits_nothing(
    ledger: Ledger, core: Path, one: Program, two: Program
) -> None:
    pinning.set_pin(ledger, "session:s", "lead")
    claim(ledger, one.client(core, session="s"))
    fork = claim(ledger, two.client(core, session="s", door="hook"))
    assert fork.source == "derived"
    assert "is alive" in fork.warnings[0]
    assert claim(ledger, two.client(core, session="t", door="hook")).name == fork.name
    assert claim(ledger, one.client(core, session="s")).name == "lead"


def test_a_session_that_was_left_may_be_gone_on_with(
    ledger: Ledger, core: Path, one: Program, two: Program
) -> None:
    """Its client has cleared, or turned out to be a fork; another resumes what it left."""
    pinning.set_pin(ledger, "session:s", "lead")
    assert claim(ledger, one.client(core, session="s", door="hook")).name == "lead"
    assert claim(ledger, one.client(core, session="t", door="hook")).source == "derived"
    assert pinfile.load(ledger.layout)["session:s"].claimed_by is None
    assert claim(ledger, two.client(core, session="s", door="hook")).name == "lead"


def test_a_reused_pane_inherits_nothing(
    ledger: Ledger, core: Path, one: Program, two: Program
) -> None:
    pinning.set_pin(ledger, "pane:tmux:%1", "lead")
    assert claim(ledger, one.client(core, pane="tmux:%1")).name == "lead"
    one.kill()
    after = claim(ledger, two.client(core, pane="tmux:%1"))
    assert after.source == "derived"
    assert "set it again" in after.warnings[0]
    pinning.set_pin(ledger, "pane:tmux:%1", "lead")
    assert claim(ledger, two.client(core, pane="tmux:%1")).name == "lead"


def test_a_directorys_pin_needs_exactly_one_client(
    ledger: Ledger, core: Path, one: Program, two: Program
) -> None:
    pinning.set_pin(ledger, f"cwd:{core}", "lead")
    claim(ledger, one.client(core), ROOMS_NAME="elsewhere-named")
    second = claim(ledger, two.client(core))
    assert second.source == "derived"
    assert "2 live clients" in second.warnings[0]
    one.kill()
    assert claim(ledger, two.client(core)).name == "lead"


def test_a_client_that_never_came_to_us_counts_as_well(ledger: Ledger, core: Path) -> None:
    pinning.set_pin(ledger, f"cwd:{core}", "lead")
    with running(core, "claude") as one, running(core, "codex") as other:
        assert claim(ledger, one.client(core)).source == "derived"
        assert pinning.list_pins(ledger)[0].state == "ambiguous"
        other.kill()
        assert claim(ledger, one.client(core)).name == "lead"


def test_a_directorys_pin_is_not_inherited(
    ledger: Ledger, core: Path, one: Program, two: Program
) -> None:
    pinning.set_pin(ledger, f"cwd:{core}", "lead")
    assert claim(ledger, one.client(core)).name == "lead"
    one.kill()
    assert claim(ledger, two.client(core)).source == "derived"


def test_where_a_client_goes_changes_nothing(ledger: Ledger, core: Path, one: Program) -> None:
    """A hook tells the directory of the moment; the agent stays who it was."""
    before = claim(ledger, one.client(core)).name
    below = one.client(core / "src", door="hook")
    assert claim(ledger, below).name == before
    assert presence.who(ledger)[0].directory == str(core)


# --- without a claim ---------------------------------------------------------------------------


def test_inspection_writes_nothing(ledger: Ledger, core: Path, one: Program, two: Program) -> None:
    pinning.set_pin(ledger, "session:s", "lead")
    found = identify(ledger, {}, one.client(core, session="s"), claim=False)
    assert (found.name, found.held) == ("lead", False)
    assert not ledger.layout.presence.exists()
    assert pinfile.load(ledger.layout)["session:s"].claimed_by is None
    claim(ledger, two.client(core), ROOMS_NAME="lead")
    found = identify(ledger, {}, one.client(core, session="s"), claim=False)
    assert found.name == f"lead-{one.id.pid}", "what it would be called"
    assert presence.register(ledger, found, one.client(core, session="s")).name == found.name


def test_who_takes_part_after_all_registers(ledger: Ledger, core: Path, one: Program) -> None:
    client = one.client(core)
    for explicit, environment in (("me", {}), (None, {"ROOMS_NAME": "me"}), (None, {})):
        seen = identify(ledger, environment, client, explicit, claim=False)
        found = presence.register(ledger, seen, client)
        assert (found.name, found.source, found.held) == (seen.name, seen.source, True)
        presence.release(ledger, client)


def test_a_claim_that_changes_nothing_writes_nothing(
    ledger: Ledger, core: Path, one: Program
) -> None:
    pinning.set_pin(ledger, "session:s", "lead")
    client = one.client(core, session="s", door="hook")
    claim(ledger, client)
    (path,) = ledger.layout.presence.glob("*.json")
    before = path.stat().st_ino, ledger.layout.pins.stat().st_ino
    with FileLock(ledger.layout.locks / "presence.lock"):
        assert claim(ledger, client).held, "not even the lock is asked for"
    assert (path.stat().st_ino, ledger.layout.pins.stat().st_ino) == before


def test_a_claim_waits_for_another_and_then_gives_up(
    ledger: Ledger, core: Path, one: Program, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(book, "CLAIM_WAIT_SECONDS_MAX", 0.05)
    path = ledger.layout.locks / "presence.lock"
    with FileLock(path):
        os.utime(path, (0, 0))
        with pytest.raises(Busy, match="presence"):
            claim(ledger, one.client(core))


# --- a rename is no alias ----------------------------------------------------------------------


def test_a_renamed_agent_is_heard_under_its_old_name_for_a_while(
    ledger: Ledger, core: Path, one: Program, two: Program
) -> None:
    claim(ledger, one.client(core), ROOMS_NAME="old")
    claim(ledger, one.client(core), ROOMS_NAME="new")
    assert presence.former_names(ledger, "new") == ("old",)
    assert presence.former_names(ledger, "old") == ()
    claim(ledger, two.client(core), ROOMS_NAME="old")
    assert presence.former_names(ledger, "new") == (), "somebody else lives under it"
    two.kill()
    assert presence.former_names(ledger, "new") == ("old",)


def test_two_minutes_after_a_rename_it_is_over(
    ledger: Ledger, core: Path, one: Program, monkeypatch: pytest.MonkeyPatch
) -> None:
    claim(ledger, one.client(core), ROOMS_NAME="old")
    monkeypatch.setattr(identity, "FORMER_SECONDS_MAX", 0)
    claim(ledger, one.client(core), ROOMS_NAME="new")
    assert presence.former_names(ledger, "new") == ()


SHELL = (40, "sh", ("sh", "-c", "x"))


@pytest.mark.parametrize(
    ("chain", "orphaned"),
    [
        ([SHELL, (1, "node", ("node", "serve.js"))], True),
        ([SHELL, (1, "claude", ("claude",))], False),
        ([SHELL, (30, "node", ("node", "agent.js")), (1, "init", ())], False),
        ([SHELL], False),
    ],
)
def test_who_is_left_with_the_first_process_has_no_client(
    monkeypatch: pytest.MonkeyPatch,
    chain: list[tuple[int, str, tuple[str, ...]]],
    *,
    orphaned: bool,
) -> None:
    """In a container that may be any program, and it bears a name for as long as that runs."""
    found = [
        processes.Ancestor(processes.ProcessId(pid, 1.0, processes.boot()), name, words)
        for pid, name, words in chain
    ]
    monkeypatch.setattr(processes, "ancestors", lambda _: found)
    assert identity.is_orphaned() is orphaned
    assert not (orphaned and identity.has_client())
