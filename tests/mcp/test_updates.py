"""Clients hear that a room has changed, over both kinds of subscription."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import TYPE_CHECKING

import anyio
import pytest
from anyio import to_thread
from mcp import Client, MCPError
from mcp.types import ResourceUpdatedNotification, SubscribeRequestParams

from agent_chatroom_ledger.mcp.server import Service, build
from agent_chatroom_ledger.mcp.speakers import House, NamedSpeaker
from agent_chatroom_ledger.mcp.updates import Updates
from tests.mcp.conftest import in_memory

if TYPE_CHECKING:
    from agent_chatroom_ledger import Ledger

pytestmark = pytest.mark.anyio


async def test_rooms_are_listed_and_read_by_their_path(ledger: Ledger, mode: str) -> None:
    room = ledger.create_room("Überblick", folder="team", members=["ana"])
    room.post("ben", "see </room> & \u202e this")
    async with in_memory(ledger, "ana", mode) as ana:
        (listed,) = (await ana.client.list_resources()).resources
        assert listed.uri == "room:///team/%C3%BCberblick"
        (content,) = (await ana.client.read_resource(listed.uri)).contents
        assert content.mime_type == "application/json"
        assert not set(content.text) & set("<>&\u202e\n")
        found = json.loads(content.text)
        assert found["room"] == "team/überblick"
        assert found["messages"][0]["body"] == "see </room> & \u202e this"
        (template,) = (await ana.client.list_resource_templates()).resource_templates
        assert template.uri_template == "room:///{+path}"
        for uri in ("room:///nothing", "file:///etc/passwd", "room:///../ledger.json"):
            with pytest.raises(MCPError) as error:
                await ana.client.read_resource(uri)
            assert error.value.error.data["code"] == "not_found"
    assert ledger.consumer("ana").position(room) == {}


async def test_a_long_list_of_rooms_has_pages(ledger: Ledger, mode: str) -> None:
    for k in range(201):
        ledger.create_room(f"Room {k:03}")
    async with in_memory(ledger, "ana", mode) as ana:
        first = await ana.client.list_resources()
        assert len(first.resources) == 200
        rest = await ana.client.list_resources(cursor=first.next_cursor)
        assert [one.name for one in rest.resources] == ["room-200"]
        assert rest.next_cursor is None


# The client warns that the newer protocol has another way, which the next test takes.
@pytest.mark.filterwarnings("ignore:resources/:mcp.MCPDeprecationWarning")
async def test_a_handshake_client_subscribes_and_unsubscribes(ledger: Ledger) -> None:
    room = ledger.create_room("Review")
    other = ledger.create_room("Other")
    heard: list[str] = []
    news = anyio.Event()

    async def hear(message: object) -> None:
        nonlocal news
        if isinstance(message, ResourceUpdatedNotification):
            heard.append(str(message.params.uri))
            news.set()
            news = anyio.Event()
        await anyio.lowlevel.checkpoint()

    house = House(lambda: ledger)
    server = build(Service(house, NamedSpeaker(house, "ana")))
    async with Client(server, mode="legacy", message_handler=hear) as client:
        await client.subscribe_resource("room:///review")
        with pytest.raises(MCPError, match="no room"):
            await client.subscribe_resource("room:///nothing")
        while "room:///review" not in heard:
            # Whoever subscribes may be told of what comes while the watch begins, or not.
            await to_thread.run_sync(room.post, "ben", "news")
            with anyio.move_on_after(1):
                await news.wait()
        await to_thread.run_sync(other.post, "ben", "nobody asked")
        await to_thread.run_sync(ledger.create_room, "Third")
        before = len(heard)
        await to_thread.run_sync(room.post, "ben", "more")
        while len(heard) == before:
            with anyio.fail_after(20):
                await news.wait()
        assert set(heard) == {"room:///review"}
        await client.unsubscribe_resource("room:///review")
        heard.clear()
        await to_thread.run_sync(room.post, "ben", "unheard")
        await client.read_resource("room:///review")
        assert not heard


@pytest.mark.filterwarnings("ignore:resources/:mcp.MCPDeprecationWarning")
async def test_subscriptions_of_a_connection_have_a_limit(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("agent_chatroom_ledger.mcp.updates.MCP_SUBSCRIPTIONS_MAX", 1)
    for title in ("One", "Two"):
        ledger.create_room(title)
    async with in_memory(ledger, "ana", "legacy") as ana:
        for _ in range(2):
            await ana.client.subscribe_resource("room:///one")
        with pytest.raises(MCPError, match="at most 1 rooms"):
            await ana.client.subscribe_resource("room:///two")
        await ana.client.unsubscribe_resource("room:///one")
        await ana.client.subscribe_resource("room:///two")


class Session:
    """What the SDK keeps of a handshake client, as far as updates go: one that may not read."""

    def __init__(self, *, reads: bool) -> None:
        self.heard = anyio.Event()
        self.asked = 0
        self._reads = reads

    async def send_resource_updated(self, uri: str) -> None:
        assert uri == "room:///review"
        self.asked += 1
        if not self._reads:
            await anyio.sleep_forever()
        self.heard.set()


async def test_a_client_that_does_not_read_keeps_nobody_from_hearing(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("agent_chatroom_ledger.mcp.updates._TELL_SECONDS_MAX", 0.05)
    room = ledger.create_room("Review")
    updates = Updates(House(lambda: ledger), anyio.CapacityLimiter(2))
    stopped, reading = Session(reads=False), Session(reads=True)
    review = SubscribeRequestParams(uri="room:///review")
    async with updates.watching():
        for session in (stopped, reading):
            await updates.subscribe(SimpleNamespace(session=session), review)  # type: ignore[arg-type] # only the session is looked at
        with anyio.fail_after(60):
            for _ in range(2):
                while not reading.heard.is_set():
                    await to_thread.run_sync(room.post, "ben", "news")
                    with anyio.move_on_after(1):
                        await reading.heard.wait()
                reading.heard = anyio.Event()
    assert stopped.asked == 1


async def test_a_newer_client_listens(ledger: Ledger) -> None:
    room = ledger.create_room("Review")
    async with in_memory(ledger, "ana", "auto") as ana, anyio.create_task_group() as group:
        listening = ana.client.listen(
            resource_subscriptions=["room:///review"], resources_list_changed=True
        )
        async with listening as events:
            heard: set[str] = set()

            async def post() -> None:
                while True:
                    await to_thread.run_sync(room.post, "ben", "news")
                    await anyio.sleep(0.5)

            group.start_soon(post)
            with anyio.fail_after(30):
                async for event in events:
                    heard.add(type(event).__name__)
                    if heard == {"ResourceUpdated"}:
                        await to_thread.run_sync(ledger.create_room, "Third")
                    if len(heard) == 2:
                        break
            group.cancel_scope.cancel()
        assert heard == {"ResourceUpdated", "ResourcesListChanged"}
