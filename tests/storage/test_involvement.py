"""Whether a ledger has to do with a name."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from agent_chatroom_ledger import Ledger
from agent_chatroom_ledger.nudges import is_involved

if TYPE_CHECKING:
    from tests.conftest import MakeLedger


@pytest.mark.parametrize("read_only", [False, True])
@pytest.mark.parametrize("indexed", [False, True])
def test_members_of_any_time_and_whoever_was_written_to(
    make_ledger: MakeLedger, *, read_only: bool, indexed: bool
) -> None:
    with make_ledger() as ledger:
        room = ledger.create_room("Room", members=["member", "former"], by="maker")
        ledger.agent("former").leave(room)
        if indexed:
            ledger.index.rebuild()
        ledger.agent("poster").post(room, "hello", to=["addressee"])
        ledger.agent("poster").dm(["direct"], "hello")
    with Ledger.open(ledger.root, read_only=read_only) as again:
        asked = ("member", "former", "addressee", "direct", "poster", "stranger", "Member", "")
        found = {name for name in asked if is_involved(again, name)}
    # Who only sent direct messages is a member of their room.
    assert found == {"member", "former", "addressee", "direct", "poster"}
