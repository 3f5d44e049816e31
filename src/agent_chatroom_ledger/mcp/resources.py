"""Rooms as resources: listed by path, read as the newest messages."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from anyio import to_thread
from mcp import types

from agent_chatroom_ledger.limits import MCP_LIST_MAX
from agent_chatroom_ledger.mcp import results
from agent_chatroom_ledger.mcp.answers import object_of, text_of
from agent_chatroom_ledger.mcp.calls import said, short, within
from agent_chatroom_ledger.mcp.roomuris import TEMPLATE, path_of, uri_of

if TYPE_CHECKING:
    import anyio

    from agent_chatroom_ledger.mcp.speakers import House

_MIME: Final = "application/json"
_MESSAGES_SHOWN: Final = 50


class Resources:
    """The rooms of a ledger, as a client lists and reads them; reading marks nothing seen."""

    def __init__(self, house: House, threads: anyio.CapacityLimiter) -> None:
        """Nothing is opened yet."""
        self._house = house
        self._threads = threads

    async def listed(
        self, _ctx: object, params: types.PaginatedRequestParams | None
    ) -> types.ListResourcesResult:
        """Return a page of rooms; the cursor is the last path of the page before."""
        after = params.cursor if params is not None and params.cursor is not None else ""

        def page() -> list[str]:
            return [room.path for room in self._house.ledger().rooms() if room.path > after]

        paths = await to_thread.run_sync(page, limiter=self._threads)
        shown = paths[:MCP_LIST_MAX]
        return types.ListResourcesResult(
            resources=[
                # The path, and not the title: it holds nothing that a member could dress up.
                types.Resource(
                    uri=uri_of(path),
                    name=short(path),
                    description="The newest messages of this room.",
                    mime_type=_MIME,
                )
                for path in shown
            ],
            next_cursor=shown[-1] if len(paths) > len(shown) else None,
        )

    async def templates(
        self, _ctx: object, _params: types.PaginatedRequestParams | None
    ) -> types.ListResourceTemplatesResult:
        """Return how the address of a room is made."""
        return types.ListResourceTemplatesResult(
            resource_templates=[
                types.ResourceTemplate(
                    uri_template=TEMPLATE,
                    name="room",
                    description="The newest messages of a room, by its path, percent-encoded.",
                    mime_type=_MIME,
                )
            ]
        )

    async def read(
        self, _ctx: object, params: types.ReadResourceRequestParams
    ) -> types.ReadResourceResult:
        """Return the newest messages of a room, as JSON on one line."""
        uri = str(params.uri)
        path = path_of(uri)

        def newest() -> dict[str, Any]:
            room = self._house.ledger().room(f"rooms/{path}")
            kept = within(reversed(room.messages(last=_MESSAGES_SHOWN)), _MESSAGES_SHOWN)
            messages = [results.Said(**said(room, message)) for message in reversed(kept)]
            found: dict[str, Any] = object_of(results.ReadResult(messages=messages))
            return {"room": short(room.path), "members": list(room.members), **found}

        text = text_of(await to_thread.run_sync(newest, limiter=self._threads))
        contents = types.TextResourceContents(uri=uri, mime_type=_MIME, text=text)
        return types.ReadResourceResult(contents=[contents])
