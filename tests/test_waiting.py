"""Waiting: awake at what is for the name and at nothing else, without a thread, to a clean end."""

from __future__ import annotations

import asyncio
import threading
from typing import TYPE_CHECKING, Any

import pytest

from agent_chatroom_ledger import Ledger
from agent_chatroom_ledger.errors import Busy
from agent_chatroom_ledger.inbox import take, waiting_count
from agent_chatroom_ledger.presence import live
from agent_chatroom_ledger.waiting import inbox, messages, wait_for
from tests.conftest import check_ledger

if TYPE_CHECKING:
    from collections.abc import Callable

    from agent_chatroom_ledger import Room
    from agent_chatroom_ledger.inbox import Item

SOON = 60.0


@pytest.fixture
def room(ledger: Ledger) -> Room:
    return ledger.create_room("Review", members=["Ana", "Ben"])


class Aside:
    """Runs a call in a thread and gives its result."""

    def __init__(self, call: Callable[[], Any]) -> None:
        self.result: Any = None
        self._thread = threading.Thread(target=self._run, args=(call,))
        self._thread.start()

    def _run(self, call: Callable[[], Any]) -> None:
        self.result = call()

    def alive(self) -> bool:
        self._thread.join(0.2)
        return self._thread.is_alive()

    def get(self) -> Any:
        self._thread.join(SOON)
        assert not self._thread.is_alive()
        return self.result


def test_what_waits_already_is_no_wait(ledger: Ledger, room: Room) -> None:
    room.post("Ana", "hello")
    assert wait_for(ledger, "Ben")
    assert waiting_count(ledger, "Ben") == 1


def test_nothing_came(ledger: Ledger, room: Room) -> None:
    room.post("Ben", "my own")
    assert not wait_for(ledger, "Ben", seconds=0)
    assert not wait_for(ledger, "Ben", seconds=0.05)
    assert not wait_for(ledger, "Nobody", seconds=-1)


def test_awake_at_what_is_for_the_name_and_at_nothing_else(ledger: Ledger, room: Room) -> None:
    other = ledger.create_room("Other", members=["Ana"])
    waiting = Aside(lambda: wait_for(ledger, "Ben", seconds=SOON))
    other.post("Ana", "elsewhere")
    room.post("Ben", "my own")
    room.post("Ana", "joined", kind="event")
    ledger.flush()
    assert waiting.alive()
    other.post("Ana", "for you", to=["Ben"])
    assert waiting.get() is True


def test_only_one_room(ledger: Ledger, room: Room) -> None:
    other = ledger.create_room("Other", members=["Ben"])
    other.post("Ana", "elsewhere")
    waiting = Aside(lambda: wait_for(ledger, "Ben", room=room, seconds=SOON))
    assert waiting.alive()
    room.post("Ana", "here")
    assert waiting.get() is True


def test_who_is_made_a_member_meanwhile_is_woken(ledger: Ledger, room: Room) -> None:
    waiting = Aside(lambda: wait_for(ledger, "Cleo", seconds=SOON))
    room.post("Ana", "before")
    room.add_member("Cleo")
    assert waiting.alive()
    room.post("Ana", "during")
    assert waiting.get() is True


@pytest.mark.parametrize("commit", ["sync", "group"])
@pytest.mark.usefixtures("room")
def test_another_opening_is_heard(ledger: Ledger, commit: str) -> None:
    with Ledger.open(ledger.root, read_only=True) as reader:
        waiting = Aside(lambda: wait_for(reader, "Ben", seconds=SOON))
        with Ledger.open(ledger.root, commit=commit) as writer:  # type: ignore[arg-type] - one of the two
            writer.room("review").post("Ana", "hello")
            assert waiting.get() is True


def test_a_room_that_comes_back_with_what_waits_wakes(ledger: Ledger, room: Room) -> None:
    room.post("Ana", "hello")
    ledger.archive_room(room)
    waiting = Aside(lambda: wait_for(ledger, "Ben", seconds=SOON))
    assert waiting.alive()
    ledger.restore_room("review")
    assert waiting.get() is True


def test_an_inbox_waits_for_the_first_message_only(ledger: Ledger, room: Room) -> None:
    asked = Aside(lambda: inbox(ledger, "Ben", seconds=SOON))
    room.post("Ana", "hello")
    assert [item.message.body for item in asked.get()] == ["hello"]
    assert inbox(ledger, "Ben", seconds=0.05) == []
    room.post("Ana", "again")
    assert [item.message.body for item in inbox(ledger, "Ben", peeking=True)] == ["again"]
    assert [item.message.body for item in inbox(ledger, "Ben")] == ["again"]


