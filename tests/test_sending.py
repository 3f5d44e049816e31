"""Whom a message goes to, what its sender is told once, and how much a session may send."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from agent_chatroom_ledger import Conflict, Corrupt, Forbidden, InvalidInput, Ledger
from agent_chatroom_ledger.presence import waiter
from agent_chatroom_ledger.sending import NOBODY_LIVE
from tests.racing import race

if TYPE_CHECKING:
    from pathlib import Path

    from agent_chatroom_ledger import Room
    from agent_chatroom_ledger.sending import Sent


@pytest.fixture
def room(ledger: Ledger) -> Room:
    return ledger.create_room("Review", members=["Ana", "Ben", "Cy"])


def notes(sent: Sent) -> list[str]:
    return [recipient.note for recipient in sent.recipients]


def limit(ledger: Ledger, count: int) -> None:
    ledger.layout.config.write_text(f"max_sends_per_session = {count}\n")


# --- whom it goes to -----------------------------------------------------------------------------


def test_addressees_come_before_members_and_oneself_is_none(ledger: Ledger, room: Room) -> None:
    sent = ledger.agent("Ana").post(room, "hi", to=["Zoe", "Cy"])
    assert [recipient.name for recipient in sent.recipients] == ["Zoe", "Cy", "Ben"]
    everybody = ledger.agent("Ana").post(room, "hi", to=["*"])
    assert [recipient.name for recipient in everybody.recipients] == ["Ben", "Cy"]


def test_history_goes_to_nobody(ledger: Ledger, room: Room) -> None:
    assert ledger.agent("Ana").post(room, "built", kind="event").recipients == ()


def test_who_is_no_member_may_post_and_is_told(ledger: Ledger, room: Room) -> None:
    sent = ledger.agent("Eve").post(room, "hello")
    assert sent.message.n == 1
    assert "answers there will not reach its inbox" in sent.notes[0]
    assert "`rooms join review`" in sent.notes[0]
    ledger.agent("Eve").join(room)
    assert ledger.agent("Eve").post(room, "hello").notes == ()


def test_all_the_fields_of_a_message(ledger: Ledger, room: Room) -> None:
    first = room.post("Ben", "hi")
    sent = ledger.agent("Ana").post(
        room,
        "yes",
        to=["Ben"],
        reply_to=first,
        kind="decision",
        mentions=["Cy"],
        correlation="c",
        cause=first.id,
        status="done",
        data={"a": 1},
        key="k",
    )
    message = sent.message
    assert (message.author, message.body, message.kind) == ("Ana", "yes", "decision")
    assert (message.to, message.mentions) == (("Ben",), ("Cy",))
    assert (message.reply_to, message.cause) == (first.full_ref, first.id)
    assert (message.correlation, message.status) == ("c", "done")
    assert (message.data, message.id) == ({"a": 1}, "k")


@pytest.mark.parametrize("field", ["to", "mentions"])
def test_names_are_a_list(ledger: Ledger, room: Room, field: str) -> None:
    with pytest.raises(InvalidInput, match="list of names"):
        ledger.agent("Ana").post(room, "hi", **{field: "Ben"})  # type: ignore[arg-type]  # on purpose
    assert room.messages() == []


# --- who is live ---------------------------------------------------------------------------------


def test_a_sender_is_told_once_that_nobody_is_live(ledger: Ledger) -> None:
    ana = ledger.agent("Ana")
    assert notes(ana.dm(["Ben", "Cy"], "1")) == [NOBODY_LIVE, NOBODY_LIVE]
    assert notes(ana.dm(["Ben"], "2")) == [""]
    assert notes(ana.dm(["Ben", "Dan"], "3")) == ["", NOBODY_LIVE]
    assert notes(ledger.agent("Ana").dm(["Ben"], "4")) == [NOBODY_LIVE]


@pytest.mark.parametrize("session", [None, "s-1"])
def test_it_is_told_again_after_somebody_was_live(ledger: Ledger, session: str | None) -> None:
    ana = ledger.agent("Ana", session=session)
    ana.dm(["Ben"], "1")
    with waiter(ledger, "Ben"):
        (ben,) = ana.dm(["Ben"], "2").recipients
        assert (ben.live, ben.reach, ben.note) == (True, "wakes", "")
    (ben,) = ana.dm(["Ben"], "3").recipients
    assert (ben.live, ben.reach, ben.note) == (False, "queued", NOBODY_LIVE)


def test_a_session_with_an_id_is_one_in_every_process(ledger: Ledger, tmp_path: Path) -> None:
    assert notes(ledger.agent("Ana", session="s-1").dm(["Ben"], "1")) == [NOBODY_LIVE]
    with Ledger.open(tmp_path / "ledger") as other:
        assert notes(other.agent("Ana", session="s-1").dm(["Ben"], "2")) == [""]
        assert notes(other.agent("Ana", session="s-2").dm(["Ben"], "3")) == [NOBODY_LIVE]


@pytest.mark.broken_on_purpose
def test_damaged_receipts_are_named_before_anything_is_sent(ledger: Ledger, room: Room) -> None:
    ledger.agent("Ana", session="s-1").post(room, "1")
    ledger.receipts.close()
    for path in ledger.layout.receipts.parent.iterdir():
        path.write_bytes(b"no database, whatever its name says" * 200)
    with pytest.raises(Corrupt) as refused:
        ledger.agent("Ana", session="s-1").post(room, "2")
    assert refused.value.code == "receipts_damaged"
    assert len(room.messages()) == 1
    # Who has no session needs none of it.
    assert ledger.agent("Ana").post(room, "3").message.n == 2


# --- how much a session may send -----------------------------------------------------------------


@pytest.mark.parametrize("session", [None, "s-1"])
def test_past_the_limit_nothing_is_sent_by_any_way(
    ledger: Ledger, room: Room, session: str | None
) -> None:
    limit(ledger, 3)
    ana = ledger.agent("Ana", session=session)
    first = ana.post(room, "1").message
    ana.dm(["Ben"], "2")
    ana.reply_all(first.id, "3")
    rooms = len(ledger.rooms())
    for send in (
        lambda: ana.post(room, "4"),
        lambda: ana.dm(["Ben"], "4"),
        lambda: ana.dm(["Somebody new"], "4"),
        lambda: ana.reply_all(first.id, "4"),
    ):
        with pytest.raises(Forbidden, match="max_sends_per_session") as refused:
            send()
        assert refused.value.code == "send_limit"
        assert refused.value.fields["limit"] == 3
        assert str(ledger.layout.config) in refused.value.message
    assert (len(room.messages()), len(ledger.rooms())) == (2, rooms)
    assert ledger.agent("Ana", session="another").post(room, "5").message.n == 3


def test_without_a_setting_there_is_no_limit_and_no_count(ledger: Ledger, room: Room) -> None:
    ana = ledger.agent("Ana", session="s-1")
    for number in range(20):
        ana.post(room, str(number))
    assert ledger.receipts.sends("s-1") == 0


@pytest.mark.parametrize("session", [None, "s-1"])
def test_what_is_refused_or_said_before_does_not_count(
    ledger: Ledger, room: Room, session: str | None
) -> None:
    limit(ledger, 2)
    ana = ledger.agent("Ana", session=session)
    ana.post(room, "1", key="k")
    for _ in range(3):
        assert ana.post(room, "1", key="k").message.n == 1
    with pytest.raises(InvalidInput):
        ana.post(room, "x", reply_to=99)
    with pytest.raises(Conflict):
        ana.post(room, "other", key="k")
    assert ana.post(room, "2").message.n == 2
    assert ana.post(room, "1", key="k").message.n == 1
    with pytest.raises(Forbidden):
        ana.post(room, "3")


def test_a_higher_limit_lets_go_on(ledger: Ledger, room: Room) -> None:
    limit(ledger, 1)
    ana = ledger.agent("Ana", session="s-1")
    ana.post(room, "1")
    with pytest.raises(Forbidden):
        ana.post(room, "2")
    limit(ledger, 2)
    assert ana.post(room, "2").message.n == 2


def test_a_session_of_many_processes_stays_below_its_limit(ledger: Ledger, tmp_path: Path) -> None:
    ledger.create_room("Review")
    ledger.flush()
    limit(ledger, 5)

    def send(number: int) -> int:
        sent = 0
        with Ledger.open(tmp_path / "ledger") as mine:
            for k in range(3):
                try:
                    mine.agent("Ana", session="s-1").post("review", f"{number}.{k}")
                    sent += 1
                except Forbidden:
                    pass
        return sent

    assert sum(race(4, send)) == 5
    assert len(ledger.room("review").messages()) == 5
