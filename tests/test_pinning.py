"""Pins as they are listed, set and removed; a rename that leaves rooms behind is refused."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from agent_chatroom_ledger import Ledger, pinning
from agent_chatroom_ledger.domain.agentnames import derived_name
from agent_chatroom_ledger.errors import Conflict, InvalidInput, NotFound
from agent_chatroom_ledger.presence import release
from agent_chatroom_ledger.storage import pinfile
from tests.clientlike import Program, claim, running
from tests.racing import race

if TYPE_CHECKING:
    from pathlib import Path


def test_pins_are_listed_with_what_they_do(ledger: Ledger, core: Path, one: Program) -> None:
    assert pinning.list_pins(ledger) == []
    assert not ledger.layout.pins.exists()
    pinning.set_pin(ledger, f"cwd:{core}", "lead", by="Ana")
    (pin,) = pinning.list_pins(ledger)
    assert (pin.key, pin.name, pin.set_by) == (f"cwd:{core}", "lead", "Ana")
    assert (pin.state, pin.process) == ("waiting", None)
    claim(ledger, one.client(core))
    (pin,) = pinning.list_pins(ledger)
    assert (pin.state, pin.process, pin.note) == ("followed", one.id.pid, "")
    with running(core, "claude"):
        (pin,) = pinning.list_pins(ledger)
        assert pin.state == "followed", "its claimer keeps it"
        assert "2 live clients" in pin.note
    one.kill()
    (pin,) = pinning.list_pins(ledger)
    assert pin.state == "stale"
    assert "set it again" in pin.note
    done = pinning.set_pin(ledger, f"cwd:{core}", "lead")
    assert done.changed
    assert pinning.list_pins(ledger)[0].state == "waiting"


def test_an_ambiguous_directory_says_so(ledger: Ledger, core: Path) -> None:
    pinning.set_pin(ledger, f"cwd:{core}", "lead")
    with running(core, "claude"), running(core, "codex"):
        (pin,) = pinning.list_pins(ledger)
        assert pin.state == "ambiguous"
        assert pin.note.startswith("2 live clients are in this directory")


def test_a_pin_that_something_stronger_overrides_says_so(
    ledger: Ledger, core: Path, one: Program
) -> None:
    claim(ledger, one.client(core, session="s", pane="p"), ROOMS_NAME="env")
    pinning.set_pin(ledger, "session:s", "lead")
    assert pinning.list_pins(ledger)[0].state == "overridden"
    assert "ROOMS_NAME" in pinning.list_pins(ledger)[0].note
    with running(core) as two:
        pinning.set_pin(ledger, "session:t", "by-session")
        pinning.set_pin(ledger, "pane:q", "by-pane")
        assert claim(ledger, two.client(core, session="t", pane="q")).name == "by-session"
        states = {pin.key: pin.state for pin in pinning.list_pins(ledger)}
        assert states == {
            "session:s": "overridden",
            "session:t": "followed",
            "pane:q": "overridden",
        }


def test_a_pane_claimed_by_another_says_so(ledger: Ledger, core: Path, one: Program) -> None:
    pinning.set_pin(ledger, "pane:p", "lead")
    claim(ledger, one.client(core, pane="p"))
    release(ledger, one.client(core))
    with running(core) as two:
        claim(ledger, two.client(core, pane="p"))
        (pin,) = pinning.list_pins(ledger)
        assert (pin.state, pin.process) == ("taken", one.id.pid)


def test_a_pinned_name_that_somebody_lives_under_says_so(
    ledger: Ledger, core: Path, one: Program
) -> None:
    claim(ledger, one.client(core), ROOMS_NAME="lead")
    with running(core) as two:
        claim(ledger, two.client(core, pane="p"))
        done = pinning.set_pin(ledger, "pane:p", "lead")
        assert done.pin is not None
        assert done.pin.state == "followed"
        assert f"process {one.id.pid} lives under lead" in done.pin.note
        assert claim(ledger, two.client(core, pane="p")).name == f"lead-{two.id.pid}"
        assert pinning.list_pins(ledger)[0].process is None, "a contender stamps nothing"


def test_a_rename_of_a_member_is_refused_and_names_the_rooms(
    ledger: Ledger, core: Path, one: Program
) -> None:
    pinning.set_pin(ledger, f"cwd:{core}", "lead")
    claim(ledger, one.client(core))
    ledger.create_room("dxdb", members=["lead", "other"])
    with pytest.raises(Conflict) as refused:
        pinning.set_pin(ledger, f"cwd:{core}", "renamed")
    assert refused.value.code == "rename_leaves_rooms"
    assert str(refused.value).startswith(
        "Refusing to rename lead -> renamed: it is a member of dxdb. Rooms store members by name "
        "and there is no rename alias"
    )
    assert refused.value.fields["rooms"] == ["dxdb"]
    with pytest.raises(Conflict, match="Refusing to remove the name lead"):
        pinning.remove_pin(ledger, f"cwd:{core}")
    assert claim(ledger, one.client(core)).name == "lead"
    same = pinning.set_pin(ledger, f"cwd:{core}", "lead")
    assert (same.changed, same.left) == (False, ())
    forced = pinning.set_pin(ledger, f"cwd:{core}", "renamed", force=True)
    assert (forced.left, forced.before) == (("dxdb",), "lead")
    assert claim(ledger, one.client(core)).name == "renamed"
    assert ledger.room("dxdb").members == ("lead", "other"), "there is no alias"
    assert pinning.remove_pin(ledger, f"cwd:{core}").left == ()


def test_a_derived_or_suffixed_name_is_not_left_behind_either(
    ledger: Ledger, core: Path, one: Program
) -> None:
    derived = derived_name(str(core))
    ledger.create_room("dxdb", members=[derived])
    with pytest.raises(Conflict, match=derived):
        pinning.set_pin(ledger, f"cwd:{core}", "lead")
    pinning.set_pin(ledger, "pane:p", "lead")
    claim(ledger, one.client(core, pane="q"))
    with pytest.raises(Conflict, match=derived):
        pinning.set_pin(ledger, "pane:q", "lead")
    with running(core) as two:
        second = claim(ledger, two.client(core, session="s")).name
        assert second == f"{derived}-{two.id.pid}"
        pinning.set_pin(ledger, "session:s", "free")
        pinning.remove_pin(ledger, "session:s")
        ledger.create_room("two", members=[second])
        with pytest.raises(Conflict, match="member of two"):
            pinning.set_pin(ledger, "session:s", "lead")
        forced = pinning.set_pin(ledger, "session:s", "lead", force=True)
        assert forced.left == ("two",)


def test_a_pin_that_changes_nobodys_name_leaves_nothing(
    ledger: Ledger, core: Path, one: Program
) -> None:
    claim(ledger, one.client(core, pane="p"), ROOMS_NAME="env")
    ledger.create_room("dxdb", members=["env"])
    assert pinning.set_pin(ledger, "pane:p", "lead").left == ()
    assert claim(ledger, one.client(core, pane="p"), ROOMS_NAME="env").name == "env"


def test_ones_own_pin_is_stamped_at_once(ledger: Ledger, core: Path, one: Program) -> None:
    """Whoever comes to a pane between that and the next call does not inherit it."""
    client = one.client(core, pane="p")
    claim(ledger, client)
    pinning.set_pin(ledger, "pane:p", "lead", client=client)
    assert pinfile.load(ledger.layout)["pane:p"].claimed_by == one.id
    pinning.set_pin(ledger, "pane:other", "two", client=client)
    assert pinfile.load(ledger.layout)["pane:other"].claimed_by is None
    with running(core) as two:
        stranger = two.client(core, pane="p")
        pinning.set_pin(ledger, "pane:p", "three", client=stranger)
        assert pinfile.load(ledger.layout)["pane:p"].claimed_by is None, "it is not registered"


def test_a_directory_is_pinned_by_its_canonical_form(
    ledger: Ledger, core: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "link").symlink_to(core)
    monkeypatch.chdir(tmp_path)
    assert pinning.set_pin(ledger, "cwd:link", "lead").key == f"cwd:{core}"
    assert pinning.set_pin(ledger, f"cwd:{core}/", "lead").changed is False
    assert pinning.remove_pin(ledger, f"cwd:{core}/../core").before == "lead"


@pytest.mark.parametrize("name", ["", "x" * 49, "a\nb", "*"])
def test_a_name_that_no_agent_may_have_is_refused(ledger: Ledger, name: str) -> None:
    with pytest.raises(InvalidInput):
        pinning.set_pin(ledger, "pane:p", name)
    assert not ledger.layout.pins.exists()


def test_what_is_not_there_cannot_be_removed(ledger: Ledger) -> None:
    with pytest.raises(NotFound):
        pinning.remove_pin(ledger, "pane:p")


def test_ones_own_keys(core: Path, one: Program) -> None:
    client = one.client(core, session="s")
    assert pinning.own_key("session", client) == "session:s"
    assert pinning.own_key("cwd", client) == f"cwd:{core}"
    assert pinning.own_key("pane:x", client) == "pane:x"
    with pytest.raises(InvalidInput, match="No pane is known here"):
        pinning.own_key("pane", client)
    with pytest.raises(InvalidInput, match="session:ID"):
        pinning.own_key("nonsense", client)


def test_of_many_that_claim_one_pane_at_once_one_stamps_it(
    ledger: Ledger, core: Path, tmp_path: Path
) -> None:
    pinning.set_pin(ledger, "pane:p", "lead")
    with running(core) as a, running(core) as b, running(core) as c:
        programs = [a, b, c]

        def one(number: int) -> str:
            with Ledger.open(tmp_path / "ledger", read_only=True) as opened:
                return claim(opened, programs[number].client(core, pane="p")).name

        found = race(3, one)
        assert found.count("lead") == 1
        winner = programs[found.index("lead")]
        assert pinfile.load(ledger.layout)["pane:p"].claimed_by == winner.id