def test_messages_come_one_by_one_and_the_last_is_not_lost(ledger: Ledger, room: Room) -> None:
    for n in range(4):
        room.post("Ana", str(n))
    found: list[str] = []

    async def main() -> None:
        async for item in messages(ledger, "Ben"):
            found.append(item.message.body)
            if item.message.body == "2":
                break

    asyncio.run(main())
    assert found == ["0", "1", "2"]
    # The one at which the loop ended was not asked past.
    assert [item.message.body for item in inbox(ledger, "Ben")] == ["2", "3"]


def test_messages_that_come_later(ledger: Ledger, room: Room) -> None:
    async def main() -> list[str]:
        found: list[str] = []

        async def listen() -> None:
            async for item in messages(ledger, "Ben"):
                found.append(item.message.body)
                if len(found) == 3:
                    return

        listener = asyncio.create_task(listen())
        for n in range(3):
            await asyncio.sleep(0.02)
            room.post("Ana", str(n))
        await asyncio.wait_for(listener, SOON)
        return found

    assert asyncio.run(main()) == ["0", "1", "2"]


def test_a_cancelled_task_ends_and_leaves_no_thread_and_no_lock(ledger: Ledger, room: Room) -> None:
    room.post("Ana", "hello")
    before = threading.active_count()

    async def main() -> list[Item]:
        found: list[Item] = []

        async def listen() -> None:
            async for item in messages(ledger, "Ben"):
                found.append(item)
                await asyncio.sleep(3_600)

        async def idle() -> None:
            async for _ in messages(ledger, "Nobody"):
                pass

        tasks = [asyncio.create_task(listen()), asyncio.create_task(idle())]
        while not found:  # noqa: ASYNC110 - a generator of ours tells no event
            await asyncio.sleep(0.01)
        assert threading.active_count() == before
        for task in tasks:
            task.cancel()
        results = await asyncio.gather(*tasks, return_exceptions=True)
        assert all(isinstance(result, asyncio.CancelledError) for result in results)
        return found

    (item,) = asyncio.run(main())
    assert ledger.receipts.of_record(item.message.id) == []
    with take(ledger, "Ben", lock_seconds=1) as handover:
        assert len(handover) == 1


def test_another_door_of_the_name_is_waited_for(ledger: Ledger, room: Room) -> None:
    room.post("Ana", "hello")

    async def main() -> str:
        held = take(ledger, "Ben")
        stream = messages(ledger, "Ben")
        pending = asyncio.ensure_future(anext(stream))
        await asyncio.sleep(0.1)
        assert not pending.done()
        with pytest.raises(Busy):
            take(ledger, "Ben", lock_seconds=0)
        held.close()
        item = await asyncio.wait_for(pending, SOON)
        await stream.aclose()
        return item.message.body

    assert asyncio.run(main()) == "hello"


def test_who_waits_in_python_is_woken_too(ledger: Ledger, room: Room) -> None:
    assert live(ledger, "Ben") is None
    asked = Aside(lambda: ledger.agent("Ben").inbox(wait=SOON))
    while (found := live(ledger, "Ben")) is None:
        assert asked.alive()
    assert found.reach == "wakes"
    room.post("Ana", "hello")
    assert len(asked.get()) == 1
    assert live(ledger, "Ben") is None

    async def main() -> None:
        stream = ledger.agent("Ben").messages()
        pending = asyncio.ensure_future(anext(stream))
        await asyncio.sleep(0.05)
        found = live(ledger, "Ben")
        assert found is not None
        assert found.reach == "wakes"
        room.post("Ana", "again")
        await pending
        await stream.aclose()
        assert live(ledger, "Ben") is None

    asyncio.run(main())


def test_a_name_too_long_for_an_agent_may_wait_all_the_same(ledger: Ledger, room: Room) -> None:
    name = "B" * 64
    room.post("Ana", "hello", to=[name])
    assert [item.message.body for item in inbox(ledger, name, seconds=0.05)] == ["hello"]


def test_an_item_a_message_or_a_room_was_seen(ledger: Ledger, room: Room) -> None:
    ben = ledger.agent("Ben")
    for n in range(4):
        room.post("Ana", str(n))
    first, *_, last = ben.inbox()
    assert ben.seen(first) == {ledger.origin: 1}
    assert ben.seen(room.message(2)) == {ledger.origin: 2}
    assert ben.seen(room, 3) == {ledger.origin: 3}
    assert ben.seen(last) == ben.seen("review") == {ledger.origin: 4}


def test_the_ledger_is_sound_afterwards(ledger: Ledger, room: Room) -> None:
    room.post("Ana", "hello")
    inbox(ledger, "Ben")
    ledger.close()
    check_ledger(ledger.root)
